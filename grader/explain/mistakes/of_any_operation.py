"""Mistakes that kernels of any operation can make: an input handed on, strides left out, operands exchanged."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import torch

from grader.course.trial import short_dtype
from grader.explain.causes import Cause
from grader.explain.evidence import Compared
from grader.explain.hypothesis import Hypothesis, reread, supposed
from grader.numerics.arguments import Argument, exact, tensors_of
from grader.numerics.roundoff import EXACT
from grader.sentences import Said, Sentence

MOST_PLACES = 1 << 22  # elements of a tensor whose places are listed
WIDER_THAN_FP32 = (torch.float64, torch.int32, torch.int64)


class OfAnyOperation(Sentence):
    """Sentences about wrong values in a result; {name} is its name."""

    USED_TWICE = "{name} is made from {used} twice: {left_out} is not used."
    ONE_ALONE = "{name} is made from {used} alone: {left_out} is not used."
    PASSED_THROUGH = "{name} holds {argument} itself, unchanged."
    NOT_TURNED = (
        "{name} holds {argument} itself, unchanged: the tiles are not turned, or they are turned twice, as where the "
        "strides of {argument} or of {name} are exchanged."
    )
    TRANSPOSED = "{name} holds the transpose of what is expected: rows and columns are exchanged, or two strides."
    UPDATED_TWICE = "{name} is updated twice: it holds what a second call would make of it."
    NOT_ZEROED = "Atomics add to {name}, which nobody has set to 0: torch.empty holds leftovers of the past."
    THROUGH_FP32 = (
        "{name} holds values that went through fp32, which does not hold every {dtype}: a tile keeps the dtype of what "
        "it was loaded from until something converts it."
    )

    NO_STRIDE = "No stride is used: every tensor is addressed as if it were contiguous."
    SAME_STRIDES = "{argument} and {name} are addressed with the same strides: each has its own."
    STRIDE_NOT_USED = "The stride of {argument} is not used: it is read as if contiguous."
    STRIDES_NOT_USED = "The strides of {argument} are not used: it is read as if contiguous."
    COLUMN_STRIDE_NOT_USED = "The column stride of {argument} is not used."
    ROW_STRIDE_NOT_USED = "The row stride of {argument} is not used."
    STRIDES_EXCHANGED = "The strides of {argument} are exchanged."
    WRITTEN_AS_CONTIGUOUS = "The strides of {name} are not used: it is written as if contiguous."
    WRITTEN_WITH_STRIDES_OF = "{name} is written with the strides of {argument}."

    DIFFERENCE = "{name} holds {x} - {y}: the operation is another."
    PRODUCT = "{name} holds {x} * {y}: the operation is another."
    FIRST_BLOCK = "Every program loads the first block of {argument}: that load does not move with the program."
    FIRST_BLOCKS = "Every program loads the first blocks: the loads do not move with the program."


def whole_inputs(evidence: Compared, inputs: list[Argument]) -> Iterator[Hypothesis]:
    """Yields an input that is handed on as it is, and the right result with rows and columns exchanged."""
    ref = evidence.comparison.ref
    for name, tensor in tensors_of(evidence.exercise.arguments, inputs):
        if name != evidence.returns:
            turned = tensor.dim() == 2 and torch.equal(ref, tensor.t().to(ref.dtype))
            sentence = OfAnyOperation.NOT_TURNED if turned else OfAnyOperation.PASSED_THROUGH
            said = sentence(name=evidence.returns, argument=name)
            yield Hypothesis(Cause.INPUT_PASSED_THROUGH, said, tensor)
    if ref.dim() == 2 and ref.shape[0] == ref.shape[1]:
        yield Hypothesis(Cause.TRANSPOSED_RESULT, OfAnyOperation.TRANSPOSED(name=evidence.returns), ref.t())


def updated_twice(evidence: Compared, inputs: list[Argument]) -> Iterator[Hypothesis]:
    """Yields what a second call would make of what the first call has left."""
    if not evidence.wanted.is_updated:
        return
    names, after = evidence.exercise.arguments, list(inputs)
    for result, value in zip(evidence.exercise.results, evidence.exercise.expected(inputs)):
        if result.name in evidence.exercise.updates:
            rounded = value.to(dict(evidence.tensors)[result.name].dtype)
            after[names.index(result.name)] = rounded.to(value.dtype)
    said = OfAnyOperation.UPDATED_TWICE(name=evidence.returns)
    yield from supposed(evidence, Cause.UPDATED_TWICE, said, after)


def not_zeroed(evidence: Compared, inputs: list[Argument]) -> Iterator[Hypothesis]:
    """Yields sums by atomics that begin with what fresh memory holds: -1 if the numbers are whole, else NaN."""
    if evidence.wanted.is_argument or not any(launch.atomics for launch in evidence.reply.launches):
        return
    if evidence.right_before:
        return  # then the memory was not to blame: it is never 0 by chance
    said = OfAnyOperation.NOT_ZEROED(name=evidence.returns)
    if not evidence.wanted.dtype.is_floating_point:
        yield Hypothesis(Cause.NOT_ZEROED, said, evidence.comparison.ref - 1, may_be_constant=True)
    elif bool(evidence.comparison.out.isnan().all()):
        yield Hypothesis(Cause.NOT_ZEROED, said, None)


def through_fp32(evidence: Compared, inputs: list[Argument]) -> Iterator[Hypothesis]:
    """Yields inputs of a dtype with more digits than fp32 that are rounded to fp32 on the way."""
    dtype = evidence.trial.dtype
    if dtype not in WIDER_THAN_FP32:
        return
    rounded = [_through(one, dtype) if isinstance(one, torch.Tensor) else one for one in inputs]
    said = OfAnyOperation.THROUGH_FP32(name=evidence.returns, dtype=short_dtype(dtype))
    for found in supposed(evidence, Cause.THROUGH_FP32, said, rounded):
        yield replace(found, may_be_constant=True)


def _through(tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    rounded = tensor.float().double()
    if dtype == torch.int32:
        rounded = rounded.clamp(-(2**31), 2**31 - 1)
    return rounded.to(tensor.dtype)


def strides_ignored(evidence: Compared, inputs: list[Argument]) -> Iterator[Hypothesis]:
    """Yields an argument that is read as if it were contiguous, or with its two strides exchanged."""
    for name, tensor in evidence.tensors:
        if not tensor.dim() or name == evidence.returns:
            continue
        number = evidence.exercise.arguments.index(name)
        for id, strides, said in _readings(name, tensor):
            misread = reread(tensor, strides) if _lead_to_findings(evidence, name, tensor, strides) else None
            none_kept = all(one != other for one, other in zip(strides, tensor.stride()))  # a stride of 1 is no operand
            if none_kept and any(kernel.uses_no_stride for kernel in evidence.kernels):
                said = OfAnyOperation.NO_STRIDE()
            elif evidence.wanted.is_argument and strides == evidence.output.stride():
                said = OfAnyOperation.SAME_STRIDES(argument=name, name=evidence.returns)
            if misread is not None and strides != tensor.stride():
                changed = [*inputs[:number], *exact([misread]), *inputs[number + 1 :]]
                for found in supposed(evidence, id, said, changed):
                    yield replace(found, line_of=partial(evidence.line_without_strides, name))


def _lead_to_findings(evidence: Compared, name: str, tensor: torch.Tensor, strides: tuple[int, ...]) -> bool:
    """Returns whether each access outside of this argument lies where these strides lead; True without accesses
    outside of any argument."""
    outside = [one for one in evidence.reply.findings if one.kind.startswith("out-of-bounds")]
    if not outside:
        return True
    outside = [one for one in outside if one.argument == name]
    if tensor.numel() > MOST_PLACES or not outside:
        return False
    places = torch.zeros((), dtype=torch.int64)
    for size, stride in zip(tensor.shape, strides):
        places = places[..., None] + torch.arange(size) * stride
    return all(bool((places == one.linear).any()) for one in outside)


def _readings(name: str, tensor: torch.Tensor) -> list[tuple[str, tuple[int, ...], Said]]:
    """Returns id, strides and sentence of each wrong way to read an argument."""
    tight = tuple(math.prod(tensor.shape[axis + 1 :]) for axis in range(tensor.dim()))
    of_one, of_all = OfAnyOperation.STRIDE_NOT_USED, OfAnyOperation.STRIDES_NOT_USED
    contiguous = ("stride-ignored", tight, (of_one if tensor.dim() == 1 else of_all)(argument=name))
    if tensor.dim() != 2:
        return [contiguous]
    columns, (row, column) = tensor.shape[1], tensor.stride()
    return [
        contiguous,
        ("stride-ignored", (row, 1), OfAnyOperation.COLUMN_STRIDE_NOT_USED(argument=name)),
        ("stride-ignored", (columns, column), OfAnyOperation.ROW_STRIDE_NOT_USED(argument=name)),
        ("stride-ignored", (1, column), OfAnyOperation.ROW_STRIDE_NOT_USED(argument=name)),
        ("strides-swapped", (column, row), OfAnyOperation.STRIDES_EXCHANGED(argument=name)),
    ]


def target_strides(evidence: Compared, inputs: list[Argument]) -> Iterator[Hypothesis]:
    """Yields a result that is written with other strides than its own: each value stands where these strides put it."""
    out, expected, name = evidence.comparison.out, evidence.comparison.expected, evidence.returns
    read_outside = any(finding.kind == "out-of-bounds-load" for finding in evidence.reply.findings)
    if out.dim() != 2 or evidence.wanted.bound not in EXACT or read_outside:
        return  # where a load went astray, its strides are to blame, and the result may look the same
    row, column = out.stride()
    readings = [
        ("stride-ignored", (out.shape[1], 1), OfAnyOperation.WRITTEN_AS_CONTIGUOUS(name=name)),
        ("strides-swapped", (column, row), OfAnyOperation.STRIDES_EXCHANGED(argument=name)),
    ]
    for source, tensor in evidence.tensors:
        if tensor.dim() == 2 and source != name:
            said = OfAnyOperation.WRITTEN_WITH_STRIDES_OF(name=name, argument=source)
            readings.append(("stride-ignored", (tensor.stride(0), tensor.stride(1)), said))
    for id, strides, said in readings:
        told = strides != (row, column) and _lead_to_findings(evidence, name, out, strides)
        if told and _stands_there(out, expected, strides):
            yield Hypothesis(id, said, None, line_of=partial(evidence.line_without_strides, name))


def _stands_there(out: torch.Tensor, expected: torch.Tensor, strides: tuple[int, int]) -> bool:
    """Returns whether the memory of `out`, read under other strides, holds `expected` in all elements of `out` that
    these strides reach."""
    m, n = torch.arange(out.shape[0])[:, None], torch.arange(out.shape[1])
    first = int(out.storage_offset())
    own = (first + m * out.stride(0) + n * out.stride(1)).flatten()
    theirs = (first + m * strides[0] + n * strides[1]).flatten()
    places, counts = theirs.unique(return_counts=True)
    once = torch.isin(theirs, places[counts == 1]) & torch.isin(theirs, own)
    if int(once.sum()) < 0.25 * out.numel():
        return False
    memory = torch.empty(0, dtype=out.dtype).set_(out.untyped_storage())
    return torch.equal(memory[theirs[once]], expected.flatten()[once])


def operands(evidence: Compared, inputs: list[Argument]) -> Iterator[Hypothesis]:
    """Yields one of two inputs of one shape used twice or alone, and another operation on them."""
    floats = [(name, one) for name, one in tensors_of(evidence.exercise.arguments, inputs) if one.is_floating_point()]
    if len(floats) != 2 or len(inputs) != 2 or floats[0][1].shape != floats[1][1].shape or evidence.wanted.is_argument:
        return
    ((x_name, x), (y_name, y)), z = floats, evidence.returns
    for used, left_out, twice in ((x_name, y_name, [x, x]), (y_name, x_name, [y, y])):
        said = OfAnyOperation.USED_TWICE(name=z, used=used, left_out=left_out)
        yield from supposed(evidence, Cause.WRONG_OPERAND, said, twice)
    if evidence.wanted.stated_bound == "exact":
        said = OfAnyOperation.ONE_ALONE(name=z, used=x_name, left_out=y_name)
        yield Hypothesis(Cause.WRONG_OPERAND, said, x)
        names = {"name": z, "x": x_name, "y": y_name}
        yield Hypothesis(Cause.WRONG_OPERATION, OfAnyOperation.DIFFERENCE(**names), x - y)
        yield Hypothesis(Cause.WRONG_OPERATION, OfAnyOperation.PRODUCT(**names), x * y)


def first_blocks(evidence: Compared, inputs: list[Argument]) -> Iterator[Hypothesis]:
    """Yields vectors of which every program loads the first block."""
    vectors = [one for one in inputs if isinstance(one, torch.Tensor) and one.dim() == 1]
    if len(vectors) < len(inputs) or len({len(one) for one in vectors}) > 1:
        return
    block, N = evidence.constants.get("BLOCK_N", 0), len(vectors[0])
    if not 0 < block < N:
        return
    repeated = [vector[torch.arange(N) % block] for vector in vectors]
    for number, name in enumerate(evidence.exercise.arguments):
        changed = [*inputs[:number], repeated[number], *inputs[number + 1 :]]
        yield from supposed(evidence, Cause.LOCAL_LOAD, OfAnyOperation.FIRST_BLOCK(argument=name), changed)
    yield from supposed(evidence, Cause.LOCAL_LOAD, OfAnyOperation.FIRST_BLOCKS(), repeated)
