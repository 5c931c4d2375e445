"""A trace shows what the variables of a program hold, which lanes hold nothing, and the iterations of its loops."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
import triton.language as tl

from grader.interpreter.tracing.tracer import MOST_ITERATIONS
from grader.wire.frames import ProtocolError
from grader.wire.traced_program import TracedProgram, TracedStep, traced_program

N = 10
X = torch.arange(N, dtype=torch.float32) + 1

KERNELS = """
@triton.jit
def twice(v):
    w = v * 2
    return w

@triton.jit(noinline=True)
def thrice(v):
    t = v * 3
    return t

@triton.jit
def masked_kernel(x_ptr, z_ptr, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < N)
    total = tl.sum(tl.where(i < N, x, 0.0), 0)
    most = tl.maximum(tl.max(x - x, 0), 1.0)
    old = tl.load(z_ptr + i, mask=i < N, other=3.0)
    beyond = tl.load(x_ptr + i + 1, mask=i < N, other=0.0)
    tl.device_print("total", total)
    tl.store(z_ptr + i, old + beyond, mask=i < N)
    tl.store(z_ptr + i, twice(x) + total + most, mask=i < N)

def masked(x):
    z = torch.empty_like(x)
    masked_kernel[(triton.cdiv(x.numel(), 4),)](x, z, x.numel(), BLOCK=4)
    return z

@triton.jit
def loops_kernel(x_ptr, z_ptr, N, BLOCK: tl.constexpr):
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for k in range(0, N):
        for j in range(0, 2):
            acc += k + j
    c = 0
    while c < 2:
        c += 1
    three = thrice(N)
    tl.store(z_ptr + tl.arange(0, BLOCK), acc + c + three)

def loops(x):
    z = torch.empty(128, device=x.device)
    loops_kernel[(2, 3)](x, z, x.numel(), BLOCK=128)
    loops_kernel[(1,)](x, z, x.numel(), BLOCK=128)
    return z

@triton.jit
def endless_kernel(x_ptr, z_ptr, N):
    c = N + 1
    while tl.load(x_ptr) > 0:
        c += 1
    tl.store(z_ptr, c)

def endless(x):
    z = torch.empty_like(x)
    endless_kernel[(1,)](x, z, x.numel())
    return z

@triton.jit
def rows_kernel(x_ptr, z_ptr):
    table = tl.make_tensor_descriptor(x_ptr, [10, 8], [8, 1], [1, 8])
    result = tl.make_tensor_descriptor(z_ptr, [10, 8], [8, 1], [1, 8])
    rows = tl.arange(0, 8) + 4
    result.scatter(table.gather(rows, 0), rows, 0)
    tl.make_tensor_descriptor(z_ptr, [10, 8], [8, 1], [4, 8]).atomic_add([0, 0], tl.full((4, 8), 2.0, tl.float32))

def rows(x):
    triton.set_allocator(lambda size, align, stream: torch.empty(size, dtype=torch.int8, device="cuda"))
    z = torch.zeros_like(x)
    rows_kernel[(1,)](x, z)
    return z
