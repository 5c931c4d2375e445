"""A product of matrices, summed in fp32: a [M, K] @ b [K, N] -> c [M, N]."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import torch

from grader.numerics.arguments import Argument, as_tensor, as_tensors
from grader.numerics.roundoff import U32
from grader.operations.bounds import tolerance
from grader.operations.hypothesis import Hypothesis, reread, supposed, total
from grader.operations.mistakes import half_precision, lanes, turns
from grader.operations.mistakes.half_precision import LARGEST_IN_FP16, rounded
from grader.operations.mistakes.turns import Loop
from grader.sentences import Said, Sentence

if TYPE_CHECKING:
    from grader.operations.evidence import Compared

ROUNDED_IN_HALF = 2.0**-8  # of the largest sum on the way: a few roundings of fp16
LEFT_OUT = 2.0  # u of |terms|: see `rounding`
TELLING = 16  # elements: fewer may fit rounded operands by chance

CAUSES = ("advance-without-stride", "corner-swapped", "step-as-corner")
PLAIN_CAUSES = ("rounded-operands",)
DIGITS = ("rounded-operands",)


class Gemm(Sentence):
    """Sentences about wrong products."""

    OVERFLOWS_ON_THE_WAY = (
        "Sums pass 65504, the largest number of fp16, before all terms are in, and stay infinite: the accumulator is "
        "fp16. Keep it in fp32."
    )
    ROUNDED_OPERANDS = "a and b are rounded to {dtype} before the product."
    CUT_TO_TF32 = (
        "a and b are cut to tf32, 11 significant bits, before the product. tl.dot does so with fp32 unless its "
        'input_precision chooses another way: "tf32x3" and "ieee" keep the digits.'
    )
    ADVANCE_WITHOUT_STRIDE = (
        "The pointers to b advance by BLOCK_K elements of memory, not by BLOCK_K rows: the step lacks its stride."
    )
    STEP_AS_CORNER = "Tiles along K begin at 0, 1, 2, ...: a step's number stands where its first element belongs."
    CORNER_SWAPPED = (
        "The corner of {name}'s tiles is given as column, row: the row comes first, as in a tensor's shape."
    )


def rounding(inputs: Sequence[Argument], ref: torch.Tensor) -> torch.Tensor:
    """Returns c S, [M, N]: the growth of the sum's error, and LEFT_OUT u for operands that are split into parts in
    tf32.

    A product of fp32 made of three of tf32 leaves out the product of the two rests, each at most 2**-11 of its number:
    at most 4 u of a term. A few terms may all be near this limit; in longer sums `growth` has room for it.
    """
    a, b = as_tensors(inputs)
    return (growth(a.shape[-1]) + LEFT_OUT) * U32 * (a.abs() @ b.abs())


def growth(K: int) -> float:
    """Returns the error of a sum of K products, in u of its |terms|: blocked fp32 sums grow like the square root of the
    steps; tensor cores truncate, which is the second term."""
    steps = K / 16
    return 4 * math.sqrt(steps + 4) + 2 * steps


def terms(inputs: Sequence[Argument], ref: torch.Tensor) -> torch.Tensor:
    """Returns the sum of the |products| of each element, [M, N]."""
    a, b = as_tensors(inputs)
    return a.abs() @ b.abs()


def mistakes(evidence: Compared, inputs: list[Argument]) -> Iterator[Hypothesis]:
    if len(inputs) != 2:
        return  # of a product alone
    a, b = as_tensors(inputs)
    K, step = a.shape[1], evidence.constants.get("BLOCK_K", 0)
    if torch.equal(a, a.round()) and torch.equal(b, b.round()):
        yield from half_precision.above_2048(evidence, a[:1] * b[:, :1].T)
    for said, fewer in _rounded_operands((a, b)) if evidence.comparison.wrong.numel() >= TELLING else ():
        for found in supposed(evidence, "rounded-operands", said, fewer):
            sure = isinstance(found.result, torch.Tensor) and _is_all_of_it(evidence, found.result, fewer)
            yield replace(found, result=None) if sure else found
    if step > 0 and (padding := -K % step):
        said = lanes.counted(padding, "K")
        yield Hypothesis("padding-counted", said, a @ b + padding, held=1.0)
    if 0 < step < K:
        yield from _steps_along_k(evidence, a, b, step)
        yield from _corners(evidence, a, b, step)
    if K > 1:
        yield turns.last_left_out("term", a[:, :-1] @ b[:-1])
    if _overflows_on_the_way(evidence, a, b, step or K):
        yield Hypothesis("half-accumulator", Gemm.OVERFLOWS_ON_THE_WAY(), None)


def _overflows_on_the_way(evidence: Compared, a: torch.Tensor, b: torch.Tensor, step: int) -> bool:
    """Returns True if a sum of first terms is more than fp16 holds wherever c is infinite and wrong, and all other
    wrong elements are off by no more than what fp16 loses."""
    out, ref, wrong = evidence.comparison.out, evidence.comparison.ref, evidence.comparison.wrong
    lost = wrong & ~out.isfinite()
    passed = evidence.exercise.bound in evidence.right_before  # or all may be wrong, and large by itself
    finite = a.isfinite().all(dim=1)[:, None] & b.isfinite().all(dim=0)
    if not passed or evidence.trial.dtype != torch.float16 or not bool(lost.any()) or not bool(finite[lost].all()):
        return False
    sums, largest = torch.zeros_like(out), torch.zeros_like(out)
    for start in range(0, a.shape[1], max(step, 1)):
        sums = sums + a[:, start : start + step] @ b[start : start + step]
        largest = torch.maximum(largest, sums.abs())
    near = (out - ref).abs() <= ROUNDED_IN_HALF * largest
    return bool((largest[lost] > LARGEST_IN_FP16).all() and near[wrong & ~lost].all())


def _rounded_operands(inputs: Sequence[torch.Tensor]) -> Iterator[tuple[Said, list[torch.Tensor]]]:
    """Yields a sentence and the operands in fewer digits; the interpreter cuts a float off to bf16, a GPU rounds it."""
    shorter = {"bf16": (torch.bfloat16,), "fp8": (torch.float8_e4m3fn, torch.float8_e5m2), "fp16": (torch.float16,)}
    for short, dtypes in shorter.items():
        for dtype in dtypes:
            shortened = [rounded(tensor, dtype) for tensor in inputs]
            if all(bool(one.any()) for one in shortened):  # zeros tell nothing of how they came to be
                yield Gemm.ROUNDED_OPERANDS(dtype=short), shortened
    yield Gemm.ROUNDED_OPERANDS(dtype="bf16"), [_cut(tensor, 16) for tensor in inputs]
    yield Gemm.CUT_TO_TF32(), [_cut(tensor, 13) for tensor in inputs]


def _cut(tensor: torch.Tensor, bits: int) -> torch.Tensor:
    """Returns the tensor's numbers in fp32 without their last bits, as float64."""
    return (tensor.float().view(torch.int32) >> bits << bits).view(torch.float32).double()


