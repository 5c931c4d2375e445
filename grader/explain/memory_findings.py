"""What the memory checker found, as one sentence about the mistake and one about where it shows."""

from __future__ import annotations

from grader.explain.causes import Cause
from grader.explain.evidence import Evidence, index_text, program_text
from grader.explain.verdict import Verdict, failed
from grader.sentences import count_text
from grader.submission.text import is_in_loop, loaded_in_address
from grader.wire.messages import FINDING_KINDS, Finding

RACES = {
    "race-read-after-write": "{me} reads {element}, which {other} writes in the same launch",
    "race-write-after-read": "{me} writes {element}, which {other} reads in the same launch",
    "race-atomic-after-write": "{me} updates {element} atomically, while {other} stores to it plainly",
}


def memory_verdict(evidence: Evidence) -> Verdict | None:
    """The most telling finding, or None when the checker found nothing."""
    findings = sorted(evidence.reply.findings, key=lambda finding: FINDING_KINDS.index(finding.kind))
    if not findings:
        return None
    first = findings[0]
    if first.kind.startswith("out-of-bounds") or first.kind == "wild-pointer":
        return _outside(evidence, first)
    if first.kind == "misaligned":
        return _misaligned(evidence, first)
    if first.kind == "race-write-write":
        return _written_twice(evidence, first)
    if first.kind in RACES:
        return _race(evidence, first)
    return _inside_one_program(evidence, first)


def _memory(evidence: Evidence, finding: Finding, id: str, *lines: str) -> Verdict:
    return failed(id, *lines, evidence.source_line(finding.line), kind="memory", line=finding.line)


def _outside(evidence: Evidence, finding: Finding) -> Verdict:
    verb = {"load": "reads", "store": "writes"}.get(finding.kind.rpartition("-")[2], "updates")
    id = Cause.OOB_LOAD if verb == "reads" else Cause.OOB_STORE
    if finding.kind == "wild-pointer":
        what = f"{program_text(finding.program)} uses an address that belongs to no tensor"
        return _memory(evidence, finding, Cause.WILD_POINTER, f"{what}: an address is made from a pointer and offsets.")
    shown = f"{program_text(finding.program).capitalize()} {verb} {_place(evidence, finding)}."
    return _memory(evidence, finding, id, _cause_outside(evidence, finding, verb), shown)


def _misaligned(evidence: Evidence, finding: Finding) -> Verdict:
    where = f"{program_text(finding.program)} uses {finding.argument} in line {finding.line} at an address"
    return _memory(
        evidence, finding, Cause.MISALIGNED,
        f"{where} that lies inside of an element: a GPU would end the program.",
        "Pointers count in elements of their type: a cast pointer counts in those of the new one.",
    )  # fmt: skip


def _cause_outside(evidence: Evidence, finding: Finding, verb: str) -> str:
    name, function = finding.argument, "load" if verb == "reads" else "store"
    if evidence.lacks_mask(finding.line, function) and finding.lanes == 1:
        return (
            f"The address in line {finding.line} leads outside of {name}. It is one address, no block, and needs no "
            f"mask: it is computed wrongly, the program has nothing to do there, or {name} is too small."
        )
    if evidence.by_descriptor(finding.line, function):
        return (
            f"The {function} in line {finding.line} leaves {name}, and a descriptor keeps within its shape: that has "
            f"to be the shape of {name}, in the same order, and its strides those of {name}."
        )
    if evidence.lacks_mask(finding.line, function):
        past = f"past the end of {name}" if _dimensions(evidence, name) < 2 else f"outside of {name}'s rows and columns"
        return f"The tl.{function} in line {finding.line} has no mask: lanes {past} take part in it."
    if finding.linear < 0 and not finding.between:
        return (
            f"The address lies before {name}: an offset is negative, program numbers lead to the wrong tile, or a view "
            f"made in Python begins before {name} does."
        )
    if finding.between or (evidence.right_when_contiguous and _is_strided(evidence, name)):
        return f"The strides of {name} are not used: the address fits a contiguous {name}, and this one is not."
    if evidence.right_when_contiguous and any(not tensor.is_contiguous() for _, tensor in evidence.tensors):
        return f"The address in {name} is right only where all tensors are contiguous: each has strides of its own."
    if loaded := loaded_in_address(evidence.submission.tree, finding.line, function):
        return (
            f"The address in {name} is made with {loaded}, which was loaded: one of its values leads outside of {name}."
        )
    through = f"The mask of the {function} in line {finding.line} lets lanes outside of {name} through."
    return f"{through} {_mask_or_address(evidence, finding)}"


def _mask_or_address(evidence: Evidence, finding: Finding) -> str:
    tensor = evidence.argument(finding.argument)
    if tensor is not None and tensor.dim() == 1 and finding.linear == tensor.numel() and finding.count == 1:
        return "One element too many: is it <= where < is meant?"
    return "If the mask is as you mean it, the address is wrong."


