"""Explains findings of the memory checker: a sentence names the mistake, a second the program and element."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from grader.explain.causes import Cause
from grader.explain.evidence import Evidence, Place, the_only
from grader.explain.verdict import Verdict, failed
from grader.explain.written_tiles import begins_a_tile
from grader.sentences import Said, Sentence, Value
from grader.submission.nodes import calls_in, covers, is_method_call, whole_number
from grader.submission.text import call_at, calls_in_line, descriptors_made
from grader.submission.tuning_lines import line_of_grid
from grader.wire.messages import FINDING_KINDS, MULTIPROCESSORS, Finding

if TYPE_CHECKING:
    import torch


class Memory(Sentence):
    """Sentences about mistakes, each group followed by the sentences that show where they happen (SHOWN_...)."""

    WILD_POINTER = (
        "Program {program} uses an address that belongs to no tensor: an address is made from a pointer and offsets."
    )
    MISALIGNED = (
        "Program {program} uses {name} in line {line} at an address that lies inside of an element: a GPU would end "
        "the program."
    )
    POINTERS_COUNT_ELEMENTS = "Pointers count in elements of their type: a cast pointer counts in those of the new one."

    ONE_ADDRESS = (
        "The address in line {line} leads outside of {name}. It is one address, no block, and needs no mask: it is "
        "computed wrongly, the program has nothing to do there, or {name} is too small."
    )
    MORE_PROGRAMS = (
        "The address in line {line} leads outside of {name}: the grid, made in line {grid}, has {programs:#program}, "
        "and {name} has {count:#element}."
    )
    DESCRIPTOR = (
        "The {function} in line {line} leaves {name}, and a descriptor keeps within its shape: that has to be the "
        "shape of {name}, in the same order, and its strides those of {name}."
    )
    NO_MASK = "The tl.{function} in line {line}{at} has no mask: lanes past the end of {name} take part in it."
    NO_MASK_OF_TILE = (
        "The tl.{function} in line {line}{at} has no mask: lanes outside of {name}'s rows and columns take part in it."
    )
    NO_LANE_INSIDE = (
        "No lane of the tl.{function} in line {line}{at} is inside of {name}: the address is computed wrongly, or the "
        "program has nothing to do there and needs a mask."
    )
    LIES_BEFORE = (
        "The address lies before {name}: an offset is negative, program numbers lead to the wrong tile, or a view made "
        "in Python begins before {name} does."
    )
    ONLY_CONTIGUOUS = (
        "The address in {name} is right only where all tensors are contiguous: each has strides of its own."
    )
    LOADED_OFFSET = (
        "The address leads outside of {name}. It is made with {loaded}, which was loaded: are its values right, and "
        "what is computed with them?"
    )
    ONE_TOO_MANY = (
        "The mask of the {function} in line {line}{at} lets lanes outside of {name} through. One element too many: is "
        "it <= where < is meant?"
    )
    MASK_OR_ADDRESS = (
        "The mask of the {function} in line {line}{at} lets lanes outside of {name} through. If the mask is as you "
        "mean it, the address is wrong."
    )
    MASK_OF_AN_AXIS = (
        "The mask of the {function} in line {line}{at} lets lanes outside of {name} through, past its last {axis}. If "
        "the mask limits {axis}s as you mean it, the address is wrong."
    )

    ADDRESS_OF_A_TILE = (
        "The address of the {function} in line {line}{at} leads outside of {name}, into which the first program's tile "
        "fits: no mask is to blame. How are rows, columns and strides put together?"
    )

    ADDRESS_OF_A_ROW = (
        "The address of the {function} in line {line}{at} is wrong, and not its mask, which lets through a lane for "
        "each of the {columns:#column} of {name}: the first of these leads to {name}[{row}, {column}], where no row "
        "begins."
    )

    MASK_AND_NO_LANE_INSIDE = (
        "The mask of the {function} in line {line}{at} lets lanes outside of {name} through. No lane is inside: "
        "the address is computed wrongly, or the program has nothing to do there."
    )

    MASK_AND_NO_LANE_INSIDE_IN_LOOP = (
        "The mask of the {function} in line {line}{at} lets lanes outside of {name} through. In an iteration of the "
        "loop no lane is inside: does the loop, or else the mask, end where {name} does, and is the address right?"
    )

    BOUNDARY_CHECK = (
        "The tl.{function} in line {line}{at} leaves {name} along an axis that its boundary_check does not name: it "
        "lists the axes of the block that are checked."
    )

    SHOWN_IN_ROWS = "Program {program} {verb} {name}[{row}, {column}]{neighbour}{size}."
    SHOWN_BEFORE = "Program {program} {verb} memory {count:#element} before {name} begins{neighbour}{size}."
    SHOWN_ELEMENT = "Program {program} {verb} element {element} of {name}{neighbour}{size}."
    SHOWN_BETWEEN = "Program {program} {verb} {name} between its elements ({name} is a view with strides {strides})."
    SHOWN_IN_VIEW = "Program {program} {verb} {name} between its elements ({name} is a view)."

    MISSING_AXIS = "Programs overlap: {missing_axis}."
    UNUSED_AXES = "Programs overlap: nothing in the kernel depends on {axes}, so programs do each other's work."
    CORNERS_TOO_CLOSE = (
        "Programs overlap: corners in line {line} lie closer together than a tile is long. They count elements: the "
        "number of a tile times its size."
    )
    INTO_ANOTHER_TILE = (
        "Programs overlap: what line {line} stores reaches into another program's tile. Corners count elements: the "
        "number of a tile times its size, and from one part of a tile to the next the size of the part."
    )
    SAME_ADDRESS = (
        "Programs overlap: the address in line {line} is the same in several programs, or more programs are launched "
        "than have something to store there."
    )
    STORE_RUNS_ON = "Programs overlap: the tl.store in line {line} has no mask and runs into the next program's part."
    SAME_TILE = (
        "Programs overlap: each goes over several tiles, and two of them come to the same one. Where does one begin, "
        "how far does it step, and how many programs are there?"
    )
    ONE_AXIS_APART = (
        "Programs overlap: two programs that differ along axis {axis} alone write the same elements, and whichever "
        "comes last wins. Does all that tl.program_id({axis}) tells reach the address?"
    )
    SOME_LANES_APART = (
        "Programs overlap: some lanes of two programs that differ along axis {axis} alone write the same elements, and "
        "whichever comes last wins. Is a tile longer than its programs are apart, or does the mask let lanes past the "
        "end of a row or column through?"
    )
    LAST_WINS = "Programs overlap: two programs write the same elements, and whichever comes last wins."
    SHOWN_BOTH_WRITE = (
        "Program {other} and program {program} both write {name}[{index:,}]; stores meet {count:#time} in all."
    )
    SHOWN_SEVERAL_WRITE = (
        "Another program and program {program} both write {name}[{index:,}]; stores meet {count:#time} in all."
    )

    READS_WHAT_IS_WRITTEN = (
        "Program {program} reads {name}[{index:,}], which {other} writes in the same launch: a race."
    )
    WRITES_WHAT_IS_READ = "Program {program} writes {name}[{index:,}], which {other} reads in the same launch: a race."
    UPDATES_WHAT_IS_STORED = (
        "Program {program} updates {name}[{index:,}] atomically, while {other} stores to it plainly: a race."
    )
    ANY_ORDER = "Programs run in any order, or at once: the result depends on which comes first."

    LOAD_AHEAD = (
        "The load in line {line} reads what an earlier iteration has stored in line {stored}, and begins before: the "
        "compiler begins the loads of a loop with num_stages ahead, and asks for no store. Keep the value in a "
        "variable, or ask for num_stages=1."
    )
    INPUT_CHANGED = "The kernel writes to {name}, an input: it has to stay as it is."
    SHOWN_WRITE = "Program {program} writes {name}[{index:,}]; {name} is written {count:#time} in all."
    LANE_CONFLICT = "Two lanes of one store write different values to the same element: which one stays is undefined."
    SHOWN_CONFLICT = "Program {program} does so at {name}[{index:,}]; lanes meet {count:#time} in all."
    UNINITIALISED_READ = (
        "The kernel reads {name} before anything was written there: torch.empty holds leftovers of the past."
    )
    SHOWN_READ = "Program {program} reads {name}[{index:,}]; that happens {count:#time} in all."


READING, WRITING = ("load", "gather"), ("store", "scatter", "atomic", "reduce")  # words in names of functions
RACES = {
    "race-read-after-write": Memory.READS_WHAT_IS_WRITTEN,
    "race-write-after-read": Memory.WRITES_WHAT_IS_READ,
    "race-atomic-after-write": Memory.UPDATES_WHAT_IS_STORED,
}


def memory_verdict(evidence: Evidence) -> Verdict | None:
    """Returns the verdict on the first finding in the order of FINDING_KINDS; None if there are no findings."""
    findings = sorted(evidence.reply.findings, key=lambda finding: FINDING_KINDS.index(finding.kind))
    if not findings:
        return None
    first = _at_its_call(evidence, findings[0])
    if (known := _known_mistake(evidence, first)) is not None:
        return known
    if first.kind.startswith("out-of-bounds") or first.kind == "wild-pointer":
        return _outside(evidence, first)
    if first.kind == "misaligned":
        return _misaligned(evidence, first)
    if first.kind == "race-write-write":
        return _written_twice(evidence, first)
    if first.kind in RACES:
        return _race(evidence, first)
    return _inside_one_program(evidence, first)


def _at_its_call(evidence: Evidence, finding: Finding) -> Finding:
    """Returns the finding at the place where the call of tl.load or tl.store begins: the compiler's text tells a place
    within it."""
    call = call_at(evidence.submission.tree, finding.line, finding.column, *_functions(finding))
    return finding if call is None else replace(finding, line=call.lineno, column=call.col_offset)


def _functions(finding: Finding) -> tuple[str, ...]:
    """Returns parts of the names of functions that access memory as the finding's access does."""
    if finding.kind in ("misaligned", "wild-pointer"):
        return READING + WRITING
    reads = finding.kind in ("out-of-bounds-load", "race-read-after-write", "load-ahead-of-store", "uninitialised-read")
    return READING if reads else WRITING


