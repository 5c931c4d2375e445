"""A result that is wrong although no access was: which mistake gives these very numbers?"""

from __future__ import annotations

from itertools import pairwise

import torch

from grader.course.exercise import in_words
from grader.course.trial import short_dtype
from grader.explain.causes import Cause
from grader.explain.evidence import Evidence, index_text, number_text, program_text
from grader.explain.mistakes.match import matching_hypothesis
from grader.explain.tiles import as_matrix, program_index, tile_map, tiles_of
from grader.explain.verdict import Verdict, failed
from grader.explain.walks import walk_that_ends_early
from grader.numerics.arguments import exact
from grader.numerics.data_sets import is_poison
from grader.numerics.roundoff import EXACT, UNIT_ROUNDOFF
from grader.operations import named
from grader.operations.bounds import size_of_terms
from grader.operations.comparison import first_index
from grader.sentences import count_text
from grader.submission.text import first_load_with_other, stores_only_in_loops

TELLING = 4  # different values: a tile of fewer, such as a 1 among zeros, may equal another one by chance


def value_verdict(evidence: Evidence) -> Verdict:
    """For a comparison that is not right; always finds words."""
    verdict = (
        _unwritten(evidence)
        or _known_mistake(evidence)
        or _constant(evidence)
        or _misplaced(evidence)
        or _special_values(evidence)
        or _layout(evidence)
        or _low_precision(evidence)
        or failed(Cause.WRONG_VALUES, _where_wrong(evidence))
    )
    if verdict.id != Cause.UNWRITTEN:
        verdict.said.append(first_wrong_text(evidence))
    verdict.tiles = tile_map(evidence)
    return verdict


def first_wrong_text(evidence: Evidence) -> str:
    """ "First wrong element: z[0, 0] of program (0,) is 0.004090, expected 0.004855." """
    comparison = evidence.comparison
    index = comparison.first_wrong
    element = f"{evidence.returns}[{index_text(index)}]" if index else evidence.returns
    start = f"First wrong element: {element}{_writer_text(evidence, index)}"
    if not comparison.out.is_floating_point():
        return f"{start} is {comparison.out[index].item()}, expected {comparison.expected[index].item()}."
    yours, expected = float(comparison.out[index]), float(comparison.expected[index])
    if evidence.wanted.bound != "bits":
        yours, expected = yours + 0.0, expected + 0.0  # -0 is 0
    text = f"{start} is {yours:.6g}"
    if yours == expected or f"{yours:.6g}" == f"{expected:.6g}":
        text = text.replace(f"{yours:.6g}", f"{yours:.9g}")
        return f"{text}, expected {expected:.9g}."
    return f"{text}, expected {expected:.6g}."


def _writer_text(evidence: Evidence, index: tuple[int, ...]) -> str:
    writers = evidence.writers
    if writers is None or int(writers.programs[index]) < 0:
        return ""
    return f" of {_program_at(evidence, int(writers.programs[index]))}"


def _program_at(evidence: Evidence, number: int) -> str:
    """A linear program number in the dimensions that the launch gave."""
    axes = len(evidence.launch.grid) if evidence.launch else 1
    return program_text(program_index(number, evidence.writers.grid, axes))


def _unwritten(evidence: Evidence) -> Verdict | None:
    writers = evidence.writers
    if writers is None:
        return None
    missing = writers.programs == -1
    if evidence.wanted.is_argument:  # the given output is initialised, with poison: only its value tells
        missing = (writers.programs < 0) & evidence.comparison.wrong
    count = int(missing.sum())
    if not count:
        return None
    name, total = evidence.returns, missing.numel()
    first = index_text(first_index(missing))
    were = "was" if count == 1 else "were"
    shown = f"{count} of {total} elements of {name} {were} never written; the first is {name}[{first}]."
    return failed(Cause.UNWRITTEN, _cause_unwritten(evidence, missing), shown, kind="memory")


