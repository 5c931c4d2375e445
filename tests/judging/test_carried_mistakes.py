"""Mistakes that are carried out: a wrong kernel is told the mistake of the solution that gives the same numbers."""

from __future__ import annotations

from grader import normal
from grader.course.changed_text import changed
from grader.explain.verdict import FAIL, PASS
from grader.judging import carried_mistakes
from tests.conftest import ROOT, mutant

NORM, SUM, SOFTMAX = "09_layer_norm", "07_row_sum", "03_softmax"


def accepted(id: str, name: str, *changes: list[str]) -> str:
    """A right kernel of another design, with changes."""
    return changed((ROOT / "solutions" / id / "accepted" / f"{name}.py").read_text(), list(changes))


def solution(id: str, *changes: list[str]) -> str:
    return changed((ROOT / "solutions" / id / f"{id[3:]}.py").read_text(), list(changes))


def norm(rows: int, columns: int) -> tuple:
    return normal(rows, columns), normal(columns), normal(columns), 1e-5


def test_a_mistake_is_told_in_a_kernel_of_another_design(bench):
    """The solution has one block for a row; this kernel goes through the row in chunks, with means of its own."""
    text = accepted(NORM, "welford_in_chunks", ["squares / N + eps", "squares / (N - 1) + eps"])
    verdict = bench(text, NORM).check(*norm(5, 100))
    assert verdict.id == "unbiased" and verdict.kind == "cause"
    assert verdict.lines[0] == "The sum of squares is divided by N - 1: a mean of squares divides by N."
    assert verdict.candidate == "mistakes.unbiased"


def test_numbers_in_a_sentence_are_those_of_the_launch(bench):
    verdict = bench(mutant(f"{NORM}/mean_over_the_block"), NORM).check(*norm(3, 100))
    assert verdict.lines[0] == "The sum of a row is divided by 128, the lanes of the block: a row has 100 numbers."


def test_block_sizes_of_the_file_and_of_the_test_are_the_changed_solutions_too(bench):
    """Which columns are left out depends on the block, which the learner chooses."""
    changes = (
        ["range(0, N, BLOCK_N)", "range(0, N // BLOCK_N * BLOCK_N, BLOCK_N)"],
        ["BLOCK_N = 2048", "BLOCK_N = 512"],
    )
    text = solution(SUM, *changes)
    assert bench(text, SUM).check(normal(3, 1500)).lines[0].endswith("for 1500 columns in blocks of 512.")
    assert bench(text, SUM).check(normal(3, 300), BLOCK_N=128).lines[0].endswith("for 300 columns in blocks of 128.")


def test_digits_that_are_lost_are_compared_to_the_bit(bench):
    """Both ways of half precision are about as near to the result; one gives its very bits."""
    verdict = bench(mutant("05_grouped_matmul/fp32_operands_in_half"), "05_grouped_matmul").check(
        normal(33, 75), normal(75, 20), dtypes=("float32",), BLOCK_M=32, BLOCK_N=32, BLOCK_K=32, GROUP_M=2
    )
    assert verdict.id == "rounded-operands" and "fp16 before the product" in verdict.lines[0]


def test_a_mistake_that_would_spoil_a_right_call_is_not_told(bench):
    """One block and a part: to leave out all but the first block is the same as to leave the part out."""
    text, data = mutant(f"{SUM}/floor_loop"), normal(3, 3000)
    assert bench(text, SUM).check(data).lines[0].startswith("Only the first 2048 of 3000 columns of each row are there")
    judged = bench(text, SUM)
    assert judged.check(normal(3, 4096)).outcome == PASS  # which the first block alone would not
    assert judged.check(data).lines[0].startswith("The last, partial block of each row is left out")