def _is_all_of_it(evidence: Compared, result: torch.Tensor, operands: list[torch.Tensor]) -> bool:
    """Returns whether c is fp32 and has all of this result's digits that fp32 keeps: no other result has them by
    chance."""
    out, wanted = evidence.comparison.out, evidence.wanted
    if wanted.dtype != torch.float32:
        return False
    same = (out == result) | (out.isnan() & result.isnan())
    near = (out.double() - result).abs() <= tolerance(wanted.bound, operands, result, wanted.dtype)
    return bool((same | near).all())


def _steps_along_k(evidence: Compared, a: torch.Tensor, b: torch.Tensor, step: int) -> Iterator[Hypothesis]:
    """Yields mistakes in the loop over K."""
    K, names = a.shape[1], tuple(evidence.exercise.arguments)
    loop = Loop(
        K, step, names, lambda of_a, of_b: a[:, of_a] @ b[of_b],
        terms="terms of each sum are there", last="step along K is left",
    )  # fmt: skip
    yield from turns.ends_too_early(loop)
    yield from turns.only_last(loop)
    yield from turns.no_advance(loop)
    sizes = {start: min(step, K - start) for start in range(0, K, step)}
    memory = as_tensor(evidence.inputs[1])
    shifted = {k: one for k, n in sizes.items() if (one := reread(memory[:n], memory.stride(), k)) is not None}
    if len(shifted) == len(sizes):
        terms = (a[:, k : k + n] @ shifted[k].double() for k, n in sizes.items())
        yield Hypothesis("advance-without-stride", Gemm.ADVANCE_WITHOUT_STRIDE(), total(terms))


def _corners(evidence: Compared, a: torch.Tensor, b: torch.Tensor, step: int) -> Iterator[Hypothesis]:
    """Yields tiles of a and b read from wrong places; elements outside of a matrix are 0, as descriptors load them."""
    starts = range(0, a.shape[1], step)
    counted = (_piece(a, 0, n, len(a), step) @ _piece(b, n, 0, step, b.shape[1]) for n in range(len(starts)))
    yield Hypothesis("step-as-corner", Gemm.STEP_AS_CORNER(), total(counted))
    tall, wide = (evidence.constants.get(name, 0) for name in ("BLOCK_M", "BLOCK_N"))
    if not tall or not wide:
        return
    by_columns = [
        total(a[:, k : k + step] @ _piece(b, n, k, step, wide)[: len(b) - k, : b.shape[1] - n] for k in starts)
        for n in range(0, b.shape[1], wide)
    ]
    yield Hypothesis("corner-swapped", Gemm.CORNER_SWAPPED(name="b"), torch.cat(by_columns, dim=1))
    by_rows = [
        total(_piece(a, k, m, tall, step)[: len(a) - m, : a.shape[1] - k] @ b[k : k + step] for k in starts)
        for m in range(0, len(a), tall)
    ]
    yield Hypothesis("corner-swapped", Gemm.CORNER_SWAPPED(name="a"), torch.cat(by_rows))


def _piece(matrix: torch.Tensor, row: int, column: int, rows: int, columns: int) -> torch.Tensor:
    """Returns [rows, columns] of the matrix from a corner on, with zeros where the matrix has ended."""
    piece = matrix.new_zeros(rows, columns)
    there = matrix[row : row + rows, column : column + columns]
    piece[: there.shape[0], : there.shape[1]] = there
    return piece
