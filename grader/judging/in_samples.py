"""Judges a call that is too large for the interpreter, without a GPU: a sample of programs, on memory made as needed.

A sample can show accesses out of bounds, offsets that their type does not hold, broken promises, and wrong values that
these programs store, where the exercise states which parts of its inputs they are made of (`Exercise.cut`).

Programs that were not run do not tell if all of the result is written, with three exceptions. First: the programs of
one launch are taken to be alike if at least half of the sample store the same number of elements, and none stores more;
if the whole grid, each program with that number, less what is missing in the sample, could not fill the result, then
it does not. This finds grids that are capped and blocks that end before their row; a gap smaller than what the programs
at the edges leave unused is for the small cases to find, where every program runs. Second: offsets are rounded, or wrap
around, while elements are stored more than once. Third: each program of the sample writes the next elements of a
vector, and the last program leaves some of the rest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch

from grader.course.cut import Cut
from grader.course.exercise import Exercise
from grader.course.trial import Trial, short_dtype
from grader.explain import offset_overflows, sampled_results
from grader.explain.evidence import Evidence
from grader.explain.verdict import FAIL, NOT_RUN, SKIPPED, UNJUDGED, Verdict
from grader.explain.written_tiles import program_index
from grader.judging.history import Kernels
from grader.judging.in_interpreter import Interpreted
from grader.judging.run import Run
from grader.numerics.arguments import Argument, exact, tensors_of, without_values
from grader.numerics.comparison import compare
from grader.numerics.data_sets import TOGETHER, Data, generator_for, seed_place
from grader.numerics.drawn_pages import ENTRIES, entries_in
from grader.numerics.layouts import CONTIGUOUS
from grader.wire.messages import MULTIPROCESSORS
from grader.wire.recorded_call import RecordedCall
from grader.wire.recorded_parts import PlannedLaunch, steps_with
from grader.wire.reply import Reply, Sampled

PROGRAMS, SOME_PROGRAMS, FEW_PROGRAMS = 12, 10, 2  # programs of a launch
MANY = 8192  # multiprocessors: a program that loops over tiles gets few of them
MOST_COMPARED = 1 << 20  # elements of the part of a result in which a program's elements are compared
MOST_AS_LONG = 16  # a dimension that is not cut, as what a program stores along it
FEW = 512  # elements from each end of a program's, where its part is larger
MOST_TOGETHER = 1 << 20  # elements
NEEDS_GPU = "needs a GPU"
TOO_LONG = f"{NEEDS_GPU}: no sample of its programs can be interpreted"
MOST_BYTES = 40 << 30  # of memory for a call, scratch included: many GPUs have no room for it
TOO_MUCH = ("endless", "not-known", "memory")


def wrong_in_a_sample(run: Run, interpreted: Interpreted, trial: Trial) -> Verdict | None:
    """Returns the failure that a few programs show of a call that the test only compiles or times; None if none does.

    Returns UNJUDGED for a call that launches kernels no other call launches, and that cannot be judged. A call that
    another test has asked for, too, and that was right, is not made again.
    """
    call = repr((trial.data, trial.dtype, trial.constants, trial.bounds))
    if call in run.history.right_samples:
        return None
    few_tiles = replace(trial, constants={MULTIPROCESSORS: MANY, **trial.constants})
    verdict = sampled(run, interpreted, few_tiles, FEW_PROGRAMS)
    verdict.sampled = True
    if verdict.outcome == FAIL or verdict.id == UNJUDGED:
        return verdict
    run.history.right_samples.add(call)
    return None


def sampled(run: Run, interpreted: Interpreted, trial: Trial, programs: int = PROGRAMS) -> Verdict:
    """Returns the failure that a sample of the programs shows, or a skip whose note says what was judged."""
    exercise, known = trial.exercise, run.history.kernels
    tables = _tables(run, trial, exercise.arguments)
    if tables is None:
        return Verdict(SKIPPED, NOT_RUN, note=NEEDS_GPU)
    inputs = without_values(trial.data, trial.dtype)
    own = [tables[name] for name, _ in tensors_of(exercise.arguments, inputs)]
    shapes = _shapes_of(exercise, inputs)
    replies: list[Reply] = []
    compared = set[str]()
    call = run.recorded_call(trial, inputs).call
    if sum(buffer.bytes for buffer in call.buffers) > MOST_BYTES:
        return Verdict(SKIPPED, NOT_RUN, note=f"{NEEDS_GPU} with more than {MOST_BYTES >> 30} GiB")
    configs = call.usable_configs[:1] or [0]
    kernels = kernels_of(call, configs[0])
    while configs:
        single = replace(trial, config=configs.pop(0))
        reply = run.sample(single, inputs, own, programs)
        if reply.error is not None and (reply.error.kind in TOO_MUCH or reply.error.type == "MemoryError"):
            id = UNJUDGED if known and kernels not in known else NOT_RUN
            return Verdict(SKIPPED, id, note=TOO_LONG)
        believing = partial(run.sample, single, inputs, own, programs, believe=True)
        verdict, results = interpreted.without_values(single, inputs, reply, shapes, believing)
        if verdict is None:
            of_results = (_of_result(*pair, tables, compared) for pair in zip(results, reply.sampled))
            verdict = next(filter(None, of_results), None)
        # A descriptor takes any corner, and stores nothing outside of its tensor.
        if verdict is None and reply.overflows and any(launch.idle for launch in reply.launches):
            verdict = sampled_results.nothing_done(results[0].returns)
        if verdict is not None:
            return offset_overflows.overflow(results[0], verdict) or verdict
        replies.append(reply)
        if len(replies) == 1:
            configs = _others(run, reply)
    if known and kernels not in known and not (exercise.cut and len(kernels) == 1):
        names = ", then ".join(kernels) or "nothing"
        return Verdict(SKIPPED, UNJUDGED, note=f"{NEEDS_GPU}: it launches {names}, and no smaller call does")
    return Verdict(
        SKIPPED, NOT_RUN, note=_note(replies[0], values=compared >= {result.name for result in exercise.results})
    )


def kernels_of(call: RecordedCall, config: int) -> Kernels:
    """Returns the names of the kernels that the call launches in this configuration, in launch order."""
    launches = [step for step in steps_with(call.steps, config) if isinstance(step, PlannedLaunch)]
    return tuple(call.kernels[launch.kernel].name for launch in launches)


def _shapes_of(exercise: Exercise, inputs: list[Argument]) -> list[tuple[int, ...]]:
    """Returns the shapes of the results. The reference could always tell them, but torch takes a second for that."""
    cut, names = Cut.of(exercise.cut), [result.name for result in exercise.results]
    tensors = dict(tensors_of(exercise.arguments, inputs))
    if set(names) <= set(tensors) | set(cut.results):
        return [tuple(tensors[name].shape) if name in tensors else cut.shape(name, tensors) for name in names]
    return [tuple(result.shape) for result in exercise.expected(exact(inputs))]


def _others(run: Run, reply: Reply) -> list[int]:
    """Returns the number of one more configuration, drawn by the seed; [] if there is none. Small calls judge all."""
    others = reply.configurations[1:]
    return others[run.seed % len(others) :][:1] if others else []


def _note(reply: Reply, values: bool) -> str:
    total = math.prod(reply.launches[-1].grid) if reply.launches else 0
    run = max((result.programs for result in reply.sampled), default=0)
    judged = "right" if values else "in bounds"
    if not run:
        return NEEDS_GPU
    sample = f"a sample of {run} of {total} programs is" if run < total else f"all {total} programs are"
    return f"{sample} {judged}; values in full need a GPU"


def _tables(run: Run, trial: Trial, arguments: Sequence[str]) -> dict[str, torch.Tensor] | None:
    """Returns the table of each argument by name; None if one of them has none."""
    tables: dict[str, torch.Tensor] = {}
    for number, name in enumerate(arguments):
        if (table := table_of(run, trial, number)) is None:
            return None
        tables[name] = table
    return tables


def table_of(run: Run, trial: Trial, number: int) -> torch.Tensor | None:
    """Returns the values that an argument's memory repeats; None for data drawn neither one by one nor in full.

    Its shape is [ENTRIES], [elements] for data that are drawn in full, or [0] for an output or a number.
    """
    data = trial.data[number]
    if not isinstance(data, Data) or data.is_output:
        return torch.empty(0, dtype=trial.dtype)
    generator = generator_for(run.seed, run.folder.id, trial.name, short_dtype(trial.dtype), seed_place(data, number))
    if data.steps[0][0] in TOGETHER and data.elements <= MOST_TOGETHER:
        return replace(data, layout=CONTIGUOUS).tensor(trial.dtype, generator).flatten()
    if not data.is_one_by_one:
        return None
    return replace(data, shape=(ENTRIES,), layout=CONTIGUOUS).tensor(trial.dtype, generator)


# ---- what the programs of one launch have stored ---------------------------------------------------------------------


@dataclass
class Stored:
    """The stored elements: the index of each in the result, a tensor for each dimension; its program; its value."""

    index: list[torch.Tensor]  # int64
    programs: torch.Tensor  # int32
    values: torch.Tensor


def _of_result(
    evidence: Evidence, sampled: Sampled, tables: dict[str, torch.Tensor], compared: set[str]
) -> Verdict | None:
    """Returns what is wrong with what a result's programs have stored. Of several launches, and without a cut, nothing
    can be told unless all programs ran: what one of them makes is made of what others leave. `compared`: gets the names
    of results whose values were compared."""
    if nothing := _nothing(evidence, sampled):
        return nothing
    cut = Cut.of(evidence.exercise.cut)
    # A cut that leaves out a tensor tells the shapes of results, and rows on a GPU.
    is_cut = evidence.returns in cut.results and {name for name, _ in evidence.tensors} <= cut.inputs.keys()
    if len(evidence.reply.launches) == 1:
        verdict = _of_one_launch(evidence, sampled)
        if verdict is not None or is_cut:
            return verdict or _first_wrong(evidence, cut, sampled, _by_program(_stored(sampled)), tables, compared)
    if not sampled.all_ran:
        return None
    ranks = {name: tensor.dim() for name, tensor in evidence.tensors}
    whole = cut.whole(ranks, {evidence.returns: len(sampled.shape)})
    return _first_wrong(evidence, whole, sampled, _by_program(_stored(sampled)), tables, compared)


def _nothing(evidence: Evidence, sampled: Sampled) -> Verdict | None:
    """Returns the failure of launches none of whose programs has stored anything of a result; None if one has, or if
    atomics may tell programs what to do. The first program is in every sample."""
    launches = evidence.reply.launches
    excused = evidence.wanted.is_updated or not launches or any(launch.atomics for launch in launches)
    if sampled.stored or excused or not math.prod(sampled.shape):
        return None
    return sampled_results.too_few(evidence.returns, sampled.shape, launches[-1].grid, 0)


def _of_one_launch(evidence: Evidence, sampled: Sampled) -> Verdict | None:
    """Returns what the places alone show that the programs of a launch have stored at; None if they show nothing."""
    if evidence.wanted.is_updated:
        return None
    parts = _by_program(_stored(sampled))
    counts = [_count(mine) for _, mine in parts]
    return (
        _too_few(evidence, sampled, counts)
        or _stored_again(evidence, sampled)
        or _end_left_out(evidence, sampled, parts)
        or _parts_left_out(evidence, sampled, counts)
    )


def _first_wrong(
    evidence: Evidence, cut: Cut, sampled: Sampled, parts: list[tuple[int, Stored]], tables: dict[str, torch.Tensor],
    compared: set[str],
) -> Verdict | None:  # fmt: skip
    """Returns the failure of the first program with wrong values; None if none of them has any."""
    for program, mine in parts:
        who = program_index(program, sampled.grid, len(evidence.reply.launches[-1].grid))
        wrong = _wrong(evidence, cut, mine, sampled.shape, tables, who, compared)
        if wrong is not None:
            return wrong
    return None


def _stored(sampled: Sampled) -> Stored:
    """Returns the stored elements that the result's view shows; others of its memory are left out."""
    rest, index = sampled.offsets, [torch.zeros_like(sampled.offsets) for _ in sampled.shape]
    inside = rest >= 0
    steps = [(s, n, dim) for dim, (n, s) in enumerate(zip(sampled.shape, sampled.strides)) if n > 1 and s > 0]
    for stride, size, dim in sorted(steps, key=lambda step: -step[0]):
        index[dim], rest = rest // stride, rest % stride
        inside &= index[dim] < size
    inside &= rest == 0
    return Stored([axis[inside] for axis in index], sampled.programs_of[inside], sampled.values[inside])


