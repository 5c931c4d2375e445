"""Explains elements of a result that no program wrote."""

from __future__ import annotations

import ast
from itertools import pairwise

import torch

from grader.course.exercise import in_words
from grader.explain.causes import Cause
from grader.explain.evidence import Compared, Evidence, the_only
from grader.explain.verdict import Verdict, failed
from grader.explain.written_tiles import as_matrix, begins_a_tile, program_index, tiles_of
from grader.numerics.comparison import first_index
from grader.sentences import Fields, Said, Sentence
from grader.submission.nodes import called_name, covers
from grader.submission.text import code_text
from grader.submission.tuning_lines import line_of_grid
from grader.wire.messages import MULTIPROCESSORS, Launch
from grader.wire.reply import Writers


class Unwritten(Sentence):
    """Sentences about the number of unwritten elements, and about the reason. {grid}: "a grid of 2 x 3 programs"."""

    COUNT = "{count} of {total} elements of {name} {were} never written; the first is {name}[{index:,}]."
    NOTHING = "Nothing was written to {name}: no store of {stores} reaches it."
    NO_STORE = (
        "Nothing was written to {name}: the kernel has no tl.store, and a kernel gives its results in no other way. "
        "What it returns is lost."
    )
    NO_STORE_IS_LEFT = (
        "Nothing was written to {name}: the compiler has left out every store of the kernel, as none comes to "
        "anything. Is a mask false in each lane, whatever the sizes are?"
    )
    LINES = (
        "Each program writes one element of each row and each column of its tile of {name}: its rows and columns are "
        "two lines that go side by side. rows[:, None] and cols[None, :] make a tile of them."
    )
    NOTHING_IN_LOOPS = (
        "Nothing was written to {name}: no store of {stores} reaches it. What stores stands in a loop: has that loop "
        "an iteration for these sizes?"
    )
    MISSING_AXIS = "{silent} of {total} programs {write} nothing to {name}: {missing_axis}."
    NO_SUCH_AXIS = (
        "The kernel asks for tl.program_id({axis}) in line {line}, and the grid {grid} has no axis {axis}: the number "
        "is 0 in every program. Give the grid a size for each axis that the kernel asks for."
    )
    AXES_EXCHANGED = (
        "{silent} of {total} programs {write} nothing to {name}, as if the kernel took axis 0 of the grid for axis 1 "
        "and axis 1 for axis 0. The grid{made} is {grid}: which axis counts which blocks there, and in "
        "tl.program_id{read}?"
    )
    MASKED_OFF = (
        "{silent} of {total} programs load and store nothing: their masks are false in every lane, or their loops have "
        "no iteration. Do the masks compare with the size, and do the program numbers lead to tiles that are there?"
    )
    ENDS_EARLY = (
        "{silent} of {total} programs {write} nothing to {name}, and line {line} ends a program early: does it end one "
        "that has something to store, be it a 0? What torch.empty gives holds anything."
    )
    WRONG_PLACES = "{silent} of {total} programs {write} nothing to {name}: program numbers lead to the wrong places."
    FIRST_SILENT = (
        "Program {program} is the first of these: which tile do line {line} and the lines after it make of its number?"
    )
    ONE_BLOCK = (
        "Only the first {columns} columns of each row of {name} are written, one block: the store does not move with "
        "the loop, or there is none."
    )
    ROWS_END_EARLY = "The {end} of {name} is never written: the mask or the block leaves it out."
    TOO_FEW_STEPS = (
        "{name}[{part}] is never written: has {grid}, or a loop in them, too few steps, or does a mask leave it out?"
    )
    BLOCK_TOO_SHORT = "The row's one program writes {name} up to column {last}: its block ends there, the row does not."
    LANES_MEET = (
        "Each program writes one element of {name}, and {grid} is enough for blocks of {block}: all lanes of a block "
        "lead to one element, or only one is let through. Is the number of each lane added to where its block begins?"
    )
    ONE_ELEMENT = "The end of {name} is not covered by {grid}, which writes one element."
    ONE_ELEMENT_EACH = "The end of {name} is not covered by {grid}, each of which writes one element."
    PARTIAL_BLOCK = "The end of {name} is not covered by {grid}: has the last, partial block a program of its own?"
    ROUNDS_DOWN = "{code} rounds down: triton.cdiv({dividend}, {divisor}) rounds up."
    LAST_ROWS = "The last rows of {name} are not covered by {grid}."
    MASKED_OUT = "The {end} of {name} is never written: a program has lanes there, and its mask leaves it out."
    LAST_COLUMNS = "The last columns of {name} are not covered by {grid}."
    BEGINNING = (
        "{name} is not written from its first element on: does a loop, a block or a mask begin too late, or do stores "
        "lead elsewhere?"
    )
    PARTS = (
        "Parts of {name} are not covered by {grid}: is it too small, or their blocks, or do masks leave out too much?"
    )

    # Tiles that a loop leaves out, each with a question that leads to the reason.
    ONE_IS_SILENT = (
        "1 of {total:#program} writes nothing to {name}: does the loop over tiles end too early, or do tile numbers "
        "lead to the wrong places?"
    )
    SOME_ARE_SILENT = (
        "{silent} of {total:#program} write nothing to {name}: does the loop over tiles end too early, or do tile "
        "numbers lead to the wrong places?"
    )
    STEPS_TOO_FAR = (
        "{name} has more tiles than {total:#program} write, and the GPU has {processors} multiprocessors: does the "
        "loop step over tiles for which there is no program?"
    )
    ONE_TILE = (
        "The one program writes one tile of {name}, and {name} has more: does a program go on until no tile is left, "
        "and does each number lead to a tile of its own?"
    )
    ONE_TILE_EACH = (
        "Each of {total:#program} writes one tile of {name}, and {name} has more: does a program go on until no tile "
        "is left, and does each number lead to a tile of its own?"
    )
    LEAVES_OUT = (
        "The loop of {total:#program} leaves out tiles of {name}: does each go on, in equal steps, until no tile is "
        "left?"
    )