def _memory(evidence: Evidence, finding: Finding, id: str, *said: Said) -> Verdict:
    blamed = _blamed(evidence, finding)
    lines = dict.fromkeys([blamed or finding.line, finding.line, *finding.via[:1]])
    return failed(id, *said, *map(evidence.source_line, lines), kind="memory", line=blamed)


def _blamed(evidence: Evidence, finding: Finding) -> int:
    """Returns the line of the only statement that can be to blame; 0 if several can."""
    statements = [one for one in ast.walk(evidence.submission.tree) if isinstance(one, ast.stmt)]
    firsts = {
        line: max((one.lineno for one in statements if covers(one, line)), default=line)
        for line in (finding.line, *finding.suspects)
    }
    line = the_only(firsts[line] for line in finding.suspects or [finding.line])
    return finding.line if line == firsts[finding.line] else max(line, 0)


def _known_mistake(evidence: Evidence, finding: Finding) -> Verdict | None:
    """Returns the verdict on a mistake of the exercise that leads to the same finding; None for others."""
    found = evidence.led_astray(evidence.reply, finding)
    if found is None:
        return None
    shown = _both_write(finding) if finding.kind == "race-write-write" else _place(evidence, finding, _verb(finding))
    return _memory(evidence, finding, found.id, found.sentence, shown)


