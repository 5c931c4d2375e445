"""Judges the cost of a right call without a GPU: its memory traffic, its launches, and programs that do nothing."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from grader.course.exercise import Exercise
from grader.explain.causes import Cause
from grader.explain.evidence import source_line, the_only
from grader.explain.verdict import PASS, Verdict, failed
from grader.numerics.arguments import DataOrNumber
from grader.numerics.data_sets import Data
from grader.sentences import Fields, Said, Sentence, count_text
from grader.submission.text import Submission
from grader.submission.tuning_lines import line_of_grid
from grader.ttir.kernel_facts import KernelFacts
from grader.wire.messages import Launch, LoopCount, Traffic
from grader.wire.reply import Reply

SLACK = 1e-6  # of a ratio that is compared with its limit: counts are exact, divisions are not
IDLE_SHARE = 0.5  # of a loop's iterations that may load and store nothing
AHEAD = 2  # such iterations in each run of a loop: what loads ahead has them at the loop's end
LITTLE = 0.1  # share of a call's bytes that may be moved a few at a time, or lie apart


class Cost(Sentence):
    """Sentences about costs that are higher than needed, and about ways to lower them."""

    LAUNCHES = "{launches} kernels are launched; {most} are enough."
    SECOND_LAUNCH = "{launches} kernels are launched; 1 is enough."
    ADVICE_GO_ON = (
        "What one launch leaves in memory the next one has to read again: a program can go on with what it holds."
    )

    READ = "{name} is read {times:.3g} times; {most:.3g} times are enough."
    READ_AGAIN = "{name} is read {times:.3g} times; once is enough."
    PARTLY_READ_AGAIN = "Part of {name} is read again: it is read {times:.6g} times, and {most:g} is enough."
    PARTLY_WRITTEN_AGAIN = "Part of {name} is written again: it is written {times:.6g} times, and {most:g} is enough."
    ADVICE_LOAD_ONCE = "What was read once can stay with the program: load it once."
    ADVICE_LARGER_TILES = (
        "In a program one load can serve all that is done with an element; a larger tile shares more of what it reads."
    )
    READ_BY_NEIGHBOURS = (
        "{name} is read {times:.3g} times when {at_once} neighbouring programs share what they read; {most:.3g} times "
        "are enough."
    )
    READ_AGAIN_BY_NEIGHBOURS = (
        "{name} is read {times:.3g} times when {at_once} neighbouring programs share what they read; once is enough."
    )
    ADVICE_NEIGHBOURS = "Programs that run at the same time should work on tiles that need the same rows and columns."
    ROWS_READ = "{name} is read {times:.3g} times as often as it has to be."
    ADVICE_BEFORE_LOOP = (
        "Load what a program needs of it once, before any loop; programs that need the same part could be one."
    )

    NOT_NEEDED = "{share:.3g} % of {name} is read, and nothing of what it holds is needed."
    ADVICE_LEAVE_ALONE = (
        "What is to stay as it is, stays so untouched: who reads it and writes it back undoes what others write there "
        "in between."
    )

    WRITTEN = "{name} is written {times:.3g} times; {most:.3g} times is enough."
    WRITTEN_AGAIN = "{name} is written {times:.3g} times; once is enough."
    WRITTEN_IN_FULL = "{name} is written once; {most:.3g} times is enough."

    SAME_ELEMENT = "{lanes:.3g} lanes of a tile ask for the same element of {name}."
    ADVICE_BROADCAST = (
        "Load each element once, as a short vector: where it meets a tile, or a vector that lies across it, "
        "broadcasting repeats it without asking memory again."
    )
    SCATTERED = "{moved:.3g} bytes of {name} are moved for each byte used; {most:g} are enough."
    ADVICE_SECTORS = (
        "A GPU moves memory in pieces of 32 bytes. Lanes that are neighbours in a tile should touch neighbours in "
        "memory, so that each piece is used whole."
    )
    ONE_BY_ONE = "{share:.0f} % of the bytes of {name} are moved by loads and stores of at most 32 bytes each."
    ADVICE_BLOCKS = (
        "A loop over single elements leaves all but one of a program's threads without work. tl.arange gives the "
        "offsets of a whole block, and one load or store of a block is shared by all threads."
    )
    ONE_FOR_ALL = "One program reads {share:.3g} of {name}; {most:.3g} is enough."
    ADVICE_SHARE = "A program runs on one of a GPU's many multiprocessors, and the others wait for it: share the work."
    SCRATCH = (
        "Kernels move {scratch:.3g} bytes of scratch for each byte of the arguments and results; {most:g} are enough."
    )
    ADVICE_FEW_NUMBERS = (
        "What is stored and loaded again moves twice: leave in memory the few numbers that another program needs."
    )

    KEPT = "Kernels keep {kept} numbers in memory that only they see; {most} are enough."
    KEPT_IN_OTHER_BYTES = (
        "{name} holds numbers of {bytes} bytes each: what one launch leaves for another one is to be fp32."
    )
    FLOAT_ATOMICS = (
        "Programs add floats to what others have added, by atomics: these come in any order, and in another one the "
        "sum has other digits. The same call has to give the same bits."
    )
    ADVICE_OWNER = "Let one program own each element: it adds up all that belongs there, and stores it once."

    IDLE = "{idle} programs of {total} have nothing to do: the grid is larger than needed."
    ONE_IDLE = "1 program of {total} has nothing to do: the grid is larger than needed."
    GRID_OF_BLOCKS = "The grid is {grid}. One program per block is enough, rounded up."
    GRID_THAT_WALKS = "The grid is {grid}. One per multiprocessor is enough, or one per tile where these are fewer."
    IDLE_ITERATIONS = (
        "Of {iterations} iterations that programs make of the loop in line {line}, {idle} load and store nothing."
    )
    ADVICE_ONE_A_BLOCK = "range(0, N, BLOCK_N) has one iteration for each block of N, range(0, N) one for each element."
    PROGRAMS = "{launched} programs are launched; {most} are more than enough: give each a block."
    PROGRAMS_WITH_IDLE_ONES = (
        "{launched} programs are launched, and {idle} of them {have} nothing to do: {enough} {are} enough. The grid "
        "needs one program per block, rounded up."
    )
    PROGRAMS_THAT_WALK = (
        "{launched} programs are launched on a GPU with {multiprocessors} multiprocessors; {most} are enough: a "
        "program that has finished a tile goes on to another."
    )
    TOO_FEW_THAT_WALK = (
        "{launched:#program} {are} launched on a GPU with {multiprocessors} multiprocessors, and there are tiles for "
        "{most}: a multiprocessor without a program does nothing."
    )


@dataclass(frozen=True)
class Elements:
    """A limit as a number of elements, for an argument of which a call needs only a part, such as rows of a table."""

    count: int


@dataclass
class TrafficLimits:
    """The limits of a call's cost. Reads and writes are limited for each tensor, in multiples of its size."""

    reads: dict[str, float] = field(default_factory=dict)
    writes: dict[str, float] = field(default_factory=dict)
    idle: int | None = None  # programs that may touch no memory; None: not asked
    programs: int | None = None  # programs of all launches; None: not asked
    launches: int | None = None  # kernels launched in the call; None: not asked
    moved: float | None = None  # bytes in whole sectors for each byte used; None: not asked
    lanes: float | None = None  # of an instruction, for each element that it touches; None: not asked
    share: dict[str, float] = field(default_factory=dict)  # of an input's size that a program may read; 0.5: half
    scratch: float | None = None  # bytes moved in memory that only kernels see, per byte of tensors; None: not asked
    kept: int | None = None  # numbers in this memory, all in fp32; None: not asked
    float_atomics: bool = True  # whether programs may add floats by atomics
    multiprocessors: int = 0  # that the test tells the host function; 0: the test tells no number


