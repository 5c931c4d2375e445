"""What the repeats of a call show beside its result: of large calls, looked at one by one, and of small ones.

Here with a few lines of torch in place of the kernel, on the CPU; with kernels: tests/gpu/test_on_device.py.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
import torch

from grader.gpu.answers import Overrun, Replayed
from grader.gpu.inside.guarded_buffers import Buffers
from grader.gpu.plan import Plan, PlannedBuffer, PlannedView
from grader.wire.messages import TensorSpec

N = 6
X = TensorSpec("x", "float32", (N,), (1,), 0, 0, 4 * N)
Z = TensorSpec("z", "float32", (N // 2,), (2,), 0, 0, 4 * N)  # every second element of its buffer
PLAN = Plan(
    [PlannedBuffer("x", True, 4 * N), PlannedBuffer("z", True, 4 * N)],
    results={"z": PlannedView(1, 0, "float32", [N // 2], [2])},
)
Kernel = Callable[[Buffers], None]


def right(buffers: Buffers) -> None:
    buffers.view(PLAN.results["z"]).copy_(2 * buffers.argument(0, X)[: N // 2])


def past_the_end(buffers: Buffers) -> None:
    right(buffers)
    buffers.memory[0][buffers.starts[0] + 4 * N + 5] = 7


def into_a_hole(buffers: Buffers) -> None:
    right(buffers)
    buffers.data(1)[4] = 1


def into_the_input(buffers: Buffers) -> None:
    right(buffers)
    buffers.argument(0, X)[1] += 1


def from_beyond(buffers: Buffers) -> None:
    """What lies there differs from repeat to repeat."""
    right(buffers)
    beyond = buffers.memory[0][buffers.starts[0] + 4 * N :][:4].clone()
    buffers.view(PLAN.results["z"])[2] = beyond.view(torch.float32).nan_to_num()[0]


class Hides:
    """A kernel that restores, in each run, what its last one has left; it found the places."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel, self.last = kernel, None

    def __call__(self, buffers: Buffers) -> None:
        if self.last is not None:
            for memory, clean in zip(*self.last[:2]):
                memory.copy_(clean)
            right(self.last[2])
        clean = [memory.clone() for memory in buffers.memory]
        (self.kernel if self.last is None else right)(buffers)
        self.last = buffers.memory, clean, buffers


class OnlyOnce:
    """A kernel that does something in the last repeat alone."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel, self.runs = kernel, 0

    def __call__(self, buffers: Buffers) -> None:
        self.runs += 1
        (self.kernel if self.runs == 3 else right)(buffers)


@pytest.fixture(params=["small", "large"])
def replayed(request, monkeypatch):
    """replayed(kernel): (the result, what was found)."""
    pytest.importorskip("cuda.bindings")  # which a machine without a GPU need not have
    from grader.gpu.inside import checking

    class Replay:
        def __init__(self, plan, kernel: Kernel, buffers: Buffers, config: int) -> None:
            self.enqueue = partial(kernel, buffers)

    def fill(buffers: Buffers) -> None:
        buffers.argument(0, X).copy_(torch.arange(float(N)))
        buffers.data(1).fill_(9)

    monkeypatch.setattr(checking, "Buffers", partial(Buffers, device="cpu"))
    monkeypatch.setattr(checking, "Replay", Replay)
    monkeypatch.setattr(checking, "LARGE", 1 << 20 if request.param == "small" else 0)

    def replayed(kernel: Kernel) -> tuple[torch.Tensor, Replayed]:
        results, found = checking.replayed(PLAN, kernel, 0, fill, [X, Z], ["z"])
        return results["z"], found

    return replayed


def test_of_a_right_kernel_there_is_nothing_to_tell(replayed):
    result, found = replayed(right)
    assert result.tolist() == [0, 2, 4] and found == Replayed()


@pytest.mark.parametrize(
    "often",
    [lambda kernel: kernel, OnlyOnce, Hides],
    ids=["each time", "the last time", "hidden afterwards"],
)
@pytest.mark.parametrize(
    ("kernel", "told"),
    [
        (past_the_end, Replayed(overruns=[Overrun("x", "after", 5, 1)])),
        (into_a_hole, Replayed(overruns=[Overrun("z", "between", 0, 1)])),
        (into_the_input, Replayed(changed=["x"])),
    ],
)
def test_what_a_kernel_does_beside_its_result_is_told(replayed, kernel, told, often):
    result, found = replayed(often(kernel))
    assert result.tolist() == [0, 2, 4] and found == told


def test_what_does_not_repeat_is_counted(replayed):
    assert replayed(from_beyond)[1] == Replayed(differing={"z": 1})


def test_the_result_is_that_of_the_first_run(replayed):
    result, found = replayed(OnlyOnce(from_beyond))
    assert result.tolist() == [0, 2, 4] and found == Replayed(differing={"z": 1})
