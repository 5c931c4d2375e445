"""Functions that cells of a notebook for self-study call: the judge and the commands, in the learner's own folder.

Notebooks that were handed out import this module and notebook_setup.py by their names, so both stay where they are.

The notebook's Python never imports the learner's file: the judge is a process, and runs the file in its fenced child.
"""

from __future__ import annotations

import shlex
import subprocess
import textwrap
from pathlib import Path

from grader.course.by_name import course_here
from grader.course.folder import Folder
from grader.course.regions import stub_text
from grader.files import keep_aside, write_whole
from grader.learn.notebooks.cells import ended, judged, magic_of, predict, show

__all__ = ["check", "course", "explanation", "hint", "plot", "predict"]
OWN_FOLDER = "triton-course"  # the course's folder, next to a notebook that lies in no course
WIDTH = 100
MAIN = "import sys; sys.argv[0] = 'course'; from grader.cli import main; main()"

_brought: dict[Path, str] = {}  # by learner's file: the text that this notebook has put there


class NotHere(Exception):
    """A cell needs something that is not there; the message is for the learner."""


def check(exercise: str) -> None:
    """Judges the text of the task cell as pytest does, and shows what pytest would print."""
    try:
        folder = _own(exercise)
        _bring(folder)
        result = judged(exercise, [folder.path.relative_to(folder.root)], folder.root)
    except NotHere as why:
        print(why)
    except OSError as error:
        print(f"{error.filename}: {error.strerror}. Your text is safe in the task cell.")
    except KeyboardInterrupt:
        print("Stopped. Your text is safe in the task cell; run this cell again.")
    else:
        show(result)


def course(command: str) -> None:
    """Runs a command of the course, such as "trace 03", in the learner's folder, and prints what it says."""
    try:
        print(_output_of(_ran(*shlex.split(command))))
    except (NotHere, ValueError) as why:
        print(why)
    except KeyboardInterrupt:
        print("Stopped.")


def hint(exercise: str) -> None:
    """Opens the next hint; what fits the last failure is marked."""
    try:
        _say(_ran("hint", exercise))
    except NotHere as why:
        print(why)


def explanation(exercise: str) -> None:
    """Shows the solution and explains it, once the exercise is passed."""
    try:
        done, folder = _ran("solution", exercise), _own(exercise)
    except NotHere as why:
        print(why)
        return
    if done.returncode:
        _say(done)
        return
    from IPython.display import Markdown, display

    from grader.course.regions import BEGIN, END
    from grader.progress.hints import read_hints

    code = folder.solution_file.read_text(encoding="utf-8").splitlines()
    print("\n".join(line for line in code if line.strip() not in (BEGIN, END)))
    display(Markdown(read_hints(folder).explanation))


def plot(exercise: str) -> None:
    """Draws the kernel's throughput over size, on a GPU."""
    try:
        done, folder = _ran("plot", exercise), _own(exercise)
    except NotHere as why:
        print(why)
        return
    _say(done)
    if not done.returncode:
        from IPython.display import Image, display

        display(Image(folder.root / f"throughput_{exercise}.png"))


def own_course() -> Path:
    """Returns the course that the notebook lies in, or else a folder next to the notebook, which may not exist yet."""
    return course_here() or Path.cwd() / OWN_FOLDER


def _own(exercise: str) -> Folder:
    folder = Folder(own_course() / "exercises" / exercise)
    if not folder.is_exercise:
        raise NotHere(
            f"{folder.path} is not there. Next: run the first cell of this notebook; it lays the course down."
        )
    return folder


def _ran(*arguments: str) -> subprocess.CompletedProcess[str]:
    root = own_course()
    if not root.is_dir():
        raise NotHere(f"{root} is not there. Next: run the first cell of this notebook; it lays the course down.")
    return ended(["-c", MAIN, *arguments], root)


def _output_of(done: subprocess.CompletedProcess[str]) -> str:
    return done.stdout.rstrip("\n").removeprefix("Error: ")


def _say(done: subprocess.CompletedProcess[str]) -> None:
    """Prints what a command said, with long lines broken between words: a notebook would break them anywhere."""
    for line in _output_of(done).splitlines():
        print(textwrap.fill(line, WIDTH, break_long_words=False) if len(line.rstrip()) > WIDTH else line)


def _bring(folder: Folder) -> None:
    """Puts the text that the task cell saved into the learner's file, and keeps a copy of any other text there.

    Raises NotHere, OSError.
    """
    saved, file, magic = Path(f"{folder.name}.py"), folder.learner_file, magic_of(folder.name)
    if _ran_unsaved(folder, magic):
        print(
            f"The task cell ran last without {magic} as its first line, so its text was not saved. Put that line back."
        )
    if not saved.exists():
        raise NotHere(f"There is no {saved} yet. Next: run the task cell, whose first line, {magic}, saves it.")
    text, there = _text(saved), _text(file) if file.exists() else None
    if text == there:
        return
    stub = stub_text(folder.solution_file.read_text(encoding="utf-8"))
    if there not in (None, stub, _brought.get(file)):
        print(f"{file} held another text than this notebook. It is kept: {keep_aside(file)}")
    write_whole(file, text)
    _brought[file] = text


def _text(path: Path) -> str:
    return path.read_bytes().decode("utf-8", "surrogateescape")


def _ran_unsaved(folder: Folder, magic: str) -> bool:
    """Returns True if the last run cell that holds the task, known by its docstring, lacks the line that saves it."""
    from IPython import get_ipython

    shell = get_ipython()
    cells = shell.history_manager.input_hist_raw if shell is not None else []
    task = next((cell for cell in reversed(cells) if f'"""{folder.number} · ' in cell), None)
    return task is not None and task.lstrip().partition("\n")[0].strip() != magic
