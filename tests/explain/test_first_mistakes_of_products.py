"""What beginners write first in 05, a matrix product: the sentence and the line it sends to."""

from __future__ import annotations

import pytest

from grader import normal
from tests.explain.first_mistakes import told

# ---- 05_grouped_matmul -----------------------------------------------------------------------------------------------

K_ = "k = tl.arange(0, BLOCK_K)"
BP = "b_ptrs = b_ptr + k[:, None] * stride_bk + n[None, :] * stride_bn"
ACC = "acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)"
FOR = "for start in range(0, K, BLOCK_K):"
A = "a = tl.load(a_ptrs, mask=(m[:, None] < M) & (start + k[None, :] < K), other=0.0)"
B = "b = tl.load(b_ptrs, mask=(start + k[:, None] < K) & (n[None, :] < N), other=0.0)"
DOT = 'acc = tl.dot(a, b, acc, input_precision="tf32x3")'
ADVA = "a_ptrs += BLOCK_K * stride_ak"
CP = "c_ptrs = c_ptr + m[:, None] * stride_cm + n[None, :] * stride_cn"
STORE = "tl.store(c_ptrs, acc, mask=(m[:, None] < M) & (n[None, :] < N))"
ALLOC = "c = torch.empty((M, N), dtype=a.dtype, device=a.device)"
PIDM = "pid_m = first_m + pid % programs_per_group % rows_in_group"
PIDN = "pid_n = pid % programs_per_group // rows_in_group"
TM = "tiles_m = tl.cdiv(M, BLOCK_M)"
MIN = "rows_in_group = min(tiles_m - first_m, GROUP_M)"
FIRST = "first_m = pid // programs_per_group * GROUP_M"

# The call that is judged: data, and block sizes.
OF_PRODUCTS_CALLS = {
    "": ((normal(40, 40), normal(40, 40)), dict(BLOCK_M=32, BLOCK_N=32, BLOCK_K=16, GROUP_M=2)),
    "of 8": ((normal(40, 40), normal(40, 40)), dict(BLOCK_M=8, BLOCK_N=8, BLOCK_K=8, GROUP_M=2)),
    "wide": ((normal(40, 24), normal(24, 40)), dict(BLOCK_M=32, BLOCK_N=32, BLOCK_K=16, GROUP_M=2)),
}

