"""Interprets recorded calls in a process that is trusted but disposable: a submission's process made its input."""

from __future__ import annotations

import traceback
from collections import OrderedDict
from dataclasses import asdict
from functools import lru_cache

import numpy as np

from grader.interpreter.call import InterpretedCall
from grader.interpreter.dtypes import Unsupported
from grader.interpreter.left_open import OtherOutcomes
from grader.interpreter.mends import mends
from grader.interpreter.program import ReadyKernel
from grader.interpreter.sampled import SampledCall
from grader.interpreter.tracing.traced_call import TracedCall
from grader.ttir.module import BadText
from grader.ttir.parser import parse
from grader.wire.frames import unpack_header
from grader.wire.messages import Failure, InterpretRequest
from grader.wire.recorded_call import RecordedCall, RecordedKernel, read_recorded

MOST_KERNELS = 256  # kept ready


class InterpreterHost:
    """Answers requests to carry out recorded calls. It knows neither the learner's Python nor Triton."""

    def __init__(self) -> None:
        self.kernels: OrderedDict[tuple, ReadyKernel] = OrderedDict()
        self._parse = lru_cache(MOST_KERNELS)(parse)  # a second call, with other outcomes, is of the same texts
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
        if request.mending is not None:
            sources = [blob[start : start + size].decode() for start, size in request.texts]
            return {"kind": "ran", **mends(request, request.mending, recorded, sources, inputs, blob)}, b""
        try:
            texts = (blob[start : start + size].decode() for start, size in request.texts)
            kernels = {n: self._kernel(request, text, recorded.kernels[n]) for n, text in enumerate(texts) if text}
        except (Unsupported, BadText) as error:
            failure = Failure("not-known", type(error).__name__, str(error), getattr(error, "line", 0))
            return {"kind": "ran", "error": asdict(failure)}, b""
        for kernel in kernels.values():
            kernel.begin_call()
        reply, data = kind(request, recorded, kernels, inputs).run()
        reached, left_out = (set().union(*(kernel.lines(ran) for kernel in kernels.values())) for ran in (True, False))
        open_ = set().union(*(kernel.other.taken for kernel in kernels.values() if kernel.other is not None))
        lists = {"reached": sorted(reached), "left_out": sorted(left_out), "left_open": list(map(asdict, open_))}
        return {"kind": "ran", **lists, **reply}, data

    def _recorded(self, request: InterpretRequest, blob: bytes) -> RecordedCall:
        start, size = request.recorded
        text, sizes = blob[start : start + size], [(spec.name, spec.size) for spec in request.arguments]
        if self._last is None or self._last[0] != (text, sizes):
            self._last = (text, sizes), read_recorded(unpack_header(text), request.arguments)
        return self._last[1]

    def _kernel(self, request: InterpretRequest, text: str, recorded: RecordedKernel) -> ReadyKernel:
        options = recorded.recipe.options
        contracts, stages = bool(options.get("enable_fp_fusion", True)), int(options.get("num_stages", 1))
        key = request.filename, text, request.other, tuple(request.other_at), contracts, stages
        kernel = self.kernels.pop(key, None)
        if kernel is None:
            kernel = ReadyKernel(self._parse(text, request.filename), stages, _other_outcomes(request, contracts))
        self.kernels[key] = kernel
        if len(self.kernels) > MOST_KERNELS:
            self.kernels.popitem(last=False)
        return kernel


def _other_outcomes(request: InterpretRequest, contracts: bool) -> OtherOutcomes | None:
    """Returns the choice of outcomes that a request asks for; None for the usual ones."""
    if not request.other:
        return None
    kind, line = request.other_at or ("", 0)
    return OtherOutcomes(request.other, (kind, line) if kind else None, contracts)