Limit = float | dict[str, float | Elements]  # the same for all tensors, or by the name of each


def limits_of(
    exercise: Exercise,
    data: tuple[DataOrNumber, ...],
    reads: Limit,
    writes: Limit,
    share: Limit | None,
    others: TrafficLimits,
) -> TrafficLimits:
    """Returns the limits of a call with these data; a number holds for every input, or in `writes` for every result.

    `others`: the limits that are not stated for each tensor.
    """
    filled = set(exercise.written) - set(exercise.updates)
    inputs, results = [n for n in exercise.arguments if n not in filled], [one.name for one in exercise.results]
    sizes = {name: one.elements for name, one in zip(exercise.arguments, data) if isinstance(one, Data)}
    unread: dict[str, float] = dict.fromkeys(exercise.unread, 0)
    read = unread | _multiples(reads, inputs, sizes)
    shared = {} if share is None else _multiples(share, inputs, sizes)
    return replace(others, reads=read, writes=_multiples(writes, results, sizes), share=shared)


def _multiples(limit: Limit, names: list[str], sizes: dict[str, int]) -> dict[str, float]:
    """Returns the limit of each tensor by name, in multiples of its size; a number holds for all of `names`."""
    each = limit if isinstance(limit, dict) else dict.fromkeys(names, limit)
    return {name: one.count / sizes[name] if isinstance(one, Elements) else one for name, one in each.items()}