OF_PRODUCTS = {
    "a*b": (
        ((DOT, "acc += a * b"),),
        "The compiler refuses line 37: * multiplies element by element, and these tiles are [32, 16] and [16, 32]: tl.",
        "acc += a * b",
    ),
    "a@b": (
        ((DOT, "acc += a @ b"),),
        "The compiler refuses line 37: a kernel has no @: tl.dot(a, b, acc) multiplies two tiles and adds",
        "acc += a @ b",
    ),
    "acc added twice": (
        ((DOT, "acc += tl.dot(a, b, acc)"),),
        "Line 37 adds acc twice: tl.dot(a, b, acc) gives the product and acc together. acc = tl.dot(a, b, acc) keeps",
        "acc += tl.dot(a, b, acc)",
    ),
    "acc added twice by its name": (
        ((DOT, "acc = acc + tl.dot(a, b, acc=acc)"),),
        "Line 37 adds acc twice: tl.dot(a, b, acc) gives the product and acc together.",
        "acc = acc + tl.dot(a, b, acc=acc)",
    ),
    "another's sum added": (
        ((DOT, "acc = acc + tl.dot(a, b, acc * 0.5)"),),
        "c is wrong in",
        "",
    ),
    "torch.matmul": (
        ((DOT, "acc += torch.matmul(a, b)"),),
        "Line 37: torch.matmul is not allowed in a kernel. In a kernel it is tl.dot(a, b).",
        "acc += torch.matmul(a, b)",
    ),
    "tl.matmul": (
        ((DOT, "acc += tl.matmul(a, b)"),),
        "Line 37: triton.language.matmul is not allowed in a kernel. In a kernel it is tl.dot(a, b).",
        "acc += tl.matmul(a, b)",
    ),
    "dot discarded": (
        ((DOT, "tl.dot(a, b, acc)"),),
        "Line 37: tl.dot(a, b, acc) gives a new value and changes nothing, and the line keeps it nowhere.",
        "tl.dot(a, b, acc)",
    ),
    "the sums of rows and of columns": (
        ((DOT, "acc += (tl.sum(a, 1) + tl.max(a, 0))[:, None]"),),
        "Tiles of different shapes meet in line 37: along axis 0 they have 32 and 16 elements. A reduction leaves the",
        "acc += (tl.sum(a, 1) + tl.max(a, 0))[:, None]",
    ),
    "acc missing": (
        ((ACC, ""), (DOT, "acc += tl.dot(a, b)")),
        "The compiler refuses line 37: acc has no value that += could change: give it one before, as in acc",
        "acc += tl.dot(a, b)",
    ),
    "acc in loop": (
        ((ACC, ""), (FOR, FOR + "\n        acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)")),
        "The compiler refuses line 42: acc is not known there: the kernel assigns it in a branch or a loop",
        "tl.store(c_ptrs, acc, mask=(m[:, None] < M) & (n[None, :] < N))",
    ),
    "acc zero": (
        ((ACC, "acc = 0"), (DOT, "acc += tl.dot(a, b)")),
        "The compiler refuses line 37: acc begins the loop of line 33 as int32, and here it becomes fp32",
        "acc += tl.dot(a, b)",
    ),
    "acc square": (
        ((ACC, "acc = tl.zeros((BLOCK_M, BLOCK_K), dtype=tl.float32)"),),
        "The compiler refuses line 37: tl.dot(a, b, acc) makes a tile of [32, 32] here, and this accumulator is",
        DOT,
    ),
    "acc size only": (
        ((ACC, "acc = tl.zeros(BLOCK_M, BLOCK_N)"),),
        "The compiler refuses line 32: the shape of tl.zeros is one argument, a tuple, as in",
        "acc = tl.zeros(BLOCK_M, BLOCK_N)",
    ),
    "acc size only dtype": (
        ((ACC, "acc = tl.zeros(BLOCK_M, BLOCK_N, dtype=tl.float32)"),),
        "The compiler refuses line 32: the shape of tl.zeros is one argument, a tuple, as in",
        "acc = tl.zeros(BLOCK_M, BLOCK_N, dtype=tl.float32)",
    ),
    "acc dtype fp32": (
        ((ACC, "acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=torch.float32)"),),
        "Line 32: torch.float32 is not allowed in a kernel. Kernels use the dtypes of tl: tl.float32.",
        "acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=torch.float32)",
    ),
    "acc dtype str": (
        ((ACC, 'acc = tl.zeros((BLOCK_M, BLOCK_N), dtype="float32")'),),
        "The compiler refuses line 32: a text stands for a dtype: tl's have names of their own, as",
        'acc = tl.zeros((BLOCK_M, BLOCK_N), dtype="float32")',
    ),
    "dot outside": (
        ((DOT, ""), (CP, "acc = tl.dot(a, b, acc)\n    " + CP)),
        "The compiler refuses line 40: a is not known there: the kernel assigns it in a branch or a loop",
        "acc = tl.dot(a, b, acc)",
    ),
    "range K": (
        ((FOR, "for start in range(K):"),),
        "The loop in line 33 counts start in steps of 1, and line 35 takes it for the place where a block begins",
        "for start in range(K):",
    ),
    "range cdiv no mult": (
        ((FOR, "for start in range(0, tl.cdiv(K, BLOCK_K)):"),),
        "The loop in line 33 counts blocks, and line 35 takes start, the number of a block, for the place where it",
        "a = tl.load(a_ptrs, mask=(m[:, None] < M) & (start + k[None, :] < K), other=0.0)",
    ),
    "range slash": (
        ((FOR, "for start in range(0, K / BLOCK_K):"),),
        "The compiler refuses line 33: range takes whole numbers, and / makes others of them: // and tl.cdiv",
        "for start in range(0, K / BLOCK_K):",
    ),
    "triton.cdiv in kernel": (
        ((FOR, "for start in range(0, triton.cdiv(K, BLOCK_K) * BLOCK_K, BLOCK_K):"),),
        "The compiler refuses line 33: triton.cdiv is for the host: in a kernel it is tl.cdiv.",
        "for start in range(0, triton.cdiv(K, BLOCK_K) * BLOCK_K, BLOCK_K):",
    ),
    "arange K": (
        ((K_, "k = tl.arange(0, K)"),),
        "tl.arange needs sizes known at compile time: a tl.constexpr such as BLOCK_N (line 29). A block that",
        "k = tl.arange(0, K)",
    ),
    "k in loop name": (
        ((FOR, "for k in range(0, K, BLOCK_K):"),),
        "The compiler refuses line 35: start is not defined: nothing in the file is called so.",
        "a = tl.load(a_ptrs, mask=(m[:, None] < M) & (start + k[None, :] < K), other=0.0)",
    ),
    "wrong none b": (
        ((BP, "b_ptrs = b_ptr + k[None, :] * stride_bk + n[:, None] * stride_bn"),),
        "Tiles of different shapes meet in line 36: along axis 0 they have 32 and 16 elements. A column of",
        "b = tl.load(b_ptrs, mask=(start + k[:, None] < K) & (n[None, :] < N), other=0.0)",
    ),
    "b as nk": (
        (
            (BP, "b_ptrs = b_ptr + n[:, None] * stride_bn + k[None, :] * stride_bk"),
            ("start + k[:, None] < K) & (n[None, :] < N", "n[:, None] < N) & (start + k[None, :] < K"),
        ),
        "The compiler refuses line 37: tl.dot multiplies [m, k] by [k, n], and these tiles are [32, 16] and [32, 16].",
        DOT,
    ),
    "b.T": (
        ((DOT, "acc = tl.dot(a, b.T, acc)"),),
        "The compiler refuses line 37: tl.dot multiplies [m, k] by [k, n], and these tiles are [32, 16] and [32, 16].",
        "acc = tl.dot(a, b.T, acc)",
    ),
    "adv by K": (
        ((ADVA, "a_ptrs += K * stride_ak"),),
        "The mask of the load in line 35 lets lanes outside of a through, past its last row. If the",
        "",
    ),
    "mask 1d": (
        (
            (A, "a = tl.load(a_ptrs, mask=start + k < K, other=0.0)"),
            (B, "b = tl.load(b_ptrs, mask=start + k < K, other=0.0)"),
        ),
        "Tiles of different shapes meet in line 36: along axis 1 they have 32 and 16 elements. A column of",
        "b = tl.load(b_ptrs, mask=start + k < K, other=0.0)",
    ),
    "dot mixed": (
        ((A, A + ".to(tl.float32)"),),
        "The compiler refuses line 37: tl.dot multiplies tiles of one dtype, and these are fp32 and fp16: convert one",
        DOT,
    ),
    "block 8": (
        (),
        "The compiler refuses line 37: tl.dot wants at least 16 columns in its first tile, which are the",
        DOT,
        "of 8",
    ),
    "pid / group": (
        ((FIRST, "first_m = pid / programs_per_group * GROUP_M"),),
        "The compiler refuses line 25: // and % take whole numbers, and here they meet fp32. / divides such",
        "first_m = pid / programs_per_group * GROUP_M",
    ),
    "pid_m slash": (
        ((PIDM, "pid_m = pid / tiles_n"), (PIDN, "pid_n = pid % tiles_n")),
        "The compiler refuses line 30: a_ptr is an address, and offsets are whole numbers: here one is fp32.",
        "pid_m = pid / tiles_n",
    ),
    "pid divmod": (
        ((PIDM, "pid_m, pid_n = divmod(pid, tiles_n)"), (PIDN, "")),
        "The compiler refuses line 24: divmod is not known there: it is a built-in of Python that kernels",
        "pid_m, pid_n = divmod(pid, tiles_n)",
    ),
    "pid axes": (
        ((PIDM, "pid_m = tl.program_id(0)"), (PIDN, "pid_n = tl.program_id(1)")),
        "2 of 4 programs write nothing to c: the kernel uses tl.program_id(1), but the grid has 1 axis.",
        "",
    ),
    "tl.min": (
        ((MIN, "rows_in_group = tl.min(tiles_m - first_m, GROUP_M)"),),
        "The compiler refuses line 23: tl.min takes a block and the number of an axis, as in tl.min(x, 0):",
        "rows_in_group = tl.min(tiles_m - first_m, GROUP_M)",
    ),
    "cdiv missing tl": (
        ((TM, "tiles_m = cdiv(M, BLOCK_M)"),),
        "The compiler refuses line 19: cdiv is not defined. Is tl.cdiv meant?",
        "tiles_m = cdiv(M, BLOCK_M)",
    ),
    "tiles slash": (
        ((TM, "tiles_m = (M + BLOCK_M - 1) / BLOCK_M"),),
        "The compiler refuses line 25: // and % take whole numbers, and here they meet fp32. / divides such",
        "tiles_m = (M + BLOCK_M - 1) / BLOCK_M",
    ),
    "c.to": (
        ((STORE, "c = acc.to(tl.float16)\n    tl.store(c_ptr, c)"),),
        "The compiler refuses line 42: c_ptr is one address, and the value for it is a block: a block is",
        "tl.store(c_ptr, c)",
    ),
    "acc half": (
        ((STORE, "tl.store(c_ptrs, acc.half(), mask=(m[:, None] < M) & (n[None, :] < N))"),),
        "Line 41: .half is not allowed in a kernel. In a kernel it is x.to(tl.float16).",
        "tl.store(c_ptrs, acc.half(), mask=(m[:, None] < M) & (n[None, :] < N))",
    ),
    "c_ptr dtype": (
        (("c_ptrs, acc,", "c_ptrs, acc.to(c_ptr.dtype),"),),
        "The compiler refuses line 41: the dtype of an address is that of a pointer: c_ptr.dtype.element_ty",
        "tl.store(c_ptrs, acc.to(c_ptr.dtype), mask=(m[:, None] < M) & (n[None, :] < N))",
    ),
    "c_ptrs none": (
        ((CP, "c_ptrs = c_ptr + m * stride_cm + n * stride_cn"),),
        "The compiler refuses line 41: values of shape [32, 32] go to addresses of shape [32]: the addresses",
        "tl.store(c_ptrs, acc, mask=(m[:, None] < M) & (n[None, :] < N))",
    ),
    "mask & paren": (
        ((STORE, "tl.store(c_ptrs, acc, mask=m[:, None] < M & n[None, :] < N)"),),
        "Line 41: & binds more tightly than a comparison, so that m[:, None] < M & n[None, :] < N is not two",
        "tl.store(c_ptrs, acc, mask=m[:, None] < M & n[None, :] < N)",
    ),
    "args missing K": (
        (("c, M, N, K, a.stride(0", "c, M, N, a.stride(0"),),
        "The launch in line 66 gives a.stride(0) to the parameter K: arguments go to the kernel's parameters",
        "matmul_kernel[grid](",
    ),
    "args strides first": (
        (
            (
                "M, N, K, a.stride(0), a.stride(1), b.stride(0), b.stride(1), c.stride(0), c.stride(1),",
                "a.stride(0), a.stride(1), b.stride(0), b.stride(1), c.stride(0), c.stride(1), M, N, K,",
            ),
        ),
        "The launch in line 66 gives a.stride(0) to the parameter M: arguments go to the kernel's parameters",
        "matmul_kernel[grid](",
    ),
    "a/b args": (
        (("a, b, c,", "b, a, c,"),),
        "The launch in line 66 gives b to the parameter a_ptr: arguments go to the kernel's parameters in",
        "matmul_kernel[grid](",
    ),
    "alloc like a": (
        ((ALLOC, "c = torch.empty_like(a)"),),
        "c has shape (40, 24); (40, 40) was expected.",
        "c = torch.empty_like(a)",
        "wide",
    ),
    "alloc no dtype": (
        ((ALLOC, "c = torch.empty((M, N), device=a.device)"),),
        "c has dtype fp32; fp16 was expected.",
        "c = torch.empty((M, N), device=a.device)",
    ),
    "python loops": (
        ((DOT, "for i in range(BLOCK_M):\n            acc[i, :] += tl.sum(a[i, :] * b[:, :])"),),
        "The compiler refuses line 38: an index picks no element of a tile: mask and reduce, as in",
        "acc[i, :] += tl.sum(a[i, :] * b[:, :])",
    ),
    "return acc": (
        ((STORE, "return acc"),),
        "Nothing was written to c: the kernel has no tl.store, and a kernel gives its results in no other",
        "",
    ),
}


