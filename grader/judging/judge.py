"""The verdict of a test: its calls in the interpreter, in machine code and on a GPU, in the order of explanations.

The order is what a learner feels: what the text alone shows comes before any call, a finding before a formula, the
interpreter before machine code, and a GPU last. The first reason found is the one that is told.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING

from grader.compiler.compiler_pool import processes_here
from grader.course.exercise import Exercise
from grader.course.trial import CallBound, Trial, trial_of
from grader.explain import cost, failures, host_functions
from grader.explain.blame import blame_empty_regions
from grader.explain.causes import Cause
from grader.explain.compiled_code import Expectations, compiled_verdict, not_asked
from grader.explain.refused_by_compiler import compiler_refusal
from grader.explain.verdict import FAIL, NOT_ATTEMPTED, PASS, SKIPPED, WAITED, Verdict
from grader.gpu.lock import GpuBusy
from grader.gpu.plan import BadPlan, PackedPlan
from grader.judging import amd_code, on_gpu
from grader.judging.early_failures import Unpromised, not_ended, refused_call
from grader.judging.formula_rule import InterpretedByFormula
from grader.judging.in_interpreter import Interpreted
from grader.judging.in_samples import PROGRAMS, sampled, wrong_in_a_sample
from grader.judging.likely_causes import LikelyCauses
from grader.judging.measurements import SimulatedMeasurement, beside_ours, measured_verdict
from grader.judging.orders_of_warps import compiler_race
from grader.judging.run import Run
from grader.judging.speed_samples import MeasuredSpeed
from grader.judging.uses import ALWAYS, ON_A_GPU, Use
from grader.judging.work_ahead import in_turns
from grader.numerics.arguments import Argument, DataOrNumber
from grader.processes.faults import ChildEnded, MachineFault
from grader.submission.kernel_names import Refused, all_refused
from grader.wire.messages import Failure, Launch
from grader.wire.reply import Reply

if TYPE_CHECKING:
    from grader.judging.drawn_trials import DrawnTrials


@dataclass
class Judge:
    """Judges the calls of one exercise's tests, one after the other, for one run."""

    exercise: Exercise
    run: Run
    interpreted: Interpreted = field(init=False)
    suspects: LikelyCauses = field(init=False)
    speed: MeasuredSpeed = field(init=False)
    measured_without_end: bool = False
    drawn: dict[str, DrawnTrials] = field(default_factory=dict)  # by test: asked for ahead, then for its verdict

    def __post_init__(self) -> None:
        self.speed = MeasuredSpeed(self.exercise, self.run, self.launch_plan)
        derived = all(isinstance(one, str) or not one.is_of_torch for one in self.exercise.bounds.values())
        self.interpreted = Interpreted(self.run) if derived else InterpretedByFormula(self.run)
        self.suspects = LikelyCauses(self.run)

    def begin(self, uses: list[Use]) -> None:
        """Records and compiles the calls of these uses in the background, as far as it is known that it is needed."""
        if self.before_any_call() is None and not self.run.trusted:
            self.run.work_ahead(lambda: self._work_ahead(uses))

    def _work_ahead(self, uses: list[Use]) -> None:
        least = ALWAYS if self.run.replays is None else ON_A_GPU
        compiled = [use for use in uses if use.compiled_where >= least]
        recorded = [call for use in uses if use.is_recorded_ahead for call in use.foreseen(self)]
        self.run.record_in_drawn_order(recorded, between=lambda: self.compile_ahead(compiled))

    def compile_ahead(self, uses: list[Use]) -> None:
        """Begins to compile the calls of these uses, on cores that are idle: each is compiled sooner or later."""
        foreseen = [call for use in uses for call in use.foreseen(self)]
        self.run.compile_ahead(in_turns(foreseen) if processes_here() > 1 else foreseen)

    def cancel_if_wrong(self, verdict: Verdict) -> Verdict:
        """Returns this verdict on values. If they are wrong, what only right values need is compiled no more."""
        if verdict.outcome == FAIL and verdict.kind != "file":  # after that everything is asked all the same
            self.run.machine_code.values_are_wrong()
        return verdict

    def refusal(self, unpromised: Unpromised) -> Callable[[Trial], Verdict]:
        """Returns what judges whether the entry refuses a call that the lesson does not promise."""
        return partial(refused_call, self.run, unpromised)

    def traffic(self, trial: Trial, limits: cost.TrafficLimits, at_once: int) -> Verdict:
        """Judges the bytes moved per argument; the values have to be right too.

        The call is made once: `check` tells whether a second call gives the same.
        """
        verdict, reply = self.values(trial, twice=False, count_traffic=True, at_once=at_once)
        if verdict.outcome != PASS:
            return verdict
        cost_verdict = cost.traffic_verdict(reply, limits, self.exercise, at_once)
        kernels = partial(self.run.kernels, trial, self.run.inputs(trial))
        return self.speed.instead_of(cost.at_its_line(cost_verdict, self.run.submission, kernels))

    def wrong(self, trial: Trial) -> Verdict | None:
        """Returns the failure of a large call that is otherwise compiled or timed; None if its values are right."""
        if self.run.replays is None:
            return wrong_in_a_sample(self.run, self.interpreted, trial)
        verdict = self.in_full(trial)
        return verdict if verdict.outcome == FAIL else None

    def in_a_sample(self, trial: Trial, programs: int = PROGRAMS) -> Verdict:
        """Returns the verdict on a large call from a sample of its programs, without a GPU."""
        return sampled(self.run, self.interpreted, trial, programs)

    def in_full(self, trial: Trial) -> Verdict:
        """Returns the verdict on all values of a large call, on a GPU."""
        packed = self.launch_plan(trial)
        if isinstance(packed, Verdict):
            return packed
        return on_gpu.large(self.run, trial, packed, self.run.history.atomics)

    def up_to_a_failure(self, trials: list[Trial], judge: Callable[[Trial], Verdict]) -> list[Verdict]:
        """Returns the verdicts in order, up to the first that is no pass."""
        verdicts = []
        for trial in trials:
            verdicts.append(self.judged(trial, judge))
            if verdicts[-1].outcome != PASS:
                break
        return verdicts

    def machine_code(self, trial: Trial, expected: Expectations) -> Verdict:
        """Judges the machine code of a call's kernels: what the test expects of it, and whether its warps race."""
        run = self.run
        packed = self.launch_plan(trial)
        if isinstance(packed, Verdict):
            fits = packed.id != Cause.DOES_NOT_FIT  # it need not fit a GPU that the test leaves out
            return packed if fits else not_asked(expected, run.model) or packed
        code = compiled_verdict(packed.plan, expected, run.submission, self.exercise, run.model, run.filename)
        if code.outcome == PASS and (race := compiler_race(run, trial)):
            return race
        return self.speed.instead_of(amd_code.told_with(code, run, trial), trial)

    def launch_plan(self, trial: Trial, inputs: list[Argument] | None = None) -> PackedPlan | Verdict:
        """Returns the launch plan of a trial, ready to be replayed, or the verdict that says why there is none."""
        run, exercise = self.run, self.exercise
        try:
            packed = run.launch_plan(trial, inputs=inputs)
        except BadPlan as refused:
            failure = Failure("not-recordable", message=str(refused))
            return compiler_refusal(failure, run.submission, exercise, run.model)
        return not_ended(run, exercise, packed.plan) or packed

    def trial(
        self,
        name: str,
        data: tuple[DataOrNumber, ...],
        dtype: str,
        bound: CallBound | None = None,
        constants: dict[str, int] | None = None,
    ) -> Trial:
        return trial_of(self.exercise, name, data, dtype, bound, constants)

    def judged(self, trial: Trial, judge: Callable[[Trial], Verdict]) -> Verdict:
        """Returns the verdict of `judge` on a trial, or why the trial is not tried. Keeps a failure in the history."""
        verdict = self.before_any_call()
        if verdict is None and (why := self.run.history.not_tried):
            verdict = Verdict(SKIPPED, WAITED, note=why)
        verdict = verdict or self._guarded(partial(judge, trial))
        if verdict.outcome == FAIL:
            verdict.note, verdict.case = trial.data_label, trial.label(self.run.process.constants)
            self.run.history.failures.append((trial, verdict))
        return verdict

    def measured(self, measurements: list[SimulatedMeasurement]) -> Verdict:
        """Returns the verdict on the first measurement whose answer is wrong; else on the answer that is most off."""
        if (early := self.before_any_call()) is not None:
            return early
        if self.measured_without_end:
            return Verdict(SKIPPED, WAITED, note="not tried: a measurement before it came to no answer")
        verdicts = []
        for one in measurements:
            verdict = self._guarded(partial(measured_verdict, self.run, self.exercise, one))
            if verdict.outcome != PASS:
                verdict.note = verdict.case = one.label
                self.measured_without_end = verdict.kind == "ended"
                return verdict
            verdicts.append(verdict)
        return max(verdicts, key=lambda verdict: verdict.figures["largest_error"])

    def measured_here(self, bytes_of_copy: int) -> str:
        return beside_ours(self.run, self.exercise, bytes_of_copy)

    def _guarded(self, judge: Callable[[], Verdict]) -> Verdict:
        try:
            verdict = judge()
        except ChildEnded as how:
            at_import = how is self.run.process.load_ended
            verdict = failures.ended(how, at_import, self.run.submission, self.exercise)
        except GpuBusy as busy:
            raise MachineFault(str(busy)) from None
        changed = [] if self.run.fenced else self.run.files_changed_beside()
        if changed and verdict.outcome == PASS:
            return host_functions.files_changed(self.exercise.entry, changed)
        return verdict

    def before_any_call(self) -> Verdict | None:
        """Returns the verdict that the text of the submission alone decides; None if it decides none."""
        submission = self.run.submission
        if submission.failure is not None:
            return failures.file_failure(submission.failure, submission, self.exercise)
        if self.run.not_attempted:
            return Verdict(NOT_ATTEMPTED, "not-attempted")
        return failures.not_allowed(self._refused, submission) if self._refused else None

    @cached_property
    def _refused(self) -> list[Refused]:
        return all_refused(self.run.submission.tree)

    def values(self, trial: Trial, twice: bool = True, blame: bool = True, **options) -> tuple[Verdict, Reply]:
        """Returns the verdict and the first run's reply. `options` go to that run's InterpretRequest.

        blame: whether a failure may be put down to block sizes that stand in the code as numbers.
        """
        inputs = self.run.inputs(trial)
        verdict, first = self.interpreted.verdict(trial, inputs, twice, **options)
        if self.run.process.load_failure is not None:
            return verdict, first
        if verdict.outcome == PASS and self.run.replays is not None and any(all(one.grid) for one in first.launches):
            verdict = self._replayed(trial, inputs, first.launches) or verdict
        if verdict.outcome == PASS:
            self.run.history.add_right(trial, first.launches)
            return verdict, first
        self.run.history.add_wrong(trial)
        self.suspects.wrong(trial, inputs, verdict, blame)
        if self.run.empty:
            blame_empty_regions(verdict, self.run.empty, self.run.submission.tree)
        return verdict, first

    def _replayed(self, trial: Trial, inputs: list[Argument], launches: list[Launch]) -> Verdict | None:
        """Returns what is wrong with the same call on the GPU, in any of its configurations; None if nothing is."""
        packed = self.launch_plan(trial, inputs=inputs)
        if isinstance(packed, Verdict):
            return packed
        atomics = any(launch.atomics for launch in launches)
        return on_gpu.complaint(self.run, trial, packed, inputs, atomics)
