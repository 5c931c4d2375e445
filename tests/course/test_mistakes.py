"""The mistakes of an exercise as its file states them."""

from __future__ import annotations

import pytest

from grader.course.folder import Folder, all_folders
from grader.course.mistakes import (
    advice_of,
    causes_of,
    causes_that_hints_help_with,
    in_docstring,
    mistakes_of,
    pattern_of,
)
from grader.sentences import StatedSentence
from tests.conftest import ROOT

FOLDERS = all_folders(ROOT)
SOFTMAX = Folder(ROOT / "exercises" / "03_softmax")


@pytest.mark.parametrize("folder", FOLDERS, ids=[folder.number for folder in FOLDERS])
def test_each_exercise_states_its_mistakes(folder):
    """Each is a change of its own to the solution, and its sentence ends as one."""
    found = list(mistakes_of(folder))
    texts = [one.text for one in found]
    assert len(set(texts)) == len(texts) and folder.solution_file.read_text() not in texts
    assert all(one.says.value.endswith((".", "?")) and one.loses in ("", "digits", "range") for one in found)


def test_ways_of_one_mistake_have_one_sentence():
    ids = [one.says.id for one in mistakes_of(Folder(ROOT / "exercises" / "05_grouped_matmul"))]
    assert ids.count("mistakes.fp32-default-precision") == 2


def test_a_file_may_be_a_mistake():
    names = {one.name: one for one in mistakes_of(SOFTMAX)}
    assert names["chunk_of_minus_infinity"].text.startswith('"""Wrong:')
    assert "inf-minus-inf" in causes_of(SOFTMAX)
    assert in_docstring('"""Wrong: a.\n\nFinding: b\n\nSays: c.\n"""') == {"wrong": "a.", "finding": "b", "says": "c."}
    assert in_docstring('"""Nothing of the kind."""') is None


def test_causes_are_told_by_what_they_lose_and_whether_a_hint_has_to_help():
    folder = Folder(ROOT / "exercises" / "09_layer_norm")
    assert "one-pass-variance" in causes_of(folder, "digits") and "unbiased" not in causes_of(folder, "digits")
    plain = causes_of(folder) - causes_that_hints_help_with(folder)
    assert "weight-for-bias" in plain and "one-pass-variance" not in plain


def test_advice_stands_beside_the_mistakes():
    advice = advice_of(Folder(ROOT / "exercises" / "08_swiglu"))
    assert advice.alone == {"dgate": "wrong-slope"} and "sigmoid" in advice.lost_digits.said_of({}).text


@pytest.mark.parametrize(
    ("says", "pattern"),
    [
        ("z holds the mean.", "z holds the mean"),
        ("The {BLOCK_N - N} lanes past {N:#column}.", "The ... lanes past"),
        ("{P} partial results of {name}'s rows.", "partial results of ... rows"),
    ],
)
def test_a_message_is_looked_for_without_what_fills_its_fields(says, pattern):
    assert pattern_of(says) == pattern


def test_a_field_is_arithmetic_with_the_numbers_of_a_launch():
    says = StatedSentence("mistakes.a", "{cdiv(N, BLOCK_N)} turns, {N // BLOCK_N:#turn} made; {eps:g}, {-N % BLOCK_N}.")
    said = says.said_of({"N": 9, "BLOCK_N": 8, "eps": 1e-5})
    assert said.text == "2 turns, 1 turn made; 1e-05, 7."
    assert said.to_json() == {
        "sentence": "mistakes.a",
        "evidence": {"cdiv(N, BLOCK_N)": 2, "N // BLOCK_N": 1, "eps": 1e-5, "-N % BLOCK_N": 7},
    }
    with pytest.raises(NameError):
        says.said_of({"N": 9})


@pytest.mark.parametrize(
    "field", ["N.real", "(lambda N=N: N)()", "min(N, 1)", "[N]", "N if N else 1", "__import__('os')", "'N'", "N +"]
)
def test_a_field_is_nothing_but_arithmetic(field):
    """It is worked out where verdicts are made."""
    with pytest.raises(NameError):
        StatedSentence("mistakes.a", "{" + field + "}").said_of({"N": 9})
