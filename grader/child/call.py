"""One call of the entry function, watched: what it returned, what its kernels did, what went wrong."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from typing import Any

import numpy as np
import torch

from grader.child import tensors
from grader.child.hooks import checked_memory
from grader.child.interpreter import AutotuneChoice
from grader.child.learner import LearnerFile
from grader.child.memory import MemoryChecker
from grader.child.refusals import Refusals
from grader.child.trace import Trace
from grader.protocol import Failure, RunRequest

MOST_POISONED = 256 << 20  # bytes


class Call:
    def __init__(self, file: LearnerFile, request: RunRequest, blob: bytes, earlier: Iterable[Any] = ()):
        self.file, self.request, self.blob = file, request, blob
        self.checker = MemoryChecker(
            file.path, order=request.order, fill=request.fill, count_traffic=request.count_traffic,
            at_once=request.at_once, trace=Trace() if request.trace else None,
        )  # fmt: skip
        self.refusals = Refusals(file.path, self._allocated, self._filled)
        self.arguments = {spec.name: tensors.from_spec(spec, blob) for spec in request.arguments}
        for name, tensor in self.arguments.items():
            self.checker.shadow_of(tensor, name=name, read_only=name not in request.writable)
        self.error: Failure | None = None
        self.result: Any = None
        self.earlier = earlier  # what the calls before this one returned

    def run(self) -> tuple[dict, bytes]:
        """The fields of the reply and its blob."""
        try:
            entry = self.file.entry(self.request.entry, len(self.arguments))
            with self.watched():
                self.result = entry(*self.arguments.values())
        except BaseException as error:  # SystemExit and KeyboardInterrupt are the learner's too
            self.error = self.file.failure(error, "host", self.checker.kernel)
        if self.error is None and self.checker.foreign is not None:
            name, line = self.checker.foreign
            self.error = Failure("foreign-memory", message=name, line=line)
        return self._reply()

    @contextmanager
    def watched(self):
        """With the memory checker and the refusals on, and the request's constants in place."""
        AutotuneChoice.index, AutotuneChoice.most = self.request.config, 1
        with ExitStack() as stack:
            stack.enter_context(self.file.with_constants(self.request.constants))
            stack.enter_context(checked_memory(self.checker))
            stack.enter_context(self.refusals.on())
            yield

    def _allocated(self, tensor: torch.Tensor, value: object) -> None:
        if tensor.device.type == "cpu" and tensor.untyped_storage().nbytes():
            self.checker.shadow_of(tensor, initialised=value is not None)
            if value is None and tensor.untyped_storage().nbytes() <= MOST_POISONED:
                tensors.poison(tensor)

    def _filled(self, tensor: torch.Tensor, value: object) -> None:
        self.checker.shadow_of(tensor).fill(tensor)

    # ---- the reply --------------------------------------------------------------------------------------

    def _reply(self) -> tuple[dict, bytes]:
        outputs, writers, blob = [], [], b""
        if self.error is None and tensors.is_plain(self.result):
            self.checker.name_result(self.result, self.request.returns)
            spec, blob = tensors.to_spec(self.request.returns, self.result, 0)
            outputs = [spec.to_json()]
            writers, blob = self._writers(len(blob)), blob + self._writer_map()
        reply = {
            "error": None if self.error is None else asdict(self.error),
            "refusals": self.refusals.records,
            "result": self._describe_result(),
            "outputs": outputs,
            "writers": writers,
            "findings": [asdict(finding) for finding in self.checker.findings()],
            "launches": [asdict(launch) for launch in self.checker.launches],
            "traffic": [asdict(traffic) for traffic in self.checker.traffic()],
            "changed": self._changed(),
            "trace": [asdict(access) for access in self.checker.trace.accesses()] if self.checker.trace else [],
            "configurations": AutotuneChoice.most,
        }
        return reply, blob

    def _writer_map(self) -> bytes:
        writers = self.checker.shadow_of(self.result).writers_of(self.result)
        return np.ascontiguousarray(writers, np.int32).tobytes()

    def _writers(self, start: int) -> list[dict]:
        grid = self.checker.shadow_of(self.result).last_grid
        return [{"output": 0, "start": start, "size": 4 * self.result.numel(), "grid": list(grid)}]

    def _describe_result(self) -> dict:
        result = self.result
        described = {"type": type(result).__name__, "same_as": "", "shares_with": "", "device": ""}
        if not isinstance(result, torch.Tensor):
            return described
        described["device"] = result.device.type
        if not tensors.is_plain(result):
            return described
        if any(tensors.is_plain(other) and _same_storage(other, result) for other in self.earlier):
            described["shares_with"] = "the result of an earlier call"
        for name, tensor in self.arguments.items():
            if _same_storage(tensor, result):
                described["shares_with"] = name
                described["same_as"] = name if _same_view(tensor, result) else ""
        return described

    def _changed(self) -> list[str]:
        read_only = [spec for spec in self.request.arguments if spec.name not in self.request.writable]
        return [spec.name for spec in read_only if tensors.changed(self.arguments[spec.name], spec, self.blob)]


def _same_storage(a: torch.Tensor, b: torch.Tensor) -> bool:
    return a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr() != 0


def _same_view(a: torch.Tensor, b: torch.Tensor) -> bool:
    def view(tensor):
        return tensor.dtype, tensor.storage_offset(), tensor.shape, tensor.stride()

    return view(a) == view(b)