def _cause_unwritten(evidence: Evidence, missing: torch.Tensor) -> str:
    name, grid = evidence.returns, _grid_text(evidence)
    if bool(missing.all()):
        stores = grid if len(evidence.reply.launches) < 2 else f"{len(evidence.reply.launches)} launches"
        nothing = f"Nothing was written to {name}: no store of {stores} reaches it."
        if " 0 programs" not in grid and stores_only_in_loops(evidence.submission.tree):
            return f"{nothing} What stores stands in a loop: has that loop a turn for these sizes?"
        return nothing
    rows, columns = as_matrix(missing).all(dim=1), as_matrix(missing).all(dim=0)
    silent, total = _silent_programs(evidence)
    if told := walk_that_ends_early(evidence, silent, total):
        return told
    if silent > 0 and evidence.missing_axis_text:
        return f"{silent} of {total} programs write nothing to {name}: {evidence.missing_axis_text}."
    if silent > 0:
        return f"{silent} of {total} programs write nothing to {name}: program numbers lead to the wrong places."
    left_out = int(columns.sum())
    what = "last column" if left_out == 1 else f"end of each row ({left_out} columns)"
    if _is_tail(columns) and _one_program_per_row(evidence):
        if (written := len(columns) - left_out) in evidence.constants.values():
            stored = f"Only the first {written} columns of each row of {name} are written, one block"
            return f"{stored}: the store does not move with the loop, or there is none."
        return f"The {what} of {name} is never written: the mask or the block leaves it out."
    if part := _missing_from_a_dimension_on(missing):
        return f"{name}[{part}] is never written: has {grid}, or a loop in them, too few steps?"
    if missing.dim() == 2 and len(rows) == 1 and _is_tail(columns) and evidence.reply.launches[-1].grid == [1]:
        start = int(columns.to(torch.uint8).argmax())
        return f"The row's one program writes {name} up to column {start - 1}: its block ends there, the row does not."
    if missing.dim() == 1 and _is_tail(as_matrix(missing)[0]):
        if _one_element_each(evidence):
            whose = "which" if grid.endswith(" 1 program") else "each of which"
            return f"The end of {name} is not covered by {grid}, {whose} writes one element."
        return f"The end of {name} is not covered by {grid}: has the last, partial block a program of its own?"
    if _is_tail(rows) and bool((as_matrix(missing) == rows[:, None]).all()):
        return f"The last rows of {name} are not covered by {grid}."
    if _is_tail(columns) and bool((as_matrix(missing) == columns[None, :]).all()):
        if _last_program_stops_early(evidence):
            return f"The {what} of {name} is never written: a program has lanes there, and its mask leaves it out."
        return f"The last columns of {name} are not covered by {grid}."
    return f"Parts of {name} are not covered by {grid}."


def _silent_programs(evidence: Evidence) -> tuple[int, int]:
    """(programs that wrote no element of the result, programs of the last launch)."""
    writers, launches = evidence.writers, evidence.reply.launches
    if len(launches) != 1:
        return 0, 0
    total = writers.grid[0] * writers.grid[1] * writers.grid[2]
    return total - int((writers.programs.unique() >= 0).sum()), total


def _one_program_per_row(evidence: Evidence) -> bool:
    programs = as_matrix(evidence.writers.programs)
    written = programs[:, 0] >= 0
    return len(programs) > 1 and bool(((programs == programs[:, :1]) | (programs < 0))[written].all())


def _one_element_each(evidence: Evidence) -> bool:
    """Whether no program wrote more of the result."""
    writing = evidence.writers.programs[evidence.writers.programs >= 0]
    return writing.unique().numel() == writing.numel()


def _last_program_stops_early(evidence: Evidence) -> bool:
    """Whether the last program that writes to a row writes fewer columns of it than the first."""
    tiles = tiles_of(evidence.writers)
    widths = [right - left for left, right in pairwise(tiles.columns)][:-1] if tiles is not None else []
    return len(widths) > 1 and widths[-1] < widths[0]


def _missing_from_a_dimension_on(missing: torch.Tensor) -> str:
    """ ":, 16:" where exactly the end of one dimension of several outer ones is missing, else "" """
    for dim in range(missing.dim() - 1 if missing.dim() > 2 else 0):
        along = missing.movedim(dim, 0).flatten(1)
        if _is_tail(along.all(dim=1)) and bool((along.any(dim=1) == along.all(dim=1)).all()):
            return ":, " * dim + f"{int(along.all(dim=1).to(torch.uint8).argmax())}:"
    return ""


