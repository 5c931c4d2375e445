"""Proves a lesson's questions: compares each answer with the number that the grader computes."""

from __future__ import annotations

import math
import re

from grader.author.facts import NoFact, fact_of
from grader.course.folder import Folder
from grader.course.questions import BadQuestion, LessonQuestion, number_text, questions_of, same_number

LEAST = 3  # questions of a lesson
NUMBER = re.compile(r"-?(?:\d+(?:\.\d+)?|nan|inf)")


def complaints(folder: Folder) -> list[str]:
    """Returns complaints about answers that the grader contradicts, unproven questions, and too few questions."""
    try:
        questions = questions_of(folder)
    except (BadQuestion, OSError) as bad:
        return [str(bad)]
    if len(questions) < LEAST:
        return [f"{folder.id} has {len(questions)} questions; {LEAST} are the least"]
    found = [_complaint(folder, question) for question in questions]
    return [f"question {number} of {folder.id}: {one}" for number, one in enumerate(found, 1) if one]


def _complaint(folder: Folder, question: LessonQuestion) -> str:
    try:
        return complaint_of(question, fact_of(folder, question.proof))
    except NoFact as why:
        return str(why)


def complaint_of(question: LessonQuestion, computed: float) -> str:
    """Returns a complaint if the computed number contradicts the answer, else "".

    A choice is right if it begins with the computed number, or with the nearest by ratio. Where the fact is "faster",
    the computed number is the place of the right choice.
    """
    if question.proof["fact"] == "faster":
        expected = question.choices[int(computed)] if int(computed) < len(question.choices) else ""
        return "" if expected == question.answer else f"answers {question.answer!r}, and the figures say {expected!r}"
    if isinstance(question.answer, str):
        is_right, stated = question.answer == _nearest(question.choices, computed), question.answer
    else:
        is_right, stated = same_number(computed, question.answer), number_text(question.answer)
    return "" if is_right else f"answers {stated}, and the grader finds {number_text(computed)}"


def _nearest(choices: tuple[str, ...], computed: float) -> str | None:
    numbers = {choice: number for choice in choices if (number := _number_in(choice)) is not None}
    for choice, number in numbers.items():
        if same_number(computed, number):
            return choice
    positive = {choice: number for choice, number in numbers.items() if 0 < number < math.inf}
    if not positive or not 0 < computed < math.inf:
        return None
    return min(positive, key=lambda choice: abs(math.log(positive[choice] / computed)))


def _number_in(choice: str) -> float | None:
    """Returns the number at the start of a choice: 2 for "2 times", NaN for "NaN, as 0 / 0"; None if there is none."""
    match = NUMBER.match(choice.strip().lower())
    if match is None:
        return None
    return int(match[0]) if match[0].lstrip("-").isdigit() else float(match[0])