# Sentences about a grid that is too small: the line that makes it is told with them.
OF_GRIDS = (
    Unwritten.ONE_ELEMENT, Unwritten.ONE_ELEMENT_EACH, Unwritten.PARTIAL_BLOCK, Unwritten.LAST_ROWS,
    Unwritten.LAST_COLUMNS, Unwritten.PARTS,
)  # fmt: skip


def unwritten(evidence: Compared) -> Verdict | None:
    """Returns the verdict on elements that no program wrote; None if there are none, or the writers are not known."""
    writers = evidence.writers
    if writers is None:
        return None
    missing = writers.programs == -1
    if evidence.wanted.is_argument:  # it is initialised, with poison: only a wrong value tells that it is unwritten
        missing = (writers.programs < 0) & evidence.comparison.wrong
    count = int(missing.sum())
    if not count:
        return None
    shown = Unwritten.COUNT(
        count=count,
        total=missing.numel(),
        name=evidence.returns,
        were="was" if count == 1 else "were",
        index=first_index(missing),
    )
    by_nobody = bool(missing.all()) or (evidence.wanted.is_updated and bool((writers.programs < 0).all()))
    cause = _nothing(evidence) if by_nobody else _silent(evidence, writers)
    launch = evidence.launch
    if cause is None and launch is not None and (told := _no_such_axis(evidence, launch)):
        line = line_of_grid(evidence.submission.tree, launch.line) or launch.line
        return failed(Cause.UNWRITTEN, told, shown, evidence.source_line(line), kind="cause", line=line)
    cause = cause or _left_out(evidence, writers, missing)
    if cause.sentence is Unwritten.ENDS_EARLY:
        line = _early_end(evidence)
        return failed(Cause.UNWRITTEN, cause, shown, evidence.source_line(line), kind="memory", line=line)
    if cause.sentence not in OF_GRIDS or launch is None:
        first = _first_silent(evidence, writers) if cause.sentence is Unwritten.WRONG_PLACES else None
        return failed(Cause.UNWRITTEN, cause, first, shown, kind="memory")
    line = line_of_grid(evidence.submission.tree, launch.line)
    why, place = _rounds_down(evidence.submission.tree, line), evidence.source_line(line)
    return failed(Cause.UNWRITTEN, cause, why, shown, place, kind="memory", line=line)


def _nothing(evidence: Evidence) -> Said:
    grid, launches = _used_axes(evidence), len(evidence.reply.launches)
    if evidence.kernels and not any(kernel.store_lines for kernel in evidence.kernels):
        stores = any(
            one.attr == "store" for one in ast.walk(evidence.submission.tree) if isinstance(one, ast.Attribute)
        )
        return (Unwritten.NO_STORE_IS_LEFT if stores else Unwritten.NO_STORE)(name=evidence.returns)
    storing = [kernel for kernel in evidence.kernels if kernel.store_lines]
    begun = any(line in evidence.reply.reached for kernel in storing for line in kernel.store_lines)
    in_loops = grid[-1:] != [0] and bool(storing) and all(kernel.stores_only_in_loops for kernel in storing)
    sentence = Unwritten.NOTHING_IN_LOOPS if in_loops and not begun else Unwritten.NOTHING
    return sentence(name=evidence.returns, stores=_grid_text(grid) if launches < 2 else f"{launches} launches")


