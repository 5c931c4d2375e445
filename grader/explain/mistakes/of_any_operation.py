"""What wrong kernels of any operation compute: an input itself, strides left out, operands exchanged."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import torch

from grader.course.trial import short_dtype
from grader.explain.causes import Cause
from grader.explain.evidence import Evidence
from grader.numerics.arguments import Argument, exact, tensors_of
from grader.numerics.roundoff import EXACT
from grader.operations.hypothesis import Hypothesis, reread, supposed

WIDER_THAN_FP32 = (torch.float64, torch.int32, torch.int64)


def whole_inputs(evidence: Evidence, inputs: list[Argument]) -> Iterator[Hypothesis]:
    """An input handed on as it is, or the right result with rows and columns exchanged."""
    for name, tensor in tensors_of(evidence.exercise.arguments, inputs):
        if name != evidence.returns:
            yield Hypothesis(Cause.INPUT_PASSED_THROUGH, f"{evidence.returns} holds {name} itself, unchanged.", tensor)
    ref = evidence.comparison.ref
    if ref.dim() == 2 and ref.shape[0] == ref.shape[1]:
        sentence = f"{evidence.returns} holds its own transpose: its rows and columns, or its strides, are exchanged."
        yield Hypothesis(Cause.TRANSPOSED_RESULT, sentence, ref.t())


def updated_twice(evidence: Evidence, inputs: list[Argument]) -> Iterator[Hypothesis]:
    """What a second call would make of what the first one has left."""
    if not evidence.wanted.is_updated:
        return
    names, after = evidence.exercise.arguments, list(inputs)
    for result, value in zip(evidence.exercise.results, evidence.exercise.expected(inputs)):
        if result.name in evidence.exercise.updates:
            rounded = value.to(evidence.argument(result.name).dtype)
            after[names.index(result.name)] = rounded.to(value.dtype)
    sentence = f"{evidence.returns} is updated twice: it holds what a second call would make of it."
    yield from supposed(evidence, Cause.UPDATED_TWICE, sentence, after)


def not_zeroed(evidence: Evidence, inputs: list[Argument]) -> Iterator[Hypothesis]:
    """Sums by atomics that begin with what fresh memory holds: -1 where the numbers are whole, NaN where not."""
    if evidence.wanted.is_argument or not any(launch.atomics for launch in evidence.reply.launches):
        return
    if evidence.right_before:
        return  # then the memory was not to blame: it is never 0 by chance
    ref, name = evidence.comparison.ref, evidence.returns
    sentence = f"Atomics add to {name}, which nobody has set to 0: torch.empty holds leftovers of the past."
    begun = torch.full_like(ref, torch.nan) if evidence.wanted.dtype.is_floating_point else ref - 1
    yield Hypothesis(Cause.NOT_ZEROED, sentence, begun, may_be_constant=True)


def through_fp32(evidence: Evidence, inputs: list[Argument]) -> Iterator[Hypothesis]:
    """Inputs in a dtype with more digits than fp32, rounded to it on the way."""
    dtype = evidence.trial.dtype
    if dtype not in WIDER_THAN_FP32:
        return
    rounded = [_through(one, dtype) if isinstance(one, torch.Tensor) else one for one in inputs]
    sentence = (
        f"{evidence.returns} holds values that went through fp32, which does not hold every {short_dtype(dtype)}: a "
        "tile keeps the dtype of what it was loaded from until something converts it."
    )
    for found in supposed(evidence, Cause.THROUGH_FP32, sentence, rounded):
        yield replace(found, may_be_constant=True)


def _through(tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    rounded = tensor.float().double()
    if dtype == torch.int32:
        rounded = rounded.clamp(-(2**31), 2**31 - 1)
    return rounded.to(tensor.dtype)


def strides_ignored(evidence: Evidence, inputs: list[Argument]) -> Iterator[Hypothesis]:
    """An argument read as if it were contiguous, or with its two strides exchanged."""
    for name, tensor in evidence.tensors:
        if not tensor.dim() or name == evidence.returns:
            continue
        number = evidence.exercise.arguments.index(name)
        for id, strides, sentence in _readings(name, tensor):
            misread = reread(tensor, strides)
            if evidence.kernel_text.ignores_strides:
                sentence = "No stride is used: every tensor is addressed as if it were contiguous."
            elif evidence.wanted.is_argument and strides == evidence.output.stride():
                sentence = f"{name} and {evidence.returns} are addressed with the same strides: each has its own."
            if misread is not None and strides != tensor.stride():
                changed = [*inputs[:number], *exact([misread]), *inputs[number + 1 :]]
                yield from supposed(evidence, id, sentence, changed)


def _readings(name: str, tensor: torch.Tensor) -> list[tuple[str, tuple[int, ...], str]]:
    """Strides that an argument may be read with by mistake, and what to call it."""
    tight = tuple(math.prod(tensor.shape[axis + 1 :]) for axis in range(tensor.dim()))
    strides = "The stride of {} is" if tensor.dim() == 1 else "The strides of {} are"
    contiguous = ("stride-ignored", tight, f"{strides.format(name)} not used: it is read as if contiguous.")
    if tensor.dim() != 2:
        return [contiguous]
    columns, (row, column) = tensor.shape[1], tensor.stride()
    return [
        contiguous,
        ("stride-ignored", (row, 1), f"The column stride of {name} is not used."),
        ("stride-ignored", (columns, column), f"The row stride of {name} is not used."),
        ("stride-ignored", (1, column), f"The row stride of {name} is not used."),
        ("strides-swapped", (column, row), f"The strides of {name} are exchanged."),
    ]


def target_strides(evidence: Evidence, inputs: list[Argument]) -> Iterator[Hypothesis]:
    """The result written with other strides than its own: then each value stands where those strides put it."""
    out, expected, name = evidence.comparison.out, evidence.comparison.expected, evidence.returns
    read_outside = any(finding.kind == "out-of-bounds-load" for finding in evidence.reply.findings)
    if out.dim() != 2 or evidence.wanted.bound not in EXACT or read_outside:
        return  # where a load went astray, its strides are to blame, and the result may look the same
    row, column = out.stride()
    readings = [
        ("stride-ignored", (out.shape[1], 1), f"The strides of {name} are not used: it is written as if contiguous."),
        ("strides-swapped", (column, row), f"The strides of {name} are exchanged."),
    ]
    for source, tensor in evidence.tensors:
        if tensor.dim() == 2 and source != name:
            readings.append(
                ("stride-ignored", tuple(tensor.stride()), f"{name} is written with the strides of {source}.")
            )
    for id, strides, sentence in readings:
        if strides != (row, column) and _stands_there(out, expected, strides):
            yield Hypothesis(id, sentence, None)


def _stands_there(out: torch.Tensor, expected: torch.Tensor, strides: tuple[int, int]) -> bool:
    """Whether `out`'s memory, looked at under other strides, holds `expected` wherever that is one of its elements."""
    m, n = torch.meshgrid(*(torch.arange(size) for size in out.shape), indexing="ij")
    own = (out.storage_offset() + m * out.stride(0) + n * out.stride(1)).flatten()
    theirs = (out.storage_offset() + m * strides[0] + n * strides[1]).flatten()
    places, counts = theirs.unique(return_counts=True)
    once = torch.isin(theirs, places[counts == 1]) & torch.isin(theirs, own)
    if int(once.sum()) < 0.25 * out.numel():
        return False
    memory = torch.empty(0, dtype=out.dtype).set_(out.untyped_storage())
    return torch.equal(memory[theirs[once]], expected.flatten()[once])


