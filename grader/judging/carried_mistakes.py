"""The mistakes of an exercise, carried out: what the solution would give with each of them, on a call that went wrong.

A mistake is told where the submission gives the same numbers. Both are exact runs, in which nothing is rounded, unless
the mistake is about digits; so no tolerance decides, and nobody has to write down in float64 what a mistake computes.
"""

from __future__ import annotations

import hashlib
import re
from ast import literal_eval
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import torch

from grader.course.mistakes import Advice, Mistake, advice_of, mistakes_of
from grader.course.trial import Trial, short_dtype
from grader.course.wanted_results import wanted_of
from grader.explain.hypothesis import Hypothesis
from grader.judging.run import Run
from grader.numerics.arguments import Argument, exact, numbers_of, tensors_of
from grader.numerics.comparison import is_right
from grader.processes.faults import ChildEnded, MachineFault
from grader.sentences import Said, Value
from grader.ttir.exact_text import NoExactRun
from grader.wire.messages import Finding
from grader.wire.recorded_parts import PlannedLaunch
from grader.wire.reply import Reply, spec_and_bytes

MOST_CARRIED, MOST_CARRIED_LANES = 120, 1 << 30  # mistakes in calls of a run, and their elements
# In a launch. In a run each of 03, 05, 09, 13 and 25 to 28 all mistakes but one took fewer than 1 << 23.
MOST_LANES_OF_A_MISTAKE = 1 << 26
MOST_RIGHT = 8  # calls in which the submission is right that a mistake is tried on
MOST_KEPT_BYTES = 256 << 20  # of what mistakes give in calls, of all runs of this process
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")


@dataclass(frozen=True)
class CarriedOut:
    """The changed solution gives these results in a call, and makes these findings. `numbers`: its launches were given
    them, by the names of their parameters."""

    results: tuple[torch.Tensor, ...]
    findings: list[Finding]
    numbers: dict[str, Value]

    @property
    def bytes(self) -> int:
        return sum(one.nbytes for one in self.results)


class _Kept(dict[tuple, CarriedOut | None]):
    """Keeps what mistakes give in calls, the oldest first. Runs of an exercise with one seed share it: their calls are
    the same."""

    bytes = 0

    def keep(self, key: tuple, found: CarriedOut | None) -> None:
        self[key] = found
        self.bytes += found.bytes if found else 0
        while self.bytes > MOST_KEPT_BYTES:
            oldest = self.pop(next(iter(self)))
            self.bytes -= oldest.bytes if oldest else 0


_KEPT = _Kept()


@dataclass(frozen=True)
class _Call:
    """A call in which mistakes are carried out. `sizes`: the constants that the submission's file states, and those
    that its launches are compiled with. `exactly`: whether floats have 64 bits. `key`: two calls with the same give the
    same."""

    trial: Trial
    inputs: list[Argument]
    sizes: dict[str, int]
    exactly: bool

    @cached_property
    def key(self) -> tuple:
        trial, digest = self.trial, hashlib.blake2b()
        for name, tensor in tensors_of(trial.arguments, self.inputs):
            spec, data = spec_and_bytes(name, tensor, 0)
            digest.update(repr(spec).encode())
            digest.update(data)
        named = (sorted(one.items()) for one in (trial.constants, self.sizes, trial.begins))
        return digest.digest(), repr((numbers_of(self.inputs), *named, trial.small_dots)), self.exactly