def _outside(evidence: Evidence, finding: Finding) -> Verdict:
    verb = _verb(finding)
    id = Cause.OOB_LOAD if verb == "reads" else Cause.OOB_STORE
    if finding.kind == "wild-pointer":
        return _memory(evidence, finding, Cause.WILD_POINTER, Memory.WILD_POINTER(program=tuple(finding.program)))
    cause, place = _cause_outside(evidence, finding, verb), _place(evidence, finding, verb)
    if cause.sentence is Memory.ONE_ADDRESS and (more := _more_programs(evidence, finding)) is not None:
        cause, line = more
        return failed(id, cause, place, *map(evidence.source_line, (finding.line, line)), kind="memory", line=line)
    if cause.sentence is Memory.ADDRESS_OF_A_ROW:
        return _memory(evidence, _at_offsets(evidence, finding), id, cause, place)
    if cause.sentence is Memory.DESCRIPTOR and (made := _made_of(evidence, finding.argument)):
        return failed(id, cause, place, evidence.source_line(made), kind="memory", line=made)
    return _memory(evidence, finding, id, cause, place)


def _more_programs(evidence: Evidence, finding: Finding) -> tuple[Said, int] | None:
    """Returns the sentence about a grid along one axis that has more programs than there are elements, of which each
    accesses the one of its number, and the grid's line; None for any other access, and where that line is not known."""
    launch, tensor = evidence.launch, evidence.argument(finding.argument)
    if launch is None or tensor is None or len(evidence.reply.launches) > 1:
        return None
    line, count = line_of_grid(evidence.submission.tree, launch.line), tensor.numel()
    programs, *others = sorted(launch.grid, reverse=True)
    if not line or programs <= count or any(size > 1 for size in others) or sum(finding.program) != finding.linear:
        return None
    place: dict[str, Value] = dict(line=finding.line, name=finding.argument)
    return Memory.MORE_PROGRAMS(**place, grid=line, programs=programs, count=count), line


