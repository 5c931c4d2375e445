"""Explains a measuring function that gives a wrong time, from what it did on the simulated GPU.

Which part of the GPU makes the answer wrong is no guess: without that part, the same function was right.
"""

from __future__ import annotations

import statistics
from bisect import insort
from collections.abc import Sequence

from grader.course.exercise import in_words
from grader.explain.causes import Cause
from grader.explain.verdict import Verdict, failed
from grader.gpu.simulated_gpu import EndlessMeasurement, GpuPart, Log, SimulatedGpu, TimedPart
from grader.sentences import Said, Sentence, Value

UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))
FEW = 20  # timed launches, in which a median is of little use
MOST_ROUNDS = 1000  # the last ones, among which those are looked for whose middle the answer is
ALIKE = 1e-9  # share by which two numbers for one time may differ


class WrongTimes(Sentence):
    """Sentences about measurements. {answer}, {true} and other times are texts with their units."""

    NO_NUMBER = "{entry} returns {type}: the seconds of one launch were expected, a float."
    NO_TIME = "{entry} returns {answer}: the seconds of one launch were expected, a finite float above 0."
    NEVER_LAUNCHED = "{entry} returns {answer} and never called run(): nothing was measured."
    NOT_TIMED = (
        "{entry} called run() {launches:#time}, and no launch lies between two looks at device.now() or between two "
        "events that device.elapsed compares. Python's own clocks tell nothing of this GPU: it is simulated."
    )
    ENDLESS = (
        "{entry} was stopped after {launches:_} launches and {seconds} on the clock of the GPU's host: a real GPU "
        "would have been as long at work. Choose the number of rounds by the time that one takes: a second or two "
        "for all of them is enough."
    )
    MANY_LOOKS = (
        "{entry} was stopped after {looks:_} looks at the clock and {seconds} on it: each is a message to the judge. "
        "Launch several times between two looks, or choose the number of rounds by the time that one takes."
    )

    NO_SYNCHRONIZE = (
        "The clock was read {unfinished:#time} while the GPU was still at work: a launch returns at once, and what "
        "was measured is what the host needs for it. device.synchronize() waits for the GPU."
    )
    COMPILING = (
        "The first call of run() compiles the kernel, which takes the host {compilation}, and this is part of what was "
        "measured. Call run() before the first round."
    )
    HOST = (
        "The time of the host is part of what was measured: about {launch} for each launch, and {synchronization} to "
        "synchronize. Events have the GPU's own time: device.record() before the launch and after it."
    )
    GAP = (
        "Between the two events the GPU waited for the host for {idle:.0f} % of the time: it had nothing in its queue "
        "before the launch, or after it. Launch other work before the first event, as device.sleep does, long enough "
        "that launch and second event are in the queue in time, and let the host wait for nothing between them."
    )
    CACHE = (
        "The cache was warm: a launch finds there what the work before it has left, and takes less time than in a "
        "program whose other kernels have used the cache. Call device.flush_cache() before each round, after any draw "
        "of inputs, which warms it."
    )
    ZEROS = (
        "The inputs were zeros: new memory holds them, and a GPU needs less power for them and is faster than with "
        "numbers. Call run.draw_inputs() before the first round."
    )
    RAMP = (
        "The clock of the GPU was still rising in the rounds that were measured: after a rest it begins at "
        "{lowest_clock:.0f} % of its steady value, and while run() compiles it rests. Let the GPU work right before "
        "the first round, until its times fall no more."
    )
    DISTURBED = (
        "Launches that something else disturbed are part of the answer: {disturbed:.0f} % of them take up to six times "
        "as long here, which moves a mean far. They hardly move a median."
    )
    TOO_FEW = (
        "{launches} launches were timed, which is too few: each differs from the others by some per cent, and some "
        "are disturbed. Take the median of a hundred."
    )
    ONE_TOO_FEW = "One launch was timed: each differs from the others by some per cent. Take the median of a hundred."
    FEW_AT_THE_END = (
        "The answer is the middle of the last launches that were timed, and these were too few: each differs from the "
        "others by some per cent, and some are disturbed. Take the median of more, of hundreds where they are short."
    )
    MEANS = (
        "The answer is the middle of rounds with {several} launches between two marks: each round is a mean of them, "
        "and {disturbed:.0f} % of the launches, which something else disturbs, take up to six times as long. Time each "
        "launch by itself, and take the median."
    )
    NOT_THE_MIDDLE = (
        "The {launches:_} launches that were timed scatter around the true time, and the answer is not their middle: "
        "the least of them, for one, lies some per cent below it. Take the median."
    )
    OTHER_WORK = (
        "Other work of the GPU is part of what was measured: flushes of the cache, sleeps or draws of inputs. Only the "
        "launch of run() belongs between the two events."
    )
    WRONG_FORMULA = (
        "Also on a GPU on which nothing makes a measurement wrong, the same function is wrong: it answers {ideal}, "
        "where a launch takes {true}. Are these the seconds of one launch?"
    )

    ANSWER = "The answer is {answer}, and a launch takes {true}: {off}."
    RIGHT_WITHOUT = "The same function is right on the same GPU if {without}."


