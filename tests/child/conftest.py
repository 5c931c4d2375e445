"""A real child process, spoken to in the grader's own frames."""

from __future__ import annotations

import textwrap
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from grader.child_process import ChildProcess
from grader.nursery import shared_nursery
from grader.protocol import RunRequest, TensorSpec
from grader.reply import spec_and_bytes, tensor_of

LIMIT = 60.0  # seconds for one answer
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
    def __init__(self):
        self.process = ChildProcess()
        self.nursery = shared_nursery()

    def load(self, source: str | bytes | Path, filename: str = "submission.py") -> Reply:
        if isinstance(source, Path):
            source, filename = source.read_bytes(), source.name
        elif isinstance(source, str):
            source = (PREAMBLE + textwrap.dedent(source)).encode()
        self.lines = source.decode(errors="replace").splitlines()
        return Reply(**self.process.ask({"kind": "load", "filename": filename}, source, LIMIT)[0])

    def line(self, text: str) -> int:
        """The number of the one line of the loaded file that holds this text."""
        (number,) = [i for i, line in enumerate(self.lines, 1) if text in line]
        return number

    def run(self, entry: str, _options: dict | None = None, **arguments: torch.Tensor) -> Reply:
        specs, blob = [], b""
        for name, tensor in arguments.items():
            spec, data = spec_and_bytes(name, tensor, len(blob))
            specs.append(spec)
            blob += data
        header, blob = self.process.ask(RunRequest(entry, specs, **(_options or {})).to_json(), blob, LIMIT)
        reply = Reply(**header)
        assert reply.kind == "ran", reply
        if reply.outputs:
            reply.output = tensor_of(TensorSpec.from_json(reply.outputs[0], len(blob)), blob)
            where = reply.writers[0]
            data = np.frombuffer(blob, np.int32, where["size"] // 4, where["start"])
            reply.writer = data.reshape(reply.output.shape)
        return reply

    def close(self) -> None:
        self.process.end()


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
