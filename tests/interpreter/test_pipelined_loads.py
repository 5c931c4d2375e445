"""A load that a pipelined loop begins before a store of an earlier iteration is found, with the lines of both."""

from __future__ import annotations

import pytest
import torch

X = torch.ones(16, 16)

# Each iteration stores what the load of a later one reads.
WALKS = """
@triton.jit
def alone(s_ptr, turns, BACK: tl.constexpr, STAGES: tl.constexpr):
    lanes = tl.arange(0, 16)
    for turn in tl.range(0, turns, num_stages=STAGES):
        before = tl.load(s_ptr + turn * 16 + lanes)
        tl.store(s_ptr + (turn + BACK) * 16 + lanes, before + 1.0)  # stored

@triton.jit
def summed(s_ptr, turns, BACK: tl.constexpr, STAGES: tl.constexpr):
    lanes = tl.arange(0, 16)
    for turn in tl.range(0, turns, num_stages=STAGES):
        before = tl.load(s_ptr + turn * 16 + lanes)
        tl.atomic_add(s_ptr + (turn + BACK) * 16 + lanes, before + 1.0)  # stored

@triton.jit
def stored_within(s_ptr, turns, BACK: tl.constexpr, STAGES: tl.constexpr):
    lanes = tl.arange(0, 16)
    for turn in tl.range(0, turns, num_stages=STAGES):
        before = tl.load(s_ptr + turn * 16 + lanes)
        for part in range(2):
            if turn + part >= 0:
                tl.store(s_ptr + (turn + BACK) * 16 + lanes, before + part)  # stored

@triton.jit
def loaded_within(s_ptr, turns, BACK: tl.constexpr, STAGES: tl.constexpr):
    lanes = tl.arange(0, 16)
    for turn in tl.range(0, turns, num_stages=STAGES):
        if turn % 2 == 0:
            before = tl.load(s_ptr + turn * 16 + lanes)
            tl.store(s_ptr + (turn + BACK) * 16 + lanes, before + 1.0)

@triton.jit
def no_pipeline(s_ptr, turns, BACK: tl.constexpr, STAGES: tl.constexpr):
    lanes = tl.arange(0, 16)
    for turn in range(turns):
        before = tl.load(s_ptr + turn * 16 + lanes)
        tl.store(s_ptr + (turn + BACK) * 16 + lanes, before + 1.0)

@triton.jit
def product(s_ptr, turns, BACK: tl.constexpr, STAGES: tl.constexpr):
    tile = tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :]
    for turn in range(turns):
        before = tl.load(s_ptr + turn * 256 + tile)
        tl.store(s_ptr + (turn + BACK) * 256 + tile, tl.dot(before * 2.0, before + 1.0))  # stored

@triton.jit
def two_loops(s_ptr, turns, BACK: tl.constexpr, STAGES: tl.constexpr):
    lanes = tl.arange(0, 16)
    for loop in range(2):
        for turn in tl.range(0, turns, num_stages=STAGES):
            before = tl.load(s_ptr + (turn + 40 * (1 - loop)) * 16 + lanes)
            tl.store(s_ptr + (turn + 1 + 20 * loop) * 16 + lanes, before)

@triton.jit
def each_for_the_other(s_ptr, turns, BACK: tl.constexpr, STAGES: tl.constexpr):
    lanes, own = tl.arange(0, 16), tl.program_id(0) * 16
    for turn in tl.range(0, turns, num_stages=STAGES):
        before = tl.load(s_ptr + turn * 32 + own + lanes)
        tl.store(s_ptr + (turn + BACK) * 32 + 16 - own + lanes, before)

def entry(x, kernel=None, back=1, stages=3):
    s = torch.zeros(64 * 256, device=x.device)
    {kernel}[(2 if "{kernel}" == "each_for_the_other" else 1,)](s, 6, {back}, {stages}, num_stages={launched})
    return s
"""


def findings(child, kernel: str, back: int, stages: int, launched: int = 1) -> list[tuple]:
    child.load(WALKS.format(kernel=kernel, back=back, stages=stages, launched=launched))
    reply = child.run("entry", x=X)
    assert reply.error is None
    return [(one["kind"], one["line"], one["other_program"]) for one in reply.findings]


def lines(child, kernel: str) -> tuple[int, int]:
    """The lines of the load and of the store in a kernel."""
    begin = child.line(f"def {kernel}(")
    after = list(enumerate(child.lines[begin:], begin + 1))
    return next(n for n, line in after if "tl.load" in line), next(n for n, line in after if "# stored" in line)


@pytest.mark.parametrize("stages", [1, 2, 3, 4])
def test_a_load_begins_as_many_iterations_ahead_as_there_are_further_stages(child, stages):
    for back in (1, 2, 3, 4):
        found = findings(child, "alone", back, stages)
        load, store = lines(child, "alone")
        assert found == ([("load-ahead-of-store", load, [store])] if back < stages else []), back


@pytest.mark.parametrize("kernel", ["summed", "stored_within"])
def test_stores_of_every_kind_count(child, kernel):
    found = findings(child, kernel, back=1, stages=3)
    load, store = lines(child, kernel)
    assert found == [("load-ahead-of-store", load, [store])]


@pytest.mark.parametrize("kernel", ["loaded_within", "no_pipeline"])
def test_what_is_not_pipelined_begins_where_it_stands(child, kernel):
    assert findings(child, kernel, back=1, stages=3, launched=3) == []


def test_a_launch_pipelines_the_loads_that_lead_to_a_product(child):
    assert findings(child, "product", back=1, stages=1, launched=1) == []
    found = findings(child, "product", back=2, stages=1, launched=3)
    load, store = lines(child, "product")
    assert found == [("load-ahead-of-store", load, [store])]


def test_the_store_of_another_program_is_a_race_whatever_the_loop_does(child):
    kinds = {kind for kind, *_ in findings(child, "each_for_the_other", back=1, stages=3)}
    assert kinds and all(kind.startswith("race") for kind in kinds)


def test_a_store_of_an_earlier_loop_is_done(child):
    """The second loop loads in each iteration what the first has stored in the iteration before, by its number."""
    assert findings(child, "two_loops", back=1, stages=3) == []
