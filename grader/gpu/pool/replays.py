"""A session's requests to its GPU: a plan's results there, and its speed. A pool of replay processes answers them."""

from __future__ import annotations

import atexit
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING

from grader.course.folder import Folder
from grader.gpu.device import Device
from grader.gpu.pool.pool import ReplayPool
from grader.gpu.pool.replay_process import Replayer
from grader.wire.messages import TensorSpec

if TYPE_CHECKING:
    from grader.gpu.plan import PackedPlan
    from grader.wire.device_calls import DeviceCall

CHECK_LIMIT, DRAW_LIMIT = 10.0, 30.0  # seconds, where right kernels take 0.1 and 0.5
LENT_LIMIT = 15.0  # seconds, of which a right measurement takes 1 to 2


class LentGpu:
    """The GPU as a device that a measuring function asks; its kernel is a copy of `seconds` by our own measurement."""

    def __init__(self, replayer: Replayer, seconds: float) -> None:
        self._replayer, self.seconds = replayer, seconds
        self._ends = time.monotonic() + LENT_LIMIT

    def answer(self, calls: list[DeviceCall]) -> tuple[float | None, list[float]]:
        """Returns what SimulatedGpu.answer returns for these calls. Raises ReplayEnded."""
        from grader.wire.device_calls import packed  # which imports torch: see session/machine.py

        reply, _ = self._replayer.ask({"kind": "calls"}, packed(calls), max(0.1, self._ends - time.monotonic()))
        return reply["now"], reply["events"]


class Replays:
    """The requests to a GPU. `pool`: a ReplayPool, or a PoolElsewhere, which has the same methods except `ceilings`."""

    def __init__(self, device: Device, pool=None) -> None:
        self.device = device
        self.pool = pool or ReplayPool(device.uuid)
        self._work = ""
        self._served: list[int] = []  # the processes that have taken a sample of this call

    def start(self, samplers: int, checkers: int = 0) -> None:
        """Starts processes in the background, as ReplayPool.start does: this many samplers and checkers."""
        self.pool.start(samplers, checkers)

    def check(
        self, packed: PackedPlan, config: int, arguments: list[TensorSpec], storages: bytes, written: list[str]
    ) -> tuple[dict, bytes]:
        """Returns (reply, bytes of the results) of a call on given inputs. Raises ReplayEnded, GpuBusy.

        `storages`: the inputs' bytes, where `arguments` say. `written`: the names of the arguments that the call may
        change.
        """
        request = {"kind": "check", "written": written, **self._request_of(packed, config, arguments)}
        return self.pool.check(request, packed.blob + storages, CHECK_LIMIT, alone=False)

    def draw(self, packed: PackedPlan, config: int, folder: Folder, seeds: list[int], alone: bool, **call) -> dict:
        """Returns the reply to a call on inputs that the process draws itself. Raises ReplayEnded, GpuBusy.

        `alone`: the call takes so much memory that others at the same time might find too little. `call`: see asked_of.
        """
        request = {
            "kind": "draw", "folder": str(folder.path), "seeds": seeds, **call,
            **self._request_of(packed, config, packed.arguments),
        }  # fmt: skip
        return self.pool.check(request, packed.blob, DRAW_LIMIT, alone)[0]

    def begin_call(self, work: str) -> None:
        """Begins the samples of another call. `work`: the work of its anchor, in any words."""
        self._work, self._served = work, []

    def measure(self, packed: PackedPlan, config: int, folder: Folder, **options) -> dict:
        """Returns a sample by a process that has taken none since `begin_call`. Raises ReplayEnded, GpuBusy.

        `options`: the fields that asked_of returns for the call, anchor, seed, choose, with_torch; budget, see Speed;
        limit: the seconds that the process may take to prepare, and again to measure.
        """
        request = {
            "kind": "measure", "folder": str(folder.path), "uuid": self.device.uuid, **options,
            **self._request_of(packed, config, packed.arguments),
        }  # fmt: skip
        reply, process = self.pool.sample(request, packed.blob, self._work, self._served)
        self._served.append(process)
        return reply

    def ceilings(self, seed: int) -> dict:
        """Returns a sample of the anchors against themselves, by a fresh process: the rates that the GPU reaches now.

        Raises ReplayEnded, GpuBusy.
        """
        model = self.device.model
        request = {"kind": "ceilings", "uuid": self.device.uuid, "seed": seed}
        request |= {"l2_bytes": model.l2_bytes, "memory_bytes": model.memory_bytes}
        return self.pool.ceilings(request)

    @contextmanager
    def lent(self, bytes_of_copy: int, seed: int) -> Iterator[LentGpu]:
        """Lends the GPU as a device on which a file measures a copy of so many bytes. Raises ReplayEnded, GpuBusy."""
        model = self.device.model
        request = {"kind": "lend", "bytes": min(bytes_of_copy, model.memory_bytes // 16), "seed": seed}
        request |= {"uuid": self.device.uuid, "l2_bytes": model.l2_bytes}
        with self.pool.lent(request) as (replayer, reply):
            yield LentGpu(replayer, reply["seconds"])

    def _request_of(self, packed: PackedPlan, config: int, arguments: list[TensorSpec]) -> dict:
        return {
            "plan": packed.header, "plan_bytes": len(packed.blob), "model": asdict(self.device.model),
            "config": config, "arguments": [spec.to_json() for spec in arguments],
        }  # fmt: skip

    def end(self) -> None:
        self.pool.end()


_shared: dict[Device, Replays] = {}
_pool_elsewhere = None


def use_pool(pool) -> None:
    """Lets the shared replays that this process makes from now on ask a pool that other processes ask too."""
    global _pool_elsewhere
    _pool_elsewhere = pool


def shared_replays(device: Device) -> Replays:
    """Returns this process's replays on a GPU; they outlive a run, so that the next run finds their processes warm."""
    if device not in _shared:
        _shared[device] = Replays(device, _pool_elsewhere)
        atexit.register(_shared[device].end)
    return _shared[device]


def end_shared_replays() -> None:
    """Ends the shared replays and their processes, which gives the GPUs back until they are needed again."""
    while _shared:
        _, replays = _shared.popitem()
        atexit.unregister(replays.end)
        replays.end()
