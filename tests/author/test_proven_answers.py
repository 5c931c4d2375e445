"""Proofs of questions: each fact is told of the solution, and an answer that is not it is a complaint."""

from __future__ import annotations

import math

import pytest

from grader.author import proven_answers
from grader.author.facts import NoFact, fact_of, figures_of
from grader.author.proven_answers import complaint_of, complaints
from grader.course.folder import Folder, all_folders, all_lessons
from grader.course.questions import QUESTIONS, LessonQuestion, same_number
from tests.conftest import ROOT

MASKED_ADD, SOFTMAX, ONLINE, SPLIT, MATMUL, PAGE = (
    Folder(ROOT / "exercises" / id)
    for id in ("01_masked_add", "03_softmax", "13_online_softmax", "14_split_softmax", "05_grouped_matmul", "00_memory")
)
SIZES = [{"x": size, "y": size} for size in ("1", "15", "16", "17", "32")]
ROW = {"x": [[1, 3, 2, 0, 4, 1, 2, 1, 2, 3]], "BLOCK_N": 4}  # the lesson of 13 has it by hand
FACTS = [
    (MASKED_ADD, {"fact": "programs"}, 3),
    (MASKED_ADD, {"fact": "launches"}, 1),
    (MASKED_ADD, {"fact": "idle"}, 0),
    (MASKED_ADD, {"fact": "masked", "of": "x", "program": [2]}, 2),
    (MASKED_ADD, {"fact": "first", "of": "x", "program": [2]}, 8),
    (MASKED_ADD, {"fact": "bytes"}, 120),
    (MASKED_ADD, {"fact": "wrong", "of": "z", "mutant": "subtracts"}, 10),
    (MASKED_ADD, {"fact": "result", "of": "z", "at": [1], "call": {"x": [1, 2], "y": [3, 4]}}, 6),
    (MASKED_ADD, {"fact": "bytes", "dtype": "float16"}, 60),
    (ONLINE, {"fact": "loads", "of": "x"}, 2),
    (ONLINE, {"fact": "stores", "of": "z"}, 1),
    (ONLINE, {"fact": "value", "of": "greatest", "program": [0], "iteration": 1, "call": ROW}, 3),
    (ONLINE, {"fact": "value", "of": "greatest", "program": [0], "iteration": 2, "call": ROW}, 4),
    (ONLINE, {"fact": "value", "of": "total", "program": [0], "iteration": 2, "call": ROW}, 1.806),
    (SPLIT, {"fact": "programs", "launch": 1}, 3),
    (SOFTMAX, {"fact": "result", "of": "z", "at": [0, 0], "call": {"x": [[0, 0]]}}, 0.5),
    (MASKED_ADD, {"fact": "width", "of": "store", "call": {"x": "1024", "y": "1024"}}, 16),
    (MASKED_ADD, {"fact": "width", "of": "load", "call": {"x": "1025", "y": "1025"}}, 4),
    (MASKED_ADD, {"fact": "versions", "calls": SIZES}, 3),
    (SOFTMAX, {"fact": "instructions", "of": "ex2", "call": {"x": "2 x 4096"}}, 8),
    (PAGE, {"fact": "programs", "exercise": "01_masked_add"}, 3),
    (PAGE, {"fact": "rounded", "number": 257, "dtype": "bfloat16"}, 256),
]


@pytest.mark.parametrize(("folder", "proof", "told"), FACTS, ids=lambda one: getattr(one, "id", None))
def test_a_fact_is_told(folder, proof, told):
    assert same_number(float(fact_of(folder, proof)), told)


def test_figures_of_a_ladder_are_facts():
    rungs = list(figures_of(MATMUL))
    first, last = rungs[0], rungs[-1]
    factor = fact_of(MATMUL, {"fact": "times faster", "rungs": [first, last]})
    assert factor > 1 and fact_of(MATMUL, {"fact": "faster", "rungs": [first, last]}) == 1
    assert math.isclose(fact_of(MATMUL, {"fact": "times faster", "rungs": [last, first]}), 1 / factor)


