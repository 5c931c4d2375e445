"""The replay process: disposable, trusted code only, owner of a GPU context that a submission's kernels may ruin.

The parent sends plans that it has accepted, and this process checks them once more. While a kernel of a submission can
still run on some data, the process holds no expected results for them. A fault of a kernel makes the process useless:
the parent starts another one.

    process -> parent    ready    {}                                    torch is imported, the context is there
    parent -> process    check    {plan, config, arguments, ...}        a call on inputs that the blob holds
                         draw     {plan, config, arguments, data, ...}  a call on inputs drawn here, compared here
                         measure  {plan, config, arguments, data, ...}  a sample of a call's speed
                         ceilings {uuid, seed, ...}                     the anchors against themselves; no plan
                         lend     {bytes, uuid, seed, ...}              a copy to be measured by a file; no plan
                         calls    {}                                    of the lent device; wire/device_calls packs them
                         return   {}                                    after which it is lent no more
                         go       {}                                    after prepared: nobody else uses the GPU now
    process -> parent    prepared {}                                    memory is filled, graphs are made, nothing timed
    process -> parent    checked  {overruns, changed, differing, outputs}  the results' bytes are the blob
                         drawn    {overruns, changed, differing, summaries}
                         measured {rounds, wrong, bytes, config}
                         ceilings {copy, matmul, megahertz, complaint}
                         lent     {seconds}                             of the copy, by our own measurement
                         told     {now, events}                         what calls of the device give
                         returned {}
                         failed   {message}                             the driver refused, or a kernel faulted
                         no-room  {message}                             the GPU has too little memory
                         died     {message}                             an error of this process itself
"""

from __future__ import annotations

import gc
import math
import os
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import BinaryIO

import torch

from grader.course.exercise import Exercise
from grader.course.folder import Folder, found_here, load_test_file
from grader.gpu.inside import ceilings, checking, measuring, real_gpu
from grader.gpu.inside.guarded_buffers import Buffers
from grader.gpu.inside.launcher import DriverError, Functions
from grader.gpu.lock import gpu_held
from grader.gpu.plan import Plan, read_plan
from grader.numerics.arguments import from_json
from grader.numerics.bounds import Bound
from grader.wire import frames
from grader.wire.messages import GpuModel, TensorSpec
from grader.wire.reply import spec_and_bytes

ANY_SIZE = 1 << 62
KEPT_BYTES = 64 << 20  # of memory, for the next request: asking the driver for it took a quarter of a check


def main(request_fd: int, reply_fd: int, uuid: str) -> None:
    """Answers requests until the pipe ends, or until a kernel fails. `uuid`: of the GPU."""
    with gpu_held(uuid, alone=False):  # a context in the making would disturb a measurement
        torch.zeros(1, device="cuda")  # makes the context and keeps it current
    with open(request_fd, "rb") as requests, open(reply_fd, "wb") as replies:

        def asked(reply: dict) -> tuple[dict, bytes]:
            frames.send(replies, reply)
            return _received(requests)

        frames.send(replies, {"kind": "ready"})
        while True:
            reply, blob = _answer(*_received(requests), asked)
            frames.send(replies, reply, blob)
            if reply["kind"] in ("failed", "died"):
                os._exit(1)  # the context may be ruined, and leaving in order would wait for it
            if reply["kind"] == "measured":
                gc.collect()  # graphs, and the memory that they keep
            give_memory_back()


def give_memory_back() -> None:
    """Returns torch's free memory to the driver, for others on this GPU, if torch holds more than KEPT_BYTES."""
    if torch.cuda.memory_reserved() > KEPT_BYTES:
        torch.cuda.empty_cache()


def _received(requests: BinaryIO) -> tuple[dict, bytes]:
    try:
        return frames.received(requests)
    except EOFError:
        os._exit(0)  # the parent is done, or gone


