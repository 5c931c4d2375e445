"""Lesson 36: how often Triton and torch.compile compile, what a fake is believed, which layouts new tensors have."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest
import torch
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import make_backend
from triton.runtime.jit import create_function_from_signature

from tests.claims.of_solutions import solution

ROWS = (1, 15, 16, 17)

BELIEVED = """
import torch
from torch.library import custom_op

torch._inductor.config.force_disable_caches = True

@custom_op("claims::swiglu", mutates_args=())
def swiglu(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    return (torch.nn.functional.silu(gate) * up).contiguous()

def model(gate, up):
    return swiglu(gate, up) * 2 + gate

def tried(fake, backend, transposed=False):
    swiglu.register_fake(fake)
    torch._dynamo.reset()
    torch.manual_seed(0)
    gate, up = (torch.randn(96, 64).t() if transposed else torch.randn(64, 96) for _ in range(2))
    try:
        given, right = torch.compile(model, fullgraph=True, backend=backend)(gate, up), model(gate, up)
    except AssertionError as error:
        return str(error)
    return int((~torch.isclose(given, right, rtol=1e-3, atol=1e-3)).sum())

fp16 = lambda gate, up: gate.new_empty(gate.shape, dtype=torch.float16)
print(tried(fp16, "aot_eager"))
print(tried(fp16, "inductor"))
print(tried(lambda gate, up: torch.empty_like(gate), "inductor", transposed=True).splitlines()[0])
"""


@pytest.mark.parametrize("name", ["swiglu_kernel", "swiglu_backward_kernel"])
def test_triton_compiles_three_versions_for_1_15_16_and_17_rows(name):
    kernel = getattr(solution("36"), name)
    assert len({key_of(kernel, rows) for rows in ROWS}) == 3
    assert key_of(kernel, 15) == key_of(kernel, 17)


def test_one_version_will_do_for_a_number_that_triton_is_told_to_leave_alone():
    kernel = solution("36").swiglu_kernel
    left_alone = triton.jit(do_not_specialize=["M"])(kernel.fn)
    assert len({key_of(left_alone, rows) for rows in ROWS}) == 1


def key_of(kernel, rows: int) -> str:
    """Returns what a launch is compiled for, by its number of rows: all else is the same."""
    backend = make_backend(GPUTarget("cuda", 90, 32))
    bind = create_function_from_signature(kernel.signature, kernel.params, backend)
    names = list(kernel.signature.parameters)
    given = {name: triton.MockTensor(tl.float16) if name.endswith("_ptr") else 1024 for name in names}
    _, specialization, _ = bind(**given | {"M": rows})
    return str(specialization)


def test_torch_compile_makes_two_graphs_for_1_15_16_and_17_rows():
    graphs = []

    def backend(graph, example):
        graphs.append(graph)
        return graph

    torch._dynamo.reset()
    called = torch.compile(lambda x, y: torch.nn.functional.silu(x) * y, fullgraph=True, backend=backend)
    counts = []
    for rows in ROWS:
        called(torch.ones(rows, 1024), torch.ones(rows, 1024))
        counts.append(len(graphs))
    assert counts == [1, 2, 2, 2]


@pytest.mark.skipif(shutil.which("g++") is None, reason="Inductor needs a C++ compiler")
def test_inductor_believes_the_dtype_of_a_fake_and_checks_its_strides():
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", BELIEVED], text=True, capture_output=True, check=True)
    plain, wrong, said = done.stdout.splitlines()
    assert int(plain) == 0 and int(wrong) > 6100
    assert "expected size 64==64, stride 96==1 at dim=0" in said


def test_an_empty_like_keeps_the_layout_of_a_view_and_new_empty_is_contiguous():
    view = torch.empty(70, 17, device="meta").t()
    assert (view.stride(), torch.empty_like(view).stride()) == ((1, 17), (1, 17))
    assert view.new_empty(view.shape).stride() == (70, 1)