def _made_of(evidence: Evidence, name: str) -> int:
    """Returns the line that makes the only descriptor of a tensor; 0 if the file makes none of it, or several."""
    made = descriptors_made(evidence.submission.tree)
    lines = [one.line for one in made if one.tensor in (name, f"{name}_ptr")]
    return lines[0] if len(lines) == 1 else 0


def _verb(finding: Finding) -> str:
    return {"load": "reads", "read": "reads", "store": "writes"}.get(finding.kind.rpartition("-")[2], "updates")


def _misaligned(evidence: Evidence, finding: Finding) -> Verdict:
    sentence = Memory.MISALIGNED(program=tuple(finding.program), name=finding.argument, line=finding.line)
    return _memory(evidence, finding, Cause.MISALIGNED, sentence, Memory.POINTERS_COUNT_ELEMENTS())


def _cause_outside(evidence: Evidence, finding: Finding, verb: str) -> Said:
    name, function, line = finding.argument, "load" if verb == "reads" else "store", finding.line
    if finding.by_descriptor:
        return Memory.DESCRIPTOR(function=function, line=line, name=name)
    if finding.linear < 0 and not finding.between:
        return Memory.LIES_BEFORE(name=name)
    call = call_at(evidence.submission.tree, line, finding.column, *_functions(finding))
    if call is not None and any(one.arg == "boundary_check" for one in call.keywords):
        return Memory.BOUNDARY_CHECK(function=function, line=line, at=_at(evidence, finding), name=name)
    if not finding.masked and not finding.tile:
        return Memory.ONE_ADDRESS(line=line, name=name)
    if not finding.masked:
        if finding.astray == finding.lanes:
            return Memory.NO_LANE_INSIDE(function=function, line=line, at=_at(evidence, finding), name=name)
        no_mask = Memory.NO_MASK if _dimensions(evidence, name) < 2 else Memory.NO_MASK_OF_TILE
        return no_mask(function=function, line=line, at=_at(evidence, finding), name=name)
    if evidence.needs_plain_layouts and not evidence.trial.begins:
        return Memory.ONLY_CONTIGUOUS(name=name)
    tensor = evidence.argument(name)
    # A number that leads all lanes of a tile, or of its row, to a place is not to blame where some of them are inside.
    leads_rows = finding.loaded_is_one or len(finding.tile) > 1
    begins_inside = tensor is not None and finding.lane and 0 <= finding.row_start < tensor.numel()
    runs_on = begins_inside or finding.loaded_is_one and finding.astray < finding.lanes
    if finding.loaded and not (leads_rows and runs_on):
        return Memory.LOADED_OFFSET(name=name, loaded=finding.loaded)
    if _fits_the_first_tile(finding, tensor):
        return Memory.ADDRESS_OF_A_TILE(function=function, line=line, at=_at(evidence, finding), name=name)
    where: dict[str, Value] = dict(function=function, line=line, at=_at(evidence, finding), name=name)
    if tensor is not None and _begins_amid_a_row(finding, tensor):
        row, column = divmod(finding.row_start, tensor.shape[1])
        return Memory.ADDRESS_OF_A_ROW(**where, columns=tensor.shape[1], row=row, column=column)
    none_inside = Memory.MASK_AND_NO_LANE_INSIDE_IN_LOOP if finding.in_loop else Memory.MASK_AND_NO_LANE_INSIDE
    mask = none_inside if finding.astray == finding.lanes else Memory.MASK_OR_ADDRESS
    mask = Memory.ONE_TOO_MANY if _is_next_element(evidence, finding) else mask
    if mask is Memory.MASK_OR_ADDRESS and tensor is not None and (axis := _axis_that_ends(finding, tensor)):
        return Memory.MASK_OF_AN_AXIS(**where, axis=axis)
    return mask(**where)


