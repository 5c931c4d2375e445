"""Branches of a file as text: the conditions of a kernel and its host function, for calls whose sizes are known."""

from __future__ import annotations

import ast

import numpy as np
import pytest

from grader.numerics.call_facts import CallFacts, TensorFacts, contiguous_facts
from grader.submission.branches import MOST_BRANCHES, branches_of

HEAD = """
BLOCK, LIMIT = 64, 1 << 12

@triton.jit
def kernel(x_ptr, z_ptr, M, N, stride_xm, stride_xn, stride_zm, stride_zn, SIZE: tl.constexpr):
    row = tl.program_id(0)
    {kernel}

def f(x, slope=1.0):
    M, N = x.shape
    z = torch.empty((M, N), dtype=x.dtype, device=x.device)
    {host}
    kernel[(M,)](x, z, M, N, *x.stride(), *z.stride(), SIZE=BLOCK)
    return z
"""


def least_missing(kernel: str = "pass", host: str = "pass", slope=1.0, constants=None, shape=(3, 70), **facts):
    """The conditions that are missing for the branch within all others."""
    branches = branches_of(ast.parse(HEAD.format(kernel=kernel, host=host)), "f", ["x", "slope"])
    x = facts.get("x", contiguous_facts(shape, "bfloat16"))
    deepest = max(branches, key=lambda one: (len(one.conditions), all(c.holds for c in one.conditions)))
    return deepest.missing(CallFacts({"x": x, "slope": slope}, constants or {}))


@pytest.mark.parametrize(
    ("condition", "shape"),
    [
        ("N % 1009 == 77", (3, 1086)),
        ("M * N > LIMIT", (64, 65)),
        ("N == 2 * SIZE + 3", (3, 131)),
        ("stride_xm == 70", (3, 70)),
        ("stride_zm > 4096 and stride_zn == 1", (2, 4097)),
        ("(row == 5) & (N > 4000)", (5, 4001)),
        ("x_ptr.dtype.element_ty == tl.bfloat16 and M == N", (9, 9)),
        ("tl.cdiv(N, SIZE) == 3", (1, 129)),
        ("not (N < 500 or M > 7)", (7, 500)),
    ],
)
def test_a_condition_of_a_kernel_is_read_by_what_the_host_function_passes(condition, shape):
    kernel = f"if {condition}:\n        row = 0"
    assert not least_missing(kernel, shape=shape) and least_missing(kernel, shape=(5, 78))


@pytest.mark.parametrize(
    "text",
    [
        "def f(x):\n    g0(x)\n" + "".join(f"def g{n}(x):\n" + f"    g{n + 1}(x)\n" * 20 for n in range(8)),
        "def f(x):\n    a = (1, 2)\n" + "    a = (*a, *a)\n" * 50 + "    if a == 3: pass\n",
        "def f(x):\n    if x == 0: pass\n" + "".join(f"    elif x == {n}: pass\n" for n in range(300)),
        "def f(x):\n    if " + "not " * 900 + "x: pass\n",
    ],
    ids=["calls within calls", "doubled tuples", "elif", "not"],
)
def test_a_text_written_to_take_long_or_much_memory_is_read_up_to_a_limit(text):
    branches = branches_of(ast.parse(text), "f", ["x"])
    assert len(branches) <= MOST_BRANCHES
    for branch in branches:
        branch.missing(CallFacts({"x": 1}, {}))


@pytest.mark.parametrize(
    "condition", ["x.shape[0] * 3 > 80", "x.numel() == 3000", "x.stride(0) == 100", "x.size(1) == 100"]
)
def test_a_condition_of_the_host_function_is_read(condition):
    host = f"if {condition}:\n        z = x"
    assert not least_missing(host=host, shape=(30, 100)) and least_missing(host=host, shape=(5, 78))


def test_conditions_around_a_condition_and_before_it_count():
    kernel = "if M > 5:\n        if N % 16 == 5:\n            row = 0"
    assert [least_missing(kernel, shape=shape) for shape in ((3, 70), (6, 70), (3, 21), (6, 21))] == [2, 1, 1, 0]
    early = "if N < 500:\n        return x\n    if M == 4:\n        z = x"
    assert [least_missing(host=early, shape=shape) for shape in ((3, 70), (4, 70), (4, 500))] == [2, 1, 0]


def test_a_number_of_the_call_and_a_replaced_constant_are_read():
    assert not least_missing(host="if slope > 2.5:\n        z = x", slope=3.0)
    assert least_missing(host="if slope > 2.5:\n        z = x", slope=2.0)
    blocks = "if N > 2 * BLOCK:\n        z = x"
    assert least_missing(host=blocks) and not least_missing(host=blocks, constants={"BLOCK": 16})


def test_many_sizes_are_read_at_once():
    sizes = np.arange(1, 5000)
    missing = least_missing("if N % 1009 == 77:\n        row = 0", x=contiguous_facts((3, sizes)))
    assert sizes[missing == 0].tolist() == [77, 1086, 2095, 3104, 4113]


@pytest.mark.parametrize(
    "condition",
    ["unknown > 3", "N.bit_length() > 3", "tl.load(x_ptr) > 0", "N // 0 == 1", "N << 5000 > 1", "x_ptr > 1"],
)
def test_what_is_not_known_may_hold_in_any_call(condition):
    assert not least_missing(f"if {condition}:\n        row = 0")


def test_a_name_stands_for_what_it_was_given_last_and_for_nothing_after_a_branch_or_in_a_loop():
    assert least_missing("if N > 100:\n        N = 3") and not least_missing(
        "N = 300\n    if N > 100:\n        row = 0"
    )
    assert least_missing("N = N // 2\n    if N > 60:\n        row = 0")
    assert not least_missing("if row:\n        N = 300\n    M = N > 100")
    assert not least_missing("for i in range(5):\n        M = N > 100\n        N += 50")


def test_a_file_that_calls_itself_or_is_written_otherwise_is_read_to_an_end():
    text = "def f(x):\n    if x.numel() > 3:\n        return f(x)\n    a = a + 1\n    return a"
    assert branches_of(ast.parse(text), "f", ["x"])
    assert branches_of(ast.parse("f = g"), "f", ["x"]) == branches_of(ast.parse(""), "f", ["x"]) == []


def test_nothing_of_the_file_is_carried_out(tmp_path):
    made = tmp_path / "made"
    text = f"def f(x):\n    if open({str(made)!r}, 'w') and x.numel() > 3:\n        return x"
    x = TensorFacts((5,), (1,))
    assert all(
        isinstance(int(one.missing(CallFacts({"x": x}, {}))), int) for one in branches_of(ast.parse(text), "f", ["x"])
    )
    assert not made.exists()