def _by_program(stored: Stored) -> list[tuple[int, Stored]]:
    """Returns each program that stored anything, with its elements: as views, where they lie together."""
    runs, lengths = stored.programs.unique_consecutive(return_counts=True)
    numbers = runs.unique().tolist()
    if len(numbers) < len(runs):
        return [(program, _of_program(stored, program)) for program in numbers]
    parts = zip(*(values.split(lengths.tolist()) for values in (stored.programs, stored.values, *stored.index)))
    found = ((int(programs[0]), Stored(list(index), programs, values)) for programs, values, *index in parts)
    return sorted(found, key=lambda pair: pair[0])


def _of_program(stored: Stored, program: int) -> Stored:
    mine = (stored.programs == program).nonzero().flatten()
    return Stored([axis[mine] for axis in stored.index], stored.programs[mine], stored.values[mine])


def _too_few(evidence: Evidence, sampled: Sampled, counts: list[int]) -> Verdict | None:
    """Returns the failure of a grid whose programs, taken to be alike, cannot have written all of the result.

    None if they can. counts: how many elements each of the storing programs stored.
    """
    grid, most = evidence.reply.launches[-1].grid, max(counts, default=0)
    if not _are_alike(sampled, counts) or _room(grid, most, sampled) >= 0:
        return None
    return sampled_results.too_few(evidence.returns, sampled.shape, grid, most)