@pytest.mark.parametrize("name", OF_PRODUCTS)
def test_a_first_mistake_in_a_product(bench, name):
    changes, said, line, *which = OF_PRODUCTS[name]
    sentence, place = told(bench, "05_grouped_matmul", changes, *OF_PRODUCTS_CALLS["".join(which)])
    assert sentence.startswith(said) and place.startswith(line) and bool(place) == bool(line), (sentence, place)


# ---- 25_flash_attention ----------------------------------------------------------------------------------------------

OF_ATTENTION = {
    "the sum along the wrong axis": (
        ("total * factor + tl.sum(p, 1)", "total * factor + tl.sum(p, 0)"),
        "Tiles of different shapes meet in line 42: along axis 0 they have 64 and 32 elements. A reduction leaves the",
    ),
    "a product of two dtypes": (
        ("p.to(v.dtype), v", "p, v"),
        "The compiler refuses line 43: tl.dot multiplies tiles of one dtype, and these are fp32 and fp16: convert one",
    ),
}


@pytest.mark.parametrize("name", OF_ATTENTION)
def test_a_first_mistake_of_attention_is_told(bench, name):
    change, said = OF_ATTENTION[name]
    data = normal(1, 1, 64, 64), normal(1, 1, 32, 64), normal(1, 1, 32, 64)
    assert told(bench, "25_flash_attention", (change,), data, dict(BLOCK_M=64, BLOCK_N=32))[0].startswith(said)


@pytest.mark.parametrize("factor", ["0", "b * 0", "h // H"])
def test_a_batch_that_reaches_no_address_is_told_by_its_axis(bench, factor):
    changes = tuple((f"b * stride_{one}b", f"{factor} * stride_{one}b") for one in "qkvo")
    data = normal(2, 3, 64, 64), normal(2, 3, 32, 64), normal(2, 3, 32, 64)
    sentence, _ = told(bench, "25_flash_attention", changes, data, dict(BLOCK_M=64, BLOCK_N=32))
    assert sentence.startswith(
        "Programs overlap: two programs that differ along axis 1 alone write the same elements, and whichever comes "
        "last wins. Does all that tl.program_id(1) tells reach the address?"
    )
