"""What beginners write first in 11, with its views of four axes: the sentence and the line it sends to."""

from __future__ import annotations

import pytest

from grader import indices, normal
from tests.explain.first_mistakes import RELEASE, told


def table(positions: int, pairs: int):
    """Of cosines, or of sines: fp32 whatever the dtype of q."""
    return normal(positions, pairs).of("float32")


# ---- 11_rope ---------------------------------------------------------------------------------------------------------

SB = "s, b = tl.program_id(0), tl.program_id(1)"
HALF = "half = D // 2"
I = "i = tl.arange(0, BLOCK_D)[None, :]"
P = "p = tl.load(positions_ptr + b * stride_pb + s * stride_ps)"
C = "c = tl.load(cos_ptr + p * stride_tp + i * stride_td, mask=i < half)"
FOR = "for start in range(0, H, BLOCK_H):"
H = "h = start + tl.arange(0, BLOCK_H)[:, None]"
MASK = "mask = (h < H) & (i < half)"
QP = "q_ptrs = q_ptr + b * stride_qb + h * stride_qh + s * stride_qs + i * stride_qd"
A = "a = tl.load(q_ptrs, mask=mask)"
E = "e = tl.load(q_ptrs + half * stride_qd, mask=mask)"
S1 = "tl.store(z_ptrs, a * c - e * n, mask=mask)"
SHAPE = "B, H, S, D = q.shape"
ALLOC = "z = torch.empty((B, H, S, D), dtype=q.dtype, device=q.device)"
BD = "BLOCK_D = triton.next_power_of_2(D // 2)"
LAUNCH = "rope_kernel[(S, B)]("
ARGS = "q, cos, sin, positions, z, H, S, D,"

# Both is so, and Triton 3.6 says the one that others leave out: there is no `dim`, and no second tile.
CAT = (
    "tl.cat has no argument dim. It takes input, other, can_reorder"
    if RELEASE < (3, 7)
    else "tl.cat lacks the argument other: it takes input, other, can_reorder"
)

# The call that is judged: data, and block sizes.
OF_ROPE_CALLS = {
    "": (
        (normal(2, 3, 4, 12), table(9, 6), table(9, 6), indices(2, 4, below=9)),
        dict(BLOCK_H=2),
    ),
    "fp16": (
        (normal(2, 3, 4, 12), table(9, 6), table(9, 6), indices(2, 4, below=9)),
        dict(BLOCK_H=2, dtypes=("float16",)),
    ),
}