def _parts_left_out(evidence: Evidence, sampled: Sampled, counts: list[int]) -> Verdict | None:
    """Returns the failure of programs that store less than others, by more than the whole grid has room for."""
    grid, most = evidence.reply.launches[-1].grid, max(counts, default=0)
    room, short = _room(grid, most, sampled), sampled.programs * most - sum(counts)
    if not _are_alike(sampled, counts) or short <= room:
        return None
    return sampled_results.parts_left_out(evidence.returns, grid, most, sampled.programs, short, room)


def _are_alike(sampled: Sampled, counts: list[int]) -> bool:
    return bool(counts) and 2 * counts.count(max(counts)) >= sampled.programs


def _room(grid: list[int], each: int, sampled: Sampled) -> int:
    """Returns how many elements more than the result has a grid could store, each program `each`."""
    return math.prod(grid) * each - math.prod(sampled.shape)


def _end_left_out(evidence: Evidence, sampled: Sampled, parts: list[tuple[int, Stored]]) -> Verdict | None:
    """Returns the failure of a last program that leaves out the end of a vector; None if it does not.

    The programs before it write the vector in turn.
    """
    last, each = math.prod(evidence.reply.launches[-1].grid) - 1, max((_count(mine) for _, mine in parts), default=0)
    left = math.prod(sampled.shape) - last * each
    if len(sampled.shape) != 1 or sampled.programs < 3 or last < 1 or not 0 < left <= each:
        return None
    before = [(program, mine) for program, mine in parts if program != last]
    if len(before) < sampled.programs - 1 or not all(_is_next(mine, program * each, each) for program, mine in before):
        return None
    mine = [mine for program, mine in parts if program == last]
    count = _count(mine[0]) if mine else 0
    if count >= left or mine and not _is_next(mine[0], last * each, count):
        return None
    return sampled_results.end_left_out(evidence.returns, each, left, last, count)


