"""The replay processes that a session needs on one GPU: asked what a plan does, and how fast."""

from __future__ import annotations

import atexit
from contextlib import ExitStack
from dataclasses import asdict

from grader.exercise import Folder
from grader.gpu.device import Device
from grader.gpu.lock import gpu_held, next_to_measure
from grader.gpu.replayer import Recording, ReplayEnded, Replayer
from grader.gpu.samplers import Samplers
from grader.protocol import TensorSpec

CHECK_LIMIT, DRAW_LIMIT = 10.0, 30.0  # seconds, where right kernels take 0.1 and 0.5


class Replays:
    """The replay processes of a session: one that checks calls until a kernel ruins it, and those that take samples."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.samplers = Samplers(device.uuid)
        self._checker: Replayer | None = None

    def warm_up(self) -> None:
        """Starts the process that checks, while other work goes on."""
        if self._checker is not None and not self._checker.alive:
            self._checker.end()
            self._checker = None
        self._checker = self._checker or Replayer()

    def check(self, recording: Recording, config: int, arguments: list[TensorSpec], storages: bytes, returns: str):
        """(reply, bytes of the result) of a call on these very inputs. Raises ReplayEnded, GpuBusy."""
        request = {"kind": "check", "returns": returns, **self._given(recording, config, arguments)}
        return self._checked(request, recording.blob + storages, CHECK_LIMIT, alone=False)

    def draw(
        self, recording: Recording, config: int, folder: Folder, data: list[dict], seeds: list[int], bound: str,
        alone: bool,
    ):  # fmt: skip
        """The reply to a call on inputs that the process draws from recipes. Raises ReplayEnded, GpuBusy.

        `alone`: it takes so much memory that others beside it might find too little.
        """
        request = {
            "kind": "draw", "folder": str(folder.path), "data": data, "seeds": seeds, "bound": bound,
            **self._given(recording, config, recording.arguments),
        }  # fmt: skip
        return self._checked(request, recording.blob, DRAW_LIMIT, alone)[0]

    def _checked(self, request: dict, blob: bytes, limit: float, alone: bool) -> tuple[dict, bytes]:
        try:
            return self._checked_once(request, blob, limit, alone)
        except ReplayEnded as ended:
            if ended.how != "no-room" or alone:
                raise
        return self._checked_once(request, blob, limit, alone=True)  # other judges have given their memory back

    def _checked_once(self, request: dict, blob: bytes, limit: float, alone: bool) -> tuple[dict, bytes]:
        self.warm_up()
        try:
            self._checker.wait_until_ready()  # not while others wait for the GPU
            with ExitStack() as held:
                if alone:
                    held.enter_context(next_to_measure(self.device.uuid))  # nobody's buffers wait for a measurement
                held.enter_context(gpu_held(self.device.uuid, alone))
                return self._checker.ask(request, blob, limit)
        except ReplayEnded:
            self._checker = None
            raise

    def measure(self, recording: Recording, config: int, folder: Folder, **options) -> dict:
        """One sample of the call that the samplers have begun. Raises ReplayEnded, GpuBusy."""
        request = {
            "kind": "measure", "folder": str(folder.path), "uuid": self.device.uuid, **options,
            **self._given(recording, config, recording.arguments),
        }  # fmt: skip
        return self.samplers.measure(request, recording.blob)

    def ceilings(self, seed: int) -> dict:
        """A sample of what the GPU can do now, the anchors against themselves, by a fresh process.

        Raises ReplayEnded, GpuBusy.
        """
        model = self.device.model
        request = {"kind": "ceilings", "uuid": self.device.uuid, "seed": seed}
        request |= {"l2_bytes": model.l2_bytes, "memory_bytes": model.memory_bytes}
        return self.samplers.ceilings(request)

    def _given(self, recording: Recording, config: int, arguments: list[TensorSpec]) -> dict:
        return {
            "plan": recording.header, "plan_bytes": len(recording.blob), "model": asdict(self.device.model),
            "config": config, "arguments": [spec.to_json() for spec in arguments],
        }  # fmt: skip

    def end(self) -> None:
        replayers = [*([self._checker] if self._checker else []), *self.samplers.all()]
        for replayer in replayers:
            replayer.kill()
        for replayer in replayers:
            replayer.end()
        self._checker, self.samplers = None, Samplers(self.device.uuid)


_shared: dict[Device, Replays] = {}


def shared_replays(device: Device) -> Replays:
    """This process's replay processes on a GPU; they outlive a run, so that the next one finds them warm."""
    if device not in _shared:
        _shared[device] = Replays(device)
        atexit.register(_shared[device].end)
    return _shared[device]
