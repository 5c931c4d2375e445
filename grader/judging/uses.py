"""The uses that tests make of fixtures: the calls that each states, how they are judged, and what they wait for.

A fixture is one class, and its docstring is what `pytest --fixtures` shows. The plugin makes the fixture of it. The
judge reads the test file for its uses, to work ahead; a test that is run makes the same use, and is judged by it.

Imports no torch: pytest reads it in runs that are none of the course's, too.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

from grader.explain.unpromised_calls import Unpromised
from grader.explain.verdict import PASS, SKIPPED, UNJUDGED, Verdict
from grader.gpu.answers import COPY
from grader.judging.work_ahead import Foreseen
from grader.wire.messages import MULTIPROCESSORS

if TYPE_CHECKING:
    from grader.course.exercise import Exercise
    from grader.course.promise import StatedPromise
    from grader.course.trial import CallBound, Trial
    from grader.explain.cost import Limit, TrafficLimits
    from grader.judging.drawn_trials import DrawnTrials
    from grader.judging.judge import Judge
    from grader.judging.measurements import SimulatedMeasurement
    from grader.judging.run import Run
    from grader.numerics.arguments import DataOrNumber

RIGHT, COST, SPEED = "right", "cost", "speed"  # rubric items; only a GPU shows all of the last
FOR_VALUES, FOR_ALL = "waits for right values", "waits for the tests above"
NEVER, ON_A_GPU, ALWAYS = range(3)  # where machine code is made of the calls, sooner or later


@dataclass
class Use(ABC):
    """A use of a fixture, in the test of this name."""

    test: str
    data: tuple[DataOrNumber, ...]

    fixture: ClassVar[str]
    item: ClassVar[str]  # the rubric item that the test's points count for
    waits: ClassVar[str] = ""  # why it is not judged while something before it is wrong; "": it is judged at once
    is_recorded_ahead: ClassVar[bool] = False  # its calls, twice
    compiled_where: ClassVar[int] = ON_A_GPU
    needs_gpu: ClassVar[bool] = False  # to pass at all: without one a failure is all that it can show

    @classmethod
    def of(cls, test: str, /, *data: DataOrNumber, **options: Any) -> Self:
        """Returns the use that hands this to the fixture. Names in capitals are constants of the learner's file."""
        constants = {name: options.pop(name) for name in list(options) if name.isupper()}
        return cls(test, data, **options, **({"constants": constants} if constants else {}))

    @abstractmethod
    def trials(self, judge: Judge) -> list[Trial]:
        """Returns the trials of the calls, in the order in which they are judged."""

    @abstractmethod
    def verdict(self, judge: Judge) -> Verdict | None:
        """Judges the calls. Returns None where only a GPU would tell and there is none."""

    def foreseen(self, judge: Judge) -> list[Foreseen]:
        return [Foreseen(trial, if_right=bool(self.waits)) for trial in self.trials(judge)]


@dataclass(kw_only=True)
class _Call(Use):
    """The use of a fixture that takes constants of the learner's file, for one call in every dtype of the exercise."""

    constants: dict[str, int] = field(default_factory=dict)

    def trials(self, judge: Judge) -> list[Trial]:
        return self._trials(judge, judge.exercise.dtypes)

    def _trials(self, judge: Judge, dtypes: tuple[str, ...], bound: CallBound | None = None) -> list[Trial]:
        return [judge.trial(self.test, self.data, dtype, bound, self.constants) for dtype in dtypes]


@dataclass(kw_only=True)
class _Values(_Call):
    """The use of a fixture that judges the values of one call, in the dtypes given or in every dtype."""

    bound: CallBound | None = None
    dtypes: tuple[str, ...] = ()

    def trials(self, judge: Judge) -> list[Trial]:
        return self._trials(judge, self.dtypes or judge.exercise.dtypes, self.bound)


@dataclass
class CheckUse(_Values):
    """check(*data, bound=None, dtypes=(), **constants): judges the values and memory safety of a call.

    data: for each argument a data set, or a number where the argument is a number. bound: a bound for all results, or
    bounds for some by name, as in bound={"z": "exact"}; without it the exercise's bounds hold. "unjudged": the result
    may hold anything. dtypes: the dtypes of the call; without them, every dtype of the exercise. constants: values for
    constants of the file, as in BLOCK_N=256.
    """

    fixture, item, is_recorded_ahead = "check", RIGHT, True

    def verdict(self, judge: Judge) -> Verdict:
        verdicts = judge.up_to_a_failure(self.trials(judge), lambda trial: judge.values(trial)[0])
        return judge.cancel_if_wrong(max(verdicts, key=_seriousness))