WITHOUT = {
    GpuPart.OTHER_WORK: "events do not count other work",
    GpuPart.QUEUE: "each launch waits for its end",
    GpuPart.COMPILING: "nothing has to be compiled",
    GpuPart.HOST: "launches cost the host no time",
    GpuPart.GAP: "events do not count how long the GPU waits for the host",
    GpuPart.CACHE: "nothing stays in the cache",
    GpuPart.ZEROS: "zeros take as long as other numbers",
    GpuPart.RAMP: "the clock is steady from the start",
    GpuPart.DISTURBANCE: "nothing disturbs a launch",
    GpuPart.SCATTER: "all launches take the same time",
}
CAUSES = {
    GpuPart.OTHER_WORK: (Cause.OTHER_WORK_TIMED, WrongTimes.OTHER_WORK),
    GpuPart.QUEUE: (Cause.NO_SYNCHRONIZE, WrongTimes.NO_SYNCHRONIZE),
    GpuPart.COMPILING: (Cause.COMPILATION_TIMED, WrongTimes.COMPILING),
    GpuPart.HOST: (Cause.HOST_TIMED, WrongTimes.HOST),
    GpuPart.GAP: (Cause.HOST_GAP, WrongTimes.GAP),
    GpuPart.CACHE: (Cause.WARM_CACHE, WrongTimes.CACHE),
    GpuPart.ZEROS: (Cause.ZERO_INPUTS, WrongTimes.ZEROS),
    GpuPart.RAMP: (Cause.CLOCK_NOT_STEADY, WrongTimes.RAMP),
    GpuPart.DISTURBANCE: (Cause.DISTURBED_ROUNDS, WrongTimes.DISTURBED),
    GpuPart.SCATTER: (Cause.NOT_THE_MIDDLE, WrongTimes.NOT_THE_MIDDLE),
}


def no_time(entry: str, type: str, seconds: float | None) -> Verdict:
    """Returns the verdict on an answer that is no time: of this type, or not above 0."""
    if seconds is None and type not in ("nan", "inf", "-inf", "int", "float"):
        return failed(Cause.WRONG_RESULT_TYPE, WrongTimes.NO_NUMBER(entry=entry, type=type), kind="result")
    answer = type if seconds is None else f"{seconds:g}"
    return failed(Cause.WRONG_RESULT_TYPE, WrongTimes.NO_TIME(entry=entry, answer=answer), kind="result")


def endless(entry: str, log: Log, limit: EndlessMeasurement) -> Verdict:
    seconds = time_text(limit.seconds)
    said = WrongTimes.ENDLESS(entry=entry, launches=log.launches, seconds=seconds)
    if limit.looks:
        said = WrongTimes.MANY_LOOKS(entry=entry, looks=limit.looks, seconds=seconds)
    return failed(Cause.ENDLESS_MEASUREMENT, said, kind="ended")