def _dimensions(evidence: Evidence, name: str) -> int:
    tensor = evidence.argument(name)
    return 0 if tensor is None else tensor.dim()


def _is_strided(evidence: Evidence, name: str) -> bool:
    tensor = evidence.argument(name)
    return tensor is not None and not tensor.is_contiguous()


def _place(evidence: Evidence, finding: Finding) -> str:
    name = finding.argument
    tensor = evidence.argument(name)
    if finding.between:
        strides = f" with strides {tuple(tensor.stride())}" if tensor is not None else ""
        return f"{name} between its elements ({name} is a view{strides})"
    size = "" if tensor is None else f"; {name} has {count_text(tensor.numel(), 'element')}"
    if tensor is not None and tensor.dim() > 1:
        size = f"; {name} has shape {tuple(tensor.shape)}"
    inside = f", where {finding.neighbour} lies" if finding.neighbour else ""
    if tensor is not None and tensor.dim() == 2 and tensor.is_contiguous() and finding.linear >= 0:
        row, column = divmod(finding.linear, max(tensor.shape[1], 1))
        return f"{name}[{row}, {column}]{inside}{size}"
    where = f"{abs(finding.linear)} elements before" if finding.linear < 0 else f"element {finding.linear} of"
    return f"{where} {name}{inside}{size}"


def _element(finding: Finding) -> str:
    return f"{finding.argument}[{index_text(finding.element) if finding.element else finding.linear}]"


def _others(finding: Finding) -> str:
    return program_text(finding.other_program) if finding.other_program else "another program"


def _written_twice(evidence: Evidence, finding: Finding) -> Verdict:
    who = f"{_others(finding)} and {program_text(finding.program)}"
    shown = f"{who.capitalize()} both write {_element(finding)}, and {count_text(finding.count, 'element')} in all."
    verdict = _memory(evidence, finding, Cause.DOUBLE_WRITE, _cause_written_twice(evidence, finding), shown)
    if _unused_axes(evidence):  # then the store is not to blame
        verdict.kind, verdict.line = "cause", 0
    return verdict


def _cause_written_twice(evidence: Evidence, finding: Finding) -> str:
    if evidence.missing_axis_text:
        return f"Programs overlap: {evidence.missing_axis_text}."
    unused = _unused_axes(evidence)
    if unused:
        axes = " and ".join(f"tl.program_id({axis})" for axis in unused)
        return f"Programs overlap: the kernel never uses {axes}, so programs do each other's work."
    if evidence.by_descriptor(finding.line, "store"):
        return (
            f"Programs overlap: corners in line {finding.line} lie closer together than a tile is long. They count "
            "elements: the number of a tile times its size."
        )
    if evidence.lacks_mask(finding.line, "store"):
        if finding.lanes == 1:
            return (
                f"Programs overlap: the address in line {finding.line} is the same in several programs, or more "
                "programs are launched than have something to store there."
            )
        return (
            f"Programs overlap: the tl.store in line {finding.line} has no mask and runs into the next program's part."
        )
    if is_in_loop(evidence.submission.tree, finding.line):
        return (
            "Programs overlap: each goes over several tiles, and two of them come to the same one. Where does one "
            "begin, how far does it step, and how many programs are there?"
        )
    return "Programs overlap: two programs write the same elements, and whichever comes last wins."


def _unused_axes(evidence: Evidence) -> list[int]:
    """Axes of the grid with several programs that the kernel never asks for."""
    grid = evidence.reply.launches[0].grid if evidence.reply.launches else [1]
    return [axis for axis, size in enumerate(grid) if size > 1 and axis not in evidence.kernel_text.axes]


def _race(evidence: Evidence, finding: Finding) -> Verdict:
    what = RACES[finding.kind].format(
        me=program_text(finding.program), element=_element(finding), other=_others(finding)
    )
    shown = "Programs run in any order, or at once: the result depends on which comes first."
    return _memory(evidence, finding, Cause.RACE, f"{what.capitalize()}: a race.", shown)


def _inside_one_program(evidence: Evidence, finding: Finding) -> Verdict:
    me, name, count = program_text(finding.program).capitalize(), finding.argument, finding.count
    if finding.kind == "input-written":
        sentence = f"The kernel writes to {name}, an input: it has to stay as it is."
        shown = f"{me} writes {_element(finding)}, and {count_text(count, 'element')} in all."
        return _memory(evidence, finding, Cause.INPUT_CHANGED, sentence, shown)
    if finding.kind == "lane-conflict":
        sentence = "Two lanes of one store write different values to the same element: which one stays is undefined."
        shown = f"{me} does so at {_element(finding)}, and at {count_text(count, 'element')} in all."
        return _memory(evidence, finding, Cause.LANE_CONFLICT, sentence, shown)
    sentence = f"The kernel reads {name} before anything was written there: torch.empty holds leftovers of the past."
    shown = f"{me} reads {_element(finding)}, and {count_text(count, 'element')} in all."
    return _memory(evidence, finding, Cause.UNINITIALISED_READ, sentence, shown)
