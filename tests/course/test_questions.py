"""Questions of a lesson: how they are stated, and which answers are right."""

from __future__ import annotations

import math

import pytest

from grader.course.folder import Folder
from grader.course.questions import BadQuestion, LessonQuestion, NoAnswer, number_text, questions_of

STATED = """
[[questions]]
ask = "How many?"
answer = 3
why = "Because."
shown_by = "course programs 01"
proof = { fact = "programs" }
"""


@pytest.fixture
def folder(tmp_path):
    return Folder(tmp_path)


def written(folder: Folder, text: str) -> Folder:
    (folder.path / "questions.toml").write_text(text, encoding="utf-8")
    return folder


def question(answer: float | str, *choices: str) -> LessonQuestion:
    return LessonQuestion("How many?", answer, "Because.", "course programs 01", choices=choices)


def test_a_lesson_without_a_file_has_no_questions(folder):
    assert questions_of(folder) == []


def test_questions_keep_their_order(folder):
    found = questions_of(written(folder, STATED + STATED.replace("answer = 3", "answer = nan")))
    assert [one.answer_text for one in found] == ["3", "NaN"]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("answer = 3", "answer = ", "questions.toml: Invalid value"),
        ("[[questions]]", "[questions]", "has to hold [[questions]], and nothing else"),
        ("[[questions]]", "title = 1\n[[questions]]", "has to hold [[questions]], and nothing else"),
        ('why = "Because."\n', "", "question 1 has to state answer, ask, why, shown_by, proof"),
        ("answer = 3", "answer = 3\nhint = 1", "question 1 has to state answer, ask, why, shown_by, proof"),
        ("answer = 3", 'answer = "3"', "question 1 has to state a number as its answer, or choices"),
        ("answer = 3", "answer = true", "question 1 has to state a number as its answer, or choices"),
        ("answer = 3", 'answer = "a"\nchoices = ["a", "a"]', "choices are 2 to 6 different texts"),
        ("answer = 3", 'answer = "a"\nchoices = ["b", "c"]', "its answer has to be one of its choices"),
        ("answer = 3", 'answer = "a"\nchoices = 3', "choices are 2 to 6 different texts"),
    ],
)
def test_a_file_that_states_no_question_is_a_sentence(folder, old, new, said):
    with pytest.raises(BadQuestion) as bad:
        questions_of(written(folder, STATED.replace(old, new)))
    assert said in str(bad.value)


@pytest.mark.parametrize(
    ("answer", "right", "wrong"),
    [
        (3, ["3", " 3 ", "3.0"], ["4", "3.01", "nan"]),
        (1024, ["1 024", "1024", "1_024"], ["1023"]),
        (0.368, ["0.37", "0.368", ".37"], ["0.4", "0.34"]),
        (0.125, ["0.125", "0.12", "0.13", "1/8"], ["0.1", "0.14"]),
        (0.25, ["1/4", "0.25"], ["1/3"]),
        (math.nan, ["nan", "NaN"], ["0", "inf"]),
        (math.inf, ["inf", "infinity"], ["-inf", "1e30", "nan"]),
    ],
)
def test_numbers_are_right_as_learners_type_them(answer, right, wrong):
    assert all(question(answer).is_right(text) for text in right)
    assert not any(question(answer).is_right(text) for text in wrong)


def test_a_choice_is_its_letter_or_its_words():
    asked = question("2 times", "1 time", "2 times", "10 times")
    assert all(asked.is_right(text) for text in ("b", "B", "b)", "2 times"))
    assert question("1 (as fast)", "1 (as fast)", "2 times").is_right("1 (as fast)")
    assert not asked.is_right("a") and asked.answer_text == "b) 2 times"


@pytest.mark.parametrize("text", ["", "three", "1/0", "--3", "1e999999999999/3"])
def test_what_is_no_number_is_told(text):
    with pytest.raises(NoAnswer, match="Answer with a number, such as 3, 0.5, 1/3 or nan"):
        question(3).is_right(text)


@pytest.mark.parametrize("text", ["d", "2", ""])
def test_what_is_no_choice_is_told(text):
    with pytest.raises(NoAnswer, match="Answer with a letter from a to c"):
        question("x", "x", "y", "z").is_right(text)


@pytest.mark.parametrize(
    ("number", "text"),
    [(12000, "12 000"), (0.3679, "0.368"), (math.nan, "NaN"), (-math.inf, "-infinity"), (math.inf, "infinity")],
)
def test_numbers_as_they_are_shown(number, text):
    assert number_text(number) == text


@pytest.mark.parametrize(
    ("proof", "shown_by", "said"),
    [
        (
            {"fact": "programs"},
            "course programs 01",
            "When your kernel runs, course programs 01 shows it on other numbers.",
        ),
        ({"fact": "faster"}, "course ladder 01", "course ladder 01 has the figures."),
        ({"mutant": "nan"}, "pytest x", "Try it: write the kernel so, and pytest x names the mistake."),
    ],
)
def test_the_command_shows_what_it_promises(proof, shown_by, said):
    assert LessonQuestion("How many?", 3, "Because.", shown_by, proof).where_shown == said
