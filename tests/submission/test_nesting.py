"""A file that nests too deeply is refused as text; one that nests as deeply as may be is judged like any other."""

from __future__ import annotations

import ast
from collections.abc import Callable

import pytest

from grader.explain.verdict import FAIL, PASS
from grader.numerics.data_sets import normal
from grader.submission.text import MOST_LEVELS, line_nested_too_deep, read_submission
from tests.conftest import ROOT

RIGHT = (ROOT / "solutions/01_masked_add/masked_add.py").read_text()

# By what is nested: a statement of so many of them, one in another.
NESTED: dict[str, Callable[[int], str]] = {
    "attributes": lambda count: "torch" + ".float32" * count,
    "calls": lambda count: "print" + "()" * count,
    "indices": lambda count: "RIGHT" + "[0]" * count,
    "sums": lambda count: "1" + " + 1" * count,
    "signs": lambda count: "-" * count + "1",
    "conditions": lambda count: "1 if N else " * count + "1",
    "functions without a name": lambda count: "lambda: " * count + "1",
    "lists": lambda count: "[" * count + "]" * count,
    "branches": lambda count: "if N:\n        1\n" + "    elif N:\n        1\n" * count,
}


def in_host(statement: str) -> str:
    """The solution with a function that is never called."""
    return f"{RIGHT}\n\ndef never_called(N):\n    {statement}\n"


def in_kernel(statement: str) -> str:
    """The solution with a constexpr function that a kernel could call."""
    return f"{RIGHT}\n\n@triton.constexpr_function\ndef never_called(N):\n    {statement}\n"


def deepest(place: Callable[[str], str], nested: Callable[[int], str]) -> int:
    """Returns how many may be nested there."""
    counts = range(1, MOST_LEVELS + 1)
    return max(count for count in counts if not line_nested_too_deep(ast.parse(place(nested(count)))))


@pytest.mark.parametrize("place", [in_host, in_kernel])
@pytest.mark.parametrize("name", NESTED)
def test_what_nests_as_deeply_as_may_be_is_judged(bench, place, name):
    text = place(NESTED[name](deepest(place, NESTED[name])))
    verdict = bench(text).check(normal(5), normal(5), dtypes=("float32",))
    assert verdict.outcome == PASS or verdict.id == "not-allowed", verdict.lines


@pytest.mark.parametrize("place", [in_host, in_kernel])
@pytest.mark.parametrize("name", NESTED)
def test_what_nests_deeper_is_told_by_its_line(bench, place, name):
    text = place(NESTED[name](deepest(place, NESTED[name]) + 1))
    verdict = bench(text).check(normal(5), normal(5))
    assert (verdict.outcome, verdict.id, verdict.kind) == (FAIL, "nested", "file")
    assert f"Line {verdict.line} of masked_add.py nests more than 100 levels deep" in verdict.lines[0]
    assert verdict.line > text[: text.index("never_called")].count("\n")


@pytest.mark.parametrize("name", ["attributes", "sums", "signs", "calls"])
@pytest.mark.parametrize("count", [330, 900, 20_000, 100_000])
def test_what_python_itself_cannot_read_is_no_fault_of_ours(bench, name, count):
    verdict = bench(in_host(NESTED[name](count))).check(normal(5), normal(5))
    assert verdict.id == "nested" and "nests more than 100 levels deep" in verdict.lines[0], verdict.lines


def test_files_of_the_course_nest_a_fifth_as_deeply(monkeypatch):
    monkeypatch.setattr("grader.submission.text.MOST_LEVELS", MOST_LEVELS // 5)
    nested = [path for path in ROOT.glob("solutions/*/*.py") if line_nested_too_deep(ast.parse(path.read_text()))]
    assert nested == []


def test_what_python_says_of_its_style_is_not_printed(tmp_path, recwarn):
    path = tmp_path / "softmax.py"
    path.write_text('pattern = "\\d"\n')
    assert read_submission(path).failure is None and not recwarn.list
