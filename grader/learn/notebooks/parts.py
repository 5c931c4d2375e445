"""Parts of notebooks, derived from an exercise: its lesson with the pictures inside, and its questions."""

from __future__ import annotations

import base64
import mimetypes
import re
from pathlib import Path

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from grader.course.folder import Folder
from grader.course.questions import LETTERS, LessonQuestion, questions_of

KERNEL = {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}
IMAGE = re.compile(r"!\[([^\]]*)\]\(([^)#:]+)\)")
LINK = re.compile(r"(`[^`]*`)|(?<!!)\[([^\]]*)\]\((?!https?:)[^)]+\)")  # or code: kernel[grid](x) is no link


def finished(folder: Folder, cells: list[NotebookNode]) -> NotebookNode:
    """Returns the notebook of an exercise: the same cells make the same file, and any machine's Python can run it."""
    for number, cell in enumerate(cells):
        cell["id"] = f"{folder.name}-{number}"  # nbformat's random ids would change the file at every run
    return new_notebook(cells=cells, metadata={"kernelspec": dict(KERNEL), "course": {"exercise": folder.id}})


def lesson_of(folder: Folder) -> str:
    """Returns the exercise's README with its pictures inside, without links to files that a student does not have."""
    text = (folder.path / "README.md").read_text(encoding="utf-8")
    text = IMAGE.sub(lambda image: f"![{image[1]}]({_data_uri(folder.path / image[2])})", text)
    return LINK.sub(r"\1\2", text)


def _data_uri(path: Path) -> str:
    kind = mimetypes.guess_type(path.name)[0]
    return f"data:{kind};base64,{base64.b64encode(path.read_bytes()).decode('ascii')}"


def question_cells(folder: Folder, home: str) -> list[NotebookNode]:
    """Returns a cell with the questions and a cell for the answers, neither of them graded; [] without questions.

    home: the module that the cell imports `predict` from.
    """
    questions = questions_of(folder)
    if not questions:
        return []
    nothing = ", ".join(["None"] * len(questions))
    source = (
        '# Your answers in their order: a number, "nan", or the letter of a choice, such as "a". None skips it.\n'
        f'from {home} import predict\n\npredict("{folder.id}", {nothing})'
    )
    cells = "\n".join(_question_text(number, question) for number, question in enumerate(questions, 1))
    return [new_markdown_cell(f"**Predict.**\n\n{cells}"), new_code_cell(source)]


def _question_text(number: int, question: LessonQuestion) -> str:
    choices = "".join(f"\n   - {letter}) {choice}" for letter, choice in zip(LETTERS, question.choices))
    return f"{number}. {question.ask}{choices}"