@dataclass(kw_only=True)
class RaisesUse(_Call):
    """raises(*data, because, error="ValueError", **constants): judges a call that the lesson does not promise.

    The entry has to raise `error` before it launches anything, in every dtype. because: the reason, as a part of the
    message, as in "rows of a begin at no multiples of 16 bytes". data, constants: as in `check`.
    """

    because: str
    error: str = "ValueError"

    fixture, item, compiled_where = "raises", RIGHT, NEVER

    def verdict(self, judge: Judge) -> Verdict:
        refusal = judge.refusal(Unpromised(self.because, self.error))
        return max(judge.up_to_a_failure(self.trials(judge), refusal), key=_is_no_pass)


@dataclass
class DrawnUse(Use):
    """drawn(sizes={"N": upto(300)}, x=any_strides("N"), dtypes=(), blocks=(), gpus=False, refuses="", share=1.0):
    judges about thirty calls.

    The keywords state the lesson's promise, argument by argument; the run's seed draws calls within it. sizes: the
    range of each name in a shape. dtypes: without them, every dtype of the exercise. blocks: values for constants of
    the file, as in ({"BLOCK_N": 256},), which some calls take. gpus: whether some calls state another GPU.
    refuses: the error, as "ValueError", that a call has to raise if rows that must be aligned are not. share: the share
    of the calls to judge, other calls in each run, where an earlier test has drawn calls of the same kernel. An
    argument is any_strides, contiguous, or target where it is filled or updated, with values=(into("M"),) if it holds
    indices; or a number: one_of(0.5, 4.0), between(0.5, 4.0), optional(between(1, 150)) where it may be None.
    """

    options: dict[str, Any] = field(default_factory=dict)

    fixture, item, waits, is_recorded_ahead = "drawn", RIGHT, FOR_VALUES, True

    @classmethod
    def of(cls, test: str, /, *data: DataOrNumber, **options: Any) -> Self:
        if data:
            raise TypeError("drawn takes a promise for each argument, by name, and no data")
        return cls(test, (), options)

    def promise(self, exercise: Exercise) -> StatedPromise:
        from grader.course.promise import stated

        return stated(exercise.arguments, exercise.dtypes, self.options)

    def drawn_trials(self, judge: Judge) -> DrawnTrials:
        from grader.judging.drawn_trials import DrawnTrials

        drawn, promise = judge.drawn.get(self.test), self.promise(judge.exercise)
        if drawn is None or drawn.promise != promise:
            drawn = judge.drawn[self.test] = DrawnTrials(judge.exercise, judge.run, self.test, promise)
        return drawn

    def trials(self, judge: Judge) -> list[Trial]:
        return self.drawn_trials(judge).all

    def verdict(self, judge: Judge) -> Verdict:
        from grader.judging.drawn_trials import drawn_verdict

        return drawn_verdict(judge, self.drawn_trials(judge))


@dataclass(kw_only=True)
class TrafficUse(_Call):
    """traffic(*data, reads=1, writes=1, launches=None, idle=None, programs=None, moved=None, lanes=None, share=None,
    scratch=None, kept=None, float_atomics=True, at_once=1, bound=None, **constants): judges a call's cost.

    The values have to be right too. reads: how often each input may be read, in multiples of its size; a number, or
    a dict with a number for each argument, where Elements(48) stands for a number of elements. writes: the same for the
    results. launches: how many kernels may be launched. idle: how many programs may have nothing to do. programs: how
    many programs there may be. moved: how many bytes a GPU may move for each byte used, since it moves whole sectors of
    32 bytes. lanes: how many lanes of a load or store there may be for each element that it touches. share: how much of
    an input a single program may read, stated as `reads` is. scratch: how many bytes kernels may move in memory that
    only they see, for each byte of the arguments and results. kept: how many numbers they may keep there, all in fp32.
    float_atomics: False if programs may not add floats by atomics, which come in any order. at_once: how many
    neighbouring programs share what they read, as in a cache. data, bound, constants: as in `check`.
    """

    reads: Limit = 1
    writes: Limit = 1
    launches: int | None = None
    idle: int | None = None
    programs: int | None = None
    moved: float | None = None
    lanes: float | None = None
    share: Limit | None = None
    scratch: float | None = None
    kept: int | None = None
    float_atomics: bool = True
    at_once: int = 1
    bound: CallBound | None = None

    fixture, item, waits = "traffic", COST, FOR_VALUES

    def trials(self, judge: Judge) -> list[Trial]:
        return self._trials(judge, judge.exercise.dtypes[:1], self.bound)

    def limits(self, exercise: Exercise) -> TrafficLimits:
        from grader.explain.cost import TrafficLimits, limits_of

        others = TrafficLimits(
            launches=self.launches, idle=self.idle, programs=self.programs, moved=self.moved, lanes=self.lanes,
            scratch=self.scratch, kept=self.kept, float_atomics=self.float_atomics,
            multiprocessors=self.constants.get(MULTIPROCESSORS, 0),
        )  # fmt: skip
        return limits_of(exercise, self.data, self.reads, self.writes, self.share, others)

    def verdict(self, judge: Judge) -> Verdict:
        (trial,), limits = self.trials(judge), self.limits(judge.exercise)
        return judge.judged(trial, lambda trial: judge.traffic(trial, limits, self.at_once))


