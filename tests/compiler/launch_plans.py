"""Launch plans of calls that a real child recorded, with the machine code of real compiler processes."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
import torch

from grader.compiler.machine_code import MachineCode
from grader.gpu.models import MODELS
from grader.gpu.plan import Plan, sent
from grader.judging.kernel_texts import record_call
from grader.processes.front_end_process import FrontEnd
from grader.processes.submission_process import SubmissionProcess
from grader.submission.text import Submission
from grader.wire.messages import RecordRequest
from grader.wire.recorded_results import results_by_name
from grader.wire.reply import spec_of
from tests.waiting import NEVER

LIMIT = NEVER
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
        of = Submission(Path(self.filename), self.text.encode()), self.filename, self.model
        self.runner, self.front_end = SubmissionProcess(*of), FrontEnd(*of)
        self.code = MachineCode(self.model)
        self.header: dict = {}  # as the last plan is sent to a replay process
        self.blob = b""

    def plan(self, entry: str, *texts: str, constants: dict | None = None, **arguments: torch.Tensor) -> Plan:
        self.specs = specs = [spec_of(name, tensor) for name, tensor in arguments.items()]
        call = record_call(RecordRequest(entry, specs, constants or {}), self.runner, self.front_end, LIMIT)
        plan = self.code.plan(call, specs, results_by_name(call.returned, specs, ["z"], []), texts)
        self.header, self.blob = sent(plan)
        return plan

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
        one.front_end.end()
