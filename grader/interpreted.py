"""One call in the interpreter: what its values, its accesses to memory and a second call say.

A call is judged twice, unless its cost alone is asked for: with programs in forward order and poison in masked lanes,
then with programs in reverse order and zeros there. A right kernel gives the same bits both times; which of the two
changes mattered names the mistake.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import torch

from grader.bounds import EXACT
from grader.comparison import Comparison, bits_of, compare
from grader.exercise import Exercise
from grader.explain import failures, promises
from grader.explain.evidence import Evidence, count_text
from grader.explain.memory import memory_verdict
from grader.explain.refused_by_compiler import BEFORE_ANY_LAUNCH, compiler_refusal, is_known
from grader.explain.tiles import tile_map
from grader.explain.values import first_wrong_text, value_verdict
from grader.reply import Reply
from grader.run import Run, Trial
from grader.verdict import PASS, Verdict, failed

SHARE_OF_BOUND_WORTH_A_NOTE = 0.005
STRIDE_MISTAKES = ("stride-ignored", "strides-swapped")  # a better explanation than the bad access they lead to


@dataclass
class Interpreted:
    """Judges calls, and remembers which were right: that tells what is wrong with others."""

    exercise: Exercise
    run: Run
    right_when_contiguous: bool = False
    wrong_when_contiguous: bool = False
    right_before: set[str] = field(default_factory=set)  # bounds

    def verdict(self, trial: Trial, inputs: list[torch.Tensor], twice: bool, **options) -> tuple[Verdict, Reply]:
        """Of all configurations of the call, and the reply to its first run, which has these `options`."""
        first = self.run.call(self.exercise, trial, inputs, **options)
        if self.run.recorder.load_failure is not None:
            failure = self.run.recorder.load_failure
            return failures.file_failure(failure, self.run.submission, self.exercise), first
        verdict = self._first_call(trial, inputs, first)
        if verdict.outcome == PASS and twice:
            second = self.run.call(self.exercise, trial, inputs, again=True, order="reverse", fill="zero")
            verdict = self._second_call(trial, inputs, first, second) or verdict
        for config in first.configurations[1:]:
            if verdict.outcome == PASS:
                other_trial = replace(trial, config=config)
                reply = self.run.call(self.exercise, other_trial, inputs)
                other = self._first_call(other_trial, inputs, reply)
                verdict = verdict if other.outcome == PASS else other
        return verdict, first

    def remember(self, trial: Trial, inputs: list[torch.Tensor], right: bool) -> None:
        contiguous = all(tensor.is_contiguous() for tensor in inputs)
        if right:
            self.right_before.add(trial.bound)
            self.right_when_contiguous |= contiguous
        else:
            self.wrong_when_contiguous |= contiguous

    def _before_values(self, trial: Trial, inputs: list[torch.Tensor], reply: Reply) -> Verdict | None:
        """What is wrong with a reply before its values are looked at."""
        submission, exercise = self.run.submission, self.exercise
        if reply.refusals:
            return failures.refusal(reply.refusals, submission, exercise)
        if reply.error is not None:
            if reply.error.kind in BEFORE_ANY_LAUNCH or is_known(reply.error):
                return compiler_refusal(reply.error, submission, exercise, self.run.model)
            memory = memory_verdict(self._evidence(trial, inputs, reply))
            return memory or failures.call_failure(reply.error, submission, exercise)
        shape = tuple(self._reference(inputs).shape)
        wrong = failures.wrong_container(reply, trial, shape, submission, exercise) or failures.left_behind(
            reply, exercise
        )
        if wrong is not None:
            return wrong
        if reply.changed:
            names = " and ".join(reply.changed)
            return failed("input-changed", f"{exercise.entry} changes {names}: inputs have to stay as they are.")
        if not reply.launches and reply.output.numel():
            return failed("no-launch", f"{exercise.entry} returned without launching a kernel.", kind="error")
        return None

    def _compare(self, trial: Trial, inputs: list[torch.Tensor], reply: Reply) -> Comparison:
        exact = [tensor.double() for tensor in inputs]
        return compare(reply.output, self.exercise.reference(*exact), trial.bound, exact)

    def _first_call(self, trial: Trial, inputs: list[torch.Tensor], reply: Reply) -> Verdict:
        early = self._before_values(trial, inputs, reply)
        if early is not None:
            return early
        comparison = self._compare(trial, inputs, reply)
        evidence = self._evidence(trial, inputs, reply, comparison)
        memory = memory_verdict(evidence)
        if memory is None and reply.broken:
            return promises.broken(evidence, reply.broken[0])
        if memory is None and comparison.right and not _unwritten(reply):
            return _passed(evidence)
        if memory is None or not comparison.right:
            return self._explained(evidence, memory)
        return memory

    def _explained(self, evidence: Evidence, memory: Verdict | None) -> Verdict:
        """Wrong values, or values right by luck: the most direct of the possible explanations."""
        trial, inputs, reply = evidence.trial, evidence.inputs, evidence.reply
        verdict = value_verdict(evidence)
        if memory is not None and verdict.id not in STRIDE_MISTAKES:
            memory.tiles = tile_map(evidence)
            return memory
        lines = [line for launch in reply.launches for line in launch.unmasked_fills]
        if lines:
            zeros = self.run.call(self.exercise, trial, inputs, fill="zero")
            if self._masked_lanes_matter(evidence, zeros):
                return self._no_other(evidence, lines[0])
        return verdict

    def _masked_lanes_matter(self, evidence: Evidence, zeros: Reply) -> bool:
        """Whether what masked lanes hold changes the result; `zeros` is the call with 0 in them.

        A copy that is wrong in the same elements either way reads the wrong place: `other` would not help.
        """
        if not _alike(evidence.reply.output, zeros.output):
            return True
        if _same_bits(evidence.reply.output, zeros.output):
            return False
        if evidence.trial.bound not in EXACT:
            return True
        wrong = self._compare(evidence.trial, evidence.inputs, zeros).wrong
        return not torch.equal(wrong, evidence.comparison.wrong)

    def _no_other(self, evidence: Evidence, line: int) -> Verdict:
        verdict = failed(
            "no-other",
            f"The load in line {line} has a mask but no `other`: what masked lanes hold is undefined, and here it "
            f"reaches {evidence.returns}.",
            evidence.source_line(line),
            kind="memory",
            line=line,
        )
        if not evidence.comparison.right:
            verdict.lines.append(first_wrong_text(evidence))
        verdict.tiles = tile_map(evidence)
        return verdict

    def _second_call(self, trial: Trial, inputs: list[torch.Tensor], first: Reply, second: Reply) -> Verdict | None:
        """The same inputs again, programs in reverse and masked lanes at 0: None when nothing changed."""
        early = self._before_values(trial, inputs, second)
        if early is not None:
            if early.id == "no-launch":
                early.lines[0] = f"The second call launched no kernel: {self.exercise.entry} returns a result it kept."
            else:
                early.lines.append("So it is in a second call with the same inputs; the first was in order.")
            return early
        if _same_bits(first.output, second.output) and not second.findings:
            return None
        comparison = self._compare(trial, inputs, second)
        evidence = self._evidence(trial, inputs, second, comparison)
        memory = memory_verdict(evidence)
        if memory is not None:
            return memory
        lines = [line for launch in first.launches for line in launch.unmasked_fills]
        third = self.run.call(self.exercise, trial, inputs, fill="zero")
        if lines and third.output is not None and _same_bits(third.output, second.output):
            return self._no_other(self._evidence(trial, inputs, first, comparison), lines[0])
        if comparison.right and any(launch.atomics for launch in first.launches):
            return None  # atomic sums may come in any order; both results are within the bound
        if third.output is None or _same_bits(third.output, first.output):
            return self._order_matters(first, second)
        return failed("stateful", "A second call with the same inputs gives another result.", kind="memory")

    def _order_matters(self, first: Reply, second: Reply) -> Verdict:
        differing = int(_differing(first.output, second.output).sum())
        return failed(
            "race",
            f"{count_text(differing, 'element')} of {self.exercise.returns} change when the programs run in reverse "
            "order: a race between programs.",
            kind="memory",
        )

    def _reference(self, inputs: list[torch.Tensor]) -> torch.Tensor:
        return self.exercise.reference(*(tensor.double() for tensor in inputs))

    def _evidence(
        self, trial: Trial, inputs: list[torch.Tensor], reply: Reply, comparison: Comparison | None = None
    ) -> Evidence:
        constants = {**self.run.recorder.constants, **trial.constants}
        return Evidence(
            self.exercise, self.run.submission, trial, inputs, reply, constants, comparison,
            self.right_when_contiguous and not self.wrong_when_contiguous, self.right_before,
        )  # fmt: skip


def _unwritten(reply: Reply) -> bool:
    """Elements of fresh memory that no program wrote: right by luck at most."""
    return reply.writers is not None and bool((reply.writers.programs == -1).any())


def _alike(one: torch.Tensor, other: torch.Tensor | None) -> bool:
    return other is not None and one.shape == other.shape and one.dtype == other.dtype


def _same_bits(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one.shape == other.shape and one.dtype == other.dtype and not bool(_differing(one, other).any())


def _differing(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Which elements have other bits; one NaN is as good as another. [same shape], bool."""
    return (bits_of(one) != bits_of(other)) & ~(one.isnan() & other.isnan())


def _passed(evidence: Evidence) -> Verdict:
    share = evidence.comparison.largest_error
    note = f"largest error {share:.2f} of the bound" if share >= SHARE_OF_BOUND_WORTH_A_NOTE else ""
    return Verdict(PASS, note=note, tiles=tile_map(evidence), figures={"largest_error": share})
