"""What a right kernel costs without a GPU: bytes moved against the least possible, and programs that do nothing."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from grader.course.exercise import Exercise
from grader.explain.causes import Cause
from grader.explain.verdict import PASS, Verdict, failed
from grader.numerics.arguments import Recipe
from grader.numerics.data_sets import Data
from grader.sentences import count_text
from grader.wire.messages import Launch, Traffic
from grader.wire.reply import Reply

SLACK = 1e-6  # of a reading; counts are exact, divisions are not


@dataclass(frozen=True)
class Elements:
    """A limit of reads as a number of elements, where it is no multiple of the argument's size: rows of a table."""

    count: int


@dataclass
class TrafficLimits:
    """How often each argument may be read and each result written, in multiples of its own size."""

    reads: dict[str, float] = field(default_factory=dict)
    writes: dict[str, float] = field(default_factory=dict)
    idle: int | None = None  # programs that may touch no memory; None: not asked
    programs: int | None = None  # programs of all launches; None: not asked
    launches: int | None = None  # of kernels; None: not asked
    moved: float | None = None  # bytes in whole sectors for each byte used; None: not asked
    lanes: float | None = None  # of one instruction for each element that it touches; None: not asked
    share: dict[str, float] = field(default_factory=dict)  # of an input that one program may read
    scratch: float | None = None  # bytes moved in memory of its own for each byte of a tensor; None: not asked
    multiprocessors: int = 0  # of the GPU that the host function is told of; 0: those of the model


def limits_of(
    exercise: Exercise,
    data: tuple[Recipe, ...],
    reads: float | dict[str, float | Elements],
    writes: float | dict[str, float],
    share: float | dict[str, float] | None = None,
    **others: float | None,
) -> TrafficLimits:
    """Of a call with these data; one number stands for every input, or for every result. others: as TrafficLimits."""
    filled = set(exercise.written) - set(exercise.updates)
    inputs, results = [n for n in exercise.arguments if n not in filled], [one.name for one in exercise.results]
    reads = reads if isinstance(reads, dict) else dict.fromkeys(inputs, reads)
    writes = writes if isinstance(writes, dict) else dict.fromkeys(results, writes)
    sizes = {name: one.elements for name, one in zip(exercise.arguments, data) if isinstance(one, Data)}
    times = {n: most.count / sizes[n] if isinstance(most, Elements) else most for n, most in reads.items()}
    share = dict.fromkeys(inputs, share) if isinstance(share, int | float) else share or {}
    return TrafficLimits(times, writes, share=share, **others)


def traffic_verdict(reply: Reply, limits: TrafficLimits, exercise: Exercise, at_once: int) -> Verdict:
    """`reply` comes from a call that counted its traffic and gave the right values."""
    verdict = _judged(reply, limits, exercise, at_once)
    verdict.figures |= _figures(reply, limits)
    return verdict


def _figures(reply: Reply, limits: TrafficLimits) -> dict[str, float]:
    """How often each argument was moved, in multiples of its size, and how often it may be."""
    figures = {"programs": sum(_programs(launch) for launch in reply.launches)}
    for item in reply.traffic:
        if item.size and item.argument in limits.reads:
            figures[f"{item.argument}_read"] = item.read / item.size
            figures[f"{item.argument}_read_limit"] = limits.reads[item.argument]
        if item.size and item.argument in limits.writes:
            figures[f"{item.argument}_written"] = item.written / item.size
            figures[f"{item.argument}_written_limit"] = limits.writes[item.argument]
    return figures


def _judged(reply: Reply, limits: TrafficLimits, exercise: Exercise, at_once: int) -> Verdict:
    if limits.launches is not None and len(reply.launches) > limits.launches:
        return failed(Cause.TOO_MANY_LAUNCHES, *_too_many_launches(len(reply.launches), limits.launches), kind="cost")
    times_read = {item.argument: item.read / item.size for item in reply.traffic if item.size}
    times_written = {item.argument: item.written / item.size for item in reply.traffic if item.size}
    for name, most in limits.reads.items():
        if times_read.get(name, 0) > most + SLACK:
            return failed(Cause.TRAFFIC, *_read_too_often(name, times_read[name], most, at_once), kind="cost")
    for name, most in limits.writes.items():
        if times_written.get(name, 0) > most + SLACK:
            sentence = f"{name} is written {_times(times_written[name])}; {_times(most)} is enough."
            return failed(Cause.TRAFFIC, sentence, kind="cost")
    named = {*exercise.arguments, *(result.name for result in exercise.results)}
    own = [item for item in reply.traffic if item.used and item.argument in named]
    if (wasteful := _repeated(own, limits.lanes) or _scattered(own, limits.moved)) is not None:
        return wasteful
    if (
        unshared := _unshared(reply.traffic, limits.share) or _stored(reply.traffic, named, limits.scratch)
    ) is not None:
        return unshared
    idle = sum(launch.idle for launch in reply.launches)
    if limits.idle is not None and idle > limits.idle:
        return failed(Cause.TOO_MANY_PROGRAMS, *_too_many_programs(limits, reply, idle), kind="cost")
    launched = sum(_programs(launch) for launch in reply.launches)
    if limits.programs is not None and launched > limits.programs:
        return failed(Cause.TOO_MANY_PROGRAMS, _more_than(limits, launched), kind="cost")
    if limits.idle is not None or limits.programs is not None:
        return Verdict(PASS, note=f"{count_text(launched, 'program')}, {idle or 'none'} idle")
    if limits.moved is not None:
        worst = max((item.moved / item.used for item in own), default=1)
        return Verdict(PASS, note=f"moved: {worst:.3g} x the bytes used", figures={"moved": worst})
    shown = [f"{name} read {_times(times_read[name])}" for name in limits.reads if name in times_read]
    if limits.launches is not None:
        shown.insert(
            0,
            count_text(len(reply.launches), "launch")
            if len(reply.launches) == 1
            else f"{len(reply.launches)} launches",
        )
    shown += [f"{name} written {_times(times_written.get(name, 0))}" for name in limits.writes]
    shown += [f"one program reads at most {_share(item):.3g} of {item.argument}" for item in reply.traffic
              if item.argument in limits.share]  # fmt: skip
    return Verdict(PASS, note=", ".join(shown))


