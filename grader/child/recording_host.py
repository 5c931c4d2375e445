"""A child that records: each launch of a call becomes a recipe and a step of a plan, and nothing runs."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import torch
import triton
import triton.language as tl

from grader.child.custom_operators import look_through
from grader.child.launch_recorder import LaunchRecorder
from grader.child.learner import LearnerFile
from grader.child.learner_host import LearnerHost
from grader.child.pretended_gpu import StandIn, TritonLaunch, stand_in_for
from grader.child.returned import Description
from grader.child.serving import ready
from grader.child.torch_refusals import Refusals, keep_modes_on, keep_to_one_thread
from grader.child.triton_api import without_a_hash_of_triton
from grader.wire.frames import JsonObject
from grader.wire.messages import CAPABILITY, MULTIPROCESSORS, Failure, GpuModel, RecordRequest, TensorSpec

ANY_SIZE = 1 << 62  # arguments have no bytes in the frame


class RecordingHost(LearnerHost):
    request, answer = "record", "recorded"

    def __init__(self, stand_in: StandIn):
        super().__init__()
        self.stand_in = stand_in
        keep_to_one_thread(lambda message: stand_in.pretence.refuse(message))
        self.files: dict[tuple[int, int], LearnerFile] = {}  # by multiprocessors and capability, 0 for the model's
        self.last: tuple[list[TensorSpec], dict[str, torch.Tensor]] = ([], {})  # arguments of the call before
        self.earlier: deque[object] = deque(
            maxlen=512
        )  # kept alive, so that no new tensor gets their storage by chance

    @contextlib.contextmanager
    def watched_import(self) -> Iterator[None]:
        """Lets the file allocate on the GPU that it believes in, and try its kernels out; nothing is recorded."""
        self.stand_in.on_launch = self._tried_out
        self.stand_in.pretence.forget()
        yield

    def _tried_out(self, launch: TritonLaunch) -> None:
        self.file.launched = True

    def load(self, header: JsonObject, blob: bytes) -> tuple[JsonObject, bytes]:
        answer = super().load(header, blob)
        self.files = {(0, 0): self.file}
        return answer

    def _on_gpu_with(self, multiprocessors: int, capability: int) -> Failure | None:
        """Makes `file` the file as imported on a GPU with these numbers: a file may ask once and keep the answer.

        0 stands for the model's own number. Returns the failure of the import, or None.
        """
        self.stand_in.is_told_as(multiprocessors, capability)
        told = multiprocessors, capability
        if told in self.files:
            self.file = self.files[told]
            return None
        self.file = LearnerFile(self.file.path, self.file.source)
        with self.watched_import():
            failure = self.file.load()
        if failure is None:
            self.files[told] = self.file
        return failure

    def call(self, header: JsonObject, blob: bytes) -> tuple[JsonObject, bytes]:
        names = RecordRequest.__dataclass_fields__.keys() & header.keys()
        fields = {name: header[name] for name in names}
        fields["arguments"] = [TensorSpec.from_json(spec, ANY_SIZE, ANY_SIZE) for spec in header["arguments"]]
        return self._record(RecordRequest(**fields))

    def _record(self, request: RecordRequest) -> tuple[JsonObject, bytes]:
        told = (request.constants.get(name, 0) for name in (MULTIPROCESSORS, CAPABILITY))
        error, returned = self._on_gpu_with(*told), None
        refusals = Refusals(self.file.path)
        recorder = LaunchRecorder(self.stand_in, refusals)
        known = self.last[1] if self.last[0] == request.arguments else {}
        arguments, given = dict[str, torch.Tensor](), list[object]()
        for spec in request.arguments:
            begins_as = request.begins.get(spec.name, "")
            arguments[spec.name] = recorder.argument(spec, begins_as, known.get(spec.name))
            # A tensor that is given twice is one object: `y is x` holds.
            is_twice = begins_as and recorder.is_whole(spec, begins_as)
            given.append(arguments[begins_as if is_twice else spec.name])
        self.last = request.arguments, arguments
        for place, number in request.numbers:
            given.insert(place, number)
        if error is None:
            try:
                returned = self._called(request, recorder, given)
            except BaseException as raised:  # SystemExit and KeyboardInterrupt are the learner's too
                error = self.file.failure(raised, "host")
        answer = {"kind": self.answer, "refusals": refusals.records, **self._result(recorder, returned)}
        self.earlier.append(returned)
        error = recorder.refusal or error
        is_whole = error is None and not refusals.records
        answer |= {"buffers": recorder.buffers, "steps": recorder.steps}
        answer |= {"kernels": recorder.kernels if is_whole else recorder.certain}
        return answer | {"error": None if error is None else asdict(error)}, b""

    def _called(self, request: RecordRequest, recorder: LaunchRecorder, given: list[Any]) -> object:
        entry = self.file.entry(request.entry, len(given))
        with contextlib.ExitStack() as stack:
            with self.watched_import():  # part of the file is run again
                stack.enter_context(self.file.with_constants(request.constants))
            stack.enter_context(recorder.on())
            returned = entry(*given)
            recorder.check_end()
            return returned

    def _result(self, recorder: LaunchRecorder, returned: object) -> JsonObject:
        with torch._C.DisableTorchFunction():
            return {"returned": Description(recorder.view_of, recorder.arguments, self.earlier).of(returned)}


@triton.jit
def _first_kernel(x_ptr):  # type: ignore[no-untyped-def]  # Triton reads the annotations of a kernel
    tl.store(x_ptr + tl.arange(0, 16), 0.0)


def prepare(model: GpuModel) -> tuple[JsonObject, StandIn]:
    """Does all that needs no submission. Returns the `ready` message, and the driver that takes launches."""
    stand_in = stand_in_for(model)
    look_through()
    said = ready({"triton": triton.__version__})
    without_a_hash_of_triton()
    keep_modes_on(lambda message: stand_in.pretence.refuse(message))
    kernel = _first_kernel.warmup(triton.MockTensor(tl.float32), grid=(1,))
    _ = kernel.key, kernel.metadata  # the compiler's own start, once for all children
    return said, stand_in
