"""Text to machine code: to the bit what Triton makes of the kernel itself."""

from __future__ import annotations

import contextlib
import dataclasses
import json

import pytest
import torch
from triton.compiler.compiler import ASTSource

from grader.compiler.result import CompilerResult
from grader.front_end.file_kernels import FileKernels
from grader.gpu.models import MODELS
from grader.gpu.plan import TEXTS
from grader.wire.recorded_call import RecordedKernel
from tests.child.recorded_calls import LIMIT, Recording, meta
from tests.compiler.by_hand import compiled
from tests.compiler.conftest import OPTIONS
from tests.conftest import ROOT
from tests.slow import drawn

HALF = torch.float16
ATOMICS = """
@triton.jit
def histogram_kernel(x_ptr, z_ptr, lock_ptr, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < N, other=0.0)
    tl.atomic_add(z_ptr + x.to(tl.int32), 1.0, mask=i < N)
    tl.atomic_max(z_ptr, tl.max(x, 0))
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
    tl.store(z_ptr + 1, tl.load(z_ptr + 1) + 1.0)
    tl.atomic_xchg(lock_ptr, 0)

def entry(x, z):
    lock = torch.zeros(1, dtype=torch.int32, device=x.device)
    histogram_kernel[(triton.cdiv(x.numel(), 256),)](x, z, lock, x.numel(), BLOCK=256, num_warps=2)
    return z
"""
DESCRIPTORS = """
from triton.tools.tensor_descriptor import TensorDescriptor

@triton.jit
def product_kernel(a, b, c, K, S: tl.constexpr):
    m, n = tl.program_id(0) * S, tl.program_id(1) * S
    acc = tl.zeros((S, S), dtype=tl.float32)
    for k in range(0, K, S):
        acc = tl.dot(a.load([m, k]), b.load([k, n]), acc)
    c.store([m, n], acc.to(tl.float16))

def entry(x, z):
    described = [TensorDescriptor.from_tensor(t, [64, 64]) for t in (x, x, z)]
    product_kernel[(4, 4)](*described, 256, S=64)
    return z
"""
SQUARES = dict(a=meta(4096, 4096, dtype=HALF), b=meta(4096, 4096, dtype=HALF))
CALLS = {  # file or text, entry, arguments at a size of real work
    "01": ("01_masked_add/masked_add", "masked_add", dict(x=meta(1 << 24), y=meta(1 << 24))),
    "02": ("02_strided_blocks/strided_blocks", "strided_copy", dict(x=meta(4096, 8192).T, z=meta(8192, 4096))),
    "03": ("03_softmax/softmax", "softmax", dict(x=meta(4096, 4096, dtype=torch.bfloat16))),
    "04": ("04_transpose/transpose", "transpose", dict(x=meta(8191, 8193))),
    "05": ("05_grouped_matmul/grouped_matmul", "matmul", SQUARES),
    "05 with descriptors": ("05_grouped_matmul/beyond", "matmul", SQUARES),
    "atomics": (ATOMICS, "entry", dict(x=meta(100_000), z=meta(64))),
    "host descriptors": (DESCRIPTORS, "entry", dict(x=meta(256, 256, dtype=HALF), z=meta(256, 256, dtype=HALF))),
}  # fmt: skip
# What an exercise's kernel has, the next ones or the products have too: one is drawn, or all in `tox -- slow`.
ALIKE = drawn(["01", "02", "03", "04"], 1, "".join(map(str, CALLS)))
TARGETS = [("sm_90", name) for name in (*ALIKE, "05 with descriptors", "atomics", "host descriptors")]
TARGETS += [("sm_80", "host descriptors"), ("sm_80", "05"), ("sm_100", "atomics")]


def own_source(recording: Recording, kernel: RecordedKernel) -> ASTSource:
    """The kernel as Triton compiles it by itself, its file where the front end wrote it: so the texts agree."""
    with contextlib.chdir(recording.front_end._child.folder):
        file = FileKernels(recording.filename, recording.text.encode())
    return file.source(json.loads(json.dumps(dataclasses.asdict(kernel.recipe))) | {"set": {}})


@pytest.mark.parametrize("target, name", TARGETS)
def test_text_becomes_the_same_code(compiler, target, name):
    source, entry, arguments = CALLS[name]
    path = ROOT / "solutions" / f"{source}.py"
    recording, model = Recording(source if "\n" in source else path, target), MODELS[target]
    try:
        call = recording(entry, **arguments)
        assert call.error is None and call.kernels
        for kernel in call.kernels:
            options = {name: value for name, value in kernel.recipe.options.items() if value is not None}
            expected, _ = compiled(own_source(recording, kernel), model.arch, **options)
            # While the file is there: the assembler notes its date and its size beside the numbers of lines.
            made = compiler.compile(kernel.source, kernel.recipe.options, model, TEXTS, LIMIT)
            assert isinstance(made, CompilerResult), made
            assert [name for name in TEXTS if made.kernel.texts[name] != expected[name]] == []
            assert made.kernel.code == expected["cubin"]
    finally:
        recording.end()


def test_each_option_counts(compiler, softmax, text):
    for options in ({"num_warps": 8}, {"enable_fp_fusion": False}, {"num_stages": 1}, {"maxnreg": 32}):
        made = compiler.compile(text, {**OPTIONS, **options}, MODELS["sm_90"])
        assert made.kernel.code == compiled(softmax, 90, **{**OPTIONS, **options})[0]["cubin"]
    assert made.kernel.code != compiler.compile(text, OPTIONS, MODELS["sm_90"]).kernel.code


def test_the_optimised_text_is_generic_and_compiles_further(compiler, text):
    optimised = compiler.optimised(text, OPTIONS, MODELS["sm_90"])
    assert '"tt.load"' in optimised.optimised and optimised.optimised != text and not optimised.kernel.code
    again = compiler.compile(optimised.optimised, OPTIONS, MODELS["sm_90"])
    both = compiler.compile(text, OPTIONS, MODELS["sm_90"], ["optimised"])
    assert both.optimised == optimised.optimised and again.kernel.code == both.kernel.code
