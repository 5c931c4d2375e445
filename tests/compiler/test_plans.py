"""A recorded call with the code of its kernels is a launch plan that binds what the code takes."""

from __future__ import annotations

import pytest
import torch

from grader.compiler.plans import NotCompiled, plan_of
from grader.compiler.result import Failed
from grader.gpu.models import MODELS
from grader.gpu.plan import Fill, Plan, PlannedLaunch, TensorMap
from grader.wire.recorded_results import results_by_name
from tests.child.recorded_calls import Recording, meta
from tests.compiler.test_same_code import ATOMICS, DESCRIPTORS

HALF = torch.float16
TUNED = """
@triton.autotune([triton.Config({"S": s}, num_warps=4, num_stages=n) for s, n in ((32, 2), (64, 16))], key=[])
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


def plan(compiler, name: str, target: str) -> Plan:
    """Accepted, so each launch binds as many bytes as its machine code takes, one parameter after the other."""
    (source, arguments), model = CALLS[name], MODELS[target]
    recording = Recording(source, target)
    try:
        call = recording("entry", **arguments)
        return plan_of(
            call, lambda kernel: compiler.compile(kernel.source, kernel.recipe.options, model), recording.specs,
            results_by_name(call.returned, recording.specs, ["z"], []), model,
        )  # fmt: skip
    finally:
        recording.runner.end()


def bound(launch: PlannedLaunch) -> list[tuple]:
    """Without the scratch memory."""
    return [(p.name, p.type, p.value or (p.buffer, p.offset)) for p in launch.parameters[:-2]]


def test_numbers_and_places_are_bound_in_the_order_of_the_text(compiler):
    """A launch of no program is none, and an argument that is 1 is compiled into the kernel."""
    fill, first, second = plan(compiler, "numbers and places", "sm_90").steps
    assert isinstance(fill, Fill) and (first.grid, second.grid) == ([2, 3, 4], [1, 1, 1])
    pointers = [("x_ptr", "pointer", (0, 4)), ("z_ptr", "pointer", (1, 32))]
    assert bound(first) == [*pointers, ("scale", "fp32", "2.5"), ("flag", "u1", "1"), ("N", "i64", str(1 << 40))]
    pointers = [("x_ptr", "pointer", (0, 0)), ("z_ptr", "pointer", (1, 0))]
    assert bound(second) == [*pointers, ("scale", "fp32", "0.5"), ("flag", "u1", "0")]
    assert second.constants["N"] == "1"


@pytest.mark.parametrize("target", ["sm_80", "sm_90"])
def test_a_tensor_of_the_host_functions_own_is_a_buffer_with_its_fill(compiler, target):
    made = plan(compiler, "atomics", target)
    assert [(buffer.argument, buffer.bytes) for buffer in made.buffers] == [(True, 400_000), (True, 256), (False, 4)]
    fill, launch = made.steps
    assert (fill.view.buffer, fill.value) == (2, 0) and bound(launch)[2] == ("lock_ptr", "pointer", (2, 0))


def test_a_descriptor_of_the_host_becomes_a_tensor_map(compiler):
    (launch,) = plan(compiler, "host descriptors", "sm_90").steps
    sizes = [("a.shape", "i32", "256")] * 2 + [("a.strides", "i64", "256"), ("a.strides", "i64", "1")]
    assert bound(launch)[:5] == [("a", "tensormap", (0, 0)), *sizes]
    fp16, swizzle_128_bytes = 6, 3  # as the CUDA driver numbers them
    assert launch.parameters[0].map == TensorMap(fp16, 2, swizzle_128_bytes, [64, 64], [256, 256], [256, 1], False)


def test_without_tensor_maps_a_descriptor_becomes_its_parts(compiler):
    (launch,) = plan(compiler, "host descriptors", "sm_80").steps
    sizes = [("a.shape", "i64", "256")] * 2 + [("a.strides", "i64", "256"), ("a.strides", "i64", "1")]
    again = [("a.shape", "i32", "256")] * 2 + [("a.strides", "i64", "256"), ("a.strides", "i64", "1")]
    flags = [p for p in bound(launch) if p[0] == "a.flags"]
    assert flags in ([("a.flags", "i1", "0")], [("a.flags", "i1", "0")] * 2)  # from Triton 3.9 on two
    assert bound(launch)[: 9 + len(flags)] == [("a", "pointer", (0, 0)), *sizes, *flags, *again]


def test_scratch_memory_is_large_enough_for_each_launch(compiler):
    """A program that makes a descriptor wants some, and the second launch has six programs."""
    made = plan(compiler, "descriptors made inside", "sm_90")
    (scratch,) = (buffer for buffer in made.buffers if not buffer.argument)
    assert scratch.bytes == 6 * 128 and [launch.grid for launch in made.launches()] == [[1, 1, 1], [3, 2, 1]]
    for launch in made.launches():
        assert [(p.name, p.buffer) for p in launch.parameters[-2:]] == [("global scratch", 2), ("profile scratch", -1)]


def test_a_configuration_without_room_is_left_out_with_tritons_words(compiler):
    made = plan(compiler, "configurations", "sm_80")
    (choice,) = made.steps
    assert made.usable_configs == [0]
    assert choice.alternatives[1].error.startswith("out of resource: shared memory, Required: ")


def test_where_no_configuration_has_room_the_call_has_none(compiler):
    recording = Recording(TUNED.replace("(32, 2)", "(64, 20)"))
    try:
        call = recording("entry", x=meta(256, 256, dtype=HALF), z=meta(256, 256, dtype=HALF))
        model = MODELS["sm_90"]
        with pytest.raises(NotCompiled) as raised:
            answer = lambda one: compiler.compile(one.source, one.recipe.options, model)  # noqa: E731
            plan_of(call, answer, recording.specs, {}, model)
        assert raised.value.failed.what == "resources" and raised.value.line == recording.line("product_kernel[lam")
    finally:
        recording.runner.end()


def test_a_kernel_that_does_not_compile_is_named_with_its_line(compiler):
    recording = Recording(ATOMICS)
    try:
        call = recording("entry", x=meta(100), z=meta(64))
        with pytest.raises(NotCompiled) as raised:
            plan_of(call, lambda kernel: Failed("stage", "no", "ttgir"), recording.specs, {}, MODELS["sm_90"])
        assert raised.value.kernel == "histogram_kernel" and raised.value.failed.stage == "ttgir"
        assert raised.value.line == recording.line("histogram_kernel[(")
    finally:
        recording.runner.end()