@dataclass
class CarriedMistakes:
    """Carries mistakes out for one run. A mistake that has fitted no call is left out once a call contradicts it."""

    run: Run
    _dropped: set[str] = field(default_factory=set)  # names of mistakes, and ids of sentences
    _fitting: set[str] = field(default_factory=set)  # ids of sentences that have fitted some call
    _carried: int = 0
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

    def learn(self, fitting: Collection[str], refuted: Collection[str]) -> None:
        """Leaves the mistakes with these sentences out of further calls, unless they have fitted some call: what speaks
        against those has to be counted."""
        self._fitting.update(fitting)
        self._dropped.update(set(refuted) - self._fitting)

    @contextmanager
    def leaving_out(self, refuted: Collection[str]) -> Iterator[None]:
        """Leaves the mistakes with these sentences out for a while, also those that have fitted a call."""
        more = set(refuted) - self._dropped
        self._dropped |= more
        try:
            yield
        finally:
            self._dropped -= more

    def hypotheses(
        self, trial: Trial, inputs: list[Argument], name: str, formula_is_right: bool | None
    ) -> Iterator[Hypothesis]:
        """Yields what each mistake gives in a call that went wrong. `name`: of the result that is looked at.
        `formula_is_right`: None where the submission has no exact run; its own run is compared with mistakes' then."""
        call = self._call(trial, inputs, exactly=formula_is_right is False)
        of_call = {"name": name, "dtype": short_dtype(trial.dtype)}
        for mistake in self._mistakes:
            if not _is_asked(mistake, formula_is_right) or {mistake.name, mistake.says.id} & self._dropped:
                continue
            found = self._carried_out(mistake, call)
            said = found and _said(mistake, found.numbers | of_call)
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
        call = self._call(trial, inputs, exactly=False)
        of_call = {"name": finding.argument, "dtype": short_dtype(trial.dtype)}
        for mistake in self._mistakes:
            found = self._carried_out(mistake, call) if mistake.astray else None
            if found is None or not any(_is_same(one, finding) for one in found.findings):
                continue
            outs = (reply.outputs.get(one.name) for one in trial.exercise.results)
            if all(out is not None and _are_alike(out, one) for out, one in zip(outs, found.results)):
                said = _said(mistake, found.numbers | of_call)
                if said is not None:
                    return Hypothesis(mistake.cause, said, None)
        return None

    def _call(self, trial: Trial, inputs: list[Argument], exactly: bool) -> _Call:
        launches = self.run.recorded_call(trial, inputs).call.launches(trial.config)
        written = {name: value for launch in launches for name, value in launch.constants.items()}
        compiled = {name: int(value) for name, value in written.items() if value.isdecimal()}
        # The file's own come first: a host may derive from them what it compiles with.
        return _Call(replace(trial, config=0), inputs, compiled | self.run.process.constants, exactly)

    def _carried_out(self, mistake: Mistake, call: _Call) -> CarriedOut | None:
        """Returns what the changed solution gives; None where it comes to no end, or no work is left."""
        key = self.run.folder.path, mistake.text, call.key
        if key not in _KEPT:
            if self._carried >= MOST_CARRIED or self._lanes > MOST_CARRIED_LANES:
                return None
            found = self._carried_out_now(mistake, call)
            _KEPT.keep(key, found)
            return found
        return _KEPT[key]

    def _carried_out_now(self, mistake: Mistake, call: _Call) -> CarriedOut | None:
        self._carried += 1
        ours, trial, inputs = self.run.run_of_ours, call.trial, call.inputs
        ours.take(mistake.text)
        try:
            own = ours.process.imported()
            others = {name: size for name, size in call.sizes.items() if own.get(name, size) != size}
            trial = replace(trial, constants=others | trial.constants)
            recorded = ours.recorded_call(trial, inputs).call
            if recorded.error is not None or recorded.refusals:
                return None
            carry_out = ours.exact if call.exactly else ours.call
            reply = carry_out(trial, inputs, most_lanes=MOST_LANES_OF_A_MISTAKE)
        except (NoExactRun, ChildEnded, MachineFault):
            self._lanes += MOST_LANES_OF_A_MISTAKE
            return None
        self._lanes += reply.lanes
        names = [one.name for one in trial.exercise.results]
        if reply.error is not None or not reply.outputs.keys() >= set(names):
            return None
        outputs = (reply.outputs[one] for one in names)
        wide = tuple(one.double() if one.is_floating_point() else one for one in outputs)
        return CarriedOut(wide, reply.findings, _numbers_of(recorded.launches(trial.config)))

    def _holds(self, mistake: Mistake) -> bool:
        """Returns whether a mistake leaves calls right in which the submission is right; else it is dropped."""
        right, tried = self.run.history.right_trials, 0
        for trial in right[:: -(-len(right) // MOST_RIGHT) or 1]:
            inputs = self.run.inputs(trial)
            found = self._carried_out(mistake, self._call(trial, inputs, exactly=False))
            if found is None:
                continue
            tried += 1
            refs, given = trial.exercise.expected(exact(inputs)), exact(inputs)
            for out, wanted, ref in zip(found.results, wanted_of(trial), refs):
                if not is_right(out.to(wanted.dtype), ref, wanted.bound, given):
                    self._dropped.add(mistake.name)
                    return False
        return tried > 0 or not right


def _is_asked(mistake: Mistake, formula_is_right: bool | None) -> bool:
    """Returns whether a mistake may be the reason: one that loses digits leaves the formula right, others do not."""
    if formula_is_right is None:
        return True
    return mistake.loses != "" if formula_is_right else mistake.loses != "digits"


def _said(mistake: Mistake, names: dict[str, Value]) -> Said | None:
    """Returns the sentence; None where the call has no such number."""
    try:
        return mistake.says.said_of(names)
    except (NameError, ArithmeticError, TypeError):
        return None


def _numbers_of(launches: Iterable[PlannedLaunch]) -> dict[str, Value]:
    """Returns the numbers that launches were given, by the names of the parameters."""
    numbers: dict[str, Value] = {}
    for launch in launches:
        compiled = launch.constants.items()
        numbers |= {name: literal_eval(value) for name, value in compiled if NUMBER.fullmatch(value)}
        numbers |= {one.name: one.number for one in launch.parameters if one.value}
    return numbers


def _is_same(one: Finding, other: Finding) -> bool:
    """Returns whether two kernels do the same wrong: which program does it, and in which line, is theirs."""
    return all(getattr(one, name) == getattr(other, name) for name in ("kind", "argument", "linear", "element"))


def _are_alike(out: torch.Tensor, other: torch.Tensor) -> bool:
    """Returns whether two results are the same but for rounding."""
    return out.shape == other.shape and torch.allclose(out.double(), other.double(), 1e-2, 1e-3, equal_nan=True)