def test_a_mistake_that_would_spoil_a_result_that_is_right_is_not_told(bench):
    """mean and rstd are exchanged in the solution: here rstd alone is wrong, and holds the mean."""
    text = solution(NORM, ["tl.store(rstd_ptr + row, rstd)", "tl.store(rstd_ptr + row, mean)"])
    verdict = bench(text, NORM).check(*norm(8, 200))
    assert verdict.outcome == FAIL and verdict.id != "results-exchanged"
    both = bench(mutant(f"{NORM}/results_exchanged"), NORM).check(*norm(8, 200))
    assert both.lines[0] == "mean holds what belongs into the other of mean and rstd."


def test_what_has_fitted_a_call_is_weighed_in_each_call_that_follows(bench):
    """So that a mistake that fits few calls by chance is not told, however many contradict it."""
    judged = bench(mutant(f"{SUM}/floor_loop"), SUM)
    first = judged.check(normal(3, 3000))
    others = [judged.check(normal(3, columns)) for columns in (5000, 7000, 9000)]
    assert "mistakes.first-block-only" in first.fitting
    assert all("mistakes.first-block-only" in one.refuted for one in others)
    assert all("mistakes.floor-loop" in one.fitting for one in (first, *others))


def test_calls_with_other_values_share_nothing(bench):
    """What mistakes give is kept from run to run, for calls with the same values in the same layout."""
    for data in (normal(4, 61), normal(4, 61).transposed(), normal(4, 61) + 1):
        verdict = bench(mutant(f"{NORM}/unbiased"), NORM).check(data, normal(61), normal(61), 1e-5)
        assert verdict.id == "unbiased", verdict.lines


def test_what_a_call_contradicts_is_not_carried_out_again(bench, monkeypatch):
    tried = []
    carried_out = carried_mistakes.CarriedMistakes._carried_out

    def counted(self, mistake, *call, **options):
        tried.append(mistake.name)
        return carried_out(self, mistake, *call, **options)

    monkeypatch.setattr(carried_mistakes.CarriedMistakes, "_carried_out", counted)
    judged = bench(solution(NORM, ["d * rstd", "d * rstd * 1.5"]), NORM)
    assert judged.check(*norm(4, 50)).outcome == FAIL
    first = len(tried)
    assert judged.check(*norm(4, 60)).outcome == FAIL
    assert first >= 15 and len(tried) - first <= first // 2


def test_nan_everywhere_is_not_told_as_one_of_several_mistakes_that_make_it(bench):
    text = solution(SOFTMAX, ["e / tl.sum(e, 0)", "(e - e) / (e - e)"])
    verdict = bench(text, SOFTMAX).check(normal(4, 100) - 1000)
    assert verdict.id == "constant" and verdict.lines[0] == "z is NaN everywhere."


def test_a_finding_of_the_checker_is_told_by_the_mistake_that_leads_to_it(bench):
    """The same place in the same tensor, by another line of another design."""
    verdict = bench(mutant("39_kv_cache_write/skip_forgotten"), "39_kv_cache_write").check(
        *_tokens(), dtypes=("float16",)
    )
    assert verdict.id == "minus-one-stored" and verdict.lines[0].startswith("-1 in slots is taken as a slot")
    assert verdict.lines[1].startswith("Program")


def _tokens() -> tuple:
    from grader import slots

    cache = normal(4, 16, 3, 16)
    return normal(24, 3, 16), normal(24, 3, 16), cache, cache, slots(24, below=64, nowhere=0.1)


def test_a_mistake_that_comes_to_no_end_is_left_out(bench, monkeypatch):
    monkeypatch.setattr(carried_mistakes, "MOST_LANES_OF_A_MISTAKE", 1)
    verdict = bench(mutant(f"{NORM}/unbiased"), NORM).check(*norm(4, 53))  # a call that no other test makes
    assert verdict.outcome == FAIL and verdict.id == "wrong-values"


def test_without_a_list_a_failure_is_explained_by_what_is_seen(bench, monkeypatch):
    def no_list(folder):
        raise OSError

    monkeypatch.setattr(carried_mistakes, "mistakes_of", no_list)
    verdict = bench(mutant(f"{NORM}/unbiased"), NORM).check(*norm(4, 50))
    assert verdict.outcome == FAIL and verdict.id == "wrong-values"