def _silent(evidence: Evidence, writers: Writers) -> Said | None:
    """Returns the sentence about programs that write nothing, or whose loop over tiles ends too early; else None.

    None, too, for a result of which only the data decide who writes.
    """
    if evidence.returns in evidence.exercise.unread:
        return None
    launch, (silent, total) = evidence.launch, _silent_programs(evidence, writers)
    if told := _loop_that_ends_early(evidence, writers.programs, silent, total):
        return told
    write = "writes" if silent == 1 else "write"
    found: Fields = dict(silent=silent, total=total, name=evidence.returns, write=write)
    if silent > 0 and evidence.missing_axis_text:
        return Unwritten.MISSING_AXIS(missing_axis=evidence.missing_axis_text, **found)
    if silent > 0 and launch is not None and _axes_are_exchanged(evidence, launch, writers):
        made, read = _lines_of_axes(evidence, launch)
        return Unwritten.AXES_EXCHANGED(grid=str(tuple(launch.grid)), made=made, read=read, **found)
    if silent > 0 and (line := _early_end(evidence)):
        return Unwritten.ENDS_EARLY(line=line, **found)
    if silent > 0 and launch is not None and launch.idle >= silent:
        return Unwritten.MASKED_OFF(silent=silent, total=total)
    return Unwritten.WRONG_PLACES(**found) if silent > 0 else None


def _early_end(evidence: Evidence) -> int:
    """Returns the only line in which a condition ends a program of the launch; 0 if there is none, or several."""
    kernel = evidence.kernel_of(evidence.launch) if evidence.launch is not None else None
    return the_only(kernel.early_end_lines) if kernel is not None else 0


def _first_silent(evidence: Evidence, writers: Writers) -> Said | None:
    """Returns the sentence about the first program that writes nothing; None where its number is asked for in several
    lines, or nowhere."""
    launch = evidence.launch
    kernel = evidence.kernel_of(launch) if launch is not None else None
    line = the_only(kernel.axes.values()) if kernel is not None else 0
    if launch is None or not line:
        return None
    writing = set(writers.programs.unique().tolist())
    first = next(number for number in range(len(writing) + 1) if number not in writing)
    return Unwritten.FIRST_SILENT(program=program_index(first, writers.grid, len(launch.grid)), line=line)


def _loop_that_ends_early(evidence: Evidence, programs: torch.Tensor, silent: int, total: int) -> Said | None:
    """Returns the sentence about a loop that leaves out tiles, or None.

    None for a call that gets no number of multiprocessors, whose programs need no loop over tiles, and for a tile of
    which only a part is unwritten. programs: the number of the program that wrote each element, [shape of the result].
    silent: how many of `total` programs wrote nothing.
    """
    processors, name = evidence.trial.constants.get(MULTIPROCESSORS, 0), evidence.returns
    if not processors or not total:
        return None
    if silent == 1:
        return Unwritten.ONE_IS_SILENT(total=total, name=name)
    if silent > 0:
        return Unwritten.SOME_ARE_SILENT(silent=silent, total=total, name=name)
    unwritten = programs == -1
    if bool(unwritten.any()) and not begins_a_tile(first_index(unwritten), evidence.constants):
        return None  # a part of a tile is missing: the loop has reached this tile
    if total < processors:
        return Unwritten.STEPS_TOO_FAR(name=name, total=total, processors=processors)
    if _one_rectangle_each(programs):
        return Unwritten.ONE_TILE(name=name) if total == 1 else Unwritten.ONE_TILE_EACH(total=total, name=name)
    return Unwritten.LEAVES_OUT(total=total, name=name)


def _one_rectangle_each(programs: torch.Tensor) -> bool:
    """Returns whether all elements of each program make up a single rectangle."""
    matrix = as_matrix(programs)
    for program in matrix.unique().tolist():
        mine = matrix == program
        rows, columns = mine.any(dim=1), mine.any(dim=0)
        if program >= 0 and int(mine.sum()) != _extent(rows) * _extent(columns):
            return False
    return True


def _extent(flags: torch.Tensor) -> int:
    places = flags.nonzero().flatten()
    return int(places[-1] - places[0]) + 1


