"""A child that compiles: each launch of a call becomes machine code and a step of a launch plan, and nothing runs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import asdict

import torch
import triton
import triton.language as tl
from triton.runtime import cache

from grader.child.host import Host
from grader.child.recorder import Recorder
from grader.child.refusals import PoisonedAllocations, Refusals
from grader.child.serving import ready
from grader.child.stand_in import PretendCuda, StandIn, stand_in_for
from grader.protocol import GpuModel, RecordRequest, TensorSpec

ANY_SIZE = 1 << 62  # arguments have no bytes in the frame


class CompilingHost(Host):
    request, answer = "record", "recorded"
    has_values = False

    def __init__(self, stand_in: StandIn):
        super().__init__()
        self.stand_in = stand_in

    @contextlib.contextmanager
    def watched_import(self) -> Iterator[None]:
        """The file may allocate on the GPU that it believes in, and try its kernels out; nothing is recorded."""
        self.stand_in.on_launch = lambda launch: None
        with PretendCuda(lambda tensor: 0), PoisonedAllocations():
            yield

    def call(self, header: dict, blob: bytes) -> tuple[dict, bytes]:
        names = RecordRequest.__dataclass_fields__.keys() & header.keys()
        fields = {name: header[name] for name in names}
        fields["arguments"] = [TensorSpec.from_json(spec, ANY_SIZE, ANY_SIZE) for spec in header["arguments"]]
        return self._record(RecordRequest(**fields))

    def _record(self, request: RecordRequest) -> tuple[dict, bytes]:
        refusals = Refusals(self.file.path)
        recorder = Recorder(self.stand_in, refusals)
        arguments = [recorder.argument(spec) for spec in request.arguments]
        error, result = None, None
        try:
            entry = self.file.entry(request.entry, len(arguments))
            with contextlib.ExitStack() as stack:
                with self.watched_import():  # part of the file is run again
                    stack.enter_context(self.file.with_constants(request.constants))
                stack.enter_context(recorder.on())
                returned = entry(*arguments)
                result = recorder.view(returned, "the result") if isinstance(returned, torch.Tensor) else None
        except BaseException as raised:  # SystemExit and KeyboardInterrupt are the learner's too
            error = self.file.failure(raised, "host")
        error = recorder.refusal or error
        kernels, blob = _with_bytes(recorder.kernels, request.texts)
        plan = {"buffers": recorder.buffers, "kernels": kernels, "steps": recorder.steps, "result": result}
        failure = None if error is None else asdict(error)
        return {"kind": self.answer, "error": failure, "refusals": refusals.records, **plan}, blob


def _with_bytes(kernels: list[dict], texts: list[str]) -> tuple[list[dict], bytes]:
    """The kernels with places in a blob for their machine code and the texts asked for."""
    described, blob = [], b""
    for kernel in kernels:
        binary, places = kernel["binary"], {}
        parts = {"cubin": binary.cubin, **{name: binary.texts[name].encode() for name in texts if name in binary.texts}}
        for name, data in parts.items():
            places[name] = [len(blob), len(data)]
            blob += data
        described.append({**{key: value for key, value in kernel.items() if key != "binary"}, "parts": places})
    return described, blob


@triton.jit
def _first_kernel(x_ptr):
    tl.store(x_ptr + tl.arange(0, 16), 0.0)


def prepare(model: GpuModel) -> tuple[dict, StandIn]:
    """Everything that can be done before a submission is known, and the driver that takes its launches."""
    stand_in = stand_in_for(model)
    said = ready({"triton": triton.__version__}, [])
    # Triton's cache is keyed by a hash of all of Triton, half a gigabyte of it. A child's cache is its own and begins
    # empty, so any word does.
    cache.triton_key = lambda: triton.__version__
    _first_kernel.warmup(triton.MockTensor(tl.float32), grid=(1,))  # the compiler's own start, once for all children
    return said, stand_in
