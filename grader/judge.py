"""Findings, outputs and the reference make a verdict. The order of the questions is the order of the explanations.

A call is judged twice: with programs in forward order and poison in masked lanes, then with programs in reverse order
and zeros there. A right kernel gives the same bits both times; which of the two changes mattered names the mistake.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property

import torch

from grader import replayed
from grader.allowed import Refused, first_refused
from grader.asked import Asked
from grader.bounds import EXACT
from grader.child_process import ChildEnded
from grader.comparison import Comparison, compare
from grader.exercise import Exercise
from grader.explain import cost, failures, same_launches
from grader.explain.compiled import Expectations, compiled_verdict
from grader.explain.evidence import Evidence, count_text
from grader.explain.memory import memory_verdict
from grader.explain.refused_by_compiler import compiler_refusal
from grader.explain.tiles import tile_map
from grader.explain.values import boolean_masks, first_wrong_text, value_verdict
from grader.gpu.lock import GpuBusy
from grader.gpu.plan import BadPlan, Plan
from grader.gpu.replayer import Recording
from grader.inputs import Data
from grader.nursery import MachineFault
from grader.protocol import Failure, Launch
from grader.replayed import MOST_CONFIGURATIONS
from grader.reply import DTYPES, Reply
from grader.run import Run, Trial
from grader.speed import speed_verdict
from grader.verdict import FAIL, NOT_ATTEMPTED, PASS, Verdict, failed

SHARE_OF_BOUND_WORTH_A_NOTE = 0.005
ENOUGH_RIGHT_CALLS = 4  # before a failure with other block sizes is blamed on them
FACTS = ("ptx", "ttgir")  # the texts that tell what the compiler made of a kernel
STRIDE_MISTAKES = ("stride-ignored", "strides-swapped")  # a better explanation than the bad access they lead to


@dataclass
class Judge:
    """Judges the calls of one exercise's tests, one after the other, for one run."""

    exercise: Exercise
    run: Run
    right_when_contiguous: bool = False
    wrong_when_contiguous: bool = False
    right_with_own_blocks: int = 0  # calls with the module's own block sizes
    wrong_with_own_blocks: bool = False
    right_before: set[str] = field(default_factory=set)
    right_trials: list[tuple[Trial, list[Launch]]] = field(default_factory=list)  # and what they launched
    choices: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self.choices = random.Random(self.run.seed)

    def compile_ahead(self, uses: list[Asked]) -> None:
        """On a GPU each of these is compiled sooner or later: better now, on cores that have nothing to do."""
        if self.run.replays is None or self.before_any_call() is not None:
            return
        trials = []
        for use in uses:
            dtypes = use.options.get("dtypes") or self.exercise.dtypes[: 1 if use.fixture == "throughput" else None]
            for trial in self._trials(use.test, use.data, None, dtypes, use.constants):
                trials.append((trial, FACTS if use.fixture in ("compiled", "throughput") else ()))
        self.run.record_ahead(self.exercise, trials)

    def check(
        self,
        name: str,
        data: tuple[Data, ...],
        bound: str | None = None,
        dtypes: tuple[str, ...] = (),
        **constants: int,
    ) -> Verdict:
        """Values and memory safety, in every dtype of the exercise or in those given."""
        trials = self._trials(name, data, bound, dtypes, constants)
        return max(self._up_to_a_failure(trials, self._values), key=_seriousness)

    def traffic(
        self, name: str, data: tuple[Data, ...], limits: cost.TrafficLimits, at_once: int = 1, **constants: int
    ) -> Verdict:
        """Bytes moved per argument, in the first dtype of the exercise; the values have to be right too."""
        trial = self.trial(name, data, self.exercise.dtypes[0], None, constants)

        def moved(trial: Trial) -> Verdict:
            verdict = self._values(trial)
            if verdict.outcome != PASS:
                return verdict
            reply = self.run.call(
                self.exercise, trial, self.run.inputs(trial), fill="zero", count_traffic=True, at_once=at_once
            )
            early = self._before_values(trial, self.run.inputs(trial), reply)
            if early is None and not self._compare(trial, self.run.inputs(trial), reply).right:
                early = failed("stateful", "Another call with the same inputs gives another result.", kind="memory")
            return early or cost.traffic_verdict(reply, limits, self.exercise, at_once)

        return self._judged(trial, moved)

    def compiled(self, name: str, data: tuple[Data, ...], expected: Expectations, **constants: int) -> Verdict:
        """What the compiler makes of a call, in every dtype of the exercise; nothing is run."""
        trials = self._trials(name, data, None, (), constants)
        return max(self._up_to_a_failure(trials, lambda trial: self._machine_code(trial, expected)), key=_is_no_pass)

    def on_gpu(
        self,
        name: str,
        data: tuple[Data, ...],
        bound: str | None = None,
        dtypes: tuple[str, ...] = (),
        **constants: int,
    ) -> Verdict:
        """Values and memory safety of a call too large for the interpreter, in every dtype or in those given."""
        seen = [launch for _, launches in self.right_trials for launch in launches]
        atomics = not seen or any(launch.atomics for launch in seen)

        def replay(trial: Trial) -> Verdict:
            recording, refused = self._recording(trial)
            return refused or replayed.large(self.run, self.exercise, trial, recording, atomics)

        trials = self._trials(name, data, bound, dtypes, constants)
        return max(self._up_to_a_failure(trials, replay), key=_seriousness)

    def throughput(self, name: str, data: tuple[Data, ...], anchor: str, gate: float) -> Verdict:
        """The speed of a call in the first dtype of the exercise, as a share of the anchor's."""

        def timed(trial: Trial) -> Verdict:
            recording, refused = self._recording(trial, FACTS)
            return refused or speed_verdict(self.run, self.exercise, trial, recording, anchor, gate)

        return self._judged(self.trial(name, data, self.exercise.dtypes[0], None, {}), timed)

    def _trials(
        self,
        name: str,
        data: tuple[Data, ...],
        bound: str | None,
        dtypes: tuple[str, ...],
        constants: dict[str, int],
    ) -> list[Trial]:
        """The same call in each of the dtypes, those of the exercise if none are given."""
        return [self.trial(name, data, dtype, bound, constants) for dtype in dtypes or self.exercise.dtypes]

    def _up_to_a_failure(self, trials: list[Trial], judge: Callable[[Trial], Verdict]) -> list[Verdict]:
        """The verdicts in order; the first that is no pass is the last."""
        verdicts = []
        for trial in trials:
            verdicts.append(self._judged(trial, judge))
            if verdicts[-1].outcome != PASS:
                break
        return verdicts

    def _machine_code(self, trial: Trial, expected: Expectations) -> Verdict:
        run = self.run
        recording, refused = self._recording(trial, FACTS)
        if refused is not None:
            return refused
        verdict = compiled_verdict(recording.plan, expected, run.submission, self.exercise, run.model, run.filename)
        return (self._launches_differ() if verdict.outcome == PASS else None) or verdict

    def _recording(self, trial: Trial, texts: tuple[str, ...] = ()) -> tuple[Recording | None, Verdict | None]:
        """The launch plan of a trial, ready to be replayed, or why there is none."""
        run, exercise = self.run, self.exercise
        try:
            recording = run.recording(exercise, trial, texts)
            plan = recording.plan
        except BadPlan as refused:
            failure = Failure("not-recordable", message=str(refused))
            return None, compiler_refusal(failure, run.submission, exercise, run.model)
        if run.compilers.load_failure is not None:
            return None, failures.file_failure(run.compilers.load_failure, run.submission, exercise)
        if plan.refusals:
            return None, failures.refusal(plan.refusals, run.submission, exercise)
        if plan.error is not None:
            return None, compiler_refusal(plan.error, run.submission, exercise, run.model)
        return recording, None

    def _launches_differ(self) -> Verdict | None:
        """One of the calls that were right in the interpreter, compiled. Which one is secret, and another each time."""
        ran = [trial for trial in self.right_trials if same_launches.interpreted(trial[1])]
        if not ran:
            return None
        trial, launches = self.choices.choice(ran)
        recording, refused = self._recording(trial)
        return refused or self._difference(launches, recording.plan)

    def _difference(self, launches: list[Launch], plan: Plan) -> Verdict | None:
        """Whether what was interpreted is what was compiled: None if it is."""
        if not same_launches.interpreted(launches):
            return None
        constants = self.run.interpreter.constexprs, self.run.compilers.constexprs
        return same_launches.difference(launches, plan, self.exercise) or same_launches.differing_constants(*constants)

    def trial(
        self,
        name: str,
        data: tuple[Data, ...],
        dtype: str,
        bound: str | None = None,
        constants: dict[str, int] | None = None,
    ) -> Trial:
        bound = bound or self.exercise.bound
        return Trial(name, data, DTYPES[dtype], bound, constants or {}, arguments=self.exercise.arguments)

    def limits(
        self,
        reads: float | dict[str, float],
        writes: float,
        idle: int | None,
        programs: int | None,
        moved: float | None,
    ) -> cost.TrafficLimits:
        """The traffic limits of a test; one number for `reads` stands for every input."""
        inputs = [name for name in self.exercise.arguments if name != self.exercise.returns]
        reads = reads if isinstance(reads, dict) else dict.fromkeys(inputs, reads)
        return cost.TrafficLimits(reads, writes, idle, programs, moved)

    def _judged(self, trial: Trial, judge: Callable[[Trial], Verdict]) -> Verdict:
        verdict = self.before_any_call() or self._guarded(trial, judge)
        if verdict.outcome == FAIL:
            verdict.note, verdict.case = trial.data_label, trial.label
        return verdict

    def _guarded(self, trial: Trial, judge: Callable[[Trial], Verdict]) -> Verdict:
        try:
            verdict = judge(trial)
        except ChildEnded as how:
            at_import = how is self.run.interpreter.load_ended or self.run.compilers.ended_at_import(how)
            verdict = failures.ended(how, self.run.submission.path.name if at_import else "", self.exercise)
        except GpuBusy as busy:
            raise MachineFault(str(busy)) from None
        changed = [] if self.run.fenced else self.run.files_changed_beside()
        if changed and verdict.outcome == PASS:
            files = ", ".join(changed)
            return failed("files-changed", f"{self.exercise.entry} changed files beside it: {files}.", kind="error")
        return verdict

    def before_any_call(self) -> Verdict | None:
        """What the text of the submission alone decides."""
        submission = self.run.submission
        if submission.failure is not None:
            return failures.file_failure(submission.failure, submission, self.exercise)
        if self.run.not_attempted:
            return Verdict(NOT_ATTEMPTED, "not-attempted")
        refused = self._first_refused
        return failures.not_allowed(refused, submission) if refused else None

    @cached_property
    def _first_refused(self) -> Refused | None:
        return first_refused(self.run.submission.tree)

    def _values(self, trial: Trial) -> Verdict:
        inputs = self.run.inputs(trial)
        first = self.run.call(self.exercise, trial, inputs)
        if self.run.interpreter.load_failure is not None:
            return failures.file_failure(self.run.interpreter.load_failure, self.run.submission, self.exercise)
        verdict = self._first_call(trial, inputs, first)
        if verdict.outcome == PASS:
            second = self.run.call(self.exercise, trial, inputs, order="reverse", fill="zero")
            verdict = self._second_call(trial, inputs, first, second) or verdict
        for config in range(1, min(first.configurations, MOST_CONFIGURATIONS)):
            if verdict.outcome == PASS:
                trial = replace(trial, config=config)
                other = self._first_call(trial, inputs, self.run.call(self.exercise, trial, inputs))
                verdict = verdict if other.outcome == PASS else other
        if verdict.outcome == PASS and self.run.replays is not None and first.launches:
            verdict = self._replayed(replace(trial, config=0), inputs, first.launches) or verdict
        if verdict.outcome == PASS:
            self.right_before.add(trial.bound)
            self.right_trials.append((trial, first.launches))
            self.right_when_contiguous |= all(tensor.is_contiguous() for tensor in inputs)
            self.right_with_own_blocks += not trial.constants
        else:
            self.wrong_when_contiguous |= all(tensor.is_contiguous() for tensor in inputs)
            self.wrong_with_own_blocks |= not trial.constants
            self._blame_a_number(trial, verdict)
        if verdict.outcome != PASS and self.run.empty:
            still = " and ".join(self.run.empty)
            verdict.lines.insert(0, f"The marked region in {still} is still empty.")
            verdict.kind = "region"
        return verdict

    def _replayed(self, trial: Trial, inputs: list[torch.Tensor], launches: list[Launch]) -> Verdict | None:
        """The same call on the GPU, in all its configurations: None if it is right there too."""
        recording, refused = self._recording(trial)
        if refused is not None:
            return refused
        if (other := self._difference(launches, recording.plan)) is not None:
            return other
        atomics = any(launch.atomics for launch in launches)
        return replayed.complaint(self.run, self.exercise, trial, recording, inputs, atomics)

    def _blame_a_number(self, trial: Trial, verdict: Verdict) -> None:
        """Right so far, wrong as soon as the block sizes change: they stand in the code as numbers."""
        if verdict.kind in ("file", "ended", "error"):
            return
        if trial.constants and self.right_with_own_blocks >= ENOUGH_RIGHT_CALLS and not self.wrong_with_own_blocks:
            changed = ", ".join(f"{name} = {value}" for name, value in trial.constants.items())
            found = "a number, or another name, stands where one of them should"
            verdict.lines.insert(0, f"Right with your own block sizes, wrong with {changed}: {found}.")
            verdict.kind = "cause"

    def _first_call(self, trial: Trial, inputs: list[torch.Tensor], reply: Reply) -> Verdict:
        early = self._before_values(trial, inputs, reply)
        if early is not None:
            return early
        comparison = self._compare(trial, inputs, reply)
        evidence = self._evidence(trial, inputs, reply, comparison)
        memory = memory_verdict(evidence)
        if memory is None and comparison.right and not _unwritten(reply):
            return _passed(evidence)
        if joined := boolean_masks(evidence):
            return joined
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

    def _before_values(self, trial: Trial, inputs: list[torch.Tensor], reply: Reply) -> Verdict | None:
        submission, exercise = self.run.submission, self.exercise
        if reply.refusals:
            return failures.refusal(reply.refusals, submission, exercise)
        if reply.error is not None:
            evidence = self._evidence(trial, inputs, reply)
            joined = boolean_masks(evidence, reply.error.line) if reply.error.kind == "kernel" else None
            return joined or memory_verdict(evidence) or failures.call_failure(reply.error, submission, exercise)
        shape = tuple(self._reference(inputs).shape)
        wrong = failures.wrong_container(reply, trial, shape, exercise) or failures.left_behind(reply, exercise)
        if wrong is not None:
            return wrong
        if reply.changed and not any(finding.kind == "input-written" for finding in reply.findings):
            names = " and ".join(reply.changed)
            return failed("input-changed", f"{exercise.entry} changes {names}: inputs have to stay as they are.")
        if not reply.launches and reply.output.numel():
            return failed("no-launch", f"{exercise.entry} returned without launching a kernel.", kind="error")
        return None

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
        differing = int((_bits(first.output) != _bits(second.output)).sum())
        return failed(
            "race",
            f"{count_text(differing, 'element')} of {self.exercise.returns} change when the programs run in reverse "
            "order: a race between programs.",
            kind="memory",
        )

    def _reference(self, inputs: list[torch.Tensor]) -> torch.Tensor:
        return self.exercise.reference(*(tensor.double() for tensor in inputs))

    def _compare(self, trial: Trial, inputs: list[torch.Tensor], reply: Reply) -> Comparison:
        exact = [tensor.double() for tensor in inputs]
        return compare(reply.output, self.exercise.reference(*exact), trial.bound, exact)

    def _evidence(
        self, trial: Trial, inputs: list[torch.Tensor], reply: Reply, comparison: Comparison | None = None
    ) -> Evidence:
        constants = {**self.run.interpreter.constants, **trial.constants}
        return Evidence(
            self.exercise, self.run.submission, trial, inputs, reply, constants, comparison,
            self.right_when_contiguous and not self.wrong_when_contiguous, self.right_before,
        )  # fmt: skip


def _is_no_pass(verdict: Verdict) -> bool:
    return verdict.outcome != PASS


def _seriousness(verdict: Verdict) -> tuple[bool, float]:
    """No pass, then the pass that came nearest to its bound."""
    return _is_no_pass(verdict), verdict.figures.get("largest_error", 0)


def _unwritten(reply: Reply) -> bool:
    """Elements of fresh memory that no program wrote: right by luck at most."""
    return reply.writers is not None and bool((reply.writers.programs == -1).any())


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.contiguous().reshape(-1).view(torch.uint8)


def _alike(one: torch.Tensor, other: torch.Tensor | None) -> bool:
    return other is not None and one.shape == other.shape and one.dtype == other.dtype


def _same_bits(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one.shape == other.shape and one.dtype == other.dtype and torch.equal(_bits(one), _bits(other))


def _passed(evidence: Evidence) -> Verdict:
    share = evidence.comparison.largest_error
    note = f"largest error {share:.2f} of the bound" if share >= SHARE_OF_BOUND_WORTH_A_NOTE else ""
    return Verdict(PASS, note=note, tiles=tile_map(evidence), figures={"largest_error": share})
