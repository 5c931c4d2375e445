"""Replays on a machine without a GPU: the replay process's own code on the CPU, the interpreter in the kernels' place.

What this cannot show is what a GPU does: machine code, the driver, the clock. tests/gpu shows that, on one.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
import torch

from grader.gpu.answers import Measurement, Round
from grader.gpu.device import Device
from grader.gpu.inside import checking, measuring, process
from grader.gpu.inside.guarded_buffers import Buffers
from grader.gpu.inside.timing import Chain
from grader.gpu.models import MODELS
from grader.gpu.plan import PackedPlan, Plan
from grader.gpu.pool.replays import Replays
from grader.interpreter.call import InterpretedCall
from grader.interpreter.program import ReadyKernel
from grader.judging.run import Run
from grader.ttir.parser import parse
from grader.wire.messages import InterpretRequest
from grader.wire.recorded_call import RecordedCall
from tests.waiting import NEVER

Harm = Callable[[Plan, Buffers], None]


class PoolHere:
    """In place of a Pool. `asked`: kinds of requests; `replies`: to them, as a pipe would bring them."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.replies: list[dict] = []

    def start(self, samplers: int, checkers: int = 0) -> None:
        """There is nothing to start."""

    def check(self, request: dict, blob: bytes, limit: float, alone: bool) -> tuple[dict, bytes]:
        self.asked.append(request["kind"])
        reply, data = process._answer(json.loads(json.dumps(request)), blob, lambda: None)
        assert reply["kind"] not in ("failed", "no-room"), reply
        self.replies.append(json.loads(json.dumps(reply)))
        return self.replies[-1], data

    def sample(self, request: dict, blob: bytes, work: str, served: list) -> tuple[dict, int]:
        return self.check(request, blob, 0.0, True)[0], len(self.asked)


class ReplaysHere(Replays):
    """`harm`: what is done to a call's buffers after its last step, as a wrong kernel might."""

    def __init__(self) -> None:
        super().__init__(Device("none", MODELS["sm_90"]), pool=PoolHere())
        self.harm: Harm = lambda plan, buffers: None
        self.call: RecordedCall | None = None

    def _request_of(self, recording: PackedPlan, config: int, arguments: list) -> dict:
        self.call = recording.call
        return super()._request_of(recording, config, arguments)


class Interpreted:
    """In place of grader.gpu.inside.replay.Replay."""

    def __init__(self, replays: ReplaysHere, plan: Plan, _: object, buffers: Buffers, config: int = 0) -> None:
        self.replays, self.call, self.plan, self.buffers, self.config = replays, replays.call, plan, buffers, config
        texts = enumerate(kernel.source for kernel in self.call.kernels)
        self.kernels = {number: ReadyKernel(parse(text, "kernels.py")) for number, text in texts}

    def enqueue(self) -> None:
        arguments = [number for number, buffer in enumerate(self.plan.buffers) if buffer.argument]
        names = [self.plan.buffers[number].name for number in arguments]
        specs = [spec for spec in self.replays.specs if spec.name in names]
        request = InterpretRequest([], [], "kernels.py", specs, names, [], [], config=self.config, limit=NEVER)
        inputs = [self.buffers.data(number).numpy() for number in arguments]
        call = InterpretedCall(request, self.call, self.kernels, inputs)
        reply, _ = call.run()
        assert reply["error"] is None, reply["error"]
        for number, buffer in enumerate(call.buffers):
            self.buffers.data(number).copy_(torch.from_numpy(np.array(buffer.bytes[: buffer.nbytes])))
        self.replays.harm(self.plan, self.buffers)


def measured(chains: dict[str, Chain], *_) -> Measurement:
    """One round in which every chain takes the same time; its outputs are verified as they are on a GPU."""
    wrong = ""
    for chain in chains.values():
        chain.refresh()
        for call in chain.calls:
            call()
        wrong = wrong or chain.verify()
    return Measurement([Round(dict.fromkeys(chains, 1e-3))] * 7, wrong)


@pytest.fixture
def replays_here(monkeypatch) -> ReplaysHere:
    """Give it to a Run as its `replays`."""
    replays, recorded = ReplaysHere(), Run.launch_plan

    def launch_plan(run: Run, trial, texts=(), inputs=None) -> PackedPlan:
        made = recorded(run, trial, texts, inputs)
        given = inputs or [one.shape_on("meta", trial.dtype) if hasattr(one, "shape") else one for one in trial.data]
        made.call, replays.specs = run.recorded_call(trial, given).call, made.arguments
        return made

    on_cpu = partial(Buffers, device="cpu")
    monkeypatch.setattr(Run, "launch_plan", launch_plan)
    monkeypatch.setattr(torch.Tensor, "cuda", lambda tensor: tensor)
    monkeypatch.setattr(process, "Functions", lambda plan: type("Functions", (), {"unload": lambda self: None})())
    monkeypatch.setattr(checking, "drawn", partial(checking.drawn, device="cpu"))
    for module in (checking, measuring):
        monkeypatch.setattr(module, "Buffers", on_cpu)
        monkeypatch.setattr(module, "Replay", partial(Interpreted, replays))
    monkeypatch.setattr(measuring, "slots_for", lambda plan: 2)
    monkeypatch.setattr(measuring, "SpeedRequest", partial(measuring.SpeedRequest, device="cpu"))
    monkeypatch.setattr(measuring, "anchor_chain", lambda *_: Chain([lambda: None]))
    monkeypatch.setattr(measuring, "Flush", lambda *_: None)
    monkeypatch.setattr(measuring, "Clocks", lambda *_: None)
    monkeypatch.setattr(measuring, "measure", measured)
    monkeypatch.setattr(measuring, "seconds_of", lambda call: 1e-3)
    return replays