def not_measured(entry: str, answer: float, log: Log) -> Verdict | None:
    """Returns the verdict on an answer that follows from no launch that was timed; None where one was."""
    if not log.launches:
        said = WrongTimes.NEVER_LAUNCHED(entry=entry, answer=time_text(answer))
    elif not log.timed:
        said = WrongTimes.NOT_TIMED(entry=entry, launches=log.launches)
    else:
        return None
    return failed(Cause.NOT_MEASURED, said, kind="cause")


def wrong_time(answer: float, gpu: SimulatedGpu, parts: Sequence[GpuPart] = (), ideal: float | None = None) -> Verdict:
    """Returns the verdict on a wrong time.

    parts: without them the same function was right, and none of them may be there; the one comes first that alone
    misleads it most. None where it was wrong without all parts, too. ideal: what it answered without all; None: not
    known.
    """
    true = gpu.seconds
    told = WrongTimes.ANSWER(answer=time_text(answer), true=time_text(true), off=_off(answer / true))
    if not parts:
        formula = None if ideal is None else WrongTimes.WRONG_FORMULA(ideal=time_text(ideal), true=time_text(true))
        return failed(Cause.WRONG_TIME, formula, told)
    cause, said = _first(answer, parts, gpu)
    right = WrongTimes.RIGHT_WITHOUT(without=in_words([WITHOUT[part] for part in parts]))
    return failed(cause, said, told, right, kind="cause")


def _first(answer: float, parts: Sequence[GpuPart], gpu: SimulatedGpu) -> tuple[Cause, Said]:
    log, traits = gpu.log, gpu.traits
    cause, sentence = CAUSES[parts[0]]
    by_events = log.timed_by_events
    launches = sum(part.launches for part in by_events or log.timed)
    several = max((part.launches for part in by_events or log.timed), default=0)
    if parts[0] in (GpuPart.DISTURBANCE, GpuPart.SCATTER):
        if launches < FEW:
            cause, sentence = Cause.TOO_FEW_ROUNDS, WrongTimes.ONE_TOO_FEW if launches == 1 else WrongTimes.TOO_FEW
        elif _is_a_middle(answer, by_events or log.timed):
            cause = Cause.TOO_FEW_ROUNDS if several == 1 else cause
            sentence = WrongTimes.FEW_AT_THE_END if several == 1 else WrongTimes.MEANS
    seconds = sum(part.seconds for part in by_events)
    evidence: dict[str, Value] = dict(
        unfinished=sum(part.unfinished for part in log.timed),
        launches=launches,
        several=several,
        idle=100 * sum(part.idle for part in by_events) / seconds if seconds else 0.0,
        launch=time_text(traits.launch),
        synchronization=time_text(traits.synchronization),
        compilation=time_text(traits.compilation),
        lowest_clock=100 * traits.lowest_clock,
        disturbed=100 * traits.disturbed,
    )
    return cause, sentence(**{field: evidence[field] for field in sentence.fields})


def _is_a_middle(answer: float, timed: Sequence[TimedPart]) -> bool:
    """Returns whether the answer is the median of the last so many times: their number is not known."""
    ordered: list[float] = []
    for part in reversed(timed[-MOST_ROUNDS:]):
        insort(ordered, part.seconds / part.launches)
        if abs(statistics.median(ordered) - answer) <= ALIKE * answer:
            return True
    return False


def _off(ratio: float) -> str:
    """Returns how far an answer is off: "31.0 % too long", "12 times as long"."""
    if ratio >= 100:
        return f"{ratio:.0f} times as long"
    if ratio >= 2 or ratio <= 0.5:
        return f"{ratio:.2g} times as long"
    return f"{abs(ratio - 1):.1%} too {'long' if ratio > 1 else 'short'}".replace("%", " %")


def time_text(seconds: float) -> str:
    """Returns a time with its unit: "3.05 µs", "1.2 s"."""
    unit, name = next((one for one in UNITS if seconds >= one[0]), UNITS[-1])
    return f"{seconds / unit:.3g} {name}"
