"""Buffers between guards: what is written beside them shows, and views lie where the plan says. On the CPU."""

from __future__ import annotations

import pytest
import torch

from grader.gpu.answers import Overrun
from grader.gpu.inside.guarded_buffers import GUARD, POISON, Buffers
from grader.gpu.plan import Plan, PlannedBuffer, PlannedView
from grader.numerics.data_sets import normal
from grader.wire.reply import spec_of


@pytest.fixture
def buffers() -> Buffers:
    plan = Plan([PlannedBuffer("x", True, 40), PlannedBuffer("allocation1", False, 24)])
    return Buffers(plan, shift=16, pattern=0x5A, device="cpu")


def test_only_arguments_are_shifted(buffers):
    assert [address % 64 for address in buffers.addresses] == [
        (memory.data_ptr() + GUARD + shift) % 64 for memory, shift in zip(buffers.memory, (16, 0))
    ]


def test_what_the_submission_allocates_is_poisoned(buffers):
    assert bool((buffers.data(1) == POISON).all()) and bool(
        buffers.view(PlannedView(1, 0, "float32", [6], [1])).isnan().all()
    )


def test_untouched_guards_are_no_overrun(buffers):
    buffers.data(0).fill_(1)
    assert buffers.overruns() == []


@pytest.mark.parametrize(
    "number, place, side, distance",
    [
        (0, 40, "after", 0),
        (0, 43, "after", 3),
        (0, -1, "before", 0),
        (1, -5, "before", 4),
        (1, 24 + GUARD - 1, "after", 4095),
    ],
)
def test_a_byte_beside_a_buffer_is_an_overrun(buffers, number, place, side, distance):
    buffers.memory[number][buffers.starts[number] + place] = 7
    assert buffers.overruns() == [Overrun(buffers.plan.buffers[number].name, side, distance, 1)]


def test_views_are_counted_from_the_buffer_and_not_from_its_memory(buffers):
    buffers.view(PlannedView(0, 8, "float32", [2, 3], [4, 1])).copy_(torch.arange(6.0).view(2, 3))
    assert buffers.data(0).view(torch.float32)[2:5].tolist() == [0, 1, 2]
    assert buffers.data(0).view(torch.float32)[6:9].tolist() == [3, 4, 5]


@pytest.fixture
def changed_between(monkeypatch):
    """By parts of 8 bytes. It reaches the driver through cuda-bindings, which a machine without a GPU need not have."""
    pytest.importorskip("cuda.bindings")
    from grader.gpu.inside import checking

    monkeypatch.setattr(checking, "MOST_COMPARED", 8)
    return checking._changed_between


@pytest.mark.parametrize("layout", ["padded", "every_second", "transposed"])
def test_bytes_between_the_elements_of_a_view_are_not_its_own(changed_between, layout):
    tensor = getattr(normal(3, 5), layout)().tensor(torch.float32, torch.Generator())
    spec = spec_of("z", tensor)
    now = torch.empty(0, dtype=torch.uint8).set_(tensor.untyped_storage()).clone()
    given = now.clone()
    own = torch.zeros(spec.size // 4, dtype=torch.bool)
    own.as_strided(spec.shape, spec.strides, spec.offset).fill_(True)
    words = now.view(torch.float32)
    words[own] = 1.0
    assert changed_between(now ^ given, spec) == []
    if not bool(own.all()):
        words[~own] = 2.0
        count = int((now ^ given).view(torch.float32)[~own].view(torch.uint8).count_nonzero())
        assert changed_between(now ^ given, spec) == [Overrun("z", "between", 0, count)]