def _fits_the_first_tile(finding: Finding, tensor: torch.Tensor | None) -> bool:
    """Returns whether the first program accesses a tile of two or more axes, none of which is longer than the tensor's:
    whatever a mask lets through is inside then. A loop may go on to tiles that do not fit."""
    sizes = [] if tensor is None else list(tensor.shape)
    is_tile = 1 < len(finding.tile) == len(sizes) and not any(finding.program) and not finding.in_loop
    return is_tile and all(tile <= size for tile, size in zip(finding.tile, sizes))


def _begins_amid_a_row(finding: Finding, tensor: torch.Tensor) -> bool:
    """Returns whether the lanes that a mask lets through are as many as a row of a matrix has, and begin within one."""
    is_row = sum(side > 1 for side in finding.tile) == 1 and _is_plain_matrix(tensor)
    return (
        is_row and finding.lanes == tensor.shape[1] and finding.row_start > 0 and finding.row_start % finding.lanes > 0
    )


def _at_offsets(evidence: Evidence, finding: Finding) -> Finding:
    """Returns the finding without its own line among the suspects where that line only adds a variable to a pointer:
    the variable's line is to blame."""
    call = call_at(evidence.submission.tree, finding.line, finding.column, *_functions(finding))
    address = call.args[0] if call is not None and call.args else None
    sides = (address.left, address.right) if isinstance(address, ast.BinOp) else ()
    if not sides or not all(isinstance(one, ast.Name) for one in sides):
        return finding
    return replace(finding, suspects=[line for line in finding.suspects if line != finding.line] or finding.suspects)


def _at(evidence: Evidence, finding: Finding) -> str:
    """Returns words that tell an access from others in its line, or one call of a helper from another; "" where there
    is nothing to tell apart."""
    calls = calls_in_line(evidence.submission.tree, finding.line, *_functions(finding))
    column = f", column {finding.column + 1}," if len(calls) > 1 else ""
    return f"{column.rstrip(',')}, called in line {finding.via[0]}," if finding.via else column


def _is_next_element(evidence: Evidence, finding: Finding) -> bool:
    """Returns whether the access touches a single element too many: the first after the end of a vector."""
    tensor = evidence.argument(finding.argument)
    return tensor is not None and tensor.dim() == 1 and finding.linear == tensor.numel() and finding.count == 1


def _dimensions(evidence: Evidence, name: str) -> int:
    tensor = evidence.argument(name)
    return 0 if tensor is None else tensor.dim()


