"""On a GPU: what no process without one can show of 36's solution. Torch itself compiles, checks and captures it."""

from __future__ import annotations

import pytest
import torch

from grader.gpu.device import Device, device_here
from tests.claims.of_solutions import solution

HERE = device_here()
pytestmark = pytest.mark.skipif(not isinstance(HERE, Device), reason=f"needs a GPU: {HERE}")


@pytest.fixture(scope="module")
def step():
    return solution("36").training_step


def three(transposed: bool = False, rows: int = 17) -> list[torch.Tensor]:
    shape = (70, rows) if transposed else (rows, 70)
    drawn = (torch.randn(shape, device="cuda") for _ in range(3))
    return [one.t() if transposed else one for one in drawn]


def in_float64(dz, gate, up):
    gate, up = gate.detach().double().requires_grad_(), up.detach().double().requires_grad_()
    z = torch.nn.functional.silu(gate) * up
    return z, *torch.autograd.grad(z, (gate, up), dz.double())


def close(found, expected) -> bool:
    return all(torch.allclose(one.double(), other, rtol=1e-5, atol=1e-5) for one, other in zip(found, expected))


@pytest.mark.parametrize("transposed", [False, True])
def test_opcheck_finds_nothing(step, transposed):
    dz, gate, up = three(transposed)
    torch.library.opcheck(torch.ops.course.swiglu_backward, (dz, gate, up))
    torch.library.opcheck(torch.ops.course.swiglu, (gate.requires_grad_(), up.requires_grad_()))


@pytest.mark.parametrize("transposed", [False, True])
def test_gradients_are_those_of_float64_with_torch_compile_and_without(step, transposed):
    data = three(transposed)
    assert close(step(*data), in_float64(*data))
    compiled = torch.compile(torch.ops.course.swiglu, fullgraph=True)
    dz, gate, up = data[0], data[1].requires_grad_(), data[2].requires_grad_()
    z = compiled(gate, up)
    assert close((z, *torch.autograd.grad(z, (gate, up), dz)), in_float64(*data))


def test_a_cuda_graph_of_a_step_is_right_for_new_inputs(step):
    data = three(rows=512)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        step(*data)  # which compiles both kernels
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        results = step(*data)
    for one, new in zip(data, three(rows=512)):
        one.copy_(new)
    graph.replay()
    torch.cuda.synchronize()
    assert close(results, in_float64(*data))
