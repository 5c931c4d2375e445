"""Recorded calls from a real child that stops at the compiler's text."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path

import pytest
import torch

from grader.gpu.models import MODELS
from grader.processes.submission_process import Runner
from grader.submission.text import Submission
from grader.wire.messages import RecordRequest, TensorSpec
from grader.wire.recorded_call import RecordedCall, read_recorded
from grader.wire.reply import spec_of
from tests.waiting import NEVER

LIMIT = NEVER
PREAMBLE = """\
import torch
import triton
import triton.language as tl
"""
SCALE = """
@triton.jit
def scale_kernel(x_ptr, z_ptr, factor, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(z_ptr + i, tl.load(x_ptr + i, mask=i < N) * factor, mask=i < N)

def launch(x, z, factor=2.0):
    scale_kernel[(triton.cdiv(x.numel(), 256),)](x, z, factor, x.numel(), BLOCK=256)
    return z

"""


class Recording:
    """One submission, and what its calls do."""

    def __init__(self, source: str | Path, target: str = "sm_90"):
        self.text = source.read_text() if isinstance(source, Path) else PREAMBLE + textwrap.dedent(source)
        self.filename = source.name if isinstance(source, Path) else "submission.py"
        model = MODELS[target]
        self.runner = Runner(Submission(Path(self.filename), self.text.encode()), self.filename, model)
        self.header: dict = {}
        self.blob = b""
        self.specs: list[TensorSpec] = []

    def __call__(self, entry: str, constants: dict | None = None, **arguments: torch.Tensor) -> RecordedCall:
        specs = [spec_of(name, tensor) for name, tensor in arguments.items()]

        def read(header: dict, blob: bytes) -> RecordedCall:
            self.header, self.blob, self.specs = json.loads(json.dumps(header)), blob, specs
            return read_recorded(header, blob, specs)

        request = RecordRequest(entry, specs, constants or {})
        return self.runner.ask(request.to_json(), b"", LIMIT, read)

    def line(self, text: str) -> int:
        (number,) = [i for i, line in enumerate(self.text.splitlines(), 1) if text in line]
        return number


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


def entry(body: str) -> str:
    """A file with SCALE, and `entry` with this body."""
    return f"{SCALE}def entry(x):\n{textwrap.indent(textwrap.dedent(body).strip(), '    ')}\n"


def meta(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.empty(shape, dtype=dtype, device="meta")