def traffic_verdict(reply: Reply, limits: TrafficLimits, exercise: Exercise, at_once: int) -> Verdict:
    """Returns the verdict on a right call that counted its traffic for groups of `at_once` neighbouring programs."""
    verdict = _judged(reply, limits, exercise, at_once)
    verdict.figures |= _figures(reply, limits)
    return verdict


def at_its_line(verdict: Verdict, submission: Submission, kernels: Callable[[], list[KernelFacts]]) -> Verdict:
    """Returns the verdict with its line as it stands in the file. If a result is written too often, that is the line of
    the kernels' only store; if there are too many programs, that of the grid."""
    written = {Cost.WRITTEN, Cost.WRITTEN_AGAIN, Cost.WRITTEN_IN_FULL} & {one.sentence for one in verdict.said}
    if written:
        verdict.line = the_only(line for kernel in kernels() for line in kernel.store_lines)
    if verdict.id == Cause.TOO_MANY_PROGRAMS:
        verdict.line = line_of_grid(submission.tree, verdict.line) or verdict.line
    verdict.said += filter(None, [source_line(submission, verdict.line)])
    return verdict


def _figures(reply: Reply, limits: TrafficLimits) -> dict[str, float]:
    """Returns the number of programs, and how often each tensor was moved and may be, in multiples of its size."""
    figures: dict[str, float] = {"programs": sum(_programs(launch) for launch in reply.launches)}
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
    if not limits.float_atomics and any(launch.float_sums for launch in reply.launches):
        return failed(Cause.RACE, Cost.FLOAT_ATOMICS(), Cost.ADVICE_OWNER(), kind="cost")
    if not limits.multiprocessors and (too_many := _more_than(limits, reply)) is not None:
        return too_many  # what more programs read is read more often: the grid is told, and no reading
    launched, idle = sum(map(_programs, reply.launches)), sum(launch.idle for launch in reply.launches)
    times_read = {item.argument: item.read / item.size for item in reply.traffic if item.size}
    times_written = {item.argument: item.written / item.size for item in reply.traffic if item.size}
    for name, most in limits.reads.items():
        if times_read.get(name, 0) > most + SLACK:
            return failed(Cause.TRAFFIC, *_read_too_often(name, times_read[name], most, at_once), kind="cost")
    for name, most in limits.writes.items():
        if times_written.get(name, 0) > most + SLACK:
            return failed(Cause.TRAFFIC, _written_too_often(name, times_written[name], most), kind="cost")
    named = {*exercise.arguments, *(result.name for result in exercise.results)}
    own = [item for item in reply.traffic if item.used and item.argument in named]
    asked_alone = _one_by_one([item for item in reply.traffic if item.argument in named], limits.moved)
    if (wasteful := _repeated(own, limits.lanes) or _scattered(own, limits.moved) or asked_alone) is not None:
        return wasteful
    scratch = [item for item in reply.traffic if item.argument not in named]
    unshared = _unshared(reply.traffic, limits.share) or _stored(reply.traffic, named, limits.scratch)
    if (unshared := unshared or _kept(scratch, limits.kept)) is not None:
        return unshared
    if limits.idle is not None and idle > limits.idle:
        line = max(reply.launches, key=lambda one: one.idle).line
        return failed(Cause.TOO_MANY_PROGRAMS, *_too_many_programs(limits, reply, idle), kind="cost", line=line)
    if (too_many := _more_than(limits, reply)) is not None:
        return too_many
    if limits.multiprocessors and launched < limits.multiprocessors == limits.programs:
        return failed(Cause.TOO_FEW_PROGRAMS, _fewer_than(launched, limits.multiprocessors), kind="cost")
    if (idling := _idling(reply.loops)) is not None:
        return idling
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


