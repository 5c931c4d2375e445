"""Texts of one submission's kernels: what they may cost together, and what an error in one of them is."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.gpu.models import DEFAULT_MODEL
from grader.processes import front_end_process
from grader.processes.faults import ChildEnded
from grader.processes.front_end_process import FrontEnd
from grader.submission.text import Submission, submission_of
from grader.wire.recorded_call import Recipe

FILE = """
import triton
import triton.language as tl

@triton.constexpr_function
def slow(n):
    k = 0
    for i in range(n * 20_000):
        k += i
    return k

@triton.jit
def kernel(x_ptr, N: tl.constexpr):
    tl.store(x_ptr, slow(N))
"""


def recipe(number: int) -> Recipe:
    line = FILE[: FILE.index("@triton.jit")].count("\n") + 1
    signature = {"x_ptr": "*fp32", "N": "constexpr"}
    return Recipe("kernel", line, signature, [([1], {"value": str(number)})], [], {"num_warps": 4})


@pytest.fixture
def front_end():
    made = FrontEnd(Submission(Path("submission.py"), FILE.encode()), "submission.py", DEFAULT_MODEL)
    yield made
    made.end()


def test_all_texts_of_a_run_share_the_seconds_of_a_core(front_end, monkeypatch):
    assert front_end.text(recipe(1)).failure is None
    monkeypatch.setattr(front_end_process, "MOST_COMPUTING", 1.0)
    with pytest.raises(ChildEnded) as ended:
        for number in range(2, 200):
            front_end.text(recipe(number))
    assert (ended.value.how, ended.value.detail) == (
        "time",
        "the 1 s of a core that compiling all its kernels may take",
    )
    with pytest.raises(ChildEnded):
        front_end.text(recipe(1000))
    assert front_end.text(recipe(1)).failure is None  # which is made already


def test_all_texts_of_a_run_share_the_bytes_that_are_kept(front_end, monkeypatch):
    first = front_end.text(recipe(0))
    monkeypatch.setattr(front_end_process, "MOST_BYTES", len(first.source) + 10)
    assert first.source and first.failure is None
    assert front_end.text(recipe(1)).failure.kind == "not-recordable"


def test_an_error_that_is_none_of_the_compilers_is_the_files(monkeypatch):
    """Python's own parser refuses this file in the front end, where nobody has looked at it before."""
    made = FrontEnd(Submission(Path("submission.py"), b"def kernel(:"), "submission.py", DEFAULT_MODEL)
    try:
        assert made.text(recipe(1)).failure.type == "SyntaxError"
    finally:
        made.end()


def test_a_file_that_differs_in_what_the_kernel_does_not_reach_has_the_same_text(front_end):
    host = "\ndef entry(x):\n    kernel[1, 1](x, 1)\n"
    told = [
        front_end.text(recipe(1))
        for text in (
            FILE + host,
            FILE + host.replace("1, 1", "2, 1"),
            FILE.replace("range(n *", "range(7 + n *") + host,
        )
        if front_end.take(submission_of(Path("submission.py"), text.encode())) is None
    ]
    assert told[0] is told[1]
    assert told[0].source and told[2].source and told[0] != told[2]