def operands(evidence: Evidence, inputs: list[Argument]) -> Iterator[Hypothesis]:
    """Two inputs of one shape: one of them used twice, one left out, or another operation."""
    floats = [(name, one) for name, one in tensors_of(evidence.exercise.arguments, inputs) if one.is_floating_point()]
    if len(floats) != 2 or len(inputs) != 2 or floats[0][1].shape != floats[1][1].shape or evidence.wanted.is_argument:
        return
    ((x_name, x), (y_name, y)), z = floats, evidence.returns
    for used, left_out, twice in ((x_name, y_name, [x, x]), (y_name, x_name, [y, y])):
        sentence = f"{z} is made from {used} twice: {left_out} is not used."
        yield from supposed(evidence, Cause.WRONG_OPERAND, sentence, twice)
    if evidence.wanted.operation == "exact":
        yield Hypothesis(Cause.WRONG_OPERAND, f"{z} holds {x_name} alone: {y_name} is not used.", x)
        yield Hypothesis(Cause.WRONG_OPERATION, f"{z} holds {x_name} - {y_name}: the operation is another.", x - y)
        yield Hypothesis(Cause.WRONG_OPERATION, f"{z} holds {x_name} * {y_name}: the operation is another.", x * y)


def first_blocks(evidence: Evidence, inputs: list[Argument]) -> Iterator[Hypothesis]:
    """Vectors of which every program loads the first block."""
    if any(not isinstance(one, torch.Tensor) or one.dim() != 1 or len(one) != len(inputs[0]) for one in inputs):
        return
    block, N = evidence.constants.get("BLOCK_N", 0), len(inputs[0])
    if not 0 < block < N:
        return
    repeated = [tensor[torch.arange(N) % block] for tensor in inputs]
    for number, name in enumerate(evidence.exercise.arguments):
        changed = [*inputs[:number], repeated[number], *inputs[number + 1 :]]
        sentence = f"Every program loads the first block of {name}: that load does not move with the program."
        yield from supposed(evidence, Cause.LOCAL_LOAD, sentence, changed)
    sentence = "Every program loads the first blocks: the loads do not move with the program."
    yield from supposed(evidence, Cause.LOCAL_LOAD, sentence, repeated)
