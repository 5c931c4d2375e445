"""Notebooks for self-study, a notebook per exercise: lesson, questions, task, check, hints, explanation, plot."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import click
import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell

from grader.course.folder import Folder
from grader.course.regions import stub_text
from grader.files import write_whole
from grader.learn.notebooks.cells import magic_of
from grader.learn.notebooks.parts import finished, lesson_of, question_cells

REPOSITORY = ""  # where the course is published, https://github.com/OWNER/NAME; "" until it is
HOME = "grader.learn.notebook"
GITHUB = re.compile(r"https://github\.com/([\w.-]+/[\w.-]+?)(?:\.git)?/?")
COLAB = "https://colab.research.google.com"

INTRODUCTION = """\
**How this notebook works.** Run the first cell; it says what can be judged here. Read the lesson, answer the questions,
fill in the task cell and run it: its first line, `{magic}`, saves it as a file. The check cell judges that file and
names the mistake. The cells below it open hints, one by one, and what comes after passing. Nothing leaves this machine,
and no GPU is needed.

For `pytest {path}` in the lesson, run the check cell, and for `course hint {number}` the hint cell. Any other
command of the course runs in a cell of its own: `course("trace {number}")` for `course trace {number}`. Line 15 of
`{name}.py` is line 16 of the task cell. The machine of a hosted notebook is gone after a while; your work is what
stands in the task cell, so save the notebook.
"""

FIRST = """\
# Run this cell first, and again on every new machine. It adds what is missing and leaves torch alone.
import importlib.util
import pathlib
import subprocess
import sys

COURSE_FROM = "{source}"  # what pip installs the course from: an address, or the file of its wheel

if importlib.util.find_spec("grader") is None:
    wheels = sorted(map(str, pathlib.Path.cwd().glob("triton_course-*.whl")))
    source = COURSE_FROM or "".join(wheels[-1:])
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-input", "--retries", "1", source]
    done = subprocess.run(pip, capture_output=True, text=True) if source else None
    if done is None:
        print("This notebook does not say where the course comes from. Put its wheel, triton_course-....whl, next to")
        print("this notebook, or its address between the quotes of COURSE_FROM above, and run this cell again.")
    elif done.returncode:
        print("The course could not be installed from", source + ". pip said:", *done.stderr.splitlines()[-1:])
        print("See that the address is right and that this machine has a network, and run this cell again.")
    importlib.invalidate_caches()
if importlib.util.find_spec("grader") is not None:
    from grader.learn.notebook_setup import set_up

    if set_up():
        from grader.learn.notebook import course
"""

CHECK = "# Judges {name}.py, as pytest does.\n"
HINT = "# Opens a hint at each run; there are three.\n"
EXPLANATION = "# The solution and why it is so, once you have passed.\n"
PLOT = "# On a GPU: your kernel's speed over size, with the solution's, torch's and what the GPU can do.\n"

README = """\
# Notebooks of the course in writing GPU kernels with Triton

Made by `course notebooks --self-study`. Each stands alone: open one in Jupyter, in an editor or in a hosted notebook,
and run its first cell.

{rows}
"""


@dataclass(frozen=True)
class Origin:
    """The origin of the package: the address of a repository, or anything else that pip takes; "" if not known."""

    text: str = REPOSITORY

    @property
    def for_pip(self) -> str:
        """The origin for pip: of a repository on GitHub the archive, which is small and needs no git."""
        match = GITHUB.fullmatch(self.text)
        return f"https://github.com/{match[1]}/archive/HEAD.tar.gz" if match else self.text

    def badge(self, path: str) -> str:
        """Returns a picture in Markdown that opens a notebook of the repository; "" if the origin is no repository."""
        match = GITHUB.fullmatch(self.text)
        opened = f"{COLAB}/github/{match[1]}/blob/HEAD/{path}" if match else ""
        return f"[![Open in Colab]({COLAB}/assets/colab-badge.svg)]({opened})" if match else ""


def self_study_notebook(folder: Folder, origin: Origin, place: str) -> NotebookNode:
    """Returns the notebook of an exercise, with its stub. place: its path in the repository, for the badge."""
    introduction = INTRODUCTION.format(
        magic=magic_of(folder.name), path=f"exercises/{folder.id}", number=folder.number, name=folder.name
    )
    stub = stub_text(folder.solution_file.read_text(encoding="utf-8")).rstrip()
    title, section, lesson = lesson_of(folder).partition("\n## ")
    cells = [
        new_markdown_cell("\n\n".join(filter(None, (title.strip(), origin.badge(place), introduction)))),
        new_code_cell(FIRST.replace("{source}", origin.for_pip).rstrip()),
        new_markdown_cell(f"{section}{lesson}".strip()),
        *question_cells(folder, HOME),
        new_markdown_cell("**The task.** Fill in what is marked, and run this cell; then run the check cell below it."),
        new_code_cell(f"{magic_of(folder.name)}\n{stub}"),
        _call(folder, "check", CHECK.format(name=folder.name)),
        new_markdown_cell("**Stuck?** What fits your last failure is marked."),
        _call(folder, "hint", HINT),
        new_markdown_cell("**After passing.**"),
        _call(folder, "explanation", EXPLANATION),
        _call(folder, "plot", PLOT),
    ]
    return finished(folder, cells)


def _call(folder: Folder, function: str, comment: str) -> NotebookNode:
    return new_code_cell(f'{comment}from {HOME} import {function}\n\n{function}("{folder.id}")')


def write_notebooks(out: Path, folders: list[Folder], origin: Origin, say: Callable[[str], None]) -> None:
    """Writes a notebook per exercise, and a README that lists them, into a new or an empty folder.

    Raises click.ClickException for another folder, and OSError. `say`: prints a line.
    """
    if out.exists() and not (out.is_dir() and not any(out.iterdir())):
        raise click.ClickException(
            f"{out} is {'not empty' if out.is_dir() else 'no folder'}: notebooks may hold somebody's work. Nothing was "
            f"written. Next: name a folder that does not exist yet, as in --out {out.name}-2"
        )
    files = _files(out.name, folders, origin)
    out.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        write_whole(out / name, text)
    say(f"{len(folders)} notebook{'s' * (len(folders) != 1)} in {out}, and a README.md that lists them.")
    if not origin.text:
        say("They do not know where the course comes from: put its wheel next to them, or say --from.")
    say(f"Next: open {out / f'{folders[0].id}.ipynb'}")


def _files(place: str, folders: list[Folder], origin: Origin) -> dict[str, str]:
    notebooks = {f"{folder.id}.ipynb": folder for folder in folders}
    rows = "\n".join(
        f"- [{folder.number} {folder.name}]({name}) {origin.badge(f'{place}/{name}')}".rstrip()
        for name, folder in notebooks.items()
    )
    made = {
        name: nbformat.writes(self_study_notebook(folder, origin, f"{place}/{name}")) + "\n"
        for name, folder in notebooks.items()
    }
    return {**made, "README.md": README.format(rows=rows)}
