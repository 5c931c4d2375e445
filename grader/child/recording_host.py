"""A child that records: each launch of a call becomes a recipe and a step of a plan, and nothing runs.

Nothing that it says is believed: it runs beside the learner's Python, which may have changed it. It knows no seed, no
reference and no bound, and the parent reads its answers field by field.
"""

from __future__ import annotations

import contextlib
import sys
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from typing import Any

import torch
import triton
import triton.language as tl

from grader.child.custom_operators import look_through, operator_entry
from grader.child.launch_recorder import LaunchRecorder
from grader.child.learner import LearnerFile
from grader.child.measured_device import Ask, measured
from grader.child.pretended_gpu import StandIn, TritonLaunch, stand_in_for
from grader.child.serving import ready
from grader.child.tensors import has_no_memory
from grader.child.torch_refusals import Refusals, keep_modes_on, keep_to_one_thread
from grader.child.triton_api import without_a_hash_of_triton
from grader.wire.frames import JsonObject
from grader.wire.messages import CAPABILITY, MULTIPROCESSORS, Failure, GpuModel, RecordRequest, TensorSpec

ANY_SIZE = 1 << 62  # arguments have no bytes in the frame
MOST_ITEMS, MOST_DEPTH = 64, 4
EARLIER = "the result of an earlier call"


class RecordingHost:
    """Answers a parent's requests about one learner's file: it imports the file, and records calls of its entry."""

    file: LearnerFile  # from the first "load" on, which comes before all other requests

    def __init__(self, stand_in: StandIn):
        self.output = sys.stdout
        self.stand_in = stand_in
        self.ask_back: Ask = lambda header, blob: {}  # the main loop sets it
        keep_to_one_thread(lambda message: stand_in.pretence.refuse(message))
        self.files: dict[tuple[int, int], LearnerFile] = {}  # by multiprocessors and capability, 0 for the model's
        self.last: tuple[list[TensorSpec], dict[str, torch.Tensor]] = ([], {})  # arguments of the call before
        self.earlier: deque[object] = deque(
            maxlen=512
        )  # kept alive, so that no new tensor gets their storage by chance

    def handle(self, header: JsonObject, blob: bytes) -> tuple[JsonObject, bytes]:
        try:
            handler = {"load": self.load, "record": self.call, "measure": self.measure}[header["kind"]]
            reply, reply_blob = handler(header, blob)
        except MemoryError:  # what the learner keeps leaves no room for an answer
            return {"kind": "recorded", "error": asdict(Failure("memory", "MemoryError"))}, b""
        except BaseException:  # a mistake of ours, or of the parent's; never the learner's
            return {"kind": "fault", "message": traceback.format_exc()[-4000:]}, b""
        with contextlib.suppress(Exception):  # what the learner printed, if their file left us an output
            self.output.flush()
        return reply, reply_blob

    def load(self, header: JsonObject, blob: bytes) -> tuple[JsonObject, bytes]:
        self.file = LearnerFile(header["filename"], blob)
        with self.watched_import():
            error = self.file.load()
        self.files = {(0, 0): self.file}
        reply = {"kind": "loaded", "error": None if error is None else asdict(error)}
        return reply | {"constants": self.file.constants()}, b""

    @contextlib.contextmanager
    def watched_import(self) -> Iterator[None]:
        """Lets the file allocate on the GPU that it believes in, and try its kernels out; nothing is recorded."""
        self.stand_in.on_launch = self._tried_out
        self.stand_in.pretence.forget()
        yield

    def _tried_out(self, launch: TritonLaunch) -> None:
        self.file.launched = True

    def _on_gpu_with(self, multiprocessors: int, capability: int) -> Failure | None:
        """Makes `file` the file as imported on a GPU with these numbers: a file may ask once and keep the answer.

        0 stands for the model's own number. Returns the failure of the import, or None.
        """
        self.stand_in.is_told_as(multiprocessors, capability)
        key = multiprocessors, capability
        if key in self.files:
            self.file = self.files[key]
            return None
        self.file = LearnerFile(self.file.path, self.file.source)
        with self.watched_import():
            failure = self.file.load()
        if failure is None:
            self.files[key] = self.file
        return failure

    def call(self, header: JsonObject, blob: bytes) -> tuple[JsonObject, bytes]:
        names = RecordRequest.__dataclass_fields__.keys() & header.keys()
        fields = {name: header[name] for name in names}
        fields["arguments"] = [TensorSpec.from_json(spec, ANY_SIZE, ANY_SIZE) for spec in header["arguments"]]
        return self._record(RecordRequest(**fields))

    def measure(self, header: JsonObject, blob: bytes) -> tuple[JsonObject, bytes]:
        """Calls an entry that measures a kernel on a device, both of them the judge's."""
        try:
            with self.watched_import():
                return measured(self.file.entry(header["entry"], 2), self.ask_back), b""
        except BaseException as raised:
            return {"kind": "measured", "error": asdict(self.file.failure(raised, "host"))}, b""

    def _record(self, request: RecordRequest) -> tuple[JsonObject, bytes]:
        numbers = (request.constants.get(name, 0) for name in (MULTIPROCESSORS, CAPABILITY))
        error, returned = self._on_gpu_with(*numbers), None
        refusals = Refusals(self.file.path)
        recorder = LaunchRecorder(self.stand_in, refusals)
        known = self.last[1] if self.last[0] == request.arguments else {}
        arguments, passed = dict[str, torch.Tensor](), list[object]()
        for spec in request.arguments:
            begins_as, behind = request.begins.get(spec.name, ("", 0))
            arguments[spec.name] = recorder.argument(spec, begins_as, behind, known.get(spec.name))
            # A tensor that is given twice is one object: `y is x` holds.
            is_twice = begins_as and not behind and recorder.is_whole(spec, begins_as)
            passed.append(arguments[begins_as if is_twice else spec.name])
        self.last = request.arguments, arguments
        for place, number in request.numbers:
            passed.insert(place, number)
        if error is None:
            try:
                returned = self._called(request, recorder, passed)
            except BaseException as raised:  # SystemExit and KeyboardInterrupt are the learner's too
                error = self.file.failure(raised, "host")
        answer = {"kind": "recorded", "refusals": refusals.records, **self._result(recorder, returned)}
        self.earlier.append(returned)
        error = recorder.refusal or error
        is_whole = error is None and not refusals.records
        answer |= {"buffers": recorder.buffers, "steps": recorder.steps}
        answer |= {"kernels": recorder.kernels if is_whole else recorder.certain}
        return answer | {"error": None if error is None else asdict(error)}, b""

    def _called(self, request: RecordRequest, recorder: LaunchRecorder, passed: list[Any]) -> object:
        entry_of = operator_entry if "::" in request.entry else self.file.entry
        entry = entry_of(request.entry, len(passed))
        with contextlib.ExitStack() as stack:
            with self.watched_import():  # part of the file is run again
                stack.enter_context(self.file.with_constants(request.constants))
            stack.enter_context(recorder.on())
            returned = entry(*passed)
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
    answer = ready({"triton": triton.__version__})
    without_a_hash_of_triton()
    keep_modes_on(lambda message: stand_in.pretence.refuse(message))
    kernel = _first_kernel.warmup(triton.MockTensor(tl.float32), grid=(1,))
    _ = kernel.key, kernel.metadata  # the compiler's own start, once for all children
    return answer, stand_in