@pytest.mark.parametrize(
    ("proof", "said"),
    [
        ({"fact": "speed"}, "no proof tells the fact 'speed'"),
        ({"fact": "masked"}, "the fact 'masked' needs ['of', 'program']"),
        ({"fact": "programs", "of": "x"}, "the fact 'programs' needs []"),
        ({"fact": "masked", "of": "q", "program": [0]}, "program [0] does not touch q"),
        ({"fact": "masked", "of": "x", "program": [9]}, "program [9] does not touch x"),
        ({"fact": "loads", "of": "q"}, "no traffic of q was counted"),
        ({"fact": "result", "of": "q", "at": [0]}, "q is no result; they are z"),
        ({"fact": "result", "of": "z", "at": [10]}, "z has no element [10]"),
        ({"fact": "value", "of": "q", "program": [0]}, "no variable q was seen there"),
        ({"fact": "programs", "launch": 2}, "the call has no such launch"),
        ({"fact": "programs", "mutant": "none_of_them"}, "has no mutant none_of_them"),
        ({"fact": "programs", "call": {"x": "10"}}, "`call` states no y"),
        ({"fact": "programs", "call": {"x": "10", "y": "10", "q": 1}}, "`call` states q, which is no argument"),
        ({"fact": "programs", "call": {"x": "ten", "y": "10"}}, "x is a list of numbers, a number without quotes"),
        ({"fact": "programs", "dtype": "float15"}, "`dtype` names a dtype"),
        ({"fact": "masked", "of": "x", "program": [0], "call": {"x": "500", "y": "500"}}, "state smaller blocks"),
        ({"fact": "programs", "mutant": "break_in_kernel"}, "the call ends in line"),
        ({"fact": "faster", "rungs": ["one", "two"]}, "has no figures of the rung 'one'"),
        ({"fact": "programs", "exercise": "00_memory"}, "00_memory is no exercise: a page's proof names one"),
        ({"fact": "rounded", "number": 1, "dtype": "float15"}, "'float15' is no dtype of torch"),
        ({"fact": "width", "of": "copy"}, "the machine code has no 'copy'"),
        ({"fact": "width", "of": "load", "mutant": "break_in_kernel"}, "the call "),
    ],
    ids=lambda one: None,
)
def test_a_proof_that_tells_nothing_is_a_sentence(proof, said):
    with pytest.raises(NoFact) as why:
        fact_of(MASKED_ADD, proof)
    assert said in str(why.value)


def asked(answer: float | str, *choices: str, **proof: object) -> LessonQuestion:
    return LessonQuestion("How many?", answer, "Because.", "course programs 01", {"fact": "programs"} | proof, choices)


@pytest.mark.parametrize(
    ("question", "complaint"),
    [
        (asked(3), ""),
        (asked(4), "answers 4, and the grader finds 3"),
        (asked("3 programs", "3 programs", "9 programs"), ""),
        (asked("9 programs", "3 programs", "9 programs"), "answers 9 programs, and the grader finds 3"),
        (asked("4 programs", "1 program", "4 programs", "20 programs"), ""),  # the nearest
        (asked("one", "one", "two"), "answers one, and the grader finds 3"),
    ],
    ids=lambda one: None,
)
def test_an_answer_is_held_to_what_is_computed(monkeypatch, question, complaint):
    monkeypatch.setattr(proven_answers, "questions_of", lambda folder: [question] * proven_answers.LEAST)
    monkeypatch.setattr(proven_answers, "fact_of", lambda folder, proof: 3)
    found = complaints(MASKED_ADD)
    assert found == ([f"question {n} of 01_masked_add: {complaint}" for n in (1, 2, 3)] if complaint else [])


def test_nan_is_a_choice():
    question = asked("NaN", "0", "NaN", "1")
    assert complaint_of(question, math.nan) == "" != complaint_of(question, 0.0)


def test_few_questions_are_a_complaint(monkeypatch):
    monkeypatch.setattr(proven_answers, "questions_of", lambda folder: [])
    assert complaints(MASKED_ADD) == ["01_masked_add has 0 questions; 3 are the least"]


@pytest.mark.parametrize("folder", all_folders(ROOT), ids=lambda folder: folder.id)
def test_each_lesson_names_its_questions(folder):
    assert f"`course predict {folder.number}`" in folder.lesson_file.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "page", [one for one in all_lessons(ROOT) if (one.path / QUESTIONS).exists()], ids=lambda page: page.id
)
def test_the_questions_of_a_page_are_proven(page):
    assert complaints(page) == [] and f"`course predict {page.number}`" in page.lesson_file.read_text(encoding="utf-8")
