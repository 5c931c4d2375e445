"""The mistakes of an exercise, carried out: what the solution would give with each of them, on a call that went wrong.

A mistake is told where the submission gives the same numbers. Both are exact runs, in which nothing is rounded, unless
the mistake is about digits; so no tolerance decides, and nobody has to write down in float64 what a mistake computes.
"""

from __future__ import annotations

import re
from ast import literal_eval
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import torch

from grader.course.mistakes import Advice, Mistake, advice_of, mistakes_of
from grader.course.trial import Trial, short_dtype
from grader.course.wanted_results import wanted_of
from grader.judge.run import Run
from grader.numerics.arguments import Argument, exact
from grader.operations.comparison import is_right
from grader.operations.hypothesis import Hypothesis
from grader.processes.faults import ChildEnded, MachineFault
from grader.sentences import Said, Value
from grader.ttir.exact_text import NoExactRun
from grader.wire.messages import Finding
from grader.wire.reply import Reply

MOST_CARRIED_STEPS, MOST_CARRIED_LANES = 100_000, 1 << 30  # of all mistakes of a run: about a second of a core
MOST_LANES_OF_A_MISTAKE = 1 << 26  # of a mistake in a launch: ten times as many as most take
MOST_RIGHT = 8  # calls in which the submission is right that a mistake is tried on
MOST_KEPT = 400  # mistakes in calls, of all runs of this process
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


@dataclass
class CarriedOut:
    """What a mistake gives in a call. `numbers`: that its launches were given, by the names of their parameters."""

    results: tuple[torch.Tensor, ...]
    findings: list[Finding]
    numbers: dict[str, Value]


_KEPT: dict[str, CarriedOut | None] = {}  # the oldest first


