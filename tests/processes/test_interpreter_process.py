"""The process that interprets recorded calls, where something outside of it ends it."""

from __future__ import annotations

import os
import resource
import signal
from pathlib import Path

from grader.explain.verdict import FAIL, PASS
from grader.numerics.data_sets import normal

SOLUTION = (Path(__file__).parents[2] / "solutions/01_masked_add/masked_add.py").read_text()


def outcome_of_a_right_kernel(bench, number: int) -> str:
    """Returns the outcome of a call whose interpreter, which served the call before it, is sent this signal."""
    judged = bench(SOLUTION)
    assert judged.check(normal(5), normal(5)).outcome == PASS
    os.kill(judged.run.interpreter._process._pid_here, number)
    return judged.check(normal(7), normal(7)).outcome


def test_a_call_is_made_again_where_the_interpreter_was_ended_as_out_of_time(bench):
    """A virtual machine that stands still for some seconds counts them as computed: the kernel is not at fault."""
    assert outcome_of_a_right_kernel(bench, signal.SIGXCPU) == PASS


def test_an_interpreter_that_is_killed_has_used_up_its_memory(bench):
    assert outcome_of_a_right_kernel(bench, signal.SIGKILL) == FAIL


def test_a_call_is_made_again_where_earlier_calls_have_left_no_memory(bench):
    """A judge that stays warm interprets hundreds of calls with one process."""
    judged = bench(SOLUTION)
    assert judged.check(normal(5), normal(5)).outcome == PASS
    pid = judged.run.interpreter._process._pid_here
    mapped = int(Path(f"/proc/{pid}/statm").read_text().split()[0]) * resource.getpagesize()
    _, hard = resource.prlimit(pid, resource.RLIMIT_AS)
    resource.prlimit(pid, resource.RLIMIT_AS, (mapped, hard))
    verdict = judged.check(normal(1 << 18), normal(1 << 18))
    assert verdict.outcome == PASS, verdict.lines
    assert judged.run.interpreter._process._pid_here != pid
