"""The source notebook of an exercise, derived from its lesson, its solution, its hints and its tests."""

from __future__ import annotations

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell

from grader.author.stubs import CELL
from grader.classroom.cell_names import CHECK_CELL
from grader.classroom.rubric import HIDDEN, TITLES, as_heading
from grader.course.folder import Folder
from grader.learn.notebooks.cells import magic_of
from grader.learn.notebooks.parts import finished, lesson_of, question_cells

INTRODUCTION = """\
**How this notebook works.** Write your kernel in the solution cell and run the cell: its first line,
`{magic}`, saves it as a file, because Triton reads a kernel's source from a file. Then run the check cell below
it. Run both as often as you like, in any order. The text of the solution cell is what is graded; you may also edit
`{file}` in an editor and hand that in. No GPU is needed. Where the lesson says `pytest {folder}`, the check cell does
the same; where it says `course predict`, the questions are in this notebook.
"""


def notebook_of(folder: Folder, points: dict[str, float]) -> NotebookNode:
    """Returns the source notebook of an exercise, with its solution: lesson, questions, solution cell, check cell,
    hints, and a locked grade cell for each item. `points`: by item.
    """
    solution = folder.solution_file.read_text(encoding="utf-8").rstrip()
    magic = magic_of(folder.name)
    introduction = INTRODUCTION.format(magic=magic, file=f"{folder.name}.py", folder=f"exercises/{folder.id}")
    cells = [
        _read_only(new_markdown_cell(introduction), "introduction"),
        _read_only(new_markdown_cell(lesson_of(folder)), "lesson"),
        *_predict_cells(folder),
        new_code_cell(f"{magic}\n{solution}", metadata={"nbgrader": dict(CELL)}),
        _read_only(new_code_cell(_check_source(folder)), CHECK_CELL),
        _read_only(new_markdown_cell(hints_of(folder)), "hints"),
        *(_grade_cell(folder, item, worth) for item, worth in points.items()),
    ]
    return finished(folder, cells)


def hints_of(folder: Folder) -> str:
    """Returns the three hints as folded Markdown. The explanation is left out: it gives the solution away, and only the
    instructor has it.
    """
    return folder.hints_file.read_text(encoding="utf-8").partition("## Explanation")[0].rstrip() + "\n"


def _predict_cells(folder: Folder) -> list[NotebookNode]:
    cells = question_cells(folder, "grader.classroom")
    return [_read_only(cells[0], "questions"), *cells[1:]] if cells else []


def _check_source(folder: Folder) -> str:
    return f'# Judges {folder.name}.py.\nfrom grader.classroom import report, score\n\nreport("{folder.id}")'


def _grade_cell(folder: Folder, item: str, worth: float) -> NotebookNode:
    points = f"{worth:g} point{'' if worth == 1 else 's'}"
    later = ", judged after you hand in" if item == HIDDEN else ""
    source = (
        f"# {as_heading(TITLES[item])}: {points}{later}.\n"
        f'from grader.classroom import score\n\nscore("{folder.id}", "{item}")'
    )
    metadata = {**CELL, "grade_id": item, "solution": False, "grade": True, "locked": True, "points": worth}
    return new_code_cell(source, metadata={"nbgrader": metadata})


def _read_only(cell: NotebookNode, grade_id: str) -> NotebookNode:
    cell.metadata["nbgrader"] = {**CELL, "grade_id": grade_id, "solution": False, "locked": True}
    return cell
