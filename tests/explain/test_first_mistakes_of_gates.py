"""What beginners write first in 08, three results of three inputs: the sentence and the line it sends to."""

from __future__ import annotations

import pytest

from grader import normal
from tests.explain.first_mistakes import told

# ---- 08_swiglu -------------------------------------------------------------------------------------------------------

BL = "blocks = tl.cdiv(N, BLOCK_N)"
ROW = "row = tl.program_id(0) // blocks"
COLS = "cols = tl.program_id(0) % blocks * BLOCK_N + tl.arange(0, BLOCK_N)"
G = "gate = tl.load(gate_ptr + row * stride_gm + cols * stride_gn, mask=mask).to(tl.float32)"
S = "s = tl.sigmoid(gate)"
SILU = "silu = gate * s"
Z = "tl.store(z_ptr + place, silu * up, mask=mask)"
DG = "tl.store(dgate_ptr + place, dz * up * slope, mask=mask)"
DU = "tl.store(dup_ptr + place, dz * silu, mask=mask)"
SHAPE = "M, N = gate.shape"
GRID = "grid = (M * triton.cdiv(N, BLOCK_N),)"
ARGS = "dz, gate, up, z, dgate, dup, M, N, *dz.stride(), *gate.stride(), *up.stride(), *z.stride(),"
KW = "BLOCK_N=BLOCK_N, num_warps=4,"
RET = "return z, dgate, dup"

# The call that is judged: data, and block sizes.
OF_SWIGLU_CALLS = {
    "": ((normal(3, 100), normal(3, 100), normal(3, 100)), dict(BLOCK_N=64)),
    "fp16": ((normal(3, 100), normal(3, 100), normal(3, 100)), dict(BLOCK_N=64, dtypes=("float16",))),
}

