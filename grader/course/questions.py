"""Questions of a lesson: what a learner predicts before writing the kernel.

exercises/NN_name/questions.toml, in the order in which they are asked:

    [[questions]]
    ask = "x has 10 elements and BLOCK_N is 4. How many programs does the grid need?"
    answer = 3
    why = "Two blocks of 4 hold 8 elements; the last 2 need a program of their own."
    shown_by = "course programs 01"
    proof = { fact = "programs" }

`answer`: a number, or one of `choices` where they are stated. `why`: the reason, told after a wrong answer. `shown_by`:
the command that shows the answer; where a mutant proves it, the command that judges the mutant. `proof`: how the answer
follows from the solution, see author/facts.py. A lesson to read may have such a file too.
"""

from __future__ import annotations

import math
import tomllib
from dataclasses import dataclass, field
from fractions import Fraction

from grader.course.folder import Folder

QUESTIONS = "questions.toml"  # in the exercise's folder
REQUIRED = {"ask": str, "why": str, "shown_by": str, "proof": dict}
LETTERS = "abcdef"
CLOSE = 0.05  # relative: an answer rounded to two digits is at least this close to the number
Answer = float | str


class BadQuestion(Exception):
    """A question that is not stated as it has to be; the message says where and why."""


class NoAnswer(ValueError):
    """A text that answers no question of this kind; the message says what is expected."""


@dataclass(frozen=True)
class LessonQuestion:
    """A question of a lesson. `answer`: a number, or the text of a choice."""

    ask: str
    answer: Answer
    why: str
    shown_by: str
    proof: dict = field(default_factory=dict)
    choices: tuple[str, ...] = ()

    @property
    def answer_text(self) -> str:
        """The right answer as a learner reads it: "3", "0.37", "NaN", or a choice with its letter."""
        if isinstance(self.answer, str):
            return f"{LETTERS[self.choices.index(self.answer)]}) {self.answer}"
        return number_text(self.answer)

    @property
    def explained(self) -> str:
        """The right answer and its reason, for an answer that is wrong or missing."""
        return f"it is {self.answer_text}. {self.why}"

    @property
    def where_shown(self) -> str:
        """The command that shows the answer, and from when on, as a sentence."""
        if "mutant" in self.proof:
            return f"Try it: write the kernel so, and {self.shown_by} names the mistake."
        if self.proof.get("fact") == "rounded":
            return f"Try it: {self.shown_by}"
        if self.shown_by.startswith("course ladder"):
            return f"{self.shown_by} has the figures."
        return f"When your kernel runs, {self.shown_by} shows it on other numbers."

    def is_right(self, text: str) -> bool:
        """Returns whether a learner's text is the answer. Raises NoAnswer for a text that answers nothing."""
        if isinstance(self.answer, str):
            return self._choice(text) == self.answer
        return same_number(_number(text), self.answer)

    def _choice(self, text: str) -> str:
        """Returns the choice that a text names, by its letter or by its own words. Raises NoAnswer."""
        letters = LETTERS[: len(self.choices)]
        wanted = text.strip().lower()
        by_name = {choice.lower(): choice for choice in self.choices} | dict(zip(letters, self.choices))
        for name in (wanted, wanted.rstrip(").")):
            if name in by_name:
                return by_name[name]
        raise NoAnswer(f"Answer with a letter from {letters[0]} to {letters[-1]}.")


def questions_of(folder: Folder) -> list[LessonQuestion]:
    """Returns the questions of a lesson; [] where it has no file of them. Raises BadQuestion, OSError."""
    path = folder.path / QUESTIONS
    if not path.exists():
        return []
    try:
        stated = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadQuestion(f"{path}: {error}") from None
    tables = stated.get("questions")
    if stated.keys() != {"questions"} or not isinstance(tables, list):
        raise BadQuestion(f"{path} has to hold [[questions]], and nothing else.")
    return [_question(table, f"{path}: question {number}") for number, table in enumerate(tables, 1)]


def _question(table: object, where: str) -> LessonQuestion:
    fields = dict(table) if isinstance(table, dict) else {}
    choices, answer = fields.pop("choices", []), fields.pop("answer", None)
    if {name: type(value) for name, value in fields.items()} != REQUIRED:
        raise BadQuestion(f"{where} has to state answer, {', '.join(REQUIRED)}, and may state choices: nothing else.")
    if choices:
        _check_choices(choices, answer, where)
    elif isinstance(answer, bool) or not isinstance(answer, int | float):
        raise BadQuestion(f"{where} has to state a number as its answer, or choices.")
    return LessonQuestion(answer=answer, choices=tuple(choices), **fields)


def _check_choices(choices: object, answer: object, where: str) -> None:
    texts = choices if isinstance(choices, list) and all(isinstance(choice, str) for choice in choices) else []
    if not 2 <= len(set(texts)) == len(texts) <= len(LETTERS):
        raise BadQuestion(f"{where}: choices are 2 to {len(LETTERS)} different texts.")
    if answer not in texts:
        raise BadQuestion(f"{where}: its answer has to be one of its choices.")


def same_number(one: float, other: float) -> bool:
    """Returns whether numbers are equal; if `other` is a float, whether they agree to two digits. NaN equals NaN."""
    if math.isnan(one) or math.isnan(other):
        return math.isnan(one) and math.isnan(other)
    if isinstance(other, int) or math.isinf(other):
        return one == other
    return math.isclose(one, other, rel_tol=CLOSE)


def number_text(number: float) -> str:
    """Returns a number as a learner reads it: "3", "0.368", "NaN" or "-infinity"."""
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "infinity" if number > 0 else "-infinity"
    return f"{number:,}".replace(",", " ") if isinstance(number, int) else f"{number:.3g}"


def _number(text: str) -> float:
    """Returns the number that a text states as learners type it: 3, 1 024, 0.37, 1/3, nan, -inf. Raises NoAnswer."""
    plain = "".join(text.split()).replace("_", "")
    try:
        return float(Fraction(plain)) if "/" in plain else float(plain)
    except (ValueError, ZeroDivisionError, OverflowError):
        raise NoAnswer("Answer with a number, such as 3, 0.5, 1/3 or nan.") from None
