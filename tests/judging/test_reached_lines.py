"""Lines that no program has come to are told, once all is right, and cost nothing."""

from __future__ import annotations

import json

import pytest

from grader import normal
from grader.explain.reached_lines import Lines
from grader.explain.verdict import PASS
from grader.wire.reply import Reply
from tests.conftest import ROOT
from tests.typed_commands import run_pytest

SOLUTION = (ROOT / "solutions/01_masked_add/masked_add.py").read_text()
STORE = "    tl.store(z_ptr + offsets, x + y, mask=mask)"


def with_branch(condition: str) -> tuple[str, int]:
    """The solution with a branch behind its store, and the number of the branch's line."""
    text = SOLUTION.replace(STORE, f"{STORE}\n    if {condition}:\n        tl.store(z_ptr + offsets, y + x, mask=mask)")
    assert text != SOLUTION
    (line,) = [number for number, one in enumerate(text.splitlines(), 1) if "y + x" in one]
    return text, line


def test_a_branch_that_no_program_takes_is_left_out_until_one_does(bench):
    text, line = with_branch("N > 3000")
    judged = bench(text)
    assert judged.check(normal(700), normal(700)).outcome == judged.check(normal(1500), normal(1500)).outcome == PASS
    assert judged.run.lines.never == [line] and judged.run.lines.calls >= 2
    assert judged.check(normal(3001), normal(3001), dtypes=("float32",)).outcome == PASS
    assert judged.run.lines.never == [] and judged.run.lines.said is None


def test_a_file_without_branches_has_no_such_line(bench):
    judged = bench(SOLUTION)
    assert judged.check(normal(700), normal(700)).outcome == PASS
    assert judged.run.lines.never == []


@pytest.mark.parametrize(
    ("left_out", "said"),
    [
        ([37], "Line 37 was never reached by 2 calls: if it is right, this run does not say."),
        ([40, 37], "Lines 37 and 40 were never reached by 2 calls: if they are right, this run does not say."),
        ([1, 2, 3, 4], "Lines 1, 2, 3 and 4 were"),
        ([1, 2, 3, 4, 5, 6], "Lines 1, 2, 3 and 3 more were"),
    ],
)
def test_the_sentence(left_out, said):
    lines = Lines()
    lines.add(Reply(reached=[10, 11]))
    lines.add(Reply(reached=[10], left_out=[11, *left_out]))
    assert lines.said.text.startswith(said)


def test_the_report_of_a_right_file_and_its_result_name_the_line(tmp_path):
    text, line = with_branch("tl.program_id(0) == 123456789")
    path, result = tmp_path / "masked_add.py", tmp_path / "result.json"
    path.write_text(text)
    ran = run_pytest("exercises/01_masked_add", "--submission", path, "--seed", "7", "--result", result, cwd=ROOT)
    told = json.loads(result.read_text())
    assert told["unreached"] == [line] and told["outcome"] == "pass" and told["points"] == told["possible"]
    assert f"Line {line} was never reached by" in ran.out