def _place(evidence: Evidence, finding: Finding, verb: str) -> Said:
    tensor = evidence.argument(finding.argument)
    who = dict(program=tuple(finding.program), verb=verb, name=finding.argument)
    if finding.between:
        if tensor is None:
            return Memory.SHOWN_IN_VIEW(**who)
        return Memory.SHOWN_BETWEEN(**who, strides=tuple(tensor.stride()))
    who |= dict(neighbour=_neighbour_text(finding), size=_size_text(evidence, finding.argument))
    if finding.linear < 0:
        return Memory.SHOWN_BEFORE(**who, count=-finding.linear)
    if tensor is not None and _is_plain_matrix(tensor):
        row, column = _row_and_column(finding, tensor.shape[1])
        return Memory.SHOWN_IN_ROWS(**who, row=row, column=column)
    return Memory.SHOWN_ELEMENT(**who, element=finding.linear)


def _row_and_column(finding: Finding, columns: int) -> tuple[int, int]:
    """Returns which element of a matrix an access means: past the end of a row lies the next row, and the lane that
    begins a tile's row tells which of both is meant, if it stands where a tile may begin."""
    columns = max(columns, 1)
    if finding.lane and 0 <= finding.row_start < finding.linear:
        row, column = divmod(finding.row_start, columns)
        if finding.linear - finding.row_start == finding.lane and column % (finding.tile or [1])[-1] == 0:
            return row, column + finding.lane
        if finding.linear - finding.row_start == finding.lane * columns:
            return row + finding.lane, column
    return divmod(finding.linear, columns)


def _axis_that_ends(finding: Finding, matrix: torch.Tensor) -> str:
    """Returns "row" or "column" for an access past the last one alone; "" where both, or no matrix, are left."""
    if not _is_plain_matrix(matrix):
        return ""
    row, column = _row_and_column(finding, matrix.shape[1])
    past = [name for name, place, size in zip(("row", "column"), (row, column), matrix.shape) if place >= size]
    return past[0] if len(past) == 1 else ""


def _is_plain_matrix(tensor: torch.Tensor) -> bool:
    return tensor.dim() == 2 and tensor.is_contiguous()


def _neighbour_text(finding: Finding) -> str:
    return f", where {finding.neighbour} lies" if finding.neighbour else ""


def _size_text(evidence: Evidence, name: str) -> str:
    """Returns "; x has shape (61, 781)" or "; x has elements 0 to 4"; "" for memory that is no argument and no
    result."""
    tensor = evidence.argument(name)
    if tensor is None:
        return ""
    return f"; {name} has {f'shape {tuple(tensor.shape)}' if tensor.dim() > 1 else _elements_text(tensor.numel())}"


def _elements_text(count: int) -> str:
    """Returns which elements a vector has, so that nobody counts its first one as 1: "elements 0 to 4"."""
    return "no element" if not count else "element 0 alone" if count == 1 else f"elements 0 to {count - 1}"


def _element(finding: Finding) -> dict[str, Value]:
    """Returns the fields of a sentence that tell the program, the argument and the index of the touched element."""
    index = finding.element or [finding.linear]
    return dict(program=tuple(finding.program), name=finding.argument, index=index)


def _written_twice(evidence: Evidence, finding: Finding) -> Verdict:
    cause, shown = _cause_written_twice(evidence, finding), _both_write(finding)
    verdict = _memory(evidence, finding, Cause.DOUBLE_WRITE, cause, shown)
    if evidence.missing_axis is None and not _unused_axes(evidence, finding):
        return verdict
    if evidence.missing_axis is not None:  # the store is not to blame
        _, line, _ = evidence.missing_axis
    else:
        line = _line_that_asks(evidence, _unused_axes(evidence, finding)[0])
    if line:
        others = [one for one in verdict.said if one.sentence is not Place.LINE]
        verdict.said = [*others, *filter(None, [evidence.source_line(line)])]
    verdict.kind, verdict.line = "cause", line
    return verdict