def _is_tail(flags: torch.Tensor) -> bool:
    """True for False ... False True ... True."""
    return bool(flags.any()) and not bool(flags.all()) and bool((flags[1:] >= flags[:-1]).all())


def _grid_text(evidence: Evidence) -> str:
    grid = evidence.launch.grid if evidence.launch else [0]
    size = " x ".join(str(n) for n in _used_axes(grid))
    return f"a grid of {size} program{'' if size == '1' else 's'}"


def _used_axes(grid: list[int]) -> list[int]:
    grid = list(grid)
    while len(grid) > 1 and grid[-1] == 1:
        grid.pop()
    return grid


def _known_mistake(evidence: Evidence) -> Verdict | None:
    found = matching_hypothesis(evidence)
    if found is None:
        return None
    line = first_load_with_other(evidence.submission.tree) if found.id == Cause.PADDING_COUNTED else 0
    return failed(found.id, found.sentence, evidence.source_line(line), kind="cause", line=line)


def _misplaced(evidence: Evidence) -> Verdict | None:
    """Does a wrong tile hold exactly what belongs into another one?"""
    comparison, writers = evidence.comparison, evidence.writers
    tiles = tiles_of(writers) if writers is not None else None
    if tiles is None or not 1 < tiles.shape[0] * tiles.shape[1] <= 256 or comparison.wrong.dim() != 2:
        return None
    parts = [
        (slice(top, bottom), slice(left, right))
        for top, bottom in zip(tiles.rows, tiles.rows[1:])
        for left, right in zip(tiles.columns, tiles.columns[1:])
    ]
    name = evidence.returns
    for mine in parts:
        out, expected = comparison.out[mine], comparison.expected[mine]
        if not bool(comparison.wrong[mine].any()) or out.unique().numel() < TELLING:
            continue
        if torch.equal(out.flatten(), expected.t().flatten()):
            sentence = (
                f"{_slice_text(name, mine)} holds the right elements in the wrong order: its rows and columns are "
                "exchanged. A reshape keeps the order; tl.trans turns a tile."
            )
            return failed(Cause.NOT_TURNED, sentence, kind="cause")
        for other in parts:
            if other != mine and torch.equal(out, comparison.expected[other]):
                return failed(
                    Cause.MISPLACED_TILE,
                    f"Tiles of {name} are in the wrong place: {_slice_text(name, mine)} holds what belongs "
                    f"into {_slice_text(name, other)}.",
                    kind="cause",
                )
    return None


def _slice_text(name: str, part: tuple[slice, slice]) -> str:
    rows, columns = part
    return f"{name}[{rows.start}:{rows.stop}, {columns.start}:{columns.stop}]"


def _layout(evidence: Evidence) -> Verdict | None:
    strided = [name for name, tensor in evidence.tensors if not tensor.is_contiguous()]
    if not strided or not evidence.right_when_contiguous:
        return None
    names = in_words(strided)
    return failed(
        Cause.STRIDE_IGNORED,
        f"Right for contiguous tensors, wrong for this layout of {names}: a stride is not used as it should be.",
        kind="guess",
    )


def _low_precision(evidence: Evidence) -> Verdict | None:
    """Small errors, of the size of fp16 rounding: somewhere on the way digits were dropped."""
    comparison = evidence.comparison
    wrong = comparison.wrong & comparison.ref.isfinite() & comparison.out.isfinite()
    rounded_early = evidence.wanted.bound in EXACT and evidence.wanted.dtype == torch.float32
    if (evidence.wanted.bound in EXACT and not rounded_early) or int(wrong.sum()) < comparison.wrong_count:
        return None
    scale = size_of_terms(evidence.wanted.bound, exact(evidence.inputs), comparison.ref)
    relative = float(((comparison.out.double() - comparison.ref).abs() / scale)[wrong].max())
    if relative > 32 * UNIT_ROUNDOFF[torch.float16]:
        return None
    if relative < UNIT_ROUNDOFF[torch.float16] / 4:
        return None if rounded_early else _few_digits(evidence)
    size = f"{comparison.largest_error:.3g} times what fp32 arithmetic explains, " if not rounded_early else ""
    return failed(
        Cause.LOW_PRECISION,
        f"Digits are lost on the way: errors are {size}about the rounding of fp16.",
        "Convert to fp32 before computing, and keep sums in fp32.",
        kind="guess",
    )


