"""Texts of real kernels, and a compiler's process that is ended after a file's tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from triton._C.libtriton import ir
from triton.backends.compiler import GPUTarget
from triton.compiler.compiler import ASTSource, make_backend

from grader.compiler.compiler_client import CompilerClient
from grader.front_end.ttir_text import source_of
from tests.compiler.by_hand import kernels_of
from tests.compiler.launch_plans import recording  # noqa: F401
from tests.front_end.by_hand import unguarded_afterwards  # noqa: F401

OPTIONS = {"num_warps": 4, "num_stages": 3, "num_ctas": 1, "enable_fp_fusion": True}
SOFTMAX = """
@triton.jit
def softmax_kernel(x_ptr, z_ptr, N, BLOCK: tl.constexpr):
    row, cols = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + cols, mask=cols < N, other=-float("inf"))
    e = tl.exp(x - tl.max(x, 0))
    total = 0.0
    for _ in range(N):
        total += tl.sum(e, 0) * 0.5
    tl.store(z_ptr + row * N + cols, e / total, mask=cols < N)
"""


def text_of(source: ASTSource, arch: int = 90) -> str:
    """What a child hands over of a kernel."""
    target = GPUTarget("cuda", arch, 32)
    backend, context = make_backend(target), ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    options = backend.parse_options(dict(OPTIONS))
    codegen, modules = backend.get_codegen_implementation(options), backend.get_module_map()
    return source_of(source.make_ir(target, options, codegen, modules, context))


@pytest.fixture(scope="module")
def softmax(tmp_path_factory) -> ASTSource:
    module = kernels_of(tmp_path_factory.mktemp("kernels") / "softmax.py", SOFTMAX)
    types = {"x_ptr": "*fp32", "z_ptr": "*fp32", "N": "i32", "BLOCK": "constexpr"}
    return ASTSource(module.softmax_kernel, types, {(3,): 1024}, {(0,): [["tt.divisibility", 16]]})


@pytest.fixture(scope="module")
def text(softmax) -> str:
    return text_of(softmax)


@pytest.fixture(scope="module")
def compiler() -> Iterator[CompilerClient]:
    made = CompilerClient()
    yield made
    made.end()
