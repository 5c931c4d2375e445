"""A recorded call with the code of its kernels is the launch plan that a child makes which compiles by itself."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from grader.compiler.plans import NotCompiled, plan_of
from grader.compiler.result import Failed
from grader.gpu.models import MODELS
from grader.gpu.plan import Choice, Plan, PlannedLaunch
from tests.compiler.test_same_code import ATOMICS, DESCRIPTORS, with_machine_code
from tests.recorded.conftest import Recording, meta

HALF = torch.float16
TUNED = """
@triton.autotune([triton.Config({"S": s}, num_warps=4, num_stages=n) for s, n in ((32, 2), (128, 8))], key=[])
@triton.jit
def product_kernel(x_ptr, z_ptr, K, S: tl.constexpr):
    i, j = tl.arange(0, S)[:, None], tl.arange(0, S)[None, :]
    acc = tl.zeros((S, S), dtype=tl.float32)
    for k in range(0, K, S):
        acc = tl.dot(tl.load(x_ptr + i * K + k + j), tl.load(x_ptr + (k + i) * K + j), acc)
    tl.store(z_ptr + i * K + j, acc.to(tl.float16))

def entry(x, z):
    product_kernel[lambda meta: (1,)](x, z, 256)
    return z
"""
INSIDE = """
@triton.jit
def copy_kernel(x_ptr, z_ptr, N, S: tl.constexpr):
    x = tl.make_tensor_descriptor(x_ptr, [N, N], [N, 1], [S, S])
    i, j = tl.arange(0, S)[:, None], tl.arange(0, S)[None, :]
    tl.store(z_ptr + i * N + j, x.load([0, 0]))

def entry(x, z):
    triton.set_allocator(lambda size, alignment, stream: torch.empty(size, dtype=torch.int8, device=x.device))
    for grid in ((1,), (3, 2)):
        copy_kernel[grid](x, z, x.shape[0], S=32)
    return z
"""
ALIGNED = """
@triton.jit
def odd_kernel(x_ptr, z_ptr, scale, flag, N, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(z_ptr + i, tl.load(x_ptr + i, mask=i < N) * scale + flag, mask=i < N)

def entry(x, z):
    z.zero_()
    odd_kernel[(0,)](x[1:], z, 2.5, True, 1 << 40, BLOCK=256)
    odd_kernel[(2, 3, 4)](x[1:], z[8:], 2.5, True, 1 << 40, BLOCK=256)
    odd_kernel[(1,)](x, z, 0.5, False, 1, BLOCK=256)
    return z
"""
CALLS = {
    "atomics": (ATOMICS, dict(x=meta(100_000), z=meta(64))),
    "host descriptors": (DESCRIPTORS, dict(x=meta(256, 256, dtype=HALF), z=meta(256, 256, dtype=HALF))),
    "numbers and places": (ALIGNED, dict(x=meta(1000), z=meta(1000))),
    "configurations": (TUNED, dict(x=meta(256, 256, dtype=HALF), z=meta(256, 256, dtype=HALF))),
    "descriptors made inside": (INSIDE, dict(x=meta(64, 64), z=meta(64, 64))),
}


def plans(compiler, name: str, target: str) -> tuple[Plan, Plan]:
    """From the text, and as the child compiles it."""
    (source, arguments), model = CALLS[name], MODELS[target]
    recording = Recording(source, target)

    def compiled(kernel):
        return compiler.compile(kernel.source, kernel.recipe.options, model, ["ttir", "ttgir", "llir", "ptx"])

    try:
        call = recording("entry", **arguments)
        expected = with_machine_code(recording, "entry", arguments, model)
        return plan_of(call, compiled, recording.specs, model), expected
    finally:
        recording.runner.end()


def as_the_child_knows_it(steps: list) -> list:
    """Without how many numbers a grid was written with, which it does not tell beside machine code."""
    found = []
    for step in steps:
        if isinstance(step, Choice):
            alternatives = [dataclasses.replace(a, steps=as_the_child_knows_it(a.steps)) for a in step.alternatives]
            found.append(dataclasses.replace(step, alternatives=alternatives))
        else:
            found.append(dataclasses.replace(step, dimensions=3) if isinstance(step, PlannedLaunch) else step)
    return found


@pytest.mark.parametrize("target", ["sm_80", "sm_90"])
@pytest.mark.parametrize("name", [name for name in CALLS if name != "descriptors made inside"])
def test_a_plan_of_a_text_is_the_plan_of_a_child_that_compiles(compiler, name, target):
    plan, expected = plans(compiler, name, target)
    plan.steps = as_the_child_knows_it(plan.steps)
    assert plan == expected and plan.kernels and expected.error is None


def test_scratch_memory_is_large_enough_for_each_launch(compiler):
    plan, expected = plans(compiler, "descriptors made inside", "sm_90")
    sizes = [buffer.bytes for buffer in expected.buffers if not buffer.argument]
    (scratch,) = (buffer for buffer in plan.buffers if not buffer.argument)
    assert scratch.bytes == max(sizes) == 6 * min(sizes) > 0
    for launch, other in zip(plan.launches(), expected.launches()):
        assert [p.bytes for p in launch.parameters] == [p.bytes for p in other.parameters]
        assert [(p.name, p.buffer) for p in launch.parameters if "scratch" in p.name] == [
            ("global scratch", 2),
            ("profile scratch", -1),
        ]


def test_a_configuration_without_room_is_left_out_with_tritons_words(compiler):
    plan, expected = plans(compiler, "configurations", "sm_80")
    (choice,) = plan.steps
    assert plan.usable_configs == expected.usable_configs == [0]
    assert choice.alternatives[1].error.startswith("out of resource: shared memory, Required: ")


def test_a_kernel_that_does_not_compile_is_named_with_its_line(compiler):
    recording = Recording(ATOMICS)
    try:
        call = recording("entry", x=meta(100), z=meta(64))
        with pytest.raises(NotCompiled) as raised:
            plan_of(call, lambda kernel: Failed("stage", "no", "ttgir"), recording.specs, MODELS["sm_90"])
        assert raised.value.kernel == "histogram_kernel" and raised.value.failed.stage == "ttgir"
        assert raised.value.line == recording.line("histogram_kernel[(")
    finally:
        recording.runner.end()