class Description:
    """Describes results of one call.

    `view_of` gives a tensor's view of a buffer of the call, None if it lies in none. `arguments`: the call's tensors,
    by name. `earlier`: results of the calls before it.
    """

    def __init__(
        self,
        view_of: Callable[[torch.Tensor], JsonObject | None],
        arguments: dict[str, torch.Tensor],
        earlier: Iterable[Any],
    ):
        self.view_of, self.arguments = view_of, arguments
        self._earlier = {_storage(tensor) for result in earlier for tensor in tensors_in(result)}

    def of(self, result: Any, depth: int = 0) -> JsonObject:
        described: dict[str, Any] = {
            "type": type(result).__name__, "device": "", "dtype": "", "same_as": "", "shares_with": "",
        }  # fmt: skip
        if isinstance(result, torch.Tensor):
            return described | self._of_tensor(result)
        if isinstance(result, (list, tuple)) and depth < MOST_DEPTH:
            described["items"] = [self.of(item, depth + 1) for item in result[:MOST_ITEMS]]
        return described

    def _of_tensor(self, tensor: torch.Tensor) -> JsonObject:
        device = "cuda" if has_no_memory(tensor) else tensor.device.type
        described = {"device": device, "dtype": str(tensor.dtype).removeprefix("torch.")}
        if type(tensor) is not torch.Tensor or tensor.layout != torch.strided:
            return described
        if _storage(tensor) in self._earlier:
            described["shares_with"] = EARLIER
        for name, argument in self.arguments.items():
            if _storage(argument) == _storage(tensor):
                described["shares_with"] = name
                described["same_as"] = name if _place(argument) == _place(tensor) else ""
        return described | {"view": self.view_of(tensor)}


def tensors_in(result: Any, depth: int = 0) -> Iterator[torch.Tensor]:
    if isinstance(result, torch.Tensor) and result.layout == torch.strided:
        yield result
    elif isinstance(result, (list, tuple)) and depth < MOST_DEPTH:
        for item in result[:MOST_ITEMS]:
            yield from tensors_in(item, depth + 1)


def _storage(tensor: torch.Tensor) -> int:
    place: int = tensor.untyped_storage()._cdata
    return place


def _place(tensor: torch.Tensor) -> tuple[torch.dtype, int, torch.Size, tuple[int, ...]]:
    return tensor.dtype, int(tensor.storage_offset()), tensor.shape, tensor.stride()