@dataclass(kw_only=True)
class CompiledUse(_Call):
    """compiled(*data, vectors=False, tensor_cores=False, halves=False, pipelined=False, descriptors=False,
    **constants): judges the machine code of a call.

    It has to exist, fit the GPU and spill no registers. vectors: every access to global memory has to move 16 bytes.
    tensor_cores: products of tiles have to run on the tensor cores. halves: all products have to multiply tiles of
    16 bits. pipelined: loads have to run ahead of their use. descriptors: all large tiles have to be moved through
    descriptors, on GPUs that have a unit for it. Sizes may be as large as on a GPU. Values are judged too, in the first
    dtype of the exercise: all of them on a GPU, else two programs. data, constants: as in `check`.
    """

    vectors: bool = False
    tensor_cores: bool = False
    halves: bool = False
    pipelined: bool = False
    descriptors: bool = False

    fixture, item, waits, compiled_where = "compiled", COST, FOR_VALUES, ALWAYS

    def verdict(self, judge: Judge) -> Verdict:
        from grader.explain.compiled_code import Expectations

        trials = self.trials(judge)
        asked = Expectations(self.vectors, self.tensor_cores, self.halves, self.pipelined, self.descriptors)
        code = max(judge.up_to_a_failure(trials, lambda trial: judge.machine_code(trial, asked)), key=_is_no_pass)
        return code if code.outcome != PASS else judge.judged(trials[0], lambda trial: judge.wrong(trial) or code)


@dataclass(kw_only=True)
class TunedUse(Use):
    """tuned(*data, others=(), configurations=(2, 64)): judges the choice that an autotuned kernel makes for a call.

    configurations: the least and the largest number of configurations to choose from. others: the data of calls of
    other sizes, each of which has to make a choice of its own: let the sizes lie far apart, for a key may put
    neighbouring sizes together. Nothing runs, so sizes may be as large as on a GPU.
    """

    others: Sequence[tuple[DataOrNumber, ...]] = ()
    configurations: tuple[int, int] = (2, 64)

    fixture, item, waits, compiled_where = "tuned", COST, FOR_VALUES, NEVER

    def trials(self, judge: Judge) -> list[Trial]:
        return [judge.trial(self.test, data, judge.exercise.dtypes[0]) for data in (self.data, *self.others)]

    def verdict(self, judge: Judge) -> Verdict:
        from grader.judging.every_configuration import choice_verdict

        trials = self.trials(judge)
        return judge.judged(trials[0], lambda _: choice_verdict(judge.interpreted, trials, self.configurations))


@dataclass
class OnGpuUse(_Values):
    """on_gpu(*data, bound=None, dtypes=(), **constants): judges as `check`, for sizes that only a GPU gets through.

    Inputs are drawn on the GPU and the result is compared there. Without a GPU a sample of the programs is judged, on
    memory that is made when they touch it; the test fails if they are wrong, and is skipped if they are right.
    """

    fixture, item, waits = "on_gpu", SPEED, FOR_ALL

    def verdict(self, judge: Judge) -> Verdict:
        trials = self.trials(judge)
        if judge.run.replays is None:
            return max((judge.judged(trial, judge.in_a_sample) for trial in trials), key=_openness)
        return max(judge.up_to_a_failure(trials, judge.in_full), key=_seriousness)


@dataclass(kw_only=True)
class ThroughputUse(Use):
    """throughput(*data, at_least, anchor="copy", since=""): judges the speed of a call, in the first dtype of the
    exercise.

    at_least: the gate, as a share of the anchor's speed on the same GPU. anchor: "copy", which reads and writes as many
    bytes as the call has to, or "matmul", the vendor's product of the same matrices, or of the matrices that the
    exercise states as its `product`. since: the first target whose speed is judged, as "sm_90". Without a GPU a few
    programs of the call are judged; the test fails if they are wrong, and is skipped if they are right. It is skipped
    too where noise hides the speed.
    """

    at_least: float
    anchor: str = COPY
    since: str = ""

    fixture, item, waits, needs_gpu = "throughput", SPEED, FOR_ALL, True

    def trials(self, judge: Judge) -> list[Trial]:
        return [judge.speed.trial(self)]

    def verdict(self, judge: Judge) -> Verdict | None:
        (trial,) = self.trials(judge)
        if judge.run.replays is None:
            verdict = judge.judged(trial, lambda trial: judge.wrong(trial) or Verdict(PASS))
            return verdict if verdict.outcome != PASS else None
        skipped = judge.speed.not_timed(self)
        return skipped or judge.judged(trial, lambda trial: judge.speed.verdict(self, trial, medals=True))