def _read_too_often(name: str, times: float, most: float, at_once: int) -> tuple[Said, Said]:
    if not most:
        return Cost.NOT_NEEDED(name=name, share=100 * times), Cost.ADVICE_LEAVE_ALONE()
    if most < 1:  # only some rows of a table are needed
        return Cost.ROWS_READ(name=name, times=times / most), Cost.ADVICE_BEFORE_LOOP()
    if f"{times:.3g}" == f"{most:.3g}":
        return Cost.PARTLY_READ_AGAIN(name=name, times=times, most=most), Cost.ADVICE_LOAD_ONCE()
    read: Fields = dict(name=name, times=times)
    if at_once == 1:
        if most == 1:
            return Cost.READ_AGAIN(**read), Cost.ADVICE_LOAD_ONCE()
        return Cost.READ(**read, most=most), Cost.ADVICE_LARGER_TILES()
    read["at_once"] = at_once
    again = Cost.READ_AGAIN_BY_NEIGHBOURS(**read) if most == 1 else Cost.READ_BY_NEIGHBOURS(**read, most=most)
    return again, Cost.ADVICE_NEIGHBOURS()


def _written_too_often(name: str, times: float, most: float) -> Said:
    if f"{times:.3g}" == f"{most:.3g}":
        return Cost.PARTLY_WRITTEN_AGAIN(name=name, times=times, most=most)
    if _is_once(most):
        return Cost.WRITTEN_AGAIN(name=name, times=times)
    if _is_once(times):
        return Cost.WRITTEN_IN_FULL(name=name, most=most)
    return Cost.WRITTEN(name=name, times=times, most=most)


def _repeated(traffic: list[Traffic], most: float | None) -> Verdict | None:
    """Returns the verdict on a tensor whose elements are each asked for by several lanes of an access; else None."""
    if most is None:
        return None
    for item in traffic:
        if item.asked > (most + SLACK) * item.used:
            return failed(
                Cause.TRAFFIC,
                Cost.SAME_ELEMENT(lanes=item.asked / item.used, name=item.argument),
                Cost.ADVICE_BROADCAST(),
                kind="cost",
            )
    return None


def _scattered(traffic: list[Traffic], most: float | None) -> Verdict | None:
    """Returns the verdict on lanes whose addresses lie apart, in a tensor of a share from LITTLE on; else None.

    A GPU moves a whole sector for each of these lanes.
    """
    if most is None:
        return None
    total = sum(item.moved for item in traffic)
    for item in traffic:
        if item.moved > (most + SLACK) * item.used and item.moved >= LITTLE * total:
            return failed(
                Cause.SCATTERED,
                Cost.SCATTERED(moved=item.moved / item.used, name=item.argument, most=most),
                Cost.ADVICE_SECTORS(),
                kind="cost",
            )
    return None


def _one_by_one(traffic: list[Traffic], most: float | None) -> Verdict | None:
    """Returns the verdict on a tensor that is mostly moved by accesses that fill no sector; else None. `used` leaves
    these accesses out, so that a number per row or per program costs nothing."""
    if most is None:
        return None
    total = sum(item.read + item.written for item in traffic)
    for item in traffic:
        bytes_of_item = item.read + item.written
        alone = bytes_of_item - item.used
        if alone > LITTLE * total and alone > bytes_of_item / 2:
            said = Cost.ONE_BY_ONE(share=100 * alone / bytes_of_item, name=item.argument)
            return failed(Cause.SCATTERED, said, Cost.ADVICE_BLOCKS(), kind="cost")
    return None


def _unshared(traffic: list[Traffic], most: dict[str, float]) -> Verdict | None:
    """Returns the verdict on an input of which a single program reads more than its share; else None."""
    for item in traffic:
        if item.argument in most and _share(item) > most[item.argument] + SLACK:
            return failed(
                Cause.TRAFFIC,
                Cost.ONE_FOR_ALL(share=_share(item), name=item.argument, most=most[item.argument]),
                Cost.ADVICE_SHARE(),
                kind="cost",
            )
    return None


