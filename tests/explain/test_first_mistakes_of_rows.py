"""What beginners write first in 09, where a row is a program's: the sentence and the line it sends to."""

from __future__ import annotations

import pytest

from grader import normal
from tests.explain.first_mistakes import BEFORE_39, told

# ---- 09_layer_norm ---------------------------------------------------------------------------------------------------

ROW = "row = tl.program_id(0)"
MEAN = "mean = tl.sum(x, 0) / N"
D = "d = tl.where(mask, x - mean, 0.0)"
RSTD = "rstd = 1 / tl.sqrt(tl.sum(d * d, 0) / N + eps)"
W = "weight = tl.load(weight_ptr + cols, mask=mask).to(tl.float32)"
SM = "tl.store(mean_ptr + row, mean)"
SR = "tl.store(rstd_ptr + row, rstd)"
AM = "mean = torch.empty(M, dtype=torch.float32, device=x.device)"
BN = "BLOCK_N = triton.next_power_of_2(N)"
WARPS = "num_warps = min(max(BLOCK_N // 256, 1), 16)"

# The call that is judged: data, and block sizes.
OF_LAYER_NORM_CALLS = {
    "": ((normal(4, 100), normal(100), normal(100), 1e-5), {}),
    "fp16": ((normal(4, 100), normal(100), normal(100), 1e-5), dict(dtypes=("float16",))),
    "one number": ((normal(4, 100) * 0 + 0.1, normal(100), normal(100), 1e-5), {}),  # its mean is rounded
}

