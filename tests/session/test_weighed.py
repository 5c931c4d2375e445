"""`--why` and `course why` name the explanations that were weighed, and why each was not told."""

from __future__ import annotations

from tests.classroom.instructor import ROOT
from tests.conftest import mutant
from tests.typed_commands import run_pytest


def test_each_explanation_is_named_with_the_calls_it_fits(tmp_path):
    (tmp_path / "rms_norm.py").write_text(mutant("10_rms_norm/eps_hard_coded"))
    asked = ["--submission", tmp_path / "rms_norm.py", "--why", "--seed", "61"]
    asked += ["-k", "fill_the_block or one_column or small_values"]
    lines = [line.strip() for line in run_pytest(ROOT / "exercises/10_rms_norm", *asked, cwd=ROOT).lines]
    told = lines.index("mistakes.eps-hard-coded: told")
    assert lines[told + 1] == "eps is taken to be 1e-06, and this call gives 1e-05: the argument is not used."
    assert lines[told + 2] == "fits 4; contradicted by 0"
    (contradicted,) = (place for place, line in enumerate(lines) if line.startswith("mistakes.eps-forgotten: not told"))
    assert (
        lines[contradicted + 2].startswith("fits 2 (") and "contradicted by 2 (one column, " in lines[contradicted + 2]
    )
    (others,) = (line for line in lines if line.startswith("Fit no failed test: "))
    assert "mistakes.eps-outside" in others and "mistakes.no-norm" in others


def test_what_is_told_is_quoted_as_it_is_told(tmp_path):
    right = (ROOT / "solutions/17_prefix_sum/prefix_sum.py").read_text()
    (tmp_path / "prefix_sum.py").write_text(right.replace("carry += tl.sum(x, 0)", "carry += tl.max(x, 0)"))
    asked = ["--submission", tmp_path / "prefix_sum.py", "--why", "--seed", "1"]
    asked += ["-k", "fills_two_blocks or fills_three_blocks or another_block_size"]
    lines = [line.strip() for line in run_pytest(ROOT / "exercises/17_prefix_sum", *asked, cwd=ROOT).lines]
    told = lines.index("values.from-a-column-on: told")
    (said, quoted) = (line for line in lines if line.startswith("z is wrong in "))
    assert said == quoted == lines[told + 1]
