"""Explains what a replay on a GPU shows and the interpreter cannot."""

from __future__ import annotations

from collections.abc import Sequence

from grader.explain.causes import Cause
from grader.explain.verdict import Verdict, failed
from grader.gpu.answers import Overrun, Summary
from grader.gpu.pool.replay_process import ReplayEnded
from grader.numerics.comparison import Comparison
from grader.sentences import Sentence


class Gpu(Sentence):
    """Sentences about what a GPU shows."""

    HANGS = "On the GPU the kernel does not end: it was stopped."
    STOPPED = "The GPU stopped the kernel: {reason}."
    STOPPED_WITHOUT_REASON = "The GPU stopped the kernel: it gave no reason."
    NO_TENSOR_THERE = "On the GPU the kernel reads or writes memory that belongs to no tensor."
    MISALIGNED = "On the GPU the kernel uses an address that is no multiple of the bytes it moves there."
    OUT_OF_RESOURCES = "On the GPU the kernel needs more registers or shared memory than the GPU has for one block."
    ASSERTION = "On the GPU the kernel stopped itself with a device assertion."
    ADVICE_ADDRESSES = (
        "Look at its masks, at the strides in its addresses, and at offsets past 2 147 483 647, which need 64 bits: "
        "rows.to(tl.int64)."
    )

    WRITES_BETWEEN = "On the GPU the kernel changes {count:#byte} between the elements of {name}."
    WRITES_OUTSIDE = "On the GPU the kernel writes {count:#byte} {side} of {name}."
    WRITES_FURTHER_OUTSIDE = (
        "On the GPU the kernel writes {count:#byte} {side} of {name}, the nearest {distance:#byte} away."
    )
    ADVICE_MASK = "A mask has to keep such lanes from storing."
    INPUT_CHANGED = "On the GPU the kernel changes {name}: inputs have to stay as they are."
    NOT_REPEATABLE = "On the GPU {count:#element} of {name} differ from run to run, with the same inputs."
    ADVICE_NOT_REPEATABLE = (
        "Two programs touch the same memory without waiting for each other, or something is read that nothing has "
        "written."
    )

    ANOTHER_RESULT = "{entry} returns another result when its kernels are compiled than when they are interpreted."
    ADVICE_SAME_RESULT = "It has to return the same tensor, of the same shape and dtype, either way."
    TOO_MUCH_MEMORY = (
        "{entry} allocates {gigabytes:.1f} GB besides its arguments and its result: more than there is room for."
    )
    ADVICE_LESS_MEMORY = (
        "Let a program keep what it needs in registers, or pass a few numbers per program from one kernel to the next."
    )

    WRONG_VALUES = (
        "{wrong:_} of {elements:_} elements of {name} are wrong on the GPU; the first is {name}[{index:,}]: "
        "{yours:.6g}, expected {expected:.6g}."
    )
    NEVER_WRITTEN = "{count:_} of them were never written."
    ADVICE_WRONG_VALUES = (
        "The GPU runs programs side by side and multiplies tiles on tensor cores; it also sees sizes that would take "
        "the interpreter hours. Look for offsets past 2 147 483 647, and for what depends on the order of programs."
    )


# Sentences, by a part of the driver's error.
FAULTS = {
    "ILLEGAL_ADDRESS": Gpu.NO_TENSOR_THERE,
    "illegal memory access": Gpu.NO_TENSOR_THERE,
    "MISALIGNED_ADDRESS": Gpu.MISALIGNED,
    "misaligned address": Gpu.MISALIGNED,
    "OUT_OF_RESOURCES": Gpu.OUT_OF_RESOURCES,
    "ASSERT": Gpu.ASSERTION,
}
SIDES = {"before": "before the start", "after": "past the end"}


def fault(ended: ReplayEnded) -> Verdict:
    """Returns the verdict on a kernel that was stopped: it did not end, or the GPU or its driver gave up on it."""
    if ended.how == "time":
        return failed(Cause.GPU_HANGS, Gpu.HANGS(), kind="memory")
    known = next((sentence for name, sentence in FAULTS.items() if name in ended.detail), None)
    if known is not None:
        return failed(Cause.GPU_FAULT, known(), Gpu.ADVICE_ADDRESSES(), kind="memory")
    stopped = Gpu.STOPPED(reason=ended.detail) if ended.detail else Gpu.STOPPED_WITHOUT_REASON()
    return failed(Cause.GPU_FAULT, stopped, kind="memory")


def overrun(found: Overrun) -> Verdict:
    name, count = found.buffer, found.count
    if found.side == "between":
        said = Gpu.WRITES_BETWEEN(name=name, count=count)
    elif found.distance:
        said = Gpu.WRITES_FURTHER_OUTSIDE(name=name, count=count, side=SIDES[found.side], distance=found.distance)
    else:
        said = Gpu.WRITES_OUTSIDE(name=name, count=count, side=SIDES[found.side])
    return failed(Cause.OOB_STORE, said, Gpu.ADVICE_MASK(), kind="memory")


def input_written(name: str) -> Verdict:
    return failed(Cause.INPUT_CHANGED, Gpu.INPUT_CHANGED(name=name), kind="memory")


def not_repeatable(name: str, differing: int) -> Verdict:
    said = Gpu.NOT_REPEATABLE(name=name, count=differing)
    return failed(Cause.RACE, said, Gpu.ADVICE_NOT_REPEATABLE(), kind="memory")


def another_result(entry: str) -> Verdict:
    said = Gpu.ANOTHER_RESULT(entry=entry)
    return failed(Cause.DIFFERS_COMPILED, said, Gpu.ADVICE_SAME_RESULT(), kind="cause")


def too_much_memory(entry: str, excess: int) -> Verdict:
    said = Gpu.TOO_MUCH_MEMORY(entry=entry, gigabytes=excess / 1e9)
    return failed(Cause.TOO_MUCH_MEMORY, said, Gpu.ADVICE_LESS_MEMORY(), kind="cause")


def wrong_values(name: str, comparison: Comparison) -> Verdict:
    index = comparison.first_wrong
    yours, expected = float(comparison.out[index]), float(comparison.expected[index])
    return _wrong(name, comparison.wrong_count, comparison.wrong.numel(), index, yours, expected)


def wrong_summary(name: str, summary: Summary) -> Verdict:
    yours, expected = float(summary.found), float(summary.expected)
    return _wrong(name, summary.wrong, summary.elements, summary.first, yours, expected, summary.unwritten)


def _wrong(
    name: str, wrong: int, elements: int, index: Sequence[int], yours: float, expected: float, unwritten: int = 0
) -> Verdict:
    said = Gpu.WRONG_VALUES(name=name, wrong=wrong, elements=elements, index=index, yours=yours, expected=expected)
    never = Gpu.NEVER_WRITTEN(count=unwritten) if unwritten else None
    return failed(Cause.WRONG_ON_GPU, said, never, Gpu.ADVICE_WRONG_VALUES())