OF_ROPE = {
    "cos[pos] device": (
        ((C, "c = cos_ptr[p]"),),
        "The compiler refuses line 25: cos_ptr is an address and cannot be indexed: tl.load(cos_ptr +",
        "c = cos_ptr[p]",
    ),
    "cos(p)": (
        ((C, "c = tl.cos(p)"),),
        "The compiler refuses line 25: a function gets int32 that computes in fp32 only: convert before,",
        "c = tl.cos(p)",
    ),
    "math.cos": (
        ((C, "c = math.cos(p)"),),
        "The compiler refuses line 25: the file does not import math, which computes with Python's numbers: for",
        "c = math.cos(p)",
    ),
    "cos host": (
        ((SHAPE, SHAPE + "\n    cos = cos[positions]"),),
        "Indexing a tensor with a tensor or a list in line 48 does work that your kernel has to do.",
        "cos = cos[positions]",
    ),
    "cos name": (
        ((C, "c = tl.load(cos + p * stride_tp + i * stride_td, mask=i < half)"),),
        "The compiler refuses line 25: cos is not known there: it belongs to another part of the file, and a",
        "c = tl.load(cos + p * stride_tp + i * stride_td, mask=i < half)",
    ),
    "positions_ptr as number": (
        ((P, "p = positions_ptr + b * stride_pb + s * stride_ps"),),
        "The compiler refuses line 25: p is an address, and here a number is wanted: tl.load(p) reads what",
        "c = tl.load(cos_ptr + p * stride_tp + i * stride_td, mask=i < half)",
    ),
    "positions[b, s]": (
        ((P, "p = positions_ptr[b, s]"),),
        "The compiler refuses line 24: positions_ptr is an address and cannot be indexed:",
        "p = positions_ptr[b, s]",
    ),
    "p = tl.load(positions)": (
        ((P, "p = tl.load(positions_ptr)"),),
        "Every token is rotated by the first of all positions: a pointer alone loads one number.",
        "",
    ),
    "half D/2": (
        ((HALF, "half = D / 2"),),
        "The compiler refuses line 32: q_ptrs is an address, and offsets are whole numbers: here one is",
        "half = D / 2",
    ),
    "half missing": (
        ((HALF, ""),),
        "The compiler refuses line 25: half is not defined: nothing in the file is called so.",
        "c = tl.load(cos_ptr + p * stride_tp + i * stride_td, mask=i < half)",
    ),
    "arange half": (
        ((I, "i = tl.arange(0, half)[None, :]"),),
        "tl.arange needs sizes known at compile time: a tl.constexpr such as BLOCK_N (line 21). A block that",
        "i = tl.arange(0, half)[None, :]",
    ),
    "arange half, D": (
        ((E, "j = tl.arange(half, D)[None, :]\n        " + E),),
        "tl.arange needs sizes known at compile time: a tl.constexpr such as BLOCK_N (line 32). A block that",
        "j = tl.arange(half, D)[None, :]",
    ),
    "h no none": (
        ((H, "h = start + tl.arange(0, BLOCK_H)"),),
        "Tiles of different shapes meet in line 29: along axis 1 they have 2 and 8 elements. A column of",
        "mask = (h < H) & (i < half)",
    ),
    "both col": (
        ((I, "i = tl.arange(0, BLOCK_D)[:, None]"),),
        "Tiles of different shapes meet in line 29: along axis 0 they have 2 and 8 elements. A column of",
        "mask = (h < H) & (i < half)",
    ),
    "c none": (
        ((C, C + "[:, None]"),),
        "The compiler refuses line 35: values of shape [1, 2, 8] go to addresses of shape [2, 8]: the",
        "tl.store(z_ptrs, a * c - e * n, mask=mask)",
    ),
    "slice tile": (
        ((A, "q = tl.load(q_ptrs, mask=mask)\n        a = q[:, :half]"),),
        "The compiler refuses line 32: an index picks no element of a tile: mask and reduce, as in",
        "a = q[:, :half]",
    ),
    "chunk": (
        ((A, "a, e = tl.load(q_ptrs, mask=mask).chunk(2, dim=-1)"),),
        "Line 31: .chunk is not allowed in a kernel. Kernels use tl and the methods of tiles, as in x.to().",
        "a, e = tl.load(q_ptrs, mask=mask).chunk(2, dim=-1)",
    ),
    "tl.split": (
        ((A, "a, e = tl.split(tl.load(q_ptrs, mask=mask))"),),
        "The compiler refuses line 31: tl.split takes the two halves of a tile whose last axis has 2 elements, and",
        "a, e = tl.split(tl.load(q_ptrs, mask=mask))",
    ),
    "tl.cat dim": (
        (("a * c - e * n,", "tl.cat((a * c - e * n, e * c + a * n), dim=-1),"),),
        f"The compiler refuses line 35: {CAT}",
        "tl.store(z_ptrs, tl.cat((a * c - e * n, e * c + a * n), dim=-1), mask=mask)",
    ),
    "torch.cat": (
        (("a * c - e * n,", "torch.cat((a * c - e * n, e * c + a * n), dim=-1),"),),
        "Line 35: torch.cat is not allowed in a kernel. In a kernel only tl works: tl.cat is there too.",
        "tl.store(z_ptrs, torch.cat((a * c - e * n, e * c + a * n), dim=-1), mask=mask)",
    ),
    "tl.dot": (
        ((S1, "tl.store(z_ptrs, tl.dot(a, c) - tl.dot(e, n), mask=mask)"),),
        "The compiler refuses line 35: tl.dot multiplies [m, k] by [k, n], and these tiles are [2, 8] and [1, 8].",
        "tl.store(z_ptrs, tl.dot(a, c) - tl.dot(e, n), mask=mask)",
    ),
    "mask parens": (
        ((MASK, "mask = h < H & i < half"),),
        "Line 29: & binds more tightly than a comparison, so that h < H & i < half is not two comparisons.",
        "mask = h < H & i < half",
    ),
    "table mask 2d": (
        ((C, "c = tl.load(cos_ptr + p * stride_tp + i * stride_td, mask=mask)"),),
        "The compiler refuses line 25: mask is not known there: the kernel assigns it in a branch or a loop",
        "c = tl.load(cos_ptr + p * stride_tp + i * stride_td, mask=mask)",
    ),
    "range len": (
        ((FOR, "for start in range(0, len(H), BLOCK_H):"),),
        "The compiler refuses line 27: values of a kernel have no len: a block has as many lanes as it was",
        "for start in range(0, len(H), BLOCK_H):",
    ),
    "for h tile": (
        ((FOR, "for start in tl.arange(0, BLOCK_H):"),),
        "The compiler refuses line 27: a `for` of a kernel counts, with range or tl.static_range: a tile has",
        "for start in tl.arange(0, BLOCK_H):",
    ),
    "pid third": (
        ((SB, "b, h, s = tl.program_id(0), tl.program_id(1), tl.program_id(2)"),),
        "The compiler refuses line 28: h begins the loop of line 27 as int32, and here it becomes int32 [2,",
        "h = start + tl.arange(0, BLOCK_H)[:, None]",
    ),
    "pid /": (
        ((SB, "s = tl.program_id(0)\n    b = tl.program_id(0) / S"),),
        "The compiler refuses line 25: positions_ptr is an address, and offsets are whole numbers: here one",
        "b = tl.program_id(0) / S",
    ),
    "q ptr name": (
        ((QP, "q_ptrs = q + b * stride_qb + h * stride_qh + s * stride_qs + i * stride_qd"),),
        "The compiler refuses line 30: q is not known there: it belongs to another part of the file, and a",
        "q_ptrs = q + b * stride_qb + h * stride_qh + s * stride_qs + i * stride_qd",
    ),
    "grid product": (
        ((LAUNCH, "rope_kernel[(B * S,)]("),),
        "Programs overlap: the kernel uses tl.program_id(1), but the grid has 1 axis.",
        "s, b = tl.program_id(0), tl.program_id(1)",
    ),
    "grid four": (
        ((LAUNCH, "rope_kernel[(S, B, H, D)]("),),
        "rope raises TypeError in line 50: the grid must have 1 to 3 numbers.",
        "rope_kernel[(S, B, H, D)](",
    ),
    "grid no parens": (
        ((LAUNCH, "rope_kernel[S * B]("),),
        "rope raises TypeError in line 50: the grid must be a tuple, such as (n,): (n) without the comma is n.",
        "rope_kernel[S * B](",
    ),
    "alloc fp32": (
        ((ALLOC, "z = torch.empty((B, H, S, D), device=q.device)"),),
        "z has dtype fp32; fp16 was expected.",
        "z = torch.empty((B, H, S, D), device=q.device)",
        "fp16",
    ),
    "alloc BSHD": (
        ((ALLOC, "z = torch.empty((B, S, H, D), dtype=q.dtype, device=q.device)"),),
        "z has shape (2, 4, 3, 12); (2, 3, 4, 12) was expected.",
        "z = torch.empty((B, S, H, D), dtype=q.dtype, device=q.device)",
    ),
    "alloc clone": (
        ((ALLOC, "z = q.clone()"),),
        ".clone() in line 48 does work that your kernel has to do.",
        "z = q.clone()",
    ),
    "BLOCK_D D": (
        ((BD, "BLOCK_D = D"),),
        "The compiler refuses line 21: the length of tl.arange has to be a power of two:",
        "i = tl.arange(0, BLOCK_D)[None, :]",
    ),
    "BLOCK_D D/2": (
        ((BD, "BLOCK_D = triton.next_power_of_2(D / 2)"),),
        "A whole number is wanted in line 49, and here it is a fraction: / makes fractions, // whole numbers.",
        "BLOCK_D = triton.next_power_of_2(D / 2)",
    ),
    "strides tuple": (
        (
            (
                "*q.stride(), *cos.stride(), *positions.stride(), *z.stride(",
                "q.stride(), cos.stride(), positions.stride(), z.stride(",
            ),
        ),
        "The kernel's stride_tp, stride_td, stride_pb, stride_ps, stride_zb, stride_zh, stride_zs and",
        "rope_kernel[(S, B)](",
    ),
    "strides both tables": (
        (("*cos.stride(), *positions.stride(", "*cos.stride(), *sin.stride(), *positions.stride("),),
        "The launch in line 50 gives BLOCK_H by its name, and by its place too: there are too many arguments",
        "rope_kernel[(S, B)](",
    ),
    "args B": (
        ((ARGS, "q, cos, sin, positions, z, B, H, S, D,"),),
        "The launch in line 50 gives BLOCK_H by its name, and by its place too: there are too many arguments",
        "rope_kernel[(S, B)](",
    ),
    "args order": (
        ((ARGS, "q, cos, sin, positions, z, S, H, D,"),),
        "The launch in line 50 gives S to the parameter H: arguments go to the kernel's parameters in their",
        "rope_kernel[(S, B)](",
    ),
    "args z first": (
        ((ARGS, "z, q, cos, sin, positions, H, S, D,"),),
        "The launch in line 50 gives z to the parameter q_ptr: arguments go to the kernel's parameters in",
        "rope_kernel[(S, B)](",
    ),
    "args missing z": (
        ((ARGS, "q, cos, sin, positions, H, S, D,"),),
        "The launch in line 50 gives H to the parameter z_ptr: arguments go to the kernel's parameters in",
        "rope_kernel[(S, B)](",
    ),
    "unpack 3": (
        ((SHAPE, "B, H, S = q.shape"),),
        "rope raises ValueError in line 47: too many values to unpack (expected 3).",
        "B, H, S = q.shape",
    ),
}


@pytest.mark.parametrize("name", OF_ROPE)
def test_a_first_mistake_in_rope(bench, name):
    changes, said, line, *which = OF_ROPE[name]
    sentence, place = told(bench, "11_rope", changes, *OF_ROPE_CALLS["".join(which)])
    assert sentence.startswith(said) and place.startswith(line) and bool(place) == bool(line), (sentence, place)