def _count(mine: Stored) -> int:
    return mine.programs.numel()


def _is_next(mine: Stored, first: int, count: int) -> bool:
    """Returns whether a program has written `count` neighbours in a vector, beginning with the element `first`."""
    return _count(mine) == count and [int(end) for end in mine.index[0].aminmax()] == [first, first + count - 1]


def _stored_again(evidence: Evidence, sampled: Sampled) -> Verdict | None:
    """Returns the failure of offsets that overflow and coincide: some elements get several values, others none."""
    name = evidence.returns
    written = sum(traffic.written for traffic in evidence.reply.traffic if traffic.argument == name)
    times = written // max(sampled.values.element_size(), 1)
    if not evidence.reply.overflows or times <= sampled.stored:
        return None
    return sampled_results.stored_again(name, times, sampled.stored)


# ---- values ----------------------------------------------------------------------------------------------------------


def _wrong(
    evidence: Evidence, cut: Cut, mine: Stored, lengths: Sequence[int], tables: dict[str, torch.Tensor],
    program: tuple[int, ...], compared: set[str],
) -> Verdict | None:  # fmt: skip
    """Returns the failure of one program's elements, compared with the reference on the parts of the inputs they need.

    None if they are right, too large to be compared, or without a reference. lengths: the shape of the result.
    """
    letters = cut.results[evidence.returns]
    whole = [(size, len(one.unique())) for letter, size, one in zip(letters, lengths, mine.index) if letter == ":"]
    if math.prod(size for size, _ in whole) > MOST_COMPARED or any(size > MOST_AS_LONG * own for size, own in whole):
        return None  # before the indices of such a dimension take all memory, or the reference makes what is not asked
    parts, places = _parts(letters, mine, lengths)
    if math.prod(part.numel() for part in parts) > MOST_COMPARED and mine.values.numel() > 2 * FEW:
        ends = torch.cat([torch.arange(FEW), torch.arange(-FEW, 0)])
        mine = Stored([axis[ends] for axis in mine.index], mine.programs[ends], mine.values[ends])
        parts, places = _parts(letters, mine, lengths)
    if math.prod(part.numel() for part in parts) > MOST_COMPARED:
        return None
    arguments = exact(_arguments_of(evidence, cut, dict(zip(letters, parts)), tables))
    ref = evidence.reference(arguments)
    if ref is None:
        raise LookupError(f"the exercise's cut hands its reference of {evidence.returns} parts that it does not take")
    out = ref.to(mine.values.dtype)
    out = out.clone() if out.data_ptr() == ref.data_ptr() else out.contiguous()
    out[places] = mine.values
    comparison = compare(out, ref, evidence.wanted.bound, arguments)
    compared.add(evidence.returns)
    if comparison.right:
        return None
    return sampled_results.wrong_values(evidence, program, mine.values.numel(), comparison, parts)