def _lines_of_axes(evidence: Evidence, launch: Launch) -> tuple[str, str]:
    """Returns ", made in line 36," for the grid and " (lines 17 and 18)" for the axes; "" for a line not known."""
    made, kernel = line_of_grid(evidence.submission.tree, launch.line), evidence.kernel_of(launch)
    read = sorted(set(kernel.axes.values())) if kernel is not None else []
    plural = "line" if len(read) == 1 else "lines"
    return f", made in line {made}," if made else "", f" ({plural} {in_words(list(map(str, read)))})" if read else ""


def _axes_are_exchanged(evidence: Evidence, launch: Launch, writers: Writers) -> bool:
    """Returns whether exactly the programs write that fit both the grid and the grid with its two axes exchanged, and
    write whole tiles."""
    first, second, _ = writers.grid
    if len(launch.grid) != 2 or first == second:
        return False
    written = as_matrix(writers.programs) >= 0
    whole = {min(first, second) * size for size in (1, *evidence.constants.values())}
    if any(int(one.sum()) not in whole | {len(one)} for one in (written.any(dim=0), written.any(dim=1))):
        return False
    writing = {program_index(one, writers.grid, 2) for one in writers.programs.unique().tolist() if one >= 0}
    both = range(min(first, second))
    return writing == {(one, other) for one in both for other in both}


def _no_such_axis(evidence: Evidence, launch: Launch) -> Said | None:
    """Returns the sentence about an axis that the launch's kernel asks for and its grid lacks; None if it has all."""
    kernel = evidence.kernel_of(launch)
    missing = [one for one in (kernel.axes.items() if kernel is not None else ()) if one[0] >= len(launch.grid)]
    if not missing:
        return None
    axis, line = min(missing)
    return Unwritten.NO_SUCH_AXIS(axis=axis, line=line, grid=str(tuple(launch.grid)))