def _answer(header: dict, blob: bytes, asked: Callable[[dict], tuple[dict, bytes]]) -> tuple[dict, bytes]:
    """Returns the reply to a request. `asked`: sends what comes before it, and returns what the parent says to that."""

    def wait_for_turn() -> None:
        asked({"kind": "prepared"})

    answers: dict[str, Callable[..., tuple[dict, bytes]]] = {
        "check": _check, "draw": _draw, "measure": partial(_measure, wait_for_turn),
    }  # fmt: skip
    try:
        if header["kind"] == "ceilings":
            wait_for_turn()
            return ceilings.answer(header["uuid"], header["seed"], header["l2_bytes"], header["memory_bytes"]), b""
        if header["kind"] == "lend":
            return real_gpu.lend(header, asked), b""
        arguments = [TensorSpec.from_json(spec, ANY_SIZE, ANY_SIZE) for spec in header["arguments"]]
        plan = read_plan(header["plan"], blob[: header["plan_bytes"]], arguments, GpuModel(**header["model"]))
        functions = Functions(plan)
        reply = answers[header["kind"]](header, blob[header["plan_bytes"] :], plan, functions, arguments)
        functions.unload()
        return reply
    except torch.OutOfMemoryError as error:
        return {"kind": "no-room", "message": (str(error) or "out of memory").splitlines()[0][:300]}, b""
    except (DriverError, RuntimeError) as error:
        message = (str(error) or type(error).__name__).splitlines()[0][:300]
        short = "out of memory" in message.lower().replace("_", " ")
        return {"kind": "no-room" if short else "failed", "message": message}, b""
    except Exception as error:  # no fault of a kernel's: the parent tells it
        return {"kind": "died", "message": f"{type(error).__name__}: {error}"[:300]}, b""


def _exercise(header: dict) -> Exercise:
    return load_test_file(found_here(Folder(Path(header["folder"])))).exercise


def _bounds(header: dict, exercise: Exercise) -> dict[str, Bound]:
    return {name: stated or exercise.bounds[name] for name, stated in header["bounds"].items()}


def _check(
    header: dict, storages: bytes, plan: Plan, functions: Functions, arguments: list[TensorSpec]
) -> tuple[dict, bytes]:
    parts = [storages[spec.start : spec.start + spec.size] for spec in arguments]
    given = [torch.frombuffer(bytearray(data), dtype=torch.uint8).cuda() if data else None for data in parts]

    def fill(buffers: Buffers) -> None:
        for number, data in enumerate(given):
            if data is not None:
                buffers.data(number).copy_(data)

    results, replay = checking.replayed(plan, functions, header["config"], fill, arguments, header["written"])
    outputs, blob = [], b""
    for name, result in results.items():
        spec, data = spec_and_bytes(name, result.cpu().contiguous(), len(blob))
        outputs.append(spec.to_json())
        blob += data
    return {"kind": "checked", **asdict(replay), "outputs": outputs}, blob


def _draw(header: dict, _: bytes, plan: Plan, functions: Functions, arguments: list[TensorSpec]) -> tuple[dict, bytes]:
    exercise, seeds = _exercise(header), header["seeds"]
    all_stated = [from_json(stated) for stated in header["data"]]
    fill = checking.drawn(all_stated, arguments, seeds)
    results, replay = checking.replayed(plan, functions, header["config"], fill, arguments, exercise.written)
    dtype = getattr(torch, header["dtype"])
    summaries = checking.compared(exercise, _bounds(header, exercise), results, all_stated, dtype, seeds)
    described = {name: asdict(summary) for name, summary in summaries.items()}
    return {"kind": "drawn", **asdict(replay), "summaries": described}, b""


def _measure(
    wait_for_turn: Callable[[], None],
    header: dict, _: bytes, plan: Plan, functions: Functions, arguments: list[TensorSpec],
) -> tuple[dict, bytes]:  # fmt: skip
    exercise = _exercise(header)
    speed = measuring.SpeedRequest(
        exercise, _bounds(header, exercise), [from_json(stated) for stated in header["data"]],
        getattr(torch, header["dtype"]), arguments, header["anchor"], header["config"], header["seed"],
        header["with_torch"], header["model"]["l2_bytes"], header["uuid"], budget=header.get("budget", math.inf),
    )  # fmt: skip
    if not header["choose"] or plan.configs == 1:
        return {"kind": "measured", **asdict(measuring.sample(plan, functions, speed, wait_for_turn))}, b""
    wait_for_turn()
    speed.config = measuring.fastest(plan, functions, speed)
    return {"kind": "measured", **asdict(measuring.sample(plan, functions, speed))}, b""
