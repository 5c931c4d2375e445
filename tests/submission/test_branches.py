"""Branches of a file as text: the conditions of a kernel and its host function, for calls whose sizes are known."""

from __future__ import annotations

import ast
import contextlib

import numpy as np
import pytest

from grader.numerics.call_facts import CallFacts, TensorFacts, contiguous_facts
from grader.submission.branches import branches_of
from grader.submission.expression_values import OutOfBudget

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


NESTED = "".join(f"    a{n} = ({', '.join([f'a{n - 1}' if n else 'x'] * 40)},)\n" for n in range(7))
ENDLESS = {
    "calls within calls": "    g0(x)\n" + "".join(f"def g{n}(x):\n" + f"    g{n + 1}(x)\n" * 20 for n in range(8)),
    "doubled tuples": "    a = (1, 2)\n" + "    a = (*a, *a)\n" * 50 + "    if a == 3: pass\n",
    "nested tuples": NESTED + NESTED.replace("a", "b") + "    if a6 == b6 or (x > 2) == a6: pass\n",
    "elif": "    if x == 0: pass\n" + "".join(f"    elif x == {n}: pass\n" for n in range(300)),
    "not": "    if " + "not " * 900 + "x: pass\n",
    "dimensions": f"    z = torch.empty({', '.join(['4611686018427387903'] * 1500)})\n    if z.stride(0) > 3: pass\n",
    "and": "    if " + " and ".join(["x"] * 3000) + ":\n" + "        x > 3\n" * 100,
    "names": "    y = 1\n" * 3900 + "    if " + " and ".join(["x"] * 1000) + ": pass\n",
    "a long expression": "    g()\n" * 2000 + f"def g():\n    ({', '.join(['1'] * 20000)})\n",
    "parameters of a called function": "    g()\n" * 3500
    + f"def g({', '.join(f'a{n}' for n in range(20000))}): pass\n",
    "conditions around": "    if x:\n" + "        if x > 1: pass\n" * 20000,
}


@pytest.mark.parametrize("body", ENDLESS.values(), ids=ENDLESS)
def test_a_text_written_to_take_long_or_much_memory_is_read_up_to_a_limit(body):
    """Ten readings: without the limits, each of these texts takes minutes at least, or all memory."""
    branches = branches_of(ast.parse("def f(x):\n" + body), "f", ["x"])
    with contextlib.suppress(OutOfBudget):
        for branch in branches * 10:
            branch.missing(CallFacts({"x": 1}, {}))


@pytest.mark.parametrize(
    "condition",
    [
        "triton.next_power_of_2(N / 2) > 3", "triton.next_power_of_2(N > 2) > 3", "tl.cdiv(N, N - 5) > 3",
        "triton.next_power_of_2(min(N, 1.5)) > 3", "(N > 2) == (1, 2, 3)", "(N > 2) == 'abc'", "(N > 2) == (True,)",
        "x == x", "N % 0.0 > 1", "max() > 1", "N[0] > 1", "N.shape > 1", "-'a' > 1", "~N > 1", "x[0] > 1",
        "M + 'a' > 1", "x.size(7) > 1",
        "x.stride(M) > 1", "torch.empty('a').numel() > 1", "torch.empty_like(3).numel() > 1",
    ],
)  # fmt: skip
@pytest.mark.parametrize("sizes", [70, np.arange(1, 100)], ids=["one call", "many"])
def test_an_odd_condition_is_read_without_an_error(condition, sizes):
    branches = branches_of(ast.parse(HEAD.format(kernel="pass", host=f"if {condition}:\n        z = x")), "f", ["x"])
    for branch in branches:
        missing = branch.missing(CallFacts({"x": contiguous_facts((3, sizes), "bfloat16")}, {}))
        assert np.shape(missing) in ((), np.shape(sizes))


@pytest.mark.parametrize(
    "condition", ["x.shape[0] * 3 > 80", "x.numel() == 3000", "x.stride(0) == 100", "x.size(1) == 100"]
)
def test_a_condition_of_the_host_function_is_read(condition):
    host = f"if {condition}:\n        z = x"
    assert not least_missing(host=host, shape=(30, 100)) and least_missing(host=host, shape=(5, 78))


@pytest.mark.parametrize(
    "condition",
    [
        "operator.gt(x.size(1), 80)", "op.ge(x.size(1), 81)", "larger(x.size(1), 80)", "x.size(1).__gt__(80)",
        "operator.eq(operator.mod(x.size(1), 50), 0)", "compare(x.size(1), 80)",
    ],
)  # fmt: skip
def test_functions_of_operator_are_read_by_any_name(condition):
    names = "import operator, operator as op\n    from operator import gt as larger\n    compare = operator.gt\n    "
    host = f"{names}if {condition}:\n        z = x"
    assert not least_missing(host=host, shape=(30, 100)) and least_missing(host=host, shape=(5, 78))


def test_a_comparison_by_a_function_is_a_branch_wherever_it_stands():
    branches = branches_of(ast.parse("def f(x):\n    return [x, 0][operator.gt(x.size(0), 9)]"), "f", ["x"])
    assert len(branches) == 2


@pytest.mark.parametrize("pattern", ["case 100:", "case n if N == 100:", "case 100 as n:"])
def test_a_match_is_read_as_what_it_asks(pattern):
    host = f"match N:\n        case 3:\n            z = x\n        {pattern}\n            z = x if M > 8 else z"
    assert [least_missing(host=host, shape=shape) for shape in ((30, 100), (3, 100), (3, 3))] == [0, 1, 3]


def test_a_match_of_several_is_read_one_by_one():
    host = "match M, N:\n        case 30, 100:\n            z = x"
    assert not least_missing(host=host, shape=(30, 100)) and least_missing(host=host, shape=(30, 78))


def test_what_none_decides_is_known_and_what_is_not_evaluated_needs_what_comes_before():
    host = "if slope is not None and slope % 64 == 0:\n        z = x"
    assert [least_missing(host=host, slope=slope) for slope in (128, 65, None)] == [0, 1, 1]
    host = "scale = slope or N\n    if scale % 64 == 6:\n        z = x"
    branches = branches_of(ast.parse(HEAD.format(kernel="pass", host=host)), "f", ["x", "slope"])
    chosen = next(one for one in branches if [ast.unparse(c.node) for c in one.conditions] == ["scale % 64 == 6"])
    x = contiguous_facts((3, 70))
    assert [chosen.missing(CallFacts({"x": x, "slope": slope}, {})) for slope in (None, 70, 64)] == [0, 0, 1]


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
    (branch, *_) = branches_of(ast.parse(text), "f", ["x"])
    branch.missing(CallFacts({"x": TensorFacts((5,), (1,))}, {}))
    assert not made.exists()
