"""Interprets recorded calls in a process that is trusted but disposable: a submission's process made its input."""

from __future__ import annotations

import traceback
from collections import OrderedDict
from dataclasses import asdict

import numpy as np

from grader.interpreter.call import InterpretedCall
from grader.interpreter.dtypes import Unsupported
from grader.interpreter.program import ReadyKernel
from grader.interpreter.sampled import SampledCall
from grader.interpreter.tracing.traced_call import TracedCall
from grader.ttir.module import BadText
from grader.ttir.parser import parse
from grader.wire.frames import unpack_header
from grader.wire.messages import Failure, InterpretRequest
from grader.wire.recorded_call import RecordedCall, read_recorded

MOST_KERNELS = 256  # kept ready


class InterpreterHost:
    """Answers requests to carry out recorded calls. It knows neither the learner's Python nor Triton."""

    def __init__(self) -> None:
        self.kernels: OrderedDict[tuple[str, str], ReadyKernel] = OrderedDict()
        self._last: tuple[tuple, RecordedCall] | None = None  # read last: most calls come several times in a row

    def handle(self, header: dict, blob: bytes) -> tuple[dict, bytes]:
        try:
            return self._interpret(InterpretRequest.from_json(header, len(blob)), blob)
        except MemoryError:
            return {"kind": "ran", "error": asdict(Failure("memory", "MemoryError"))}, b""
        except BaseException:  # a mistake of ours, never the learner's
            return {"kind": "fault", "message": traceback.format_exc()[-4000:]}, b""

    def _interpret(self, request: InterpretRequest, blob: bytes) -> tuple[dict, bytes]:
        kind, places = InterpretedCall, [(spec.start, spec.size) for spec in request.arguments]
        if request.sample is not None:
            kind, places = SampledCall, [table or (0, 0) for table in request.sample.tables]
        elif request.traced is not None:
            kind = TracedCall
        inputs = [np.frombuffer(blob, np.uint8, size, start) for start, size in places]
        recorded = self._recorded(request, blob)
        try:
            texts = (blob[start : start + size].decode() for start, size in request.texts)
            kernels = {number: self._kernel(request.filename, text) for number, text in enumerate(texts) if text}
        except (Unsupported, BadText) as error:
            failure = Failure("not-known", type(error).__name__, str(error))
            return {"kind": "ran", "error": asdict(failure)}, b""
        for kernel in kernels.values():
            kernel.begin_call()
        reply, data = kind(request, recorded, kernels, inputs).run()
        reached, left_out = (set().union(*(kernel.lines(ran) for kernel in kernels.values())) for ran in (True, False))
        return {"kind": "ran", "reached": sorted(reached), "left_out": sorted(left_out), **reply}, data

    def _recorded(self, request: InterpretRequest, blob: bytes) -> RecordedCall:
        start, size = request.recorded
        text, given = blob[start : start + size], [(spec.name, spec.size) for spec in request.arguments]
        if self._last is None or self._last[0] != (text, given):
            self._last = (text, given), read_recorded(unpack_header(text), request.arguments)
        return self._last[1]

    def _kernel(self, filename: str, text: str) -> ReadyKernel:
        kernel = self.kernels.pop((filename, text), None)
        if kernel is None:
            kernel = ReadyKernel(parse(text, filename))
        self.kernels[filename, text] = kernel
        if len(self.kernels) > MOST_KERNELS:
            self.kernels.popitem(last=False)
        return kernel