@dataclass
class CarriedMistakes:
    """Carries mistakes out for one run. A mistake that a call of the run has contradicted is not tried again."""

    run: Run
    _dropped: set[str] = field(default_factory=set)  # names of mistakes, and ids of sentences
    _of_call: tuple[int, int, bool] | None = None  # its inputs, its configuration, and whether it ran exactly
    _of_inputs: list[Argument] | None = None  # kept, so that no other call has their place in memory
    _kept: dict[str, CarriedOut | None] = field(default_factory=dict)  # of this call
    _steps: int = 0
    _lanes: int = 0

    @cached_property
    def _mistakes(self) -> list[Mistake]:
        try:
            return list(mistakes_of(self.run.folder))
        except (OSError, ValueError, SyntaxError, LookupError):  # `course check` tells; a failure is told without
            return []

    @cached_property
    def advice(self) -> Advice:
        try:
            return advice_of(self.run.folder)
        except (OSError, ValueError):
            return Advice()

    def drop(self, sentences: Collection[str]) -> None:
        """Leaves the mistakes with these sentences out of further calls."""
        self._dropped.update(sentences)

    def hypotheses(
        self, trial: Trial, inputs: list[Argument], name: str, formula_is_right: bool | None
    ) -> Iterator[Hypothesis]:
        """Yields what each mistake gives in a call that went wrong. `name`: of the result that is looked at.
        `formula_is_right`: None where the submission has no exact run; its own run is compared with mistakes' then."""
        exactly = formula_is_right is False
        call = id(inputs), trial.config, exactly
        if self._of_call != call:
            self._of_call, self._of_inputs, self._kept = call, inputs, {}
        for mistake in self._mistakes:
            fits_here = {None: True, True: mistake.loses != "", False: mistake.loses != "digits"}[formula_is_right]
            if not fits_here or {mistake.name, mistake.says.id} & self._dropped:
                continue
            if mistake.name not in self._kept:
                self._kept[mistake.name] = self._carried_out(mistake, trial, inputs, exactly)
            found = self._kept[mistake.name]
            said = found and self._said(mistake, found.numbers | {"name": name, "dtype": short_dtype(trial.dtype)})
            if found and said:
                yield Hypothesis(
                    mistake.cause, said, found.results, of_special=True, may_be_constant=True, loses=mistake.loses,
                    holds=partial(self._holds, mistake),
                )  # fmt: skip

    def led_astray(self, trial: Trial, inputs: list[Argument], reply: Reply, finding: Finding) -> Hypothesis | None:
        """Returns the mistake that leads to the same place in the same tensor, and leaves the results alike; or None.

        reply: to the call in which the memory checker has seen it.
        """
        if any(isinstance(one, torch.Tensor) and one.is_meta for one in inputs):  # a large call, of which a sample ran
            return None
        for mistake in self._mistakes:
            found = self._carried_out(mistake, trial, inputs, exactly=False) if mistake.astray else None
            if found is None or not any(_is_same(one, finding) for one in found.findings):
                continue
            outs = (reply.outputs.get(one.name) for one in trial.exercise.results)
            if all(out is not None and _are_alike(out, one) for out, one in zip(outs, found.results)):
                said = self._said(
                    mistake, found.numbers | {"name": finding.argument, "dtype": short_dtype(trial.dtype)}
                )
                if said is not None:
                    return Hypothesis(mistake.cause, said, None)
        return None

    def _carried_out(self, mistake: Mistake, trial: Trial, inputs: list[Argument], exactly: bool) -> CarriedOut | None:
        """Returns what the changed solution gives; None where it comes to no end, or no work is left.

        Kept from run to run, as the runs of an exercise with one seed have the same calls: proofs are.
        """
        sizes = sorted(self._block_sizes(trial, inputs).items())
        key = repr((self.run.folder.path, self.run.seed, mistake.text, trial.data, trial.dtype, trial.name,
                    trial.constants, trial.small_dots, sizes, exactly))  # fmt: skip
        if key not in _KEPT:
            if self._steps > MOST_CARRIED_STEPS or self._lanes > MOST_CARRIED_LANES:
                return None
            _KEPT[key] = self._carried_out_now(mistake, trial, inputs, exactly)
            if len(_KEPT) > MOST_KEPT:
                del _KEPT[next(iter(_KEPT))]
        return _KEPT[key]

    def _carried_out_now(
        self, mistake: Mistake, trial: Trial, inputs: list[Argument], exactly: bool
    ) -> CarriedOut | None:
        ours = self.run.run_of_ours
        given, trial = self._block_sizes(trial, inputs), replace(trial, config=0)
        ours.take(mistake.text)
        try:
            if given.keys() - trial.constants.keys():
                ours.recorded_call(trial, inputs)  # imports the file, whose constants are known then
                own = {name: value for name, value in given.items() if name in ours.process.constants}
                trial = replace(trial, constants=own | trial.constants)
            recorded = ours.recorded_call(trial, inputs).call
            if recorded.error is not None or recorded.refusals:
                return None
            launches = recorded.launches(trial.config)
            carry_out = ours.exact if exactly else ours.call
            reply = carry_out(trial, inputs, most_lanes=MOST_LANES_OF_A_MISTAKE)
        except (NoExactRun, ChildEnded, MachineFault):
            self._lanes += MOST_LANES_OF_A_MISTAKE
            return None
        self._steps, self._lanes = self._steps + reply.steps, self._lanes + reply.lanes
        names = [one.name for one in trial.exercise.results]
        if reply.error is not None or not reply.outputs.keys() >= set(names):
            return None
        outputs = (reply.outputs[one] for one in names)
        numbers: dict[str, Value] = {}
        for launch in launches:
            numbers |= {
                name: literal_eval(value) for name, value in launch.constants.items() if NUMBER.fullmatch(value)
            }
            numbers |= {one.name: one.number for one in launch.parameters if one.value}
        return CarriedOut(
            tuple(one.double() if one.is_floating_point() else one for one in outputs), reply.findings, numbers
        )

    def _block_sizes(self, trial: Trial, inputs: list[Argument]) -> dict[str, int]:
        """Returns the constants that the submission's file states, and those that its launches are compiled with."""
        launches = self.run.recorded_call(trial, inputs).call.launches(trial.config)
        written = {name: value for launch in launches for name, value in launch.constants.items()}
        compiled = {name: int(value) for name, value in written.items() if value.isdecimal()}
        return compiled | self.run.process.constants  # a host may derive what it compiles with from the file's own

    def _holds(self, mistake: Mistake) -> bool:
        """Returns whether a mistake leaves calls right in which the submission is right; else it is dropped."""
        right, tried = self.run.history.right_trials, 0
        for trial in right[:: -(-len(right) // MOST_RIGHT) or 1]:
            inputs = self.run.inputs(trial)
            found = self._carried_out(mistake, trial, inputs, exactly=False)
            if found is None:
                continue
            tried += 1
            refs, given = trial.exercise.expected(exact(inputs)), exact(inputs)
            for out, wanted, ref in zip(found.results, wanted_of(trial), refs):
                if not is_right(out.to(wanted.dtype), ref, wanted.bound, given):
                    self._dropped.add(mistake.name)
                    return False
        return tried > 0 or not right

    def _said(self, mistake: Mistake, names: dict[str, Value]) -> Said | None:
        try:
            return mistake.says.said_of(names)
        except (NameError, ArithmeticError, SyntaxError, TypeError, ValueError):  # such a call has no such number
            return None


def _is_same(one: Finding, other: Finding) -> bool:
    """Returns whether two kernels do the same wrong: which program does it, and in which line, is theirs."""
    return all(getattr(one, name) == getattr(other, name) for name in ("kind", "argument", "linear", "element"))


def _are_alike(out: torch.Tensor, other: torch.Tensor) -> bool:
    """Returns whether two results are the same but for rounding."""
    return out.shape == other.shape and torch.allclose(out.double(), other.double(), 1e-2, 1e-3, equal_nan=True)
