"""course predict: questions in a terminal or a pipe, what is said of answers, and what is noted."""

from __future__ import annotations

import pytest

from grader.course.folder import Folder
from grader.course.questions import questions_of
from tests.conftest import ROOT

QUESTIONS = questions_of(Folder(ROOT / "exercises" / "01_masked_add"))
RIGHT = [str(question.answer) for question in QUESTIONS]


def typed(*answers: str) -> str:
    return "\n".join(answers) + "\n"


def noted(course) -> str:
    path = course.path / "progress.txt"
    return path.read_text() if path.exists() else ""


def test_right_answers_are_counted_and_noted(course):
    done = course.here("predict", "01", answer=typed(*RIGHT))
    assert done.status == 0 and done.out.count("Right.") == len(RIGHT)
    assert f"{len(RIGHT)} of {len(RIGHT)} right." in done.out
    assert done.lines[-1].startswith("Next: edit exercises/01_masked_add/masked_add.py and run pytest")
    assert f"01_masked_add  predicted={len(RIGHT)}/{len(RIGHT)}" in noted(course)


def test_a_wrong_answer_gets_the_reason_and_the_command_that_shows_it(course):
    done = course.here("predict", "01", answer=typed("3", *RIGHT[1:]))
    said = " ".join(done.out.split())
    assert f"No: it is {QUESTIONS[0].answer_text}. {QUESTIONS[0].why} When your kernel runs, course programs 01" in said
    assert f"predicted={len(RIGHT) - 1}/{len(RIGHT)}" in noted(course)


def test_a_skipped_question_is_explained_and_costs_nothing(course):
    done = course.here("predict", "01", answer=typed("", *RIGHT[1:]))
    assert f"Skipped: it is {QUESTIONS[0].answer_text}." in done.out and done.status == 0
    assert f"predicted={len(RIGHT) - 1}/{len(RIGHT) - 1}" in noted(course)


def test_the_first_try_counts(course):
    course.here("predict", "01", answer=typed(*["999"] * 3, *RIGHT[3:]))
    done = course.here("predict", "01", answer=typed(*RIGHT))
    assert f"The first try counts: {len(RIGHT) - 3} of {len(RIGHT)}." in done.out
    assert f"predicted={len(RIGHT) - 3}/{len(RIGHT)}" in noted(course)


@pytest.mark.parametrize("answers", [("3", "q"), ("3",)])
def test_a_round_that_ends_early_is_not_noted(course, answers):
    done = course.here("predict", "01", answer=typed(*answers))
    assert done.status == 0 and "Not noted, as questions are left: course predict 01" in done.out
    assert "predicted" not in noted(course)


def test_progress_that_cannot_be_written_does_not_hide_the_result(course):
    (course.path / "progress.txt").mkdir()
    done = course.here("predict", "01", answer=typed(*RIGHT))
    assert f"{len(RIGHT)} of {len(RIGHT)} right. That could not be noted" in " ".join(done.out.split())


def test_after_a_core_the_next_exercise_is_asked_about(course):
    line = "01_masked_add  outcome=fail runs=1 level=core core=2026-01-02T00:00:00Z last=2026-01-02T00:00:00Z\n"
    (course.path / "progress.txt").write_text(line)
    assert course.here("predict").out.startswith("02_strided_blocks: ")


def test_what_is_no_answer_is_asked_again(course):
    done = course.here("predict", "01", answer=typed("four", *RIGHT))
    assert "Answer with a number, such as 3, 0.5, 1/3 or nan. Enter skips, q ends." in done.out
    assert f"{len(RIGHT)} of {len(RIGHT)} right." in done.out


def test_without_any_input_nothing_is_noted(course):
    done = course.here("predict", "01")
    assert done.status == 0 and "1 of" in done.out and not noted(course)
    assert "Nothing was answered. The questions stay: course predict 01" in done.out


def test_without_a_number_the_exercise_at_hand_is_meant(course):
    assert course.here("predict").out.startswith("01_masked_add: ")


def test_an_exercise_without_questions_is_a_sentence(course):
    (course.path / "exercises/01_masked_add/questions.toml").unlink()
    done = course.here("predict", "01")
    assert done.status == 1 and done.err == "Error: 01_masked_add has no questions. Next: course open 01\n"


def test_questions_that_cannot_be_read_are_a_sentence(course):
    (course.path / "exercises/01_masked_add/questions.toml").write_text("x")
    done = course.here("predict", "01")
    assert done.status == 1 and "questions.toml: " in done.err


def test_a_lesson_to_read_has_none(course):
    assert "is a lesson to read" in course.here("predict", "00").out


def test_a_page_asks_and_notes_nothing(course):
    page = Folder(ROOT / "exercises" / "43_numbers")
    right = [str(question.answer) for question in questions_of(page)]
    done = course.here("predict", "43", answer=typed(*right))
    assert done.status == 0 and f"43_numbers: {len(right)} questions. Enter" in " ".join(done.out.split())
    assert f"{len(right)} of {len(right)} right." in done.out and not noted(course)
    assert done.lines[-1] == course.here("status").lines[-1]
    assert 'Try it: python -c "import torch' in " ".join(course.here("predict", "43", answer=typed("1")).out.split())
    assert course.here("open", "43").lines[-1].startswith("Next: course predict 43, then ")


def test_the_lesson_leads_to_its_questions(course):
    assert course.here("open", "01").lines[-1].startswith("Next: course predict 01")


def test_the_report_counts_them(course):
    course.here("predict", "01", answer=typed(*RIGHT))
    course.here("report")
    assert f'<td class="optional whole">{len(RIGHT)} of {len(RIGHT)}</td>' in (course.path / "report.html").read_text()


def test_the_next_exercise_is_named_where_this_one_is_passed(course):
    (course.path / "progress.txt").write_text("01_masked_add  outcome=pass passed=2026-01-02T00:00:00Z runs=1\n")
    done = course.here("predict", "01", answer=typed(*RIGHT))
    assert done.lines[-1] == course.here("status").lines[-1]
    assert done.lines[-1] == "Next: 02_strided_blocks. Read it with: course open 02"
