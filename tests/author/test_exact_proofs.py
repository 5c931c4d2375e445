"""`course check` proves that a right kernel is right where nothing is rounded."""

from __future__ import annotations

from grader.author import exact_proofs
from grader.course.folder import Folder, load_test_file
from grader.judging.judge import Judge
from tests.conftest import ROOT

SOFTMAX = Folder(ROOT / "exercises" / "03_softmax")


def complaints(bench, *changes: tuple[str, str]) -> list[str]:
    text = SOFTMAX.solution_file.read_text(encoding="utf-8")
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    module = load_test_file(SOFTMAX)
    return exact_proofs.complaints(Judge(module.exercise, bench(text, SOFTMAX.id).run), module)


def test_a_solution_has_right_exact_runs(interpreter):
    assert exact_proofs.of_solution(SOFTMAX, interpreter) == []


def test_a_formula_that_is_nearly_right_is_a_complaint(bench):
    found = complaints(bench, ("tl.exp(x", "tl.exp(1.001 * x"))
    assert found and all("of the largest z is wrong where nothing is rounded" in one for one in found)


def test_a_kernel_without_an_exact_run_is_a_complaint_with_the_reason(bench):
    found = complaints(
        bench, ("e = tl.exp(x", "x = x.to(tl.int32, bitcast=True).to(tl.float32, bitcast=True)\n    e = tl.exp(x")
    )
    assert found[0].endswith(
        "has no exact run: the kernel reads the bits of a float in line 18, or the address of one as a number."
    )
