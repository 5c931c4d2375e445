"""The other outcome of what the language leaves open: what it is, for which operations, and what is told of it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

SOURCE = """
@triton.jit
def added(a, b):
    return tl.where(a > b, a + b, b + a)  # as one function of numpy it would have a fixed order

@triton.jit
def kernel(x_ptr, y_ptr, w_ptr, z_ptr, none):
    i = tl.arange(0, 64)
    x, y, w = tl.load(x_ptr + i), tl.load(y_ptr + i), tl.load(w_ptr + i)
    {body}
    tl.store(z_ptr + i, z)

def entry(x, y, w):
    z = torch.empty_like({like})
    kernel[(1,)](x, y, w, z, 0{options})
    return z
"""
FLOATS = [torch.randn(64, generator=torch.Generator().manual_seed(seed)) for seed in (1, 2, 3)]
NUMBERS = [torch.arange(64, dtype=torch.int32) - shift for shift in (0, 20, 40)]


def ran(child, body: str, given: list, other: int = 7, other_at: tuple = (), options: str = "", like: str = "x"):
    child.load(SOURCE.format(body=body, options=options, like=like))
    reply = child.run("entry", {"other": other, "other_at": list(other_at)}, **dict(zip("xyw", given)))
    assert reply.error is None and reply.findings == []
    return reply.output.numpy(), {(one["kind"], one["line"], one["rounds"]) for one in reply.left_open}


SUMS = {
    "z = x * y + w": lambda x, y, w: (x * y + w, np.float32(x * y) + np.float32(w)),
    "z = w + x * y": lambda x, y, w: (x * y + w, np.float32(x * y) + np.float32(w)),
    "z = x * y - w": lambda x, y, w: (x * y - w, np.float32(x * y) - np.float32(w)),
    "z = w - x * y": lambda x, y, w: (w - x * y, np.float32(w) - np.float32(x * y)),
}


@pytest.mark.parametrize("body", SUMS)
def test_a_sum_with_a_product_is_rounded_once(child, body):
    once, twice = (np.float32(one) for one in SUMS[body](*(one.double().numpy() for one in FLOATS)))
    assert (once != twice).any()
    found, told = ran(child, body, FLOATS)
    line = child.line(body)
    assert (found == once).all() and told == {("contraction", line, True)}
    for options in (dict(other=0), dict(other_at=("contraction", line + 1)), dict(options=", enable_fp_fusion=False")):
        found, told = ran(child, body, FLOATS, **options)
        assert (found == twice).all() and told == set(), options
    assert (ran(child, body, FLOATS, other_at=("contraction", line))[0] == once).all()


def test_a_sum_that_leads_to_an_address_keeps_its_two_roundings(child):
    """Its overflow is looked for, and that asks for the sum as it stands."""
    assert ran(child, "z = tl.load(x_ptr + (x * x + 1.0).to(tl.int32))", FLOATS)[1] == set()


@pytest.mark.parametrize(("body", "expected"), [
    ("z = x // none", -1),
    ("z = (x.to(tl.uint32) // none.to(tl.uint32)).to(tl.int32)", -1),
    ("z = (x // none) + none * 0", -1),
])  # fmt: skip
def test_a_whole_number_divided_by_0_has_all_bits_set(child, body, expected):
    found, told = ran(child, body, NUMBERS)
    assert (found == expected).all() and {(kind, rounds) for kind, _, rounds in told} == {("division", False)}
    assert (ran(child, body, NUMBERS, other=0)[0] == 0).all()


FOLDS = {
    "z = tl.associative_scan(x, 0, added)": np.cumsum,
    "z = tl.associative_scan(x, 0, added, reverse=True)": lambda x: np.cumsum(x[::-1])[::-1],
    "z = tl.reduce(x, 0, added) + x * 0": lambda x: np.full_like(x, x.sum()),
    "z = tl.reshape(tl.reduce(tl.reshape(x, (2, 32)), 1, added)[:, None] + tl.zeros((2, 32), tl.int32), (64,))":
        lambda x: np.repeat(x.reshape(2, 32).sum(1), 32),
}  # fmt: skip


@pytest.mark.parametrize("body", FOLDS)
def test_a_function_that_may_combine_in_any_order_gives_the_same(child, body):
    found, told = ran(child, body, NUMBERS)
    assert (found == FOLDS[body](NUMBERS[0].numpy())).all()
    assert {(kind, rounds) for kind, _, rounds in told} == {("combination", False)}


def test_floats_that_are_combined_in_another_order_may_round_otherwise(child):
    body = "z = tl.associative_scan(x, 0, added)"
    usual, (found, told) = ran(child, body, FLOATS, other=0)[0], ran(child, body, FLOATS)
    np.testing.assert_allclose(found, usual, rtol=1e-4, atol=1e-4)
    assert (found != usual).any() and {(kind, rounds) for kind, _, rounds in told} == {("combination", True)}


def test_addresses_are_drawn_from_the_number(child):
    body = "z = ((x_ptr.to(tl.int64) >> 34) * 1000 + (z_ptr.to(tl.int64) >> 34)).to(tl.int32) + x * 0"
    found = {int(ran(child, body, NUMBERS, other=other)[0][0]) for other in (0, 1, 2, 3)}
    assert len(found) == 4