def _few_digits(evidence: Evidence) -> Verdict:
    """Fewer than a conversion to fp16 would lose, more than the operation has to."""
    advice = "Where do large numbers meet whose difference is small, or are many added up in one variable?"
    if evidence.wanted.bound not in EXACT:
        advice = getattr(named(evidence.wanted.bound), "LOST_DIGITS", advice)
    sentence = f"Digits are lost on the way: errors are up to {evidence.comparison.largest_error:.3g} times the bound."
    return failed(Cause.LOW_PRECISION, sentence, advice, kind="guess")


def _constant(evidence: Evidence) -> Verdict | None:
    """One value everywhere, or one value per program, where the elements should differ."""
    out, expected, name = evidence.comparison.out, evidence.comparison.expected, evidence.returns
    if out.numel() < 2 or bool((expected == expected.flatten()[0]).all()):
        return None
    if evidence.wanted.is_updated and torch.equal(out, evidence.argument(name)):
        return failed(Cause.UNCHANGED, f"{name} still holds what it held before: it has to be updated in place.")
    if evidence.wanted.is_argument and bool(is_poison(out).all()):
        return failed(Cause.UNCHANGED, f"{name} still holds what it held before: nothing of the input reached it.")
    if bool(out.isnan().all()):
        return failed(Cause.CONSTANT, f"{name} is NaN everywhere.")
    if bool((out == out.flatten()[0]).all()):
        return failed(Cause.CONSTANT, f"{name} is {_one_text(out.flatten()[0])} everywhere.")
    numbers = out[~out.isnan()]
    if len(numbers) < out.numel() and bool((numbers == numbers[0]).all()):
        return failed(Cause.CONSTANT, f"{name} is {_one_text(numbers[0])} wherever it is not NaN.")
    writers = evidence.writers
    if writers is None:
        return None
    first = int(writers.programs.flatten()[0])
    mine, due = out[writers.programs == first], expected[writers.programs == first]
    if mine.numel() > 1 and bool((mine == mine[0]).all()) and not bool((due == due[0]).all()):
        shown = f"All {mine.numel()} elements that {_program_at(evidence, first)} writes are equal"
        return failed(Cause.CONSTANT, f"{shown}: its lanes should differ. Do the pointers of its loads?", kind="cause")
    return None


def _one_text(number: torch.Tensor) -> str:
    """Of a number that all elements equal: -0 is 0."""
    return number_text(number + 0.0 if number.is_floating_point() else number)


def _special_values(evidence: Evidence) -> Verdict | None:
    expected = evidence.comparison.expected
    if bool((evidence.comparison.wrong & expected.isfinite() & (expected != 0)).any()):
        return None
    where = f"{evidence.returns} is wrong only where inf, NaN or 0 is expected"
    return failed(Cause.WRONG_VALUES, f"{where}: special values are changed on the way.")


def _where_wrong(evidence: Evidence) -> str:
    """How many elements are wrong, and what they have in common."""
    wrong, name = evidence.comparison.wrong, evidence.returns
    count, total = evidence.comparison.wrong_count, wrong.numel()
    share = "every element" if count == total else f"{count_text(count, 'element')} of {total}"
    return f"{name} is wrong in {share}{_pattern(wrong)}, {short_dtype(evidence.wanted.dtype)}."


def _pattern(wrong: torch.Tensor) -> str:
    matrix = as_matrix(wrong)
    if wrong.dim() == 1 and _is_tail(wrong):
        return f", all from element {int(wrong.to(torch.uint8).argmax())} on"
    rows, columns = matrix.any(dim=1), matrix.any(dim=0)
    if matrix.shape[1] > 1 and _is_tail(columns):
        return f", all in columns {int(columns.to(torch.uint8).argmax())} and up"
    if matrix.shape[0] > 1 and _is_tail(rows):
        return f", all in rows {int(rows.to(torch.uint8).argmax())} and up"
    return ""
