"""Launch plans from a real child that compiles."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
import torch

from grader.gpu.models import MODELS
from grader.gpu.plan import Plan, read_plan
from grader.protocol import RecordRequest
from grader.reply import failure_of, spec_of
from grader.runner import Runner
from grader.submission import Submission

LIMIT = 120.0  # seconds; the machine may be busy
PREAMBLE = """\
import torch
import triton
import triton.language as tl
"""


class Recording:
    """One submission and the plans of its calls."""

    def __init__(self, source: str | Path, target: str = "sm_90"):
        self.text = source.read_text() if isinstance(source, Path) else PREAMBLE + textwrap.dedent(source)
        self.filename = source.name if isinstance(source, Path) else "submission.py"
        self.model = MODELS[target]
        self.runner = Runner(Submission(Path(self.filename), self.text.encode()), self.filename, self.model)
        self.header: dict = {}
        self.blob = b""

    def plan(self, entry: str, *texts: str, constants: dict | None = None, **arguments: torch.Tensor) -> Plan:
        specs = [spec_of(name, tensor) for name, tensor in arguments.items()]

        def read(header: dict, blob: bytes) -> Plan:
            self.header, self.blob, self.specs = header, blob, specs
            return read_plan(header, blob, specs, self.model)

        request = RecordRequest(entry, specs, constants or {}, list(texts))
        return self.runner.ask(request.to_json(), b"", LIMIT, read)

    def line(self, text: str) -> int:
        (number,) = [i for i, line in enumerate(self.text.splitlines(), 1) if text in line]
        return number

    @property
    def failure(self):
        return failure_of(self.header.get("error"))


@pytest.fixture
def recording():
    """recording(source, target="sm_90"): a Recording; its child is ended after the test."""
    made: list[Recording] = []

    def recording(source: str | Path, target: str = "sm_90") -> Recording:
        made.append(Recording(source, target))
        return made[-1]

    yield recording
    for one in made:
        one.runner.end()
