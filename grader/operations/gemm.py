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
from grader.sentences import Said, Sentence

if TYPE_CHECKING:
    from grader.explain.evidence import Compared

LARGEST_HALF = 65504.0
ROUNDED_IN_HALF = 2.0**-8  # of the largest sum on the way: a few roundings of fp16
LEFT_OUT = 2.0  # u of |terms|: see `rounding`
TELLING = 16  # elements: fewer may fit rounded operands by chance

CAUSES = (
    "padding-counted", "half-accumulator", "k-tail", "last-step", "last-term", "no-advance", "advance-without-stride",
    "corner-swapped", "step-as-corner",
)  # fmt: skip
PLAIN_CAUSES = ("rounded-operands",)


class Gemm(Sentence):
    """Sentences about wrong products."""

    HALF_ACCUMULATOR = (
        "Exact integer sums go wrong above 2048: the accumulator is fp16, which holds only even numbers there. Keep it "
        "in fp32."
    )
    OVERFLOWS_ON_THE_WAY = (
        "Sums pass 65504, the largest number of fp16, before all terms are in, and stay infinite: the accumulator is "
        "fp16. Keep it in fp32."
    )
    ROUNDED_OPERANDS = "a and b are rounded to {dtype} before the product."
    CUT_TO_TF32 = (
        "a and b are cut to tf32, 11 significant bits, before the product. tl.dot does so with fp32 unless its "
        'input_precision chooses another way: "tf32x3" and "ieee" keep the digits.'
    )
    PADDING_COUNTED = "The {padding} lanes past the end of K take part in the sum."
    LAST_TERM = "The last term of each sum is left out."
    K_TAIL = "Only the first {kept} of {K} terms of each sum are there: the loop, or its mask, ends too early."
    LAST_STEP = "Only the last step along K is left: each step replaces the sum, none adds to it."
    NO_ADVANCE = "Every step along K reads the same blocks of a and b: no pointer advances."
    NO_ADVANCE_OF_ONE = "Every step along K reads the same block of {name}: its pointers do not advance."
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
    if _counts_past_2048(a, b) and "exact" in evidence.right_before:
        yield Hypothesis("half-accumulator", Gemm.HALF_ACCUMULATOR(), None)
    for said, rounded in _rounded_operands((a, b)) if evidence.comparison.wrong.numel() >= TELLING else ():
        for found in supposed(evidence, "rounded-operands", said, rounded):
            sure = isinstance(found.result, torch.Tensor) and _is_all_of_it(evidence, found.result, rounded)
            yield replace(found, result=None) if sure else found
    if step > 0 and (padding := -K % step):
        yield Hypothesis("padding-counted", Gemm.PADDING_COUNTED(padding=padding), a @ b + padding)
    if 0 < step < K:
        yield from _steps_along_k(evidence, a, b, step)
        yield from _corners(evidence, a, b, step)
    if K > 1:
        yield Hypothesis("last-term", Gemm.LAST_TERM(), a[:, :-1] @ b[:-1])
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
    rounded = (out - ref).abs() <= ROUNDED_IN_HALF * largest
    return bool((largest[lost] > LARGEST_HALF).all() and rounded[wrong & ~lost].all())


def _rounded_operands(inputs: Sequence[torch.Tensor]) -> Iterator[tuple[Said, list[torch.Tensor]]]:
    """Yields a sentence and the operands in fewer digits; the interpreter cuts a float off to bf16, a GPU rounds it."""
    shorter = {"bf16": (torch.bfloat16,), "fp8": (torch.float8_e4m3fn, torch.float8_e5m2), "fp16": (torch.float16,)}
    for short, dtypes in shorter.items():
        for dtype in dtypes:
            rounded = [tensor.float().to(dtype).double() for tensor in inputs]
            if all(bool(one.any()) for one in rounded):  # zeros tell nothing of how they came to be
                yield Gemm.ROUNDED_OPERANDS(dtype=short), rounded
    yield Gemm.ROUNDED_OPERANDS(dtype="bf16"), [_cut(tensor, 16) for tensor in inputs]
    yield Gemm.CUT_TO_TF32(), [_cut(tensor, 13) for tensor in inputs]


def _cut(tensor: torch.Tensor, bits: int) -> torch.Tensor:
    """Returns the tensor's numbers in fp32 without their last bits, as float64."""
    return (tensor.float().view(torch.int32) >> bits << bits).view(torch.float32).double()


def _is_all_of_it(evidence: Compared, result: torch.Tensor, rounded: list[torch.Tensor]) -> bool:
    """Returns whether c is fp32 and has all of this result's digits that fp32 keeps: no other result has them by
    chance."""
    out, wanted = evidence.comparison.out, evidence.wanted
    if wanted.dtype != torch.float32:
        return False
    same = (out == result) | (out.isnan() & result.isnan())
    near = (out.double() - result).abs() <= tolerance(wanted.bound, rounded, result, wanted.dtype)
    return bool((same | near).all())


def _steps_along_k(evidence: Compared, a: torch.Tensor, b: torch.Tensor, step: int) -> Iterator[Hypothesis]:
    """Yields mistakes in the loop over K: steps left out, pointers that do not advance, or by the wrong stride."""
    K = a.shape[1]
    sizes = {start: min(step, K - start) for start in range(0, K, step)}
    for kept in list(sizes)[1:]:
        yield Hypothesis("k-tail", Gemm.K_TAIL(kept=kept, K=K), a[:, :kept] @ b[:kept])
    last = max(sizes)
    yield Hypothesis("last-step", Gemm.LAST_STEP(), a[:, last:] @ b[last:])
    yield Hypothesis("no-advance", Gemm.NO_ADVANCE(), total(a[:, :n] @ b[:n] for n in sizes.values()))
    same_of_a = total(a[:, :n] @ b[k : k + n] for k, n in sizes.items())
    yield Hypothesis("no-advance", Gemm.NO_ADVANCE_OF_ONE(name="a"), same_of_a)
    same_of_b = total(a[:, k : k + n] @ b[:n] for k, n in sizes.items())
    yield Hypothesis("no-advance", Gemm.NO_ADVANCE_OF_ONE(name="b"), same_of_b)
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


def _counts_past_2048(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Returns whether all operands are whole numbers and a running sum of c[0, 0] is more than 2048, up to which fp16
    is exact."""
    if not torch.equal(a, a.round()) or not torch.equal(b, b.round()):
        return False
    running = torch.cumsum(a[:1, :].T * b[:, :1], dim=0).abs()
    return bool(running.max() > 2048)
