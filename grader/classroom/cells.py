"""Functions that a notebook's cells call: the judge, as a process, on the file that the notebook saved; and questions.

Nothing here prints to stderr: nbgrader's own executor takes one line there for a failure.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from grader.course.folder import Folder
from grader.course.questions import BadQuestion, NoAnswer, Question, questions_of
from grader.places import COURSE, IMPORTED_FROM

_results: dict[tuple[str, str], dict] = {}  # by exercise and text: grade cells share one run


def report(exercise: str) -> None:
    """Judges the saved file anew and shows what pytest would print, and the map of tiles as a picture."""
    result = _result(exercise, again=True)
    if result is None:
        return
    print(result["report"])
    if picture := _picture(result):
        from IPython.display import SVG, display

        display(SVG(picture))


def score(exercise: str, item: str) -> float | None:
    """The points of one item, as the value of the cell; says which tests they are made of."""
    from grader.classroom.rubric import HIDDEN, items_of

    if item == HIDDEN:
        print("Hidden cases are judged after you hand in.")
        return None
    result = _result(exercise, again=False)
    if result is None:
        return 0.0
    judged = items_of(result).get(item)
    if judged is None:
        print(f"The tests of {exercise} have no item {item!r}: the notebook and the course do not fit together.")
        return 0.0
    print("\n".join(judged.lines))
    if judged.open:
        print(f"Not run here: {judged.open[0]}. These points are still open.")
        return None
    return judged.score


def predict(exercise: str, *answers: object) -> None:
    """Says which answers to the lesson's questions are right, and explains the others. None skips a question.

    answers: numbers, or the letters of choices, in the order of the questions.
    """
    folder = Folder(COURSE / "exercises" / exercise)
    try:
        questions = questions_of(folder)
    except (BadQuestion, OSError) as error:
        print(f"The questions of {exercise} cannot be read: {error}")
        return
    if not questions:
        _say_not_there(folder)
    elif len(answers) != len(questions):
        print(
            f"There are {len(questions)} questions and {len(answers)} answers. Write None for a question that you skip."
        )
    elif all(answer is None for answer in answers):
        print('Write your answers into this cell, then run it: a number, "nan", or the letter of a choice, as "a".')
    else:
        _say_what_is_right(questions, answers)


def _say_what_is_right(questions: list[Question], answers: tuple[object, ...]) -> None:
    right = answered = 0
    for number, (question, answer) in enumerate(zip(questions, answers), 1):
        if answer is None:
            continue
        try:
            is_right = question.is_right(str(answer))
        except NoAnswer as why:
            print(f"{number}. {why}")
            continue
        right, answered = right + is_right, answered + 1
        print(f"{number}. Right." if is_right else f"{number}. No: {question.explained}")
    print(f"{right} of {answered} right.")


def _say_not_there(folder: Folder) -> None:
    print(f"{folder.path} is not there. The course's package was not installed from a copy of the course:")
    print("in its folder, run python -m pip install -e .")


def _result(exercise: str, again: bool) -> dict | None:
    """The judge's result for the file in the current folder; None, and a sentence, where there is nothing to judge."""
    folder = Folder(COURSE / "exercises" / exercise)
    if not folder.test_file.exists():
        _say_not_there(folder)
        return None
    file = Path(f"{folder.name}.py")
    if not file.exists():
        print(f"There is no {file} yet. Run the solution cell first: it saves the file.")
        return None
    key = exercise, hashlib.sha256(file.read_bytes()).hexdigest()
    if again or key not in _results:
        _results[key] = _judged(folder, file)
    return _results[key]


def _judged(folder: Folder, file: Path) -> dict:
    with tempfile.TemporaryDirectory() as temporary:
        path = Path(temporary, "result.json")
        command = [sys.executable, "-m", "pytest", str(folder.path), "--submission", str(file.resolve())]
        environment = {**os.environ, "NO_COLOR": "1", "COLUMNS": "100", "PYTHONPATH": _python_path()}
        done = subprocess.run(
            [*command, "--result", str(path)], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, encoding="utf-8", errors="replace",
        )  # fmt: skip
        if not path.exists():
            said = done.stdout.strip() or f"pytest ended with status {done.returncode}"
            return {"exercise": folder.id, "tests": [], "fault": said, "report": said}
        return {**json.loads(path.read_text(encoding="utf-8")), "report": done.stdout.strip("\n")}


def _picture(result: dict) -> str:
    from grader.classroom.outputs import picture_of

    return picture_of(result)


def _python_path() -> str:
    return os.pathsep.join(filter(None, [str(IMPORTED_FROM), os.environ.get("PYTHONPATH", "")]))
