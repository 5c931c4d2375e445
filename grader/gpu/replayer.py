"""The parent's end of the replay processes: started ahead, asked under a time limit, replaced when one is ruined."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import select
import subprocess
import sys
import time
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from grader.exercise import Folder
from grader.gpu.device import Device
from grader.gpu.lock import gpu_held, next_to_measure
from grader.import_path import trusted_path
from grader.protocol import LENGTHS, ProtocolError, TensorSpec, pack, unpack_header, unpack_lengths

if TYPE_CHECKING:
    from grader.gpu.plan import Plan

START_LIMIT = 120.0  # seconds to import torch and make a context
CHECK_LIMIT, DRAW_LIMIT, MEASURE_LIMIT = 10.0, 30.0, 60.0  # where right kernels take 0.1, 0.5 and 2
MOST_KEPT = 2  # processes that go on after their sample: as many as the samples of most calls
BOOT = (
    "import sys, json; sys.path[:] = json.loads(sys.argv[1]); "
    "from grader.gpu.process import main; main(int(sys.argv[2]), int(sys.argv[3]))"
)


class ReplayEnded(Exception):
    """A replay process is gone. how: "time"; "failed": the driver's error is the detail; "no-room"; "died"."""

    def __init__(self, how: str, detail: str):
        super().__init__(detail)
        self.how, self.detail = how, detail


@dataclass
class Recording:
    """A launch plan, read, and as the child sent it; `arguments` are those it was asked for."""

    plan: Plan
    header: dict
    blob: bytes
    arguments: list[TensorSpec]