OF_LAYER_NORM = {
    "tl.mean": (
        ((MEAN, "mean = tl.mean(x)"),),
        "Line 20: triton.language.mean is not allowed in a kernel. In a kernel it is tl.sum(x, 0) over their",
        "mean = tl.mean(x)",
    ),
    "x.mean()": (
        ((MEAN, "mean = x.mean()"),),
        "Line 20: .mean is not allowed in a kernel. In a kernel it is tl.sum(x, 0) over their number.",
        "mean = x.mean()",
    ),
    "torch.mean": (
        ((MEAN, "mean = torch.mean(x)"),),
        "Line 20: torch.mean is not allowed in a kernel. In a kernel it is tl.sum(x, 0) over their number.",
        "mean = torch.mean(x)",
    ),
    "sum axis 1": (
        ((MEAN, "mean = tl.sum(x, axis=1) / N"),),
        "The compiler refuses line 20: there is no axis 1 here: the only one is axis 0.",
        "mean = tl.sum(x, axis=1) / N",
    ),
    "sum dim": (
        ((MEAN, "mean = tl.sum(x, dim=0) / N"),),
        "The compiler refuses line 20: tl.sum has no argument dim. Is axis meant?",
        "mean = tl.sum(x, dim=0) / N",
    ),
    "sum mask kw": (
        ((MEAN, "mean = tl.sum(x, 0, mask=mask) / N"),),
        "The compiler refuses line 20: tl.sum has no argument mask. It takes input, axis, keep_dims, dtype.",
        "mean = tl.sum(x, 0, mask=mask) / N",
    ),
    "python sum": (
        ((MEAN, "mean = sum(x) / N"),),
        "The compiler refuses line 20: sum is not known there: it is a built-in of Python that kernels lack",
        "mean = sum(x) / N",
    ),
    "mean //": (
        ((MEAN, "mean = tl.sum(x, 0) // N"),),
        "The compiler refuses line 20: // and % take whole numbers, and here they meet fp32. / divides such",
        "mean = tl.sum(x, 0) // N",
    ),
    "len(x)": (
        ((MEAN, "mean = tl.sum(x, 0) / len(x)"),),
        "The compiler refuses line 20: values of a kernel have no len: a block has as many lanes as it was",
        "mean = tl.sum(x, 0) / len(x)",
    ),
    "d[mask]": (
        ((D, "d = (x - mean)[mask]"),),
        "The compiler refuses line 21: an index picks no element of a tile: mask and reduce, as in",
        "d = (x - mean)[mask]",
    ),
    "where two": (
        ((D, "d = tl.where(mask, x - mean)"),),
        "The compiler refuses line 21: tl.where lacks the argument y, as in tl.where(condition, a, b).",
        "d = tl.where(mask, x - mean)",
    ),
    "square **": (
        ((RSTD, "rstd = 1 / tl.sqrt(tl.sum(d ** 2, 0) / N + eps)"),),
        "The compiler refuses line 22: values of a kernel have no **: x * x is the square, and tl.sqrt(x)",
        "rstd = 1 / tl.sqrt(tl.sum(d ** 2, 0) / N + eps)",
    ),
    "square ^": (
        ((RSTD, "rstd = 1 / tl.sqrt(tl.sum(d ^ 2, 0) / N + eps)"),),
        "The compiler refuses line 22: ^ is for whole numbers and masks, and here it meets fp32: x * x is",
        "rstd = 1 / tl.sqrt(tl.sum(d ^ 2, 0) / N + eps)",
    ),
    "tl.square": (
        ((RSTD, "rstd = 1 / tl.sqrt(tl.sum(tl.square(d), 0) / N + eps)"),),
        "Line 22: triton.language.square is not allowed in a kernel. In a kernel it is x * x.",
        "rstd = 1 / tl.sqrt(tl.sum(tl.square(d), 0) / N + eps)",
    ),
    "math.sqrt": (
        ((RSTD, "rstd = 1 / math.sqrt(tl.sum(d * d, 0) / N + eps)"), ("import torch\n", "import math\nimport torch\n")),
        "The compiler refuses line 23: math computes with Python's numbers, and this is a value of the",
        "rstd = 1 / math.sqrt(tl.sum(d * d, 0) / N + eps)",
    ),
    "divide by rstd": (
        (("stride_zn, d *", "stride_zn, d /"),),
        "x - mean is divided by rstd: rstd is 1 / root, and x - mean is multiplied by it.",
        "",
    ),
    "weight no cols": (
        ((W, "weight = tl.load(weight_ptr, mask=mask)"),),
        "The compiler refuses line 23: weight_ptr is one address, and its mask or `other` is a block: a",
        "weight = tl.load(weight_ptr, mask=mask)",
    ),
    "weight one": (
        ((W, "weight = tl.load(weight_ptr)"),),
        "Every column gets the weight of column 0: a pointer without a block loads one number.",
        "",
    ),
    "weight ptr used": (
        ((W, "weight = weight_ptr + cols"),),
        "The compiler refuses line 25: weight is an address, and here a number is wanted: tl.load(weight)",
        "tl.store(z_ptr + row * stride_zm + cols * stride_zn, d * rstd * weight + bias, mask=mask)",
    ),
    "mean store x": (
        ((SM, "tl.store(mean_ptr + row, x)"),),
        "The compiler refuses line 26: mean_ptr + row is one address, and the value for it is a block: a",
        "tl.store(mean_ptr + row, x)",
    ),
    "mean row*N": (
        ((SM, "tl.store(mean_ptr + row * N, mean)"),),
        "The address in line 26 leads outside of mean. It is one address, no block, and needs no mask: it is",
        "tl.store(mean_ptr + row * N, mean)",
    ),
    "return mean": (
        ((SM, "return mean, rstd"), (SR, "")),
        "Nothing was written to mean: no store of a grid of 4 programs reaches it.",
        "",
    ),
    "mean[:, None]": (
        ((D, "d = tl.where(mask, x - mean[:, None], 0.0)"),),
        "The compiler refuses line 21: this is one value and no block: [:, None] and [None, :] are for",
        "d = tl.where(mask, x - mean[:, None], 0.0)",
    ),
    "alloc mean N": (
        ((AM, "mean = torch.empty(N, dtype=torch.float32, device=x.device)"),),
        "mean has shape (100,); (4,) was expected.",
        "mean = torch.empty(N, dtype=torch.float32, device=x.device)",
    ),
    "alloc mean M,1": (
        ((AM, "mean = torch.empty((M, 1), dtype=torch.float32, device=x.device)"),),
        "mean has shape (4, 1); (4,) was expected.",
        "mean = torch.empty((M, 1), dtype=torch.float32, device=x.device)",
    ),
    "alloc mean dtype": (
        ((AM, "mean = torch.empty(M, dtype=x.dtype, device=x.device)"),),
        "mean has dtype fp16; fp32 was expected.",
        "mean = torch.empty(M, dtype=x.dtype, device=x.device)",
        "fp16",
    ),
    "x.mean on host": (
        ((AM, "mean = x.mean(dim=1)"),),
        ".mean() in line 40 does work that your kernel has to do.",
        "mean = x.mean(dim=1)",
    ),
    "BLOCK_N = N": (
        ((BN, "BLOCK_N = N"),),
        "The compiler refuses line 16: the length of tl.arange has to be a power of two:",
        "cols = tl.arange(0, BLOCK_N)",
    ),
    "next_power tl": (
        ((BN, "BLOCK_N = tl.next_power_of_2(N)"),),
        "Line 42 stands in a host function and calls tl.next_power_of_2: there it is triton.next_power_of_2.",
        "BLOCK_N = tl.next_power_of_2(N)",
    ),
    "next_power missing": (
        ((BN, "BLOCK_N = next_power_of_2(N)"),),
        "layer_norm raises NameError in line 42: name 'next_power_of_2' is not defined.",
        "BLOCK_N = next_power_of_2(N)",
    ),
    "warps float": (
        ((WARPS, "num_warps = BLOCK_N / 256"),),
        "A whole number is wanted in line 44, and here it is a fraction: / makes fractions, // whole numbers.",
        "layer_norm_kernel[(M,)](",
    ),
    "stages float": (
        (("num_warps=num_warps", "num_warps=num_warps, num_stages=N / 2"),),
        "The compiler refuses line 44: num_stages is 50.0 in this call, and it has to be a whole number.",
        "layer_norm_kernel[(M,)](",
    ),
    "block float": (
        (("BLOCK_N=BLOCK_N", "BLOCK_N=BLOCK_N / 2"),),
        "tl.arange takes whole numbers (line 16), and BLOCK_N, a tl.constexpr, is none in this call: what gives it its",
        "cols = tl.arange(0, BLOCK_N)",
    ),
    "grid (M)": (
        (("layer_norm_kernel[(M,)](", "layer_norm_kernel[(M)]("),),
        "layer_norm raises TypeError in line 44: the grid must be a tuple, such as (n,): (n) without the comma is n.",
        "layer_norm_kernel[(M)](",
    ),
    "grid M,N": (
        (("layer_norm_kernel[(M,)](", "layer_norm_kernel[(M, N)]("),),
        "Programs overlap: nothing in the kernel depends on tl.program_id(1), so programs do each other's work.",
        "",
    ),
    "launch ()": (
        (("layer_norm_kernel[(M,)](", "layer_norm_kernel((M,))("),),
        "layer_norm_kernel is called in line 44 and not launched: a launch has a grid, as in",
        "layer_norm_kernel((M,))(",
    ),
    "eps forgotten arg": (
        (("1), eps,", "1),"),),
        "The kernel's eps is not given by the launch in line 44.",
        "layer_norm_kernel[(M,)](",
    ),
    "eps first": (
        (
            (
                "z, mean, rstd, M, N, x.stride(0), x.stride(1), z.stride(0), z.stride(1), eps,",
                "eps, z, mean, rstd, M, N, x.stride(0), x.stride(1), z.stride(0), z.stride(1),",
            ),
        ),
        "The launch in line 44 gives eps to the parameter z_ptr: arguments go to the kernel's parameters in",
        "layer_norm_kernel[(M,)](",
    ),
    "results first": (
        (("x, weight, bias, z, mean, rstd,", "z, mean, rstd, x, weight, bias,"),),
        "The launch in line 44 gives z to the parameter x_ptr: arguments go to the kernel's parameters in",
        "layer_norm_kernel[(M,)](",
    ),
    "ret kernel": (
        (("    layer_norm_kernel[(M,)](", "    return layer_norm_kernel[(M,)]("),),
        "layer_norm returns an object of type Kernel; a tuple of 3 was expected: (z, mean, rstd).",
        "",
    ),
    "pid(1)": (
        ((ROW, "row = tl.program_id(1)"),),
        "Programs overlap: the kernel uses tl.program_id(1), but the grid has 1 axis.",
        "row = tl.program_id(1)",
    ),
    "eps outside": (
        ((RSTD, "rstd = 1 / (tl.sqrt(tl.sum(d * d, 0) / N) + eps)"),),
        "eps is added outside of the root: it belongs under it, 1 / sqrt(variance + eps).",
        "",
        "one number",
    ),
}


if BEFORE_39:
    del OF_LAYER_NORM["mean[:, None]"]  # a value is its own column there, and the kernel is right


@pytest.mark.parametrize("name", OF_LAYER_NORM)
def test_a_first_mistake_in_layer_norm(bench, name):
    changes, said, line, *which = OF_LAYER_NORM[name]
    sentence, place = told(bench, "09_layer_norm", changes, *OF_LAYER_NORM_CALLS["".join(which)])
    assert sentence.startswith(said) and place.startswith(line) and bool(place) == bool(line), (sentence, place)
