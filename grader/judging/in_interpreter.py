"""The verdict on a call in the interpreter, from its values, its accesses to memory and a second call.

A call is judged twice, unless only its cost is asked for: with programs in forward order and poison in masked lanes,
then with programs in reverse order and zeros there. A right kernel gives the same bits both times; the change that
makes a difference names the mistake.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import torch

from grader.course.trial import Trial
from grader.course.wanted_results import Wanted, wanted_of
from grader.explain import (
    failures,
    host_functions,
    masked_lanes,
    offset_overflows,
    open_outcomes,
    products_of_sums,
    second_calls,
)
from grader.explain.causes import Cause
from grader.explain.evidence import Compared, Evidence, compared
from grader.explain.memory_findings import memory_verdict
from grader.explain.values import value_verdict
from grader.explain.verdict import PASS, Verdict
from grader.explain.written_tiles import tile_map
from grader.explain.wrong_results import Shape, wrong_results
from grader.judging import every_configuration
from grader.judging.believed_hints import broken_promise
from grader.judging.carried_mistakes import CarriedMistakes
from grader.judging.early_failures import not_ended
from grader.judging.orders_of_warps import OrdersOfWarps
from grader.judging.run import Run
from grader.numerics.arguments import Argument, exact, tensors_of
from grader.numerics.comparison import compare, other_bits
from grader.numerics.roundoff import EXACT, UNJUDGED
from grader.processes.faults import ChildEnded
from grader.sentences import StatedSentence
from grader.ttir.exact_text import NoExactRun
from grader.wire.reply import Reply

SHARE_OF_BOUND_WORTH_A_NOTE = 0.005
MASKED_FILLS = ("zero", "lowest")  # numbers that masked lanes may hold; 0 gives NaN too, in sums far below 0
MOST_EXACT_STEPS, MOST_EXACT_LANES = 30_000, 60_000_000  # half a second of a core for all exact runs together
MOST_PLAIN_ELEMENTS = 1 << 22  # of a call: a tensor may reach over more memory than there is
MOST_PLAIN_CALLS = 16  # a drawn call that fails is made smaller step by step
STRIDE_MISTAKES = (
    Cause.STRIDE_IGNORED,
    Cause.STRIDES_SWAPPED,
)  # a better explanation than the bad access they lead to


@dataclass
class Interpreted:
    """Judges calls. What went before in the run helps to explain a failure."""

    run: Run
    orders_of_warps: OrdersOfWarps = field(init=False)
    mistakes: CarriedMistakes = field(init=False)
    _wanted: tuple[list[Argument], list[torch.Tensor]] | None = field(default=None, repr=False)  # of which inputs
    _exact_steps: int = 0  # of the usual runs of all calls that were asked for an exact run
    _exact_lanes: int = 0
    _plain_calls: int = 0

    def __post_init__(self) -> None:
        self.orders_of_warps = OrdersOfWarps(self.run)
        self.mistakes = CarriedMistakes(self.run)

    def verdict(self, trial: Trial, inputs: list[Argument], twice: bool, **options) -> tuple[Verdict, Reply]:
        """Returns the verdict on all configurations and the first run's reply. `options`: of its InterpretRequest.

        twice: whether the call is made a second time, and once more with products of tiles. Raises ChildEnded,
        MachineFault.
        """
        trial = every_configuration.with_a_config_that_runs(self, trial, inputs)
        first = self.run.call(trial, inputs, **options)
        verdict = self._first_call(trial, inputs, first)
        if verdict.outcome == PASS and twice:
            meetings = self.orders_of_warps.are_in_question(trial, inputs, first)
            second = self.run.call(
                trial, inputs, again=True, order="reverse", fill="zero", meetings=meetings, other=self._other
            )
            verdict = self._second_call(trial, inputs, first, second) or verdict
            if verdict.outcome == PASS and second.meetings:
                verdict = self.orders_of_warps.verdict(trial, inputs, second) or verdict
        if verdict.outcome == PASS and twice:
            verdict = self._as_product(trial, inputs) or verdict
        return every_configuration.of_configurations(self, trial, inputs, first, verdict, twice), first

    def of_config(self, trial: Trial, inputs: list[Argument], config: int) -> Verdict:
        """Returns the verdict on the same call in another configuration."""
        other = replace(trial, config=config)
        reply = self.run.call(other, inputs)
        verdict = self._first_call(other, inputs, reply)
        if verdict.outcome == PASS and self.orders_of_warps.are_in_question(other, inputs, reply):
            again = self.run.call(other, inputs, again=True, meetings=True)
            verdict = self.orders_of_warps.verdict(other, inputs, again) or verdict
        return verdict

    def wrong_after_a_trial(self, trial: Trial, inputs: list[Argument], kept: Sequence[str] = ()) -> Compared | None:
        """Returns the first wrong result of a call whose configuration was tried on its memory; None if all are right.

        `kept`: arguments of the kernel that are put back after the trial, whether the file says so or not.
        """
        reply = self.run.call(trial, inputs, tried=True, kept=list(kept))
        results = self._compared(trial, inputs, reply) if reply.error is None else []
        return next((evidence for evidence in results if not evidence.comparison.right), None)

    def without_values(
        self, trial: Trial, inputs: list[Argument], reply: Reply, shapes: list[Shape], believing: Callable[[], Reply]
    ) -> tuple[Verdict | None, list[Evidence]]:
        """Returns what is wrong with a sampled call, apart from its values; then the evidence of each result.

        `shapes`: the shapes that its results must have. `believing`: see broken_promise.
        """
        results = [self._evidence(trial, inputs, reply, wanted) for wanted in wanted_of(trial)]
        verdict = self._before_values(trial, inputs, reply, shapes) or memory_verdict(results[0])
        if verdict is None and reply.broken:
            verdict, _ = broken_promise(results[0], believing)
        return verdict, results

    def _as_product(self, trial: Trial, inputs: list[Argument]) -> Verdict | None:
        """Returns what is wrong if the compiler multiplies tiles instead of adding products; None if nothing is."""
        reply = self.run.call_with_products(trial, inputs)
        verdict = self._first_call(trial, inputs, replace(reply, broken=[])) if reply is not None else None
        if verdict is None or verdict.outcome == PASS:
            return None
        return products_of_sums.as_product(verdict)

    def _before_values(
        self, trial: Trial, inputs: list[Argument], reply: Reply, shapes: list[Shape] | None = None
    ) -> Verdict | None:
        """Returns what is wrong with a reply before its values are compared; None if nothing is.

        `shapes`: of the results, if known; otherwise the reference is computed for them.
        """
        submission, exercise = self.run.submission, trial.exercise
        wanted = wanted_of(trial)
        first = self._evidence(trial, inputs, reply, wanted[0])
        if (early := not_ended(self.run, exercise, reply, lambda: memory_verdict(first))) is not None:
            return early
        shapes = shapes or [tuple(result.shape) for result in self._reference(trial, inputs)]
        wrong = wrong_results(reply, wanted, shapes, submission, exercise) or failures.left_behind(reply, exercise)
        if wrong is not None:
            return wrong
        if reply.changed:
            return host_functions.inputs_changed(exercise.entry, reply.changed)
        has_elements = any(tensor.numel() for _, tensor in tensors_of(exercise.arguments, inputs))
        # Without elements, or where all is to stay as it is, there is nothing to compute.
        is_asked = has_elements and any(output.numel() for output in reply.outputs.values())
        if not reply.launches and is_asked and not self._leaves_all(trial, inputs, wanted):
            return host_functions.no_launch(exercise.entry)
        return None

    def _leaves_all(self, trial: Trial, inputs: list[Argument], wanted: list[Wanted]) -> bool:
        """Returns whether a right call changes nothing: its results are arguments, and stay as they are."""
        if not all(result.is_updated for result in wanted):
            return False
        tensors = dict(tensors_of(trial.exercise.arguments, inputs))
        exact_results = self._reference(trial, inputs)
        pairs = [(tensors[result.name].double(), ref.double()) for result, ref in zip(wanted, exact_results)]
        return all(torch.allclose(value, ref, rtol=0, atol=0, equal_nan=True) for value, ref in pairs)

    def _compared(self, trial: Trial, inputs: list[Argument], reply: Reply) -> list[Compared]:
        """Returns the evidence of each result, compared with the reference."""
        wanted, arguments = wanted_of(trial), exact(inputs)
        exact_run = functools.cache(lambda: self._exact_run(trial, inputs, reply))
        results = [
            compared(
                self._evidence(trial, inputs, reply, result),
                compare(reply.outputs[result.name], ref, result.bound, arguments),
                exact_run=exact_run,
                carried_out=functools.partial(self.mistakes.hypotheses, trial, inputs),
            )
            for result, ref in zip(wanted, self._reference(trial, inputs), strict=True)
        ]
        right = [result.returns for result in results if result.comparison.right and result.wanted.bound != UNJUDGED]
        return [replace(result, right_results=right) for result in results]

    def _is_right_with_plain_layouts(self, trial: Trial, inputs: list[Argument]) -> bool:
        """Returns whether the call is right with the same values in contiguous tensors, each with memory of its own.

        Of a few calls alone: each is recorded and carried out.
        """
        self._plain_calls += 1
        tensors = [argument for argument in inputs if isinstance(argument, torch.Tensor)]
        is_large = any(tensor.is_meta for tensor in tensors) or sum(map(torch.numel, tensors)) > MOST_PLAIN_ELEMENTS
        if is_large or self._plain_calls > MOST_PLAIN_CALLS:
            return False
        plain = [one.contiguous().clone() if isinstance(one, torch.Tensor) else one for one in inputs]
        trial = trial.with_plain_layouts
        try:
            reply = self.run.call(trial, plain)
        except ChildEnded:
            return False
        return reply.error is None and not reply.findings and self._is_right(trial, plain, reply)

    def _exact_run(self, trial: Trial, inputs: list[Argument], reply: Reply) -> Reply | None:
        """Returns the reply to the exact run of a call; None where there is none, or no time for it is left.

        `reply`: to the usual run, which takes about as long.
        """
        self._exact_steps, self._exact_lanes = self._exact_steps + reply.steps, self._exact_lanes + reply.lanes
        if self._exact_steps > MOST_EXACT_STEPS or self._exact_lanes > MOST_EXACT_LANES:
            return None
        try:
            return self.run.exact(trial, inputs)
        except NoExactRun:
            return None

    def _first_call(self, trial: Trial, inputs: list[Argument], reply: Reply) -> Verdict:
        early = self._before_values(trial, inputs, reply)
        if early is not None:
            return early
        results = self._compared(trial, inputs, reply)
        wrong = [evidence for evidence in results if not evidence.comparison.right]
        by_luck = [evidence for evidence in results if _unwritten(evidence)]
        memory = memory_verdict((wrong or results)[0])
        note = ""
        if memory is None and reply.broken:
            broken, note = broken_promise(results[0], lambda: self.run.call(trial, inputs, believe=True))
            if broken is not None:
                return broken
        if memory is None and not wrong and not by_luck:
            return _passed(results, note)
        explained = memory if memory is not None and not wrong else self._explained(wrong or by_luck, memory)
        return offset_overflows.overflow((wrong or results)[0], explained) or explained

    def _explained(self, wrong: list[Compared], memory: Verdict | None) -> Verdict:
        """Returns the most direct explanation of results that are wrong, or right by luck. memory: of a finding."""
        if memory is not None:  # only a stride says more than where an access leads
            wrong = [replace(evidence, carried_out=lambda name, right: ()) for evidence in wrong]
        verdicts = [value_verdict(evidence) for evidence in wrong]
        verdict = min(verdicts, key=lambda explained: explained.rank)
        evidence = wrong[verdicts.index(verdict)]
        refuted = frozenset[str]().union(*(explained.refuted for explained in verdicts))
        self.mistakes.learn({candidate for verdict in verdicts for candidate in verdict.fitting}, refuted)
        if verdict.candidate in refuted:  # by another result of the call
            with self.mistakes.leaving_out(refuted):
                verdicts = [value_verdict(one) for one in wrong]
            verdict = min(verdicts, key=lambda explained: explained.rank)
            evidence = wrong[verdicts.index(verdict)]
        trial, inputs, reply = evidence.trial, evidence.inputs, evidence.reply
        known = memory is not None and isinstance(memory.said[0].sentence, StatedSentence)
        if memory is not None and (known or verdict.id not in STRIDE_MISTAKES):
            memory.tiles = tile_map(evidence)
            memory.fitting, memory.refuted = verdict.fitting, verdict.refuted
            return memory
        if memory is not None:  # lanes out of bounds read other values with another fill of masked lanes
            return verdict
        lines = [line for launch in reply.launches for line in launch.unmasked_fills]
        for fill in MASKED_FILLS if lines else ():
            if self._masked_lanes_matter(evidence, self.run.call(trial, inputs, fill=fill)):
                return masked_lanes.no_other(evidence, self._load_that_matters(evidence, lines, fill))
        return verdict

    def _load_that_matters(self, evidence: Compared, lines: list[int], fill: str = "zero") -> int:
        """Returns the line of the first load without `other` that changes the result by itself, else the first line."""
        for line in lines if len(lines) > 1 else []:
            other = self.run.call(evidence.trial, evidence.inputs, fill=fill, fill_lines=[line])
            if not _alike(evidence.reply, other) or evidence.returns in _changed(evidence.reply, other):
                return line
        return lines[0]

    def _masked_lanes_matter(self, evidence: Compared, other: Reply) -> bool:
        """Returns whether the contents of masked lanes change this result. other: the reply with other contents.

        A copy that is wrong in the same elements either way reads the wrong location: an `other` would not help. Nor
        would it help where most of the wrong elements are the same with either number.
        """
        if not _alike(evidence.reply, other):
            return True
        if evidence.returns not in _changed(evidence.reply, other):
            return False
        wrong, mine, others = evidence.comparison.wrong, evidence.output, other.outputs[evidence.returns]
        if 2 * int((wrong & (mine == others)).sum()) > evidence.comparison.wrong_count:
            return False
        if evidence.wanted.bound not in EXACT:
            return True
        again = self._compared(evidence.trial, evidence.inputs, other)
        (wrong,) = (result.comparison.wrong for result in again if result.wanted == evidence.wanted)
        return not torch.equal(wrong, evidence.comparison.wrong)

    def _second_call(self, trial: Trial, inputs: list[Argument], first: Reply, second: Reply) -> Verdict | None:
        """Returns what is wrong with a second call on the same inputs, in reverse order and with zeros in masked lanes.

        What the language leaves open comes out otherwise. None if it gives the same bits, or if results that may be
        rounded otherwise, or summed in another order by atomics, are within their bound.
        """
        early = self._before_values(trial, inputs, second)
        if early is not None:
            depends = self._left_open(trial, inputs, first, second)
            return depends or second_calls.not_in_the_first(early, trial.exercise.entry)
        changed = _changed(first, second)
        if not changed and not second.findings:
            return None
        results = self._compared(trial, inputs, second)
        right = all(evidence.comparison.right for evidence in results)
        if right and not second.findings and any(outcome.rounds for outcome in second.left_open):
            return None
        if (depends := self._left_open(trial, inputs, first, second)) is not None:
            return depends
        memory = memory_verdict(results[0])
        if memory is not None:
            return memory
        lines = [line for launch in first.launches for line in launch.unmasked_fills]
        third = self.run.call(trial, inputs, fill="zero")
        there = _alike(third, first)
        if lines and there and not _changed(third, second):
            (evidence,) = (result for result in results if result.returns == changed[0])
            evidence = replace(evidence, reply=first)
            return masked_lanes.no_other(evidence, self._load_that_matters(evidence, lines))
        if right and any(launch.atomics for launch in first.launches):
            return None  # atomic sums may come in any order; both results are within the bound
        if (not there or not _changed(third, first)) and not self._differs_again(trial, inputs, first):
            return _order_matters(changed[0], first, second)
        return second_calls.another_result(changed[0], results[0].wanted.is_alone)

    def _left_open(self, trial: Trial, inputs: list[Argument], first: Reply, second: Reply) -> Verdict | None:
        """Returns the verdict on a result that is as in the first call only as long as what the language leaves open
        comes out as usual; None if none of it changes the result by itself, by more than a rounding may."""
        for outcome in sorted(second.left_open, key=lambda outcome: (outcome.line, outcome.kind)):
            alone = self.run.call(trial, inputs, other=self._other, other_at=[outcome.kind, outcome.line])
            changed = alone.error is not None or alone.findings or (not outcome.rounds and _changed(first, alone))
            if changed or not self._is_right(trial, inputs, alone):
                return open_outcomes.depends(self._evidence(trial, inputs, second, wanted_of(trial)[0]), outcome)
        return None

    def _is_right(self, trial: Trial, inputs: list[Argument], reply: Reply) -> bool:
        return all(evidence.comparison.right for evidence in self._compared(trial, inputs, reply))

    @property
    def _other(self) -> int:
        """The number from which a second call draws what is left open; never 0, which stands for the usual."""
        return self.run.seed % (1 << 31) + 1

    def _differs_again(self, trial: Trial, inputs: list[Argument], first: Reply) -> bool:
        """Returns whether a second call differs from the first even with its programs in the same order."""
        again = self.run.call(trial, inputs, again=True)
        return not _alike(again, first) or bool(_changed(again, first))

    def _reference(self, trial: Trial, inputs: list[Argument]) -> list[torch.Tensor]:
        """Returns the reference's results, cached for all configurations and both runs of a call."""
        if self._wanted is None or self._wanted[0] is not inputs:
            self._wanted = inputs, trial.exercise.expected(exact(inputs))
        return self._wanted[1]

    def _evidence(self, trial: Trial, inputs: list[Argument], reply: Reply, wanted: Wanted) -> Evidence:
        history = self.run.history
        return Evidence(
            self.run.submission, trial, inputs, reply, wanted, {**self.run.process.constants, **trial.constants},
            bool(history.right_trials), texts=functools.partial(self.run.kernels, trial, inputs),
            line_without_strides=functools.partial(self.run.line_without_strides, trial, inputs),
            right_with_plain_layouts=functools.partial(self._is_right_with_plain_layouts, trial, inputs),
            led_astray=functools.partial(self.mistakes.led_astray, trial, inputs),
            advice=lambda: self.mistakes.advice,
        )  # fmt: skip


