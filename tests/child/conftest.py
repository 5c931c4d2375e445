"""A real child process, spoken to in the grader's own frames."""

from __future__ import annotations

import textwrap
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from grader.gpu.models import DEFAULT_MODEL
from grader.judging.kernel_texts import add_texts
from grader.judging.packed_calls import PackedCall
from grader.processes.child import ChildProcess
from grader.processes.front_end_process import FrontEnd
from grader.processes.triton_forkserver_client import shared_triton_fork_server
from grader.submission.text import Submission
from grader.wire.messages import InterpretRequest, RecordRequest, TensorSpec
from grader.wire.recorded_call import read_recorded
from grader.wire.recorded_parts import BadPlan
from grader.wire.reply import spec_and_bytes, spec_of, tensor_of
from tests.child.recorded_calls import recording  # noqa: F401
from tests.waiting import NEVER

LIMIT = NEVER  # for one answer
PREAMBLE = """\
import torch
import triton
import triton.language as tl
"""


class Reply(SimpleNamespace):
    @property
    def finding(self) -> SimpleNamespace:
        """The one finding that there is."""
        (finding,) = self.findings
        return SimpleNamespace(**finding)


class Child:
    """Records calls of a file, and has them interpreted: what the grader does, in frames."""

    def __init__(self):
        self.process, self.interpreter = ChildProcess(DEFAULT_MODEL), ChildProcess()
        self.front_end: FrontEnd | None = None  # of the file that is loaded
        self.triton_server = shared_triton_fork_server(DEFAULT_MODEL)

    def load(self, source: str | bytes | Path, filename: str = "submission.py") -> Reply:
        if isinstance(source, Path):
            source, filename = source.read_bytes(), source.name
        elif isinstance(source, str):
            source = (PREAMBLE + textwrap.dedent(source)).encode()
        self.filename, self.lines = filename, source.decode(errors="replace").splitlines()
        self._end_front_end()
        self.front_end = FrontEnd(Submission(Path(filename), source), filename, DEFAULT_MODEL)
        return Reply(**self.process.ask({"kind": "load", "filename": filename}, source, LIMIT)[0])

    def line(self, text: str) -> int:
        """The number of the one line of the loaded file that holds this text."""
        (number,) = [i for i, line in enumerate(self.lines, 1) if text in line]
        return number

    def run(self, entry: str, _options: dict | None = None, **arguments: torch.Tensor) -> Reply:
        options = dict(_options or {})
        specs = [spec_of(name, tensor) for name, tensor in arguments.items()]
        request = RecordRequest(entry, specs, options.pop("constants", {}))
        header, _ = self.process.ask(request.to_json(), b"", LIMIT)
        header["processes"] = self.process.started.processes
        try:
            call = read_recorded(header, specs)
        except BadPlan as refused:
            return Reply(error={"kind": "not-recordable", "type": "", "message": str(refused), "line": 0})
        refusals = header["refusals"]
        add_texts(call, lambda recipe: self.front_end.text(recipe, constants=request.constants))
        recorded_call = PackedCall(call)
        told = recorded_call.reply(options.get("writable", []))
        result = {name: value for name, value in asdict(told.result).items() if name not in ("view", "items")}
        recorded = {"result": result, "refusals": refusals, "launches": [], "findings": []}
        recorded |= {"processes": told.processes, "changed": told.changed}
        if call.error is not None or call.refusals:
            return Reply(**recorded, error=call.error and asdict(call.error))
        specs, blob = [], recorded_call.blob
        for name, tensor in arguments.items():
            spec, data = spec_and_bytes(name, tensor, len(blob))
            specs.append(spec)
            blob += data
        request = InterpretRequest(*recorded_call.places, self.filename, specs, **options)
        header, blob = self.interpreter.ask(request.to_json(), blob, LIMIT)
        reply = Reply(**(recorded | header))
        assert reply.kind == "ran", reply
        if getattr(reply, "outputs", []):
            reply.output = tensor_of(TensorSpec.from_json(reply.outputs[0], len(blob)), blob)
            where = reply.writers[0]
            data = np.frombuffer(blob, np.int32, where["size"] // 4, where["start"])
            reply.writer = data.reshape(reply.output.shape)
        return reply

    def close(self) -> None:
        self.process.end()
        self.interpreter.end()
        self._end_front_end()

    def _end_front_end(self) -> None:
        if self.front_end is not None:
            self.front_end.end()


@pytest.fixture(scope="module")
def child():
    child = Child()
    yield child
    child.close()


@pytest.fixture
def fresh_child():
    """For what a file may break for good."""
    child = Child()
    yield child
    child.close()