def _share(item: Traffic) -> float:
    return item.by_one / max(item.size, 1)


def _stored(traffic: list[Traffic], named: set[str], most: float | None) -> Verdict | None:
    """Returns the verdict on memory that only kernels see, if over `most` bytes move there per byte of the tensors."""
    moved = sum(item.read + item.written for item in traffic if item.argument not in named)
    times = moved / max(sum(item.size for item in traffic if item.argument in named), 1)
    if most is None or times <= most + SLACK:
        return None
    return failed(Cause.TRAFFIC, Cost.SCRATCH(scratch=times, most=most), Cost.ADVICE_FEW_NUMBERS(), kind="cost")


def _kept(scratch: list[Traffic], most: int | None) -> Verdict | None:
    """Returns the verdict on numbers that a launch leaves for another: above `most`, or not of 4 bytes; else None."""
    if most is None:
        return None
    for item in scratch:
        if item.item != 4:
            said = Cost.KEPT_IN_OTHER_BYTES(name=item.argument, bytes=item.item)
            return failed(Cause.LOW_PRECISION, said, kind="cost")
    kept = sum(item.size // item.item for item in scratch)
    if kept <= most:
        return None
    return failed(Cause.TRAFFIC, Cost.KEPT(kept=kept, most=most), Cost.ADVICE_FEW_NUMBERS(), kind="cost")


def _idling(loops: list[LoopCount]) -> Verdict | None:
    """Returns the verdict on a loop most of whose iterations load and store nothing; else None."""
    for loop in loops:
        if loop.idle > max(IDLE_SHARE * loop.iterations, AHEAD * loop.runs):
            said = Cost.IDLE_ITERATIONS(iterations=loop.iterations, line=loop.line, idle=loop.idle)
            return failed(Cause.IDLE_ITERATIONS, said, Cost.ADVICE_ONE_A_BLOCK(), kind="cost", line=loop.line)
    return None


def _too_many_launches(launches: int, most: int) -> tuple[Said, Said]:
    sentence = Cost.SECOND_LAUNCH(launches=launches) if most == 1 else Cost.LAUNCHES(launches=launches, most=most)
    return sentence, Cost.ADVICE_GO_ON()


def _too_many_programs(limits: TrafficLimits, reply: Reply, idle: int) -> tuple[Said, Said]:
    total = sum(_programs(launch) for launch in reply.launches)
    grid = Cost.GRID_THAT_WALKS if limits.multiprocessors else Cost.GRID_OF_BLOCKS
    return (
        Cost.ONE_IDLE(total=total) if idle == 1 else Cost.IDLE(idle=idle, total=total),
        grid(grid=tuple(reply.launches[0].grid)),
    )


def _more_than(limits: TrafficLimits, reply: Reply) -> Verdict | None:
    """Returns the verdict on more programs than the limit; else None. Its line is that of the largest launch."""
    launched, most = sum(map(_programs, reply.launches)), limits.programs
    if most is None or launched <= most:
        return None
    line, said = max(reply.launches, key=_programs).line, Cost.PROGRAMS(launched=launched, most=most)
    idle = sum(launch.idle for launch in reply.launches)
    enough = launched - idle
    if limits.multiprocessors:
        said = Cost.PROGRAMS_THAT_WALK(launched=launched, multiprocessors=limits.multiprocessors, most=most)
    elif idle and 0 < enough <= most:
        have, are = "has" if idle == 1 else "have", "is" if enough == 1 else "are"
        said = Cost.PROGRAMS_WITH_IDLE_ONES(launched=launched, idle=idle, have=have, enough=enough, are=are)
    return failed(Cause.TOO_MANY_PROGRAMS, said, kind="cost", line=line)


def _fewer_than(launched: int, multiprocessors: int) -> Said:
    """Returns the sentence about fewer programs than multiprocessors, where a program for each is expected."""
    are = "is" if launched == 1 else "are"
    return Cost.TOO_FEW_THAT_WALK(launched=launched, are=are, multiprocessors=multiprocessors, most=multiprocessors)


def _programs(launch: Launch) -> int:
    return math.prod(launch.grid)


def _times(number: float) -> str:
    return "once" if _is_once(number) else f"{number:.3g} times"


def _is_once(number: float) -> bool:
    return abs(number - 1) < SLACK