def _unwritten(evidence: Evidence) -> bool:
    """Returns whether no program wrote some element of fresh memory: the result is right by luck at most."""
    if evidence.wanted.bound == UNJUDGED or evidence.writers is None:
        return False
    return bool((evidence.writers.programs == -1).any())


def _alike(one: Reply, other: Reply) -> bool:
    """Returns whether two calls gave results of the same names, shapes and dtypes."""
    return {name: (out.shape, out.dtype) for name, out in one.outputs.items()} == {
        name: (out.shape, out.dtype) for name, out in other.outputs.items()
    }


def _changed(one: Reply, other: Reply) -> list[str]:
    """Returns the names of the results whose bits differ between two calls with the same results."""
    return [name for name, out in one.outputs.items() if not _same_bits(out, other.outputs[name])]


def _order_matters(name: str, first: Reply, second: Reply) -> Verdict:
    differing = int(other_bits(first.outputs[name], second.outputs[name]).sum())
    return second_calls.order_matters(name, differing)


def _same_bits(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one.shape == other.shape and one.dtype == other.dtype and not bool(other_bits(one, other).any())


def _passed(results: list[Compared], also: str) -> Verdict:
    nearest = max(results, key=lambda evidence: evidence.comparison.largest_error)
    share = nearest.comparison.largest_error
    of = "" if nearest.wanted.is_alone else f" for {nearest.returns}"
    note = f"largest error {share:.2f} of the bound{of}" if share >= SHARE_OF_BOUND_WORTH_A_NOTE else ""
    note = "; ".join(filter(None, [note, also]))
    return Verdict(PASS, note=note, tiles=tile_map(results[0]), figures={"largest_error": share})
