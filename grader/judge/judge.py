"""The verdict of a test: its calls in the interpreter, in machine code and on a GPU, in the order of explanations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import chain

from grader.compiler.compiler_pool import processes_here
from grader.course.exercise import Exercise
from grader.course.promise import Call, Promise, stated
from grader.course.simpler_calls import smallest
from grader.course.stated_calls import CHECK, DRAWN, THROUGHPUT, TRAFFIC, Asked
from grader.course.trial import Bound, Trial, trial_of
from grader.explain import cost, failures, host_functions
from grader.explain.blame import blame_empty_regions
from grader.explain.causes import Cause
from grader.explain.compiled_code import Expectations, compiled_verdict, not_asked
from grader.explain.refused_by_compiler import compiler_refusal
from grader.explain.verdict import FAIL, NOT_ATTEMPTED, PASS, SKIPPED, UNJUDGED, WAITED, Verdict
from grader.gpu.lock import GpuBusy
from grader.gpu.plan import BadPlan, Recording
from grader.judge import amd_code, on_gpu
from grader.judge.compiler_races import compiler_race
from grader.judge.drawn_trials import DrawnTrials
from grader.judge.early_failures import not_ended
from grader.judge.every_configuration import choice_verdict
from grader.judge.foreseen import Foreseen, in_turns
from grader.judge.in_interpreter import Interpreted
from grader.judge.in_samples import SOME_PROGRAMS, sampled, wrong_in_a_sample
from grader.judge.measured_speed import MeasuredSpeed
from grader.judge.refused_calls import Unpromised, refused_call
from grader.judge.run import Run
from grader.judge.seriousness import all_right, is_no_pass, openness, seriousness
from grader.judge.suspects import Suspects
from grader.numerics.arguments import Argument, Recipe
from grader.processes.faults import ChildEnded, MachineFault
from grader.submission.kernel_names import Refused, all_refused
from grader.wire.messages import MULTIPROCESSORS, Failure, Launch
from grader.wire.reply import Reply

MOST_SIMPLER = 12  # calls that are tried to find a simpler one that fails, too
NOT_SIMPLER = ("file", "region", "ended")  # kinds of failures that a simpler call would not explain better


@dataclass
class Judge:
    """Judges the calls of one exercise's tests, one after the other, for one run."""

    exercise: Exercise
    run: Run
    interpreted: Interpreted = field(init=False)
    suspects: Suspects = field(init=False)
    speed: MeasuredSpeed = field(init=False)

    def __post_init__(self) -> None:
        self.speed = MeasuredSpeed(self.exercise, self.run, self.recording)
        self.interpreted = Interpreted(self.exercise, self.run)
        self.suspects = Suspects(self.exercise, self.run)

    def begin(self, twice: list[Asked], compiled: list[Asked]) -> None:
        """Records the calls of `twice`, to be judged twice, and compiles the calls of `compiled`, in the background."""
        if self.before_any_call() is None and not self.run.trusted:
            self.run.work_ahead(lambda: self._work_ahead(twice, compiled))

    def _work_ahead(self, twice: list[Asked], compiled: list[Asked]) -> None:
        foreseen: list[Foreseen] = []
        for use in twice:
            if use.fixture == DRAWN:  # the first wrong call ends such a test
                trials = self._drawn_trials(use.test, self.promise(use.options)).all
            else:
                trials = self._trials(use.test, use.data, None, use.options.get("dtypes") or (), use.constants)
            foreseen += [Foreseen(trial, if_right=use.fixture == DRAWN) for trial in trials]
        self.run.record_in_drawn_order(self.exercise, foreseen, between=lambda: self.compile_ahead(compiled))

    def compile_ahead(self, uses: list[Asked]) -> None:
        """Begins to compile the calls of these uses, on cores that are idle: each is compiled sooner or later."""
        foreseen = []
        for use in uses:
            if use.fixture == DRAWN:
                foreseen += [Foreseen(trial) for trial in self._drawn_trials(use.test, self.promise(use.options)).all]
                continue
            in_one_dtype = use.fixture in (TRAFFIC, THROUGHPUT)
            dtypes = use.options.get("dtypes") or self.exercise.dtypes[: 1 if in_one_dtype else None]
            data = self.speed.fitting(use.data) if use.fixture == THROUGHPUT else use.data
            for trial in self._trials(use.test, data, None, dtypes, use.constants):
                foreseen.append(Foreseen(trial, if_right=use.fixture != CHECK))
        self.run.compile_ahead(self.exercise, in_turns(foreseen) if processes_here() > 1 else foreseen)

    def check(
        self,
        name: str,
        data: tuple[Recipe, ...],
        bound: Bound | None = None,
        dtypes: tuple[str, ...] = (),
        **constants: int,
    ) -> Verdict:
        """Judges the values and memory safety of a call, in the dtypes given or in every dtype of the exercise."""
        trials = self._trials(name, data, bound, dtypes, constants)
        verdict = max(self._up_to_a_failure(trials, lambda trial: self._values(trial)[0]), key=seriousness)
        if verdict.outcome == FAIL and verdict.kind != "file":  # after that everything is asked all the same
            self.run.machine_code.values_are_wrong()
        return verdict

    def promise(self, options: dict) -> Promise:
        """Returns the promise that the keywords of the fixture `drawn` state for this exercise."""
        return stated(self.exercise.arguments, self.exercise.dtypes, options)

    def drawn(self, name: str, promise: Promise) -> Verdict:
        """Judges the calls drawn for a promise. On failure, reports the simplest call that fails the same way."""
        verdict, largest, trials = Verdict(PASS), 0.0, self._drawn_trials(name, promise)
        calls = trials.calls
        for call in calls:
            verdict = self._judged(trials.of(call), self._right_or_not)
            largest = max(largest, verdict.figures.get("largest_error", 0.0))
            if verdict.outcome != PASS:
                break
        if verdict.outcome == PASS:
            return self._beyond(trials, len(calls)) or all_right(len(calls), largest)
        if verdict.outcome == FAIL and verdict.kind not in NOT_SIMPLER:
            verdict = self._simplest(trials, call, verdict)
        if verdict.outcome == FAIL and verdict.kind != "file":
            self.run.machine_code.values_are_wrong()
        return verdict

    def _drawn_trials(self, name: str, promise: Promise) -> DrawnTrials:
        return DrawnTrials(self.exercise, self.run, name, promise)

    def _right_or_not(self, trial: Trial) -> Verdict:
        return self._values(trial, blame=False)[0]

    def _beyond(self, trials: DrawnTrials, after: int) -> Verdict | None:
        """Returns what is wrong with calls outside of the promise or up to its limits, or why these are not judged."""
        refused = (self._judged(trial, self._refusal(asked)) for trial, asked in trials.unpromised(after))
        large = (self._judged(trials.of(call), self._large) for call in trials.large(after))
        return next((one for one in chain(refused, large) if one.outcome == FAIL or one.id == UNJUDGED), None)

    def _refusal(self, asked: Unpromised) -> Callable[[Trial], Verdict]:
        return partial(refused_call, self.run, self.exercise, asked)

    def _large(self, trial: Trial) -> Verdict:
        verdict = sampled(self.run, self.interpreted, trial, SOME_PROGRAMS)
        return self._in_full(trial) if verdict.id == UNJUDGED and self.run.replays is not None else verdict

    def _simplest(self, trials: DrawnTrials, call: Call, verdict: Verdict) -> Verdict:
        """Returns the verdict on the simplest call that fails in the same way as this one.

        A guess gives way to any failure that a simpler call shows.
        """
        found = verdict

        def fails(simpler: Call) -> bool:
            nonlocal found
            other = self._judged(trials.of(simpler), self._right_or_not)
            same = other.outcome == FAIL and other.kind not in NOT_SIMPLER
            if same and (other.id == found.id or found.kind == "guess"):
                found = other
                return True
            return False

        smallest(trials.promise, call, fails, MOST_SIMPLER)
        return found

    def raises(self, name: str, data: tuple[Recipe, ...], asked: Unpromised, **constants: int) -> Verdict:
        """Judges whether the entry refuses a call that the lesson does not promise, in every dtype of the exercise."""
        trials = self._trials(name, data, None, (), constants)
        return max(self._up_to_a_failure(trials, self._refusal(asked)), key=is_no_pass)

    def traffic(
        self,
        name: str,
        data: tuple[Recipe, ...],
        limits: cost.TrafficLimits,
        at_once: int = 1,
        bound: Bound | None = None,
        **constants: int,
    ) -> Verdict:
        """Judges the bytes moved per argument, in the first dtype of the exercise; the values have to be right too.

        The call is made once: `check` tells whether a second call gives the same.
        """
        trial = self.trial(name, data, self.exercise.dtypes[0], bound, constants)
        limits = replace(limits, multiprocessors=constants.get(MULTIPROCESSORS, 0))

        def moved(trial: Trial) -> Verdict:
            verdict, reply = self._values(trial, twice=False, count_traffic=True, at_once=at_once)
            if verdict.outcome != PASS:
                return verdict
            cost_verdict = cost.traffic_verdict(reply, limits, self.exercise, at_once)
            return self.speed.instead_of(cost.at_its_store(cost_verdict, self.run.submission))

        return self._judged(trial, moved)

    def compiled(self, name: str, data: tuple[Recipe, ...], expected: Expectations, **constants: int) -> Verdict:
        """Judges a call's machine code, in every dtype of the exercise, and then its values, in the first of them."""
        trials = self._trials(name, data, None, (), constants)
        code = max(self._up_to_a_failure(trials, lambda trial: self._machine_code(trial, expected)), key=is_no_pass)
        return code if code.outcome != PASS else self._judged(trials[0], lambda trial: self._wrong(trial) or code)

    def _wrong(self, trial: Trial) -> Verdict | None:
        """Returns the failure of a large call that is otherwise compiled or timed; None if its values are right."""
        if self.run.replays is None:
            return wrong_in_a_sample(self.run, self.interpreted, trial)
        verdict = self._in_full(trial)
        return verdict if verdict.outcome == FAIL else None

    def tuned(
        self, name: str, data: tuple[Recipe, ...], others: list[tuple], configurations: tuple[int, int]
    ) -> Verdict:
        """Judges how many configurations a call has, and whether calls of other sizes make their own choice."""
        trials = [self.trial(name, one, self.exercise.dtypes[0]) for one in (data, *others)]
        return self._judged(trials[0], lambda trial: choice_verdict(self.interpreted, trials, configurations))

    def on_gpu(
        self,
        name: str,
        data: tuple[Recipe, ...],
        bound: Bound | None = None,
        dtypes: tuple[str, ...] = (),
        **constants: int,
    ) -> Verdict:
        """Judges the values and memory safety of a call too large for the interpreter; dtypes are as for `check`.

        Without a GPU a sample of its programs is judged.
        """
        trials = self._trials(name, data, bound, dtypes, constants)
        if self.run.replays is None:
            verdicts = [self._judged(trial, self._in_a_sample) for trial in trials]
            return max(verdicts, key=openness)
        return max(self._up_to_a_failure(trials, self._in_full), key=seriousness)

    def _in_a_sample(self, trial: Trial) -> Verdict:
        return sampled(self.run, self.interpreted, trial)

    def _in_full(self, trial: Trial) -> Verdict:
        """Returns the verdict on all values of a large call, on a GPU."""
        recording = self.recording(trial)
        if isinstance(recording, Verdict):
            return recording
        return on_gpu.large(self.run, self.exercise, trial, recording, self.run.history.atomics)

    def throughput(self, name: str, data: tuple[Recipe, ...], anchor: str, gate: float, since: str = "") -> Verdict:
        """Judges the speed of a call in the first dtype of the exercise, as a share of the anchor's."""
        if skipped := self.speed.not_timed(anchor, since):
            return skipped
        timed = self.speed.trial(name, data)
        return self._judged(timed, lambda trial: self.speed.verdict(name, trial, anchor, gate, medals=True))

    def untimed(self, name: str, data: tuple[Recipe, ...]) -> Verdict | None:
        """Returns the failure that a few programs show of a call that is not timed; None if they are right."""
        trial = self.speed.trial(name, data)
        verdict = self._judged(trial, lambda trial: self._wrong(trial) or Verdict(PASS))
        return verdict if verdict.outcome != PASS else None

    def _trials(
        self,
        name: str,
        data: tuple[Recipe, ...],
        bound: Bound | None,
        dtypes: tuple[str, ...],
        constants: dict[str, int],
    ) -> list[Trial]:
        """Returns the trials of a call, one in each of the dtypes, or of the exercise's dtypes if none are given."""
        return [self.trial(name, data, dtype, bound, constants) for dtype in dtypes or self.exercise.dtypes]

    def _up_to_a_failure(self, trials: list[Trial], judge: Callable[[Trial], Verdict]) -> list[Verdict]:
        """Returns the verdicts in order, up to the first that is no pass."""
        verdicts = []
        for trial in trials:
            verdicts.append(self._judged(trial, judge))
            if verdicts[-1].outcome != PASS:
                break
        return verdicts

    def _machine_code(self, trial: Trial, expected: Expectations) -> Verdict:
        run = self.run
        recording = self.recording(trial)
        if isinstance(recording, Verdict):
            fits = recording.id != Cause.DOES_NOT_FIT  # it need not fit a GPU that the test leaves out
            return recording if fits else not_asked(expected, run.model) or recording
        code = compiled_verdict(recording.plan, expected, run.submission, self.exercise, run.model, run.filename)
        if code.outcome == PASS and (race := compiler_race(run, self.exercise, trial)):
            return race
        return self.speed.instead_of(amd_code.told_with(code, run, self.exercise, trial), trial)

    def recording(self, trial: Trial, inputs: list[Argument] | None = None) -> Recording | Verdict:
        """Returns the launch plan of a trial, ready to be replayed, or the verdict that says why there is none."""
        run, exercise = self.run, self.exercise
        try:
            recording = run.recording(exercise, trial, inputs=inputs)
        except BadPlan as refused:
            failure = Failure("not-recordable", message=str(refused))
            return compiler_refusal(failure, run.submission, exercise, run.model)
        return not_ended(run, exercise, recording.plan) or recording

    def trial(
        self,
        name: str,
        data: tuple[Recipe, ...],
        dtype: str,
        bound: Bound | None = None,
        constants: dict[str, int] | None = None,
    ) -> Trial:
        return trial_of(self.exercise, name, data, dtype, bound, constants)

    def limits(self, data: tuple[Recipe, ...], reads, writes, share=None, **others) -> cost.TrafficLimits:
        """Returns the traffic limits of a call with these data, as the fixture `traffic` states them."""
        return cost.limits_of(self.exercise, data, reads, writes, share, cost.TrafficLimits(**others))

    def _judged(self, trial: Trial, judge: Callable[[Trial], Verdict]) -> Verdict:
        verdict = self.before_any_call()
        if verdict is None and (why := self.run.history.not_tried):
            verdict = Verdict(SKIPPED, WAITED, note=why)
        verdict = verdict or self._guarded(trial, judge)
        if verdict.outcome == FAIL:
            verdict.note, verdict.case = trial.data_label, trial.label(self.run.recorder.constants)
            self.run.history.failures.append((trial, verdict))
        return verdict

    def _guarded(self, trial: Trial, judge: Callable[[Trial], Verdict]) -> Verdict:
        try:
            verdict = judge(trial)
        except ChildEnded as how:
            at_import = how is self.run.recorder.load_ended
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

    def _values(self, trial: Trial, twice: bool = True, blame: bool = True, **options) -> tuple[Verdict, Reply]:
        """Returns the verdict and the first run's reply. `options` go to that run's InterpretRequest.

        blame: whether a failure may be put down to block sizes that stand in the code as numbers.
        """
        inputs = self.run.inputs(trial)
        verdict, first = self.interpreted.verdict(trial, inputs, twice, **options)
        if self.run.recorder.load_failure is not None:
            return verdict, first
        if verdict.outcome == PASS and self.run.replays is not None and any(all(one.grid) for one in first.launches):
            verdict = self._replayed(trial, inputs, first.launches) or verdict
        if verdict.outcome == PASS:
            self.run.history.add_right(self.exercise, trial, inputs, first.launches)
            return verdict, first
        self.run.history.add_wrong(self.exercise, trial, inputs)
        self.suspects.wrong(trial, inputs, verdict, blame)
        if self.run.empty:
            blame_empty_regions(verdict, self.run.empty)
        return verdict, first

    def _replayed(self, trial: Trial, inputs: list[Argument], launches: list[Launch]) -> Verdict | None:
        """Returns what is wrong with the same call on the GPU, in any of its configurations; None if nothing is."""
        recording = self.recording(trial, inputs=inputs)
        if isinstance(recording, Verdict):
            return recording
        atomics = any(launch.atomics for launch in launches)
        return on_gpu.complaint(self.run, self.exercise, trial, recording, inputs, atomics)