@dataclass(kw_only=True)
class MeasuresUse(Use):
    """measures(*seconds, devices=1, copy=0): judges the answers of an entry that measures kernels on simulated GPUs.

    seconds: how long a launch of the kernel takes, or the two ends of a range from which the run's seed draws. devices:
    how many GPUs are drawn, each with a kernel; every answer has to be within 2 % of the true time. copy: on a real GPU
    an entry that is right measures a copy of so many bytes too; the note says what it answers beside our measurement.
    """

    devices: int = 1
    copy: int = 0

    fixture, item, compiled_where = "measures", RIGHT, NEVER

    def trials(self, judge: Judge) -> list[Trial]:
        return []  # nothing is recorded

    def measurements(self, run: Run) -> list[SimulatedMeasurement]:
        from grader.judging.measurements import drawn_measurement

        seconds = [one for one in self.data if isinstance(one, int | float)]
        return [drawn_measurement(run, self.test, number, *seconds) for number in range(self.devices)]

    def verdict(self, judge: Judge) -> Verdict:
        verdict = judge.measured(self.measurements(judge.run))
        if self.copy and verdict.outcome == PASS and judge.run.replays is not None:
            verdict.note += judge.measured_here(self.copy)
        return verdict


@dataclass(kw_only=True)
class OperatorUse(_Call):
    """operator(*data, name, gives=(), **constants): judges an operator of torch that the file registers.

    name: as "course::swiglu". gives: which of the exercise's results it returns, in their order; without it,
    all: then the exercise's first argument is the gradient of the first result, and the others are the gradients that
    the operator's formula gives. Its values are judged as `check` does, and what its fake tells of them: torch.compile
    calls fakes in the place of operators. data, constants: as in `check`.
    """

    name: str
    gives: tuple[str, ...] = ()

    fixture, item, compiled_where = "operator", RIGHT, NEVER

    def foreseen(self, judge: Judge) -> list[Foreseen]:
        return []

    def verdict(self, judge: Judge) -> Verdict:
        from grader.judging.torch_operators import operator_verdict

        verdicts = judge.up_to_a_failure(
            self.trials(judge), lambda trial: operator_verdict(judge, trial, self.name, self.gives)
        )
        return judge.cancel_if_wrong(max(verdicts, key=_seriousness))


USES: dict[str, type[Use]] = {
    kind.fixture: kind
    for kind in (
        CheckUse,
        RaisesUse,
        DrawnUse,
        TrafficUse,
        CompiledUse,
        TunedUse,
        OnGpuUse,
        ThroughputUse,
        MeasuresUse,
        OperatorUse,
    )
}

_Kind = TypeVar("_Kind", bound=Use)


def uses_asked(module: ModuleType, *kinds: type[_Kind]) -> list[_Kind]:
    """Returns the uses of these kinds that an exercise's tests make, in the order of the test file.

    Each test is run with a stand-in for its fixture. Tests state their data before anything is drawn, so no call is
    made here. A test with other parameters, such as a parametrized test, is left out: only pytest can call it. So is
    a test that hands its fixture what it does not take: it raises TypeError where it is run.
    """
    of_name = {kind.fixture: kind for kind in kinds}
    uses: list[_Kind] = []
    for name, test in vars(module).items():
        parameters = list(inspect.signature(test).parameters) if name.startswith("test_") else []
        if len(parameters) == 1 and (kind := of_name.get(parameters[0])):
            with suppress(TypeError):
                test(_noting(uses, kind, name))
    return uses


def _noting(uses: list[_Kind], kind: type[_Kind], test: str) -> Callable[..., None]:
    return lambda *data, **options: uses.append(kind.of(test, *data, **options))


# ---- which of several verdicts counts --------------------------------------------------------------------------------


def _is_no_pass(verdict: Verdict) -> bool:
    return verdict.outcome != PASS


def _seriousness(verdict: Verdict) -> tuple[bool, float]:
    """Returns a key for max(): no pass, then the pass whose largest error comes nearest to its bound."""
    return _is_no_pass(verdict), verdict.figures.get("largest_error", 0)


def _openness(verdict: Verdict) -> tuple[bool, bool]:
    """Returns a key for max() over samples of one call: a failure, then the skip that leaves the run incomplete."""
    return verdict.outcome != SKIPPED, verdict.id == UNJUDGED
