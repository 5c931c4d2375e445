"""What a wrong call is put down to, beside the others of its run."""

from __future__ import annotations

from grader import normal
from grader.explain.verdict import FAIL
from tests.conftest import mutant

ID = "06_fused_outer"


def test_wrong_values_with_the_files_own_tile_say_more_than_another_tile_that_does_not_compile(bench):
    """A square tile hides that its axes are exchanged; with any other the shapes do not go together."""
    judged = bench(mutant(f"{ID}/axes_exchanged_in_square_tile"), ID)
    wrong = judged.check(normal(128), normal(128), dtypes=("float32",))
    refused = judged.check(normal(37), normal(53), dtypes=("float32",), BLOCK_M=16, BLOCK_N=8)
    assert (wrong.outcome, wrong.id) == (FAIL, "axes-exchanged")
    assert (refused.outcome, refused.id) == (FAIL, "does-not-compile")
    assert wrong.rank < refused.rank


def test_a_tile_that_does_not_compile_is_the_diagnosis_where_nothing_else_is_wrong(bench):
    judged = bench(mutant(f"{ID}/axes_exchanged_in_square_tile"), ID)
    refused = judged.check(normal(37), normal(53), dtypes=("float32",), BLOCK_M=16, BLOCK_N=8)
    assert refused.kind == "error"