def _read_too_often(name: str, times: float, most: float, at_once: int) -> tuple[str, ...]:
    enough = f"{_times(most)} {'is' if most == 1 else 'are'} enough."
    if most < 1:  # of a table only some rows are needed
        return (
            f"{name} is read {times / most:.3g} times as often as it has to be.",
            "Load what a program needs of it once, before its loop; programs that need the same part could be one.",
        )
    if at_once == 1:
        advice = "What was read once can stay with the program: load it once."
        if most > 1:
            advice = "One load can serve two purposes: the other load of the same elements can go."
        return f"{name} is read {_times(times)}; {enough}", advice
    return (
        f"{name} is read {_times(times)} when {at_once} neighbouring programs share what they read; {enough}",
        "Programs that run at the same time should work on tiles that need the same rows and columns.",
    )


def _repeated(traffic: list[Traffic], most: float | None) -> Verdict | None:
    """Lanes of one access that share an address: each of them asks for itself, and holds a copy."""
    if most is None:
        return None
    for item in traffic:
        if item.asked > (most + SLACK) * item.used:
            return failed(
                Cause.TRAFFIC,
                f"{item.asked / item.used:.3g} lanes of a tile ask for the same element of {item.argument}.",
                "Load each element once, as a short vector: where it meets a tile, or a vector that lies across it, "
                "broadcasting repeats it without asking memory again.",
                kind="cost",
            )
    return None


def _scattered(traffic: list[Traffic], most: float | None) -> Verdict | None:
    """Lanes whose addresses lie apart: a GPU moves a whole sector for each."""
    if most is None:
        return None
    for item in traffic:
        if item.moved > (most + SLACK) * item.used:
            ratio = item.moved / item.used
            return failed(
                Cause.SCATTERED,
                f"{ratio:.3g} bytes of {item.argument} are moved for each byte used; {most:g} are enough.",
                "A GPU moves memory in pieces of 32 bytes. Lanes that are neighbours in a tile should touch neighbours "
                "in memory, so that each piece is used whole.",
                kind="cost",
            )
    return None


def _unshared(traffic: list[Traffic], most: dict[str, float]) -> Verdict | None:
    """One program that does what many could."""
    for item in traffic:
        if item.argument in most and _share(item) > most[item.argument] + SLACK:
            return failed(
                Cause.TRAFFIC,
                f"One program reads {_share(item):.3g} of {item.argument}; {most[item.argument]:.3g} is enough.",
                "A program runs on one of a GPU's many multiprocessors, and the others wait for it: share the work.",
                kind="cost",
            )
    return None


def _share(item: Traffic) -> float:
    return item.by_one / max(item.size, 1)


def _stored(traffic: list[Traffic], named: set[str], most: float | None) -> Verdict | None:
    """Memory that only kernels see, which holds more than they have to tell each other."""
    moved = sum(item.read + item.written for item in traffic if item.argument not in named)
    times = moved / max(sum(item.size for item in traffic if item.argument in named), 1)
    if most is None or times <= most + SLACK:
        return None
    return failed(
        Cause.TRAFFIC,
        f"Kernels move {times:.3g} bytes of scratch for each byte of the arguments and results; {most:g} are enough.",
        "What is stored and loaded again moves twice: leave in memory the few numbers that another program needs.",
        kind="cost",
    )


def _too_many_launches(launches: int, most: int) -> tuple[str, ...]:
    enough = "1 is enough" if most == 1 else f"{most} are enough"
    return (
        f"{launches} kernels are launched; {enough}.",
        "What one launch leaves in memory the next one has to read again: a program can go on with what it holds.",
    )


def _too_many_programs(limits: TrafficLimits, reply: Reply, idle: int) -> tuple[str, ...]:
    total = sum(_programs(launch) for launch in reply.launches)
    enough = "One program per block is enough, rounded up."
    if limits.multiprocessors:
        enough = "One per multiprocessor is enough, or one per tile where these are fewer."
    return (
        f"{count_text(idle, 'program')} of {total} {'has' if idle == 1 else 'have'} nothing to do: the grid is larger "
        "than needed.",
        f"The grid is {tuple(reply.launches[0].grid)}. {enough}",
    )


def _more_than(limits: TrafficLimits, launched: int) -> str:
    if limits.multiprocessors:
        return (
            f"{launched} programs are launched on a GPU with {limits.multiprocessors} multiprocessors; "
            f"{limits.programs} are enough: a program that has finished a tile goes on to another."
        )
    return f"{launched} programs are launched; {limits.programs} are more than enough: give each a block."


def _programs(launch: Launch) -> int:
    return math.prod(launch.grid)


def _times(number: float) -> str:
    return "once" if abs(number - 1) < SLACK else f"{number:.3g} times"