"""
ATOMICS = """
@triton.jit
def atomics_kernel(x_ptr, z_ptr, N, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.atomic_load(x_ptr + i, mask=i < N, sem="relaxed")
    tl.atomic_store(z_ptr + i, x, mask=i < N, sem="relaxed")

def atomics(x):
    z = torch.empty_like(x)
    atomics_kernel[(1,)](x, z, x.numel(), BLOCK=16)
    return z
"""


def traced(child, entry: str, *program: int, x=X, text: str = KERNELS, **options) -> list[TracedProgram]:
    child.load(text)
    return [traced_program(one) for one in child.run(entry, {"traced": list(program), **options}, x=x).traced]


@pytest.fixture
def masked(child) -> SimpleNamespace:
    """The last program of the masked kernel, by variable; two of its four lanes are beyond the end."""
    (program,) = traced(child, "masked", 2)
    assert (program.kernel, program.program, program.grid) == ("masked_kernel", [2], [3])
    return SimpleNamespace(all=program.steps, **{step.variable or step.kind: step for step in program.steps})


def test_variables_have_their_numbers_line_and_type(child, masked):
    assert (masked.i.numbers, masked.i.dtype, masked.i.shape) == (["8", "9", "10", "11"], "int32", [4])
    assert masked.i.line == child.line("i = tl.program_id(0)")
    assert [(step.variable, step.argument) for step in masked.all[:2]] == [("x_ptr", "x"), ("z_ptr", "z")]
    assert (masked.total.numbers, masked.total.operation) == (["19"], "tl.sum")


def test_masked_lanes_are_told_with_the_elements_that_the_others_touch(masked):
    assert (masked.x.kind, masked.x.masked, masked.x.outside, masked.x.argument) == ("load", 2, 0, "x")
    assert (masked.x.box, masked.x.elements) == ([8, 9], 2)
    assert masked.beyond.marks[2:] == "mm" and masked.beyond.numbers[2:] == ["0", "0"]


def test_lanes_without_other_hold_nothing_nor_does_what_is_made_of_them(masked):
    assert (masked.x.marks, masked.x.empty) == ("..??", 2)
    assert (masked.w.marks, masked.w.calls) == ("..??", [masked.store.line])
    assert masked.total.marks == "."


def test_a_maximum_that_skips_what_is_infinite_minus_infinite_is_still_known(masked):
    assert masked.most.marks == "." and masked.most.numbers == ["1"]  # x - x is 0 or NaN: it depends on nothing


def test_memory_that_nobody_has_written_and_lanes_out_of_bounds_hold_nothing(masked):
    assert masked.old.marks == "??mm"
    assert (masked.beyond.outside, masked.beyond.marks[:2]) == (1, ".?")


def test_what_is_printed_stands_at_its_line(child, masked):
    (printed,) = [step for step in masked.all if step.kind == "printed"]
    assert (printed.variable, printed.numbers, printed.line) == ("total:", ["19"], child.line("tl.device_print"))


def test_loops_keep_their_first_and_last_iterations(child):
    program, other = traced(child, "loops", 1, 9)
    assert (program.program, other.program) == ([1, 2], [0])  # as far as the grid goes
    outer = [step for step in program.steps if step.kind in ("iteration", "gap") and step.depth == 1]
    assert [step.iteration for step in outer if step.operation == "for"] == [1, 2, 3, 4, 8, 9, 10]
    (gap,) = [step for step in outer if step.kind == "gap"]
    assert (gap.iteration, gap.iterations) == (MOST_ITERATIONS + 1, N - 2 * MOST_ITERATIONS)
    ends = [step.iterations for step in outer if step.operation == "while"]
    assert ends == [3, 3, 3]  # the last one finds that it ends
    inner = [step for step in program.steps if step.kind == "iteration" and step.depth == 2]
    assert [step.iteration for step in inner] == [1, 2] * 2 * MOST_ITERATIONS
    ks = [step.numbers[0] for step in program.steps if step.variable == "k"]
    assert ks == ["0", "1", "2", "7", "8", "9"]


def test_a_large_tile_is_told_by_its_range(child):
    last = traced(child, "loops", 0)[0].steps[-1]
    assert (last.kind, last.numbers, last.low, last.high) == ("store", [], "132", "132")


def test_a_function_that_is_not_inlined_knows_its_call(child):
    steps = traced(child, "loops", 0)[1].steps
    (t,) = [step for step in steps if (step.kind, step.variable) == ("value", "t")]
    assert (t.numbers, t.calls) == (["30"], [child.line("three = thrice")])


def test_rows_of_a_descriptor_are_told_and_those_beyond_its_end_are_masked(child):
    (program,) = traced(child, "rows", 0, x=X.repeat(8).reshape(10, 8))
    load, store, atomic = [step for step in program.steps if step.kind in ("load", "store", "atomic")]
    assert (load.argument, load.masked, load.box) == ("x", 16, [4, 9, 0, 7])
    assert (store.kind, store.argument, store.masked, store.box) == ("store", "z", 16, [4, 9, 0, 7])
    assert (atomic.kind, atomic.masked, atomic.elements, atomic.low) == ("atomic", 0, 32, "2")


@pytest.mark.skipif(not hasattr(tl, "atomic_load"), reason="this Triton has no atomic loads and stores")
def test_atomic_loads_and_stores_are_told_with_their_masks(child):
    (program,) = traced(child, "atomics", 0, text=ATOMICS)
    load, store = [step for step in program.steps if step.kind == "atomic"]
    assert (load.masked, load.outside, load.argument, load.elements) == (6, 0, "x", N)
    assert (store.masked, store.outside, store.elements, store.high) == (6, 0, N, str(N))


def test_watching_changes_no_result(child):
    child.load(KERNELS)
    plain, seen = child.run("loops", x=X), child.run("loops", {"traced": [0]}, x=X)
    assert torch.equal(plain.output, seen.output) and plain.findings == seen.findings


def test_a_program_without_end_is_told_as_far_as_it_came(child):
    (program,) = traced(child, "endless", 0, limit=1.0)
    iterations = [step for step in program.steps if step.kind == "iteration"]
    assert len(iterations) == 2 * MOST_ITERATIONS and iterations[-1].iterations > 100
    assert [step.variable for step in program.steps if step.kind == "parameter"] == ["x_ptr", "z_ptr", "N"]


@pytest.mark.parametrize(
    "step", [{"kind": "other"}, {"kind": "value", "marks": "."}, {"kind": "value", "numbers": [1]}, {"line": 1}, 3]
)
def test_steps_that_do_not_fit_together_are_refused(step):
    with pytest.raises(ProtocolError):
        traced_program({"kernel": "k", "steps": [step]})


def test_a_step_says_only_what_is_not_as_usual():
    told = traced_program({"kernel": "k", "steps": [{"kind": "value", "line": 3}]})
    assert told.steps == [TracedStep("value", 3)]