class Replayer:
    """One replay process."""

    def __init__(self) -> None:
        theirs_in, self._request = os.pipe()
        self._reply, theirs_out = os.pipe()
        self._ready = False
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-c", BOOT, json.dumps(trusted_path()), str(theirs_in), str(theirs_out)],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            pass_fds=(theirs_in, theirs_out), start_new_session=True, cwd="/",
        )  # fmt: skip
        os.close(theirs_in)
        os.close(theirs_out)

    def wait_until_ready(self) -> None:
        """Raises ReplayEnded if the process does not come up."""
        if self._ready:
            return
        try:
            self._guarded(lambda: self._receive(time.monotonic() + START_LIMIT))
        except ReplayEnded:
            raise ReplayEnded("died", "it did not come up") from None
        self._ready = True

    def ask(self, request: dict, blob: bytes, limit: float) -> tuple[dict, bytes]:
        """Raises ReplayEnded; after that the process is of no more use."""
        self.wait_until_ready()

        def answered():
            deadline = time.monotonic() + limit
            data = memoryview(pack(request, blob))
            while data:
                data = data[os.write(self._request, data[: 1 << 20]) :]
            return self._receive(deadline)

        reply, reply_blob = self._guarded(answered)
        if reply["kind"] in ("failed", "no-room"):
            self.end()
            raise ReplayEnded(reply["kind"], str(reply.get("message", "")))
        return reply, reply_blob

    def _guarded(self, work):
        try:
            return work()
        except (BrokenPipeError, ProtocolError) as error:
            self.end()
            raise ReplayEnded("died", str(error)) from None
        except ReplayEnded:
            self.end()
            raise

    def _receive(self, deadline: float) -> tuple[dict, bytes]:
        header_bytes, blob_bytes = unpack_lengths(self._read(LENGTHS.size, deadline))
        return unpack_header(self._read(header_bytes, deadline)), self._read(blob_bytes, deadline)

    def _read(self, count: int, deadline: float) -> bytes:
        parts = []
        while count:
            ready, _, _ = select.select([self._reply], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise ReplayEnded("time", "")
            part = os.read(self._reply, min(count, 1 << 20))
            if not part:
                raise ReplayEnded("died", "the replay process ended")
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def kill(self) -> None:
        """Begins to end it: taking a context down takes 0.1 s."""
        self._process.kill()

    def end(self) -> None:
        if self._request < 0:
            return
        self.kill()
        self._process.wait()
        for descriptor in (self._request, self._reply):
            with contextlib.suppress(OSError):
                os.close(descriptor)
        self._request = self._reply = -1


class Replays:
    """The replay processes of a session: one that checks calls until a kernel ruins it, and others that take samples.

    Where memory lies in a process makes its samples alike, so each sample of a call comes from another process. After a
    sample that was right in all respects a process serves other calls too: on a machine with several GPUs the driver
    makes contexts one after the other, and a class would wait for that.
    """

    def __init__(self, device: Device) -> None:
        self.device = device
        self._checker: Replayer | None = None
        self._samplers: list[Replayer] = []  # with no sample yet of the call that is being measured
        self._sampled: list[Replayer] = []  # with one

    def warm_up(self, samples: int = 0) -> None:
        """Starts processes while other work goes on: the one that checks, and so many for samples."""
        if self._checker is not None and not self._checker.alive:
            self._checker.end()
            self._checker = None
        self._checker = self._checker or Replayer()
        self.warm_up_samples(samples)

    def warm_up_samples(self, samples: int) -> None:
        """Starts processes for samples alone."""
        for replayer in [one for one in self._samplers if not one.alive]:
            self._samplers.remove(replayer)
            replayer.end()
        while len(self._samplers) < samples:
            self._samplers.append(Replayer())

    def begin_call(self) -> None:
        """Another call will be measured: every process may take a sample of it."""
        self._samplers, self._sampled = self._sampled + self._samplers, []

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
        with ExitStack() as held:
            if alone:
                held.enter_context(next_to_measure(self.device.uuid))  # nobody's buffers wait for a measurement
            held.enter_context(gpu_held(self.device.uuid, alone))
            self.warm_up(len(self._samplers))
            try:
                return self._checker.ask(request, blob, limit)
            except ReplayEnded:
                self._checker = None
                raise

    def measure(self, recording: Recording, config: int, folder: Folder, **options) -> dict:
        """One sample, by a process that has taken none since `begin_call`. Raises ReplayEnded, GpuBusy."""
        request = {
            "kind": "measure", "folder": str(folder.path), "uuid": self.device.uuid, **options,
            **self._given(recording, config, recording.arguments),
        }  # fmt: skip
        reply, replayer = self._sample(request, recording.blob)
        if reply["wrong"] or len(self._sampled) == MOST_KEPT:
            replayer.end()
        else:
            self._sampled.append(replayer)
        return reply

    def ceilings(self, seed: int) -> dict:
        """A sample of what the GPU can do now, the anchors against themselves, by a fresh process.

        Raises ReplayEnded, GpuBusy.
        """
        model = self.device.model
        request = {"kind": "ceilings", "uuid": self.device.uuid, "seed": seed}
        request |= {"l2_bytes": model.l2_bytes, "memory_bytes": model.memory_bytes}
        reply, replayer = self._sample(request, b"")
        replayer.end()
        return reply

    def _sample(self, request: dict, blob: bytes) -> tuple[dict, Replayer]:
        """The reply and who gave it."""
        try:
            return self._sample_by_next(request, blob, alone=False)
        except ReplayEnded as ended:
            if ended.how != "no-room":
                raise
        return self._sample_by_next(request, blob, alone=True)  # other judges have given their memory back

    def _sample_by_next(self, request: dict, blob: bytes, alone: bool) -> tuple[dict, Replayer]:
        """Prepared beside checks and timed alone, or both with the GPU to itself."""
        self.warm_up_samples(max(len(self._samplers), 1))
        for replayer in self._samplers:  # a context in the making would disturb the measurement
            replayer.wait_until_ready()
        replayer, uuid = self._samplers.pop(0), self.device.uuid
        try:
            with ExitStack() as preparing:
                preparing.enter_context(next_to_measure(uuid))
                with gpu_held(uuid, alone):
                    replayer.ask(request, blob, MEASURE_LIMIT)
                    if alone:
                        return replayer.ask({"kind": "go"}, b"", MEASURE_LIMIT)[0], replayer
                with gpu_held(uuid, alone=True):
                    preparing.close()
                    return replayer.ask({"kind": "go"}, b"", MEASURE_LIMIT)[0], replayer
        except BaseException:
            replayer.end()
            raise

    def _given(self, recording: Recording, config: int, arguments: list[TensorSpec]) -> dict:
        return {
            "plan": recording.header, "plan_bytes": len(recording.blob), "model": asdict(self.device.model),
            "config": config, "arguments": [spec.to_json() for spec in arguments],
        }  # fmt: skip

    def end(self) -> None:
        replayers = [*([self._checker] if self._checker else []), *self._samplers, *self._sampled]
        for replayer in replayers:
            replayer.kill()
        for replayer in replayers:
            replayer.end()
        self._checker, self._samplers, self._sampled = None, [], []


_shared: dict[Device, Replays] = {}


def shared_replays(device: Device) -> Replays:
    """This process's replay processes on a GPU; they outlive a run, so that the next one finds them warm."""
    if device not in _shared:
        _shared[device] = Replays(device)
        atexit.register(_shared[device].end)
    return _shared[device]