def _left_out(evidence: Evidence, writers: Writers, missing: torch.Tensor) -> Said:
    """Returns the sentence about the part of the result that is unwritten, although each program writes something."""
    name, axes = evidence.returns, _used_axes(evidence)
    grid = _grid_text(axes)
    rows, columns = as_matrix(missing).all(dim=1), as_matrix(missing).all(dim=0)
    left_out, written = int(columns.sum()), tail_start(columns)
    end = "last column" if left_out == 1 else f"end of each row ({left_out} columns)"
    if written and _one_program_per_row(writers.programs):
        if written in evidence.constants.values():
            return Unwritten.ONE_BLOCK(columns=written, name=name)
        return Unwritten.ROWS_END_EARLY(end=end, name=name)
    if _writes_diagonals(writers.programs):
        return Unwritten.LINES(name=name)
    if part := _missing_from_a_dimension_on(missing):
        return Unwritten.TOO_FEW_STEPS(name=name, part=part, grid=grid)
    if missing.dim() == 2 and len(rows) == 1 and written and evidence.reply.launches[-1].grid == [1]:
        return Unwritten.BLOCK_TOO_SHORT(name=name, last=written - 1)
    if missing.dim() == 1 and written:
        if _one_element_each(writers.programs):
            blocks = [one for one in evidence.constants.values() if one > 1 and axes == [-(-missing.numel() // one)]]
            kernel = evidence.kernel_of(evidence.reply.launches[-1])
            if blocks and kernel is not None and any(one.operand_types[0].shape for one in kernel.named("tt.store")):
                return Unwritten.LANES_MEET(name=name, grid=grid, block=blocks[0])
            sentence = Unwritten.ONE_ELEMENT if axes == [1] else Unwritten.ONE_ELEMENT_EACH
            return sentence(name=name, grid=grid)
        if _stops_in_its_block(evidence, writers.programs):
            return Unwritten.ROWS_END_EARLY(end="end", name=name)
        return Unwritten.PARTIAL_BLOCK(name=name, grid=grid)
    if tail_start(rows) and bool((as_matrix(missing) == rows[:, None]).all()):
        if _stops_in_its_block(evidence, as_matrix(writers.programs)[:, 0]):
            below = int(rows.sum())
            end = "last row" if below == 1 else f"end of each column ({below} rows)"
            return Unwritten.ROWS_END_EARLY(end=end, name=name)
        return Unwritten.LAST_ROWS(name=name, grid=grid)
    if written and bool((as_matrix(missing) == columns[None, :]).all()):
        if _last_program_stops_early(writers):
            return Unwritten.MASKED_OUT(end=end, name=name)
        return Unwritten.LAST_COLUMNS(name=name, grid=grid)
    if bool(missing.flatten()[0]):
        return Unwritten.BEGINNING(name=name)
    return Unwritten.PARTS(name=name, grid=grid)


def _rounds_down(tree: ast.Module, line: int) -> Said | None:
    """Returns the sentence about a size of the grid, made in this line, that is a quotient and no more, as N // BLOCK_N
    or int(N / BLOCK_N); None without any."""
    grids = [one for one in ast.walk(tree) if isinstance(one, ast.Tuple) and covers(one, line)]
    for size in (size for grid in grids for size in grid.elts):
        inner = size.args[0] if isinstance(size, ast.Call) and called_name(size) in ("int", "floor") else size
        rounds = ast.Div if inner is not size else ast.FloorDiv
        if isinstance(inner, ast.BinOp) and isinstance(inner.op, rounds) and not isinstance(inner.left, ast.BinOp):
            dividend, divisor = code_text(inner.left), code_text(inner.right)
            return Unwritten.ROUNDS_DOWN(code=code_text(size), dividend=dividend, divisor=divisor)
    return None


def _silent_programs(evidence: Evidence, writers: Writers) -> tuple[int, int]:
    """Returns the number of programs that wrote no element of the result, and the number of all programs.

    Returns (0, 0) unless the call has a single launch.
    """
    if len(evidence.reply.launches) != 1:
        return 0, 0
    total = writers.grid[0] * writers.grid[1] * writers.grid[2]
    return total - int((writers.programs.unique() >= 0).sum()), total


def _one_program_per_row(programs: torch.Tensor) -> bool:
    programs = as_matrix(programs)
    written = programs[:, 0] >= 0
    return len(programs) > 1 and bool(((programs == programs[:, :1]) | (programs < 0))[written].all())


def _one_element_each(programs: torch.Tensor) -> bool:
    """Returns whether each program that wrote to the result wrote a single element of it."""
    writing = programs[programs >= 0]
    return writing.unique().numel() == writing.numel()


def _writes_diagonals(programs: torch.Tensor) -> bool:
    """Returns whether no program writes two elements of a row or of a column, and some program writes several."""
    if programs.dim() != 2 or min(programs.shape) < 2:
        return False
    rows, columns = (programs >= 0).nonzero(as_tuple=True)
    mine = programs[rows, columns].long()
    once = [len(torch.stack((mine, place)).unique(dim=1)[0]) == len(mine) for place in (rows, columns)]
    return all(once) and int(mine.bincount().max()) > 1


def _last_program_stops_early(writers: Writers) -> bool:
    """Returns whether the last program that writes to a row writes fewer columns of it than the first."""
    tiles = tiles_of(writers)
    widths = [right - left for left, right in pairwise(tiles.columns)][:-1] if tiles is not None else []
    return len(widths) > 1 and widths[-1] < widths[0]


def _stops_in_its_block(evidence: Evidence, programs: torch.Tensor) -> bool:
    """Returns whether the last program that writes along a line writes no whole block of it: its grid is large enough.

    `programs`: [n], those that wrote the elements of the line. One that writes a single element has no block there.
    """
    written, sizes = programs[programs >= 0], evidence.constants.values()
    count = int((written == written[-1]).sum()) if len(written) else 0
    return count > 1 and count not in sizes and any(size > count for size in sizes)


def _missing_from_a_dimension_on(missing: torch.Tensor) -> str:
    """Returns ":, 16:" if what is missing is exactly the end of a dimension that is not the last, of at least three.

    Returns "" otherwise.
    """
    for dim in range(missing.dim() - 1 if missing.dim() > 2 else 0):
        along = missing.movedim(dim, 0).flatten(1)
        start = tail_start(along.all(dim=1))
        if start and bool((along.any(dim=1) == along.all(dim=1)).all()):
            return ":, " * dim + f"{start}:"
    return ""


def tail_start(flags: torch.Tensor) -> int:
    """Returns where True begins in the flags False ... False True ... True; 0 for any other flags."""
    is_tail = bool(flags.any()) and not bool(flags.all()) and bool((flags[1:] >= flags[:-1]).all())
    return int(flags.to(torch.uint8).argmax()) if is_tail else 0


def _used_axes(evidence: Evidence) -> list[int]:
    """Returns the grid of the launch that wrote the result, without trailing axes of one program."""
    grid = list(evidence.launch.grid) if evidence.launch else [0]
    while len(grid) > 1 and grid[-1] == 1:
        grid.pop()
    return grid


def _grid_text(grid: list[int]) -> str:
    size = " x ".join(map(str, grid))
    return f"a grid of {size} program{'' if size == '1' else 's'}"
