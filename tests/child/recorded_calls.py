"""Recorded calls from a real child, with the texts that a real front end makes of their kernels."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path

import pytest
import torch

from grader.gpu.models import MODELS
from grader.judging.kernel_texts import add_texts
from grader.processes.front_end_process import FrontEnd
from grader.processes.submission_process import SubmissionProcess
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
        of = Submission(Path(self.filename), self.text.encode()), self.filename, model
        self.runner, self.front_end = SubmissionProcess(*of), FrontEnd(*of)
        self.header: dict = {}
        self.specs: list[TensorSpec] = []

    def __call__(self, entry: str, constants: dict | None = None, **arguments: torch.Tensor) -> RecordedCall:
        specs = [spec_of(name, tensor) for name, tensor in arguments.items()]

        def read(header: dict, _: bytes) -> RecordedCall:
            self.header, self.specs = json.loads(json.dumps(header)), specs
            return read_recorded(header, specs)

        request = RecordRequest(entry, specs, constants or {})
        call = self.runner.ask(request.to_json(), b"", LIMIT, read)
        add_texts(call, lambda recipe: self.front_end.text(recipe, constants=constants or {}))
        return call

    def end(self) -> None:
        self.runner.end()
        self.front_end.end()

    def line(self, text: str) -> int:
        (number,) = [i for i, line in enumerate(self.text.splitlines(), 1) if text in line]
        return number


@pytest.fixture
def recording():
    """recording(source, target="sm_90"): a Recording; its processes are ended after the test."""
    made: list[Recording] = []

    def recording(source: str | Path, target: str = "sm_90") -> Recording:
        made.append(Recording(source, target))
        return made[-1]

    yield recording
    for one in made:
        one.end()


def entry(body: str) -> str:
    """A file with SCALE, and `entry` with this body."""
    return f"{SCALE}def entry(x):\n{textwrap.indent(textwrap.dedent(body).strip(), '    ')}\n"


def meta(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.empty(shape, dtype=dtype, device="meta")