def _line_that_asks(evidence: Evidence, axis: int) -> int:
    """Returns the line that asks for a program's number along this axis, in vain; 0 if none does, or several."""
    asked = (call for call in calls_in([evidence.submission.tree]) if is_method_call(call, "program_id"))
    return the_only(one.lineno for one in asked if one.args and whole_number(one.args[0]) == axis)


def _both_write(finding: Finding) -> Said:
    both = _element(finding) | dict(count=finding.count)
    if finding.other_program:
        return Memory.SHOWN_BOTH_WRITE(**both, other=tuple(finding.other_program))
    return Memory.SHOWN_SEVERAL_WRITE(**both)


def _cause_written_twice(evidence: Evidence, finding: Finding) -> Said:
    if evidence.missing_axis_text:
        return Memory.MISSING_AXIS(missing_axis=evidence.missing_axis_text)
    unused = _unused_axes(evidence, finding)
    if unused:
        return Memory.UNUSED_AXES(axes=" and ".join(f"tl.program_id({axis})" for axis in unused))
    if finding.by_descriptor:
        whole = finding.in_loop and begins_a_tile(finding.element or [finding.linear], evidence.constants)
        several = any(len(kernel.store_lines) > 1 for kernel in evidence.kernels)
        apart = Memory.INTO_ANOTHER_TILE if several else Memory.CORNERS_TOO_CLOSE
        return Memory.SAME_TILE() if whole else apart(line=finding.line)
    if not finding.masked:
        store = Memory.SAME_ADDRESS if finding.lanes == 1 else Memory.STORE_RUNS_ON
        return store(line=finding.line)
    if finding.in_loop and evidence.trial.constants.get(MULTIPROCESSORS):  # each program goes over tiles
        return Memory.SAME_TILE()
    other = finding.other_program or finding.program
    axes = [axis for axis, (one, another) in enumerate(zip(finding.program, other)) if one != another]
    if len(axes) == 1 and len(finding.program) > 1:
        apart = Memory.SOME_LANES_APART if finding.astray < finding.lanes else Memory.ONE_AXIS_APART
        return apart(axis=axes[0])
    return Memory.LAST_WINS()


def _unused_axes(evidence: Evidence, finding: Finding) -> list[int]:
    """Returns the axes with several programs that the kernel of the finding does not use."""
    kernels = [
        (launch, kernel) for launch, kernel in zip(evidence.reply.launches, evidence.kernels)
        if finding.line in kernel.store_lines
    ]  # fmt: skip
    return sorted({
        axis for launch, kernel in kernels or zip(evidence.reply.launches, evidence.kernels)
        for axis, size in enumerate(launch.grid) if size > 1 and axis not in kernel.axes
    })  # fmt: skip


def _race(evidence: Evidence, finding: Finding) -> Verdict:
    other = f"program {tuple(finding.other_program)}" if finding.other_program else "another program"
    race = RACES[finding.kind](**_element(finding), other=other)
    return _memory(evidence, finding, Cause.RACE, race, Memory.ANY_ORDER())


def _inside_one_program(evidence: Evidence, finding: Finding) -> Verdict:
    touched = _element(finding) | dict(count=finding.count)
    if finding.kind == "input-written":
        sentence, shown = Memory.INPUT_CHANGED(name=finding.argument), Memory.SHOWN_WRITE(**touched)
        return _memory(evidence, finding, Cause.INPUT_CHANGED, sentence, shown)
    if finding.kind == "lane-conflict":
        sentence, shown = Memory.LANE_CONFLICT(), Memory.SHOWN_CONFLICT(**touched)
        return _memory(evidence, finding, Cause.LANE_CONFLICT, sentence, shown)
    if finding.kind == "load-ahead-of-store":
        sentence = Memory.LOAD_AHEAD(line=finding.line, stored=(finding.other_program or [0])[0])
        return _memory(evidence, finding, Cause.LOAD_AHEAD, sentence, Memory.SHOWN_READ(**touched))
    sentence, shown = Memory.UNINITIALISED_READ(name=finding.argument), Memory.SHOWN_READ(**touched)
    return _memory(evidence, finding, Cause.UNINITIALISED_READ, sentence, shown)
