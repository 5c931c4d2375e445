"""Functions for the cells of notebooks, a class's or for self-study: the questions, and the judge as a process.

Nothing here imports a learner's file or prints to stderr: nbgrader's own executor takes a line there for a failure.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from grader.course.folder import Folder
from grader.course.questions import BadQuestion, LessonQuestion, NoAnswer, questions_of
from grader.places import COURSE, IMPORTED_FROM

COLOURS = ("FORCE_COLOR", "CLICOLOR_FORCE")  # a notebook sets them for every process
# A report is written for a terminal; these patterns turn its next step into one that a notebook has.
OF_NOTEBOOKS = {
    r"^  Again with these data:\s+pytest .*(--seed \d+).*": r"  The data are those of \1.",
    r"Next: edit \S+?:(\d+) ": r"Next: edit line \1 of the task cell ",
    r"Next: edit \S+\.py ": "Next: edit the task cell ",
    r"Next: open \S+": "Next: fill in the marked regions of the task cell.",
    r"^(  Next: .*)\. Open \S+README\.md$": r"\1. It has a notebook of its own.",
}
MOST_TILES = 256  # of a picture: with a thousand it has 200 kB and tells no more


def magic_of(name: str) -> str:
    """Returns the first line of the cell that a learner writes in; it saves the cell as a file."""
    return f"%%writefile {name}.py"


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
        say_not_there(folder)
    elif len(answers) != len(questions):
        print(
            f"There are {len(questions)} questions and {len(answers)} answers. Write None for a question that you skip."
        )
    elif all(answer is None for answer in answers):
        print('Write your answers into this cell, then run it: a number, "nan", or the letter of a choice, as "a".')
    else:
        _say_what_is_right(questions, answers)


def _say_what_is_right(questions: list[LessonQuestion], answers: tuple[object, ...]) -> None:
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


def say_not_there(folder: Folder) -> None:
    """Says that the installed package has no course with it."""
    print(f"{folder.path} is not there. The course's package was not installed from a copy of the course:")
    print("in its folder, run python -m pip install -e .")


def judged(exercise: str, command: list[str | Path], cwd: Path | None = None) -> dict:
    """Returns the judge's result, with pytest's output as "report". `command`: pytest's arguments, without --result.

    A run without a result gives a result with a fault.
    """
    with tempfile.TemporaryDirectory() as temporary:
        path = Path(temporary, "result.json")
        done = ended(["-m", "pytest", "--disable-warnings", *command, "--result", path], cwd)
        if not path.exists():
            output = done.stdout.strip() or f"pytest ended with status {done.returncode}"
            return {"exercise": exercise, "tests": [], "fault": output, "report": output}
        return {**json.loads(path.read_text(encoding="utf-8")), "report": done.stdout.strip("\n")}


def in_a_notebook(report: str) -> str:
    """Returns a report whose next step is one that a notebook has: its reader edits a cell, and opens no file."""
    for pattern, there in OF_NOTEBOOKS.items():
        report = re.sub(pattern, there, report, flags=re.MULTILINE)
    is_of_lines = re.search(r"\b[Ll]ines? \d", report)
    return f"{report}\n  Lines are counted without the cell's first line, %%writefile." if is_of_lines else report


def show(result: dict) -> None:
    """Prints the report of a result, and shows its map of tiles as a picture."""
    print(in_a_notebook(result["report"]))
    if picture := picture_of(result):
        from IPython.display import SVG, display

        display(SVG(picture))


def picture_of(result: dict) -> str:
    """Returns the map of tiles of a result as SVG; "" if all are right, or if there are too few or too many."""
    from grader.explain.tile_map import RIGHT, TileMap
    from grader.show.tiles_svg import tile_map_svg

    if not result.get("tiles"):
        return ""
    tiles = TileMap.from_json(result["tiles"])
    states = {tile.state for line in tiles.tiles for tile in line}
    return tile_map_svg(tiles) if 1 < tiles.count <= MOST_TILES and states != {RIGHT} else ""


def ended(arguments: list[str | Path], cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Runs this Python with this package on its path, and returns the process once it has ended.

    Its stdout, which holds its stderr too, is plain text of 100 columns.
    """
    inherited = {name: value for name, value in os.environ.items() if name not in COLOURS}
    python_path = os.pathsep.join(filter(None, [str(IMPORTED_FROM), os.environ.get("PYTHONPATH", "")]))
    return subprocess.run(
        [sys.executable, *map(str, arguments)], cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, encoding="utf-8", errors="replace",
        env={**inherited, "NO_COLOR": "1", "COLUMNS": "100", "PYTHONPATH": python_path},
    )  # fmt: skip