def _parts(
    letters: list[str], mine: Stored, lengths: Sequence[int]
) -> tuple[list[torch.Tensor], tuple[torch.Tensor, ...]]:
    """Returns, for each dimension of the result, the indices that the program stores at, all of them where it is not
    cut; then, for each dimension, the position of each element among these indices."""
    axes = [
        (torch.arange(size), one) if letter == ":" else _distinct(one)
        for letter, one, size in zip(letters, mine.index, lengths)
    ]
    return [part for part, _ in axes], tuple(places for _, places in axes)


def _distinct(numbers: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns what torch.unique does with its inverse, in a tenth of the time where numbers lie close together."""
    low, high = (int(end) for end in numbers.aminmax())
    if high - low > 8 * numbers.numel():
        return numbers.unique(return_inverse=True)
    met = torch.zeros(high - low + 1, dtype=torch.bool)
    met[numbers - low] = True
    return met.nonzero().flatten() + low, (met.cumsum(0) - 1)[numbers - low]


def _arguments_of(
    evidence: Evidence, cut: Cut, of_letter: dict[str, torch.Tensor], tables: dict[str, torch.Tensor]
) -> list[Argument]:
    """Returns the arguments, cut to the parts that the elements are made of. of_letter: indices by letter of the cut.

    A letter that is the name of another argument stands for the rows that its values pick: of "table[index, n]" only
    these rows are made, and the values of index become their numbers among these rows.
    """
    arguments: dict[str, Argument] = dict(zip(evidence.exercise.arguments, evidence.inputs, strict=True))
    indices = {letter for letters in cut.inputs.values() for letter in letters if letter in cut.inputs}
    tensors = dict(evidence.tensors)
    shared = cut.shared({name: tensor.shape for name, tensor in tensors.items()})
    for letter, neighbours in shared.items():
        of_letter[letter] = of_letter[letter.removesuffix("/")] // neighbours
    for name in sorted(tensors, key=lambda name: name not in indices):  # the indices first
        table = tables[name]
        table = table.double() if table.is_floating_point() else table  # before it is read: a part may be far larger
        part = _values(tensors[name], cut.inputs[name], of_letter, table)
        if name in indices:
            of_letter[name], part = part.long().unique(return_inverse=True)
        arguments[name] = part
    return list(arguments.values())


def _values(
    tensor: torch.Tensor, letters: list[str], of_letter: dict[str, torch.Tensor], table: torch.Tensor
) -> torch.Tensor:
    """Returns a part of an argument, from its table; zeros for an empty table. tensor: has its shape and strides."""
    places = torch.tensor(tensor.storage_offset())
    for dim, letter in enumerate(letters):
        index = of_letter[letter] if letter != ":" and letter in of_letter else torch.arange(tensor.shape[dim])
        places = places.unsqueeze(-1) + index * tensor.stride(dim)
    if not table.numel():
        return torch.zeros(places.shape, dtype=table.dtype)
    first = int(tensor.storage_offset())
    return table[torch.from_numpy(entries_in(len(table), places.numpy(), tensor.shape, tensor.stride(), first))]
