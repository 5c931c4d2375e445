"""What a replay on a GPU shows that the interpreter cannot: the sentences."""

from __future__ import annotations

from grader.explain.causes import Cause
from grader.explain.evidence import index_text
from grader.explain.verdict import Verdict, failed
from grader.gpu.answers import Overrun, Summary
from grader.gpu.pool.replay_process import ReplayEnded
from grader.operations.comparison import Comparison
from grader.sentences import count_text

FAULTS = {
    "ILLEGAL_ADDRESS": "reads or writes memory that belongs to no tensor",
    "illegal memory access": "reads or writes memory that belongs to no tensor",
    "MISALIGNED_ADDRESS": "uses an address that is no multiple of the bytes it moves there",
    "misaligned address": "uses an address that is no multiple of the bytes it moves there",
    "OUT_OF_RESOURCES": "needs more registers or shared memory than the GPU has for one block",
    "ASSERT": "stopped itself with a device assertion",
}


def fault(ended: ReplayEnded) -> Verdict:
    """The GPU, or its driver, gave up on a kernel."""
    if ended.how == "time":
        return failed(Cause.GPU_HANGS, "On the GPU the kernel does not end: it was stopped.", kind="memory")
    what = next((sentence for name, sentence in FAULTS.items() if name in ended.detail), "")
    if not what:
        return failed(
            Cause.GPU_FAULT, f"The GPU stopped the kernel: {ended.detail or 'it gave no reason'}.", kind="memory"
        )
    return failed(
        Cause.GPU_FAULT,
        f"On the GPU the kernel {what}.",
        "Look at its masks, at the strides in its addresses, and at offsets past 2 147 483 647, which need 64 bits: "
        "rows.to(tl.int64).",
        kind="memory",
    )


def overrun(found: Overrun) -> Verdict:
    bytes = count_text(found.count, "byte")
    if found.side == "between":
        sentence = f"On the GPU the kernel changes {bytes} between the elements of {found.buffer}."
    else:
        where = "before the start" if found.side == "before" else "past the end"
        nearest = f", the nearest {count_text(found.distance, 'byte')} away" if found.distance else ""
        sentence = f"On the GPU the kernel writes {bytes} {where} of {found.buffer}{nearest}."
    return failed(Cause.OOB_STORE, sentence, "A mask has to keep such lanes from storing.", kind="memory")


def input_written(name: str) -> Verdict:
    return failed(
        Cause.INPUT_CHANGED,
        f"On the GPU the kernel changes {name}: inputs have to stay as they are.",
        kind="memory",
    )


def not_repeatable(name: str, differing: int) -> Verdict:
    return failed(
        Cause.RACE,
        f"On the GPU {count_text(differing, 'element')} of {name} differ from run to run, with the same inputs.",
        "Two programs touch the same memory without waiting for each other, or something is read that nothing has "
        "written.",
        kind="memory",
    )


def another_result(entry: str) -> Verdict:
    return failed(
        Cause.DIFFERS_COMPILED,
        f"{entry} returns another result when its kernels are compiled than when they are interpreted.",
        "It has to return the same tensor, of the same shape and dtype, either way.",
        kind="cause",
    )


def too_much_memory(entry: str, excess: int) -> Verdict:
    return failed(
        Cause.TOO_MUCH_MEMORY,
        f"{entry} allocates {excess / 1e9:.1f} GB beside its arguments and its result: more than there is room for.",
        "Let a program keep what it needs in registers, or pass a few numbers per program from one kernel to the next.",
        kind="cause",
    )


def wrong_values(name: str, comparison: Comparison) -> Verdict:
    index = comparison.first_wrong
    return _wrong(
        name, comparison.wrong_count, comparison.wrong.numel(), index,
        f"{float(comparison.out[index]):.6g}", f"{float(comparison.expected[index]):.6g}",
    )  # fmt: skip


def wrong_summary(name: str, summary: Summary) -> Verdict:
    return _wrong(
        name, summary.wrong, summary.elements, summary.first, summary.found, summary.expected, summary.unwritten
    )


def _wrong(name: str, wrong: int, elements: int, index, yours: str, expected: str, unwritten: int = 0) -> Verdict:
    what = f"{wrong:,} of {elements:,} elements of {name} are wrong on the GPU".replace(",", " ")
    never = f"{unwritten:,} of them were never written.".replace(",", " ") if unwritten else ""
    return failed(
        Cause.WRONG_ON_GPU,
        f"{what}; the first is {name}[{index_text(index)}]: {yours}, expected {expected}.",
        never,
        "The GPU runs programs side by side and multiplies tiles on tensor cores; it also sees sizes that would take "
        "the interpreter hours. Look for offsets past 2 147 483 647, and for what depends on the order of programs.",
    )