OF_SWIGLU = {
    "math.exp": (
        ((S, "s = 1 / (1 + math.exp(-gate))"),),
        "The compiler refuses line 24: the file does not import math, which computes with Python's numbers: for",
        "s = 1 / (1 + math.exp(-gate))",
    ),
    "math.exp import": (
        ((S, "s = 1 / (1 + math.exp(-gate))"), ("import torch\n", "import math\nimport torch\n")),
        "The compiler refuses line 25: math computes with Python's numbers, and this is a value of the",
        "s = 1 / (1 + math.exp(-gate))",
    ),
    "exp": (
        ((S, "s = 1 / (1 + exp(-gate))"),),
        "The compiler refuses line 24: exp is not defined. Is tl.exp meant?",
        "s = 1 / (1 + exp(-gate))",
    ),
    "torch.sigmoid": (
        ((S, "s = torch.sigmoid(gate)"),),
        "Line 24: torch.sigmoid is not allowed in a kernel. In a kernel only tl works: tl.sigmoid is there too.",
        "s = torch.sigmoid(gate)",
    ),
    "F.silu": (
        ((SILU, "silu = F.silu(gate)"),),
        "Line 25: .silu is not allowed in a kernel. In a kernel it is x * tl.sigmoid(x).",
        "silu = F.silu(gate)",
    ),
    "sigmoid fp16": (
        ((G, "gate = tl.load(gate_ptr + row * stride_gm + cols * stride_gn, mask=mask)"),),
        "In line 24 a function gets fp16 that computes in fp32 only: convert before, with .to(tl.float32).",
        "s = tl.sigmoid(gate)",
        "fp16",
    ),
    "exp(gate)": (
        ((S, "s = 1 / (1 + tl.exp(gate))"),),
        "z is made with the sigmoid of -gate: 1 / (1 + exp(-gate)) is that of gate.",
        "",
    ),
    "silu for sigmoid": (
        ((S, "s = gate * tl.sigmoid(gate)"),),
        "In z silu(gate) stands where sigmoid(gate) belongs.",
        "",
    ),
    "same ptr": ((("tl.load(up_ptr", "tl.load(gate_ptr"),), "z is made with gate in the place of up.", ""),
    ".float()": (
        (("stride_gn, mask=mask).to(tl.float32", "stride_gn, mask=mask).float("),),
        "Line 22: .float is not allowed in a kernel. In a kernel it is x.to(tl.float32).",
        "gate = tl.load(gate_ptr + row * stride_gm + cols * stride_gn, mask=mask).float()",
    ),
    "float()": (
        (
            (
                "tl.load(gate_ptr + row * stride_gm + cols * stride_gn, mask=mask).to(tl.float32",
                "float(tl.load(gate_ptr + row * stride_gm + cols * stride_gn, mask=mask)",
            ),
        ),
        "The compiler refuses line 22: float(...) of a kernel's value: use .to(tl.float32), or another dtype",
        "gate = float(tl.load(gate_ptr + row * stride_gm + cols * stride_gn, mask=mask))",
    ),
    "to fp32": (
        (("stride_gn, mask=mask).to(tl.float32", "stride_gn, mask=mask).to(tl.fp32"),),
        "Line 22: triton.language.fp32 is not allowed in a kernel. In a kernel it is tl.float32.",
        "gate = tl.load(gate_ptr + row * stride_gm + cols * stride_gn, mask=mask).to(tl.fp32)",
    ),
    "2 axes host one": (
        ((ROW, "row = tl.program_id(1)"), (COLS, "cols = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)")),
        "4 of 6 programs write nothing to z: the kernel uses tl.program_id(1), but the grid has 1 axis.",
        "",
    ),
    "row /": (
        ((ROW, "row = tl.program_id(0) / blocks"),),
        "The compiler refuses line 21: dz_ptr is an address, and offsets are whole numbers: here one is",
        "row = tl.program_id(0) / blocks",
    ),
    "blocks slash": (
        ((BL, "blocks = N / BLOCK_N"),),
        "The compiler refuses line 18: // and % take whole numbers, and here they meet fp32. / divides such",
        "blocks = N / BLOCK_N",
    ),
    "blocks triton.cdiv": (
        ((BL, "blocks = triton.cdiv(N, BLOCK_N)"),),
        "The compiler refuses line 17: triton.cdiv is for the host: in a kernel it is tl.cdiv.",
        "blocks = triton.cdiv(N, BLOCK_N)",
    ),
    "cols no BLOCK": (
        ((COLS, "cols = tl.program_id(0) % blocks + tl.arange(0, BLOCK_N)"),),
        "Line 19 adds the number of a program to its lanes: blocks that follow each other begin 1 apart",
        "cols = tl.program_id(0) % blocks + tl.arange(0, BLOCK_N)",
    ),
    "store tuple": (
        (("z_ptr + place, silu * up,", "(z_ptr + place, dgate_ptr + place), (silu * up, dz * up * slope),"),),
        "The compiler refuses line 28: a list or tuple stands where one block, or one value, is expected.",
        "tl.store((z_ptr + place, dgate_ptr + place), (silu * up, dz * up * slope), mask=mask)",
    ),
    "return in kernel": (
        ((Z, "return silu * up, dz * up * slope, dz * silu"), (DG, ""), (DU, "")),
        "Nothing was written to z: the kernel has no tl.store, and a kernel gives its results in no other",
        "",
    ),
    "ret z": (
        ((RET, "return z"),),
        "swiglu_backward returns an object of type Tensor; a tuple of 3 was expected: (z, dgate, dup).",
        "",
    ),
    "alloc one": (
        (
            (
                "z, dgate, dup = (torch.empty((M, N), dtype=gate.dtype, device=gate.device) for _ in range(3)",
                "z = dgate = dup = torch.empty((M, N), dtype=gate.dtype, device=gate.device",
            ),
        ),
        "z and dgate share their memory: each needs memory of its own, as from torch.empty.",
        "",
    ),
    "alloc interleaved": (
        (
            (
                "(torch.empty((M, N), dtype=gate.dtype, device=gate.device) for _ in range(3))",
                "torch.empty((M, N, 3), dtype=gate.dtype, device=gate.device).unbind(2)",
            ),
        ),
        "z has strides (300, 3); a contiguous tensor was expected.",
        "z, dgate, dup = torch.empty((M, N, 3)",
    ),
    "alloc empty(M)": (
        (("(M, N),", "M,"),),
        "The kernel's stride_zn is not given by the launch in line 44.",
        "swiglu_backward_kernel[grid](",
    ),
    "alloc zeros N,M": (
        (("(M, N", "(N, M"),),
        "z has shape (100, 3); (3, 100) was expected.",
        "z, dgate, dup = (torch.empty((N, M), dtype=gate.dtype, device=gate.device) for _ in range(3))",
    ),
    "alloc no dtype": (
        (("dtype=gate.dtype, device=gate.device", "device=gate.device"),),
        "z has dtype fp32; fp16 was expected.",
        "z, dgate, dup = (torch.empty((M, N), device=gate.device) for _ in range(3))",
        "fp16",
    ),
    "grid rows cols": (
        ((GRID, "grid = (M, triton.cdiv(N, BLOCK_N))"),),
        "Programs overlap: nothing in the kernel depends on tl.program_id(1), so programs do each other's work.",
        "",
    ),
    "strides as tuples": (
        (
            (
                "*dz.stride(), *gate.stride(), *up.stride(), *z.stride(",
                "dz.stride(), gate.stride(), up.stride(), z.stride(",
            ),
        ),
        "The kernel's stride_um, stride_un, stride_zm and stride_zn are not given by the launch in line 44.",
        "swiglu_backward_kernel[grid](",
    ),
    "strides too many": (
        ((ARGS, ARGS + " *dgate.stride(), *dup.stride(),"),),
        "The launch in line 44 gives BLOCK_N by its name, and by its place too: there are too many arguments",
        "swiglu_backward_kernel[grid](",
    ),
    "outs first": (
        (("dz, gate, up, z, dgate, dup,", "z, dgate, dup, dz, gate, up,"),),
        "The launch in line 44 gives z to the parameter dz_ptr: arguments go to the kernel's parameters in",
        "swiglu_backward_kernel[grid](",
    ),
    "numel": (
        (("dup, M, N,", "dup, M * N, BLOCK_N,"),),
        "The launch in line 44 gives BLOCK_N to the parameter N: arguments go to the kernel's parameters in",
        "swiglu_backward_kernel[grid](",
    ),
    "kw misspelt": (
        ((KW, "BLOCK_N=BLOCK_N, num_warp=4,"),),
        "The compiler refuses line 44: the launch passes num_warp, which is no parameter of the kernel and",
        "swiglu_backward_kernel[grid](",
    ),
    "block size kw": (
        ((KW, "BLOCK_SIZE=BLOCK_N, num_warps=4,"),),
        "The kernel's BLOCK_N is not given by the launch in line 44, which passes BLOCK_SIZE: the kernel has",
        "swiglu_backward_kernel[grid](",
    ),
    "no block size, and an option that few know": (
        ((KW, "debug=True, num_warps=4,"),),
        "The kernel's BLOCK_N is not given by the launch in line 44.",
        "swiglu_backward_kernel[grid](",
    ),
    "launch without grid": (
        (("swiglu_backward_kernel[grid](", "swiglu_backward_kernel("),),
        "swiglu_backward_kernel is called in line 44 and not launched: a launch has a grid, as in",
        "swiglu_backward_kernel(",
    ),
    "launch own host": (
        (("swiglu_backward_kernel[grid](", "swiglu_backward[grid]("),),
        "swiglu_backward is launched in line 44, and it is no kernel: kernels have @triton.jit in front of",
        "swiglu_backward[grid](",
    ),
    "shape()": (
        ((SHAPE, SHAPE + "()"),),
        "A shape is no function in line 41: M, N = x.shape takes its numbers, and x.shape[0] is one of them.",
        "M, N = gate.shape()",
    ),
    "silu var": (
        ((Z, "tl.store(z_ptr + place, silu_gate * up, mask=mask)"),),
        "The compiler refuses line 28: silu_gate is not defined. Is silu meant?",
        "tl.store(z_ptr + place, silu_gate * up, mask=mask)",
    ),
}


@pytest.mark.parametrize("name", OF_SWIGLU)
def test_a_first_mistake_in_swiglu(bench, name):
    changes, said, line, *which = OF_SWIGLU[name]
    sentence, place = told(bench, "08_swiglu", changes, *OF_SWIGLU_CALLS["".join(which)])
    assert sentence.startswith(said) and place.startswith(line) and bool(place) == bool(line), (sentence, place)
