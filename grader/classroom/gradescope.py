"""Gradescope's autograder of an exercise: the zip to upload, and what it runs there on a student's upload.

The zip holds the course, with its solutions: Gradescope shows students none of it. Its container installs the course
once, when it is built; judging takes no network.
"""

from __future__ import annotations

import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import click

from grader.classroom.cluster.pytest_call import judge
from grader.classroom.export_formats import gradescope_text
from grader.classroom.handin import clean, hand_in_of
from grader.classroom.json_text import json_text
from grader.classroom.names import Names
from grader.classroom.result_store import Text
from grader.classroom.rubric import SPEED
from grader.classroom.sent_files import files_in
from grader.classroom.student_work import StudentWork
from grader.course.folder import Folder, all_folders
from grader.course.regions import stub_text
from grader.gpu.nvml import gpu_here
from grader.places import COURSE, is_installed

FOLDERS = ("grader", "docs", "exercises", "hints", "solutions", "stories")
ALONE = (
    ".gitattributes", ".gitignore", "AGENTS.md", "LICENSE", "README.md", "classroom.md", "constraints.txt", "course.md",
    "pyproject.toml",
)  # fmt: skip
SETUP = """\
#!/usr/bin/env bash
# Gradescope runs this once, with a network, when it builds the container: Python, and the course.
set -euo pipefail
apt-get update
for version in 3.13 3.12 3.11; do
    apt-get install -y --no-install-recommends "python$version" "python$version-venv" bubblewrap && break
done
"python$version" -m venv /autograder/venv
/autograder/venv/bin/python -m pip install uv
cd /autograder/source/course
/autograder/venv/bin/uv pip install --python /autograder/venv/bin/python --torch-backend cpu -c constraints.txt .
"""
RUN = """\
#!/usr/bin/env bash
# Gradescope runs this for each upload.
exec /autograder/venv/bin/python -m grader.classroom.gradescope {id} /autograder
"""
EXECUTABLE = 0o100755 << 16


def write_zip(folder: Folder, path: Path) -> None:
    """Writes the zip to upload. Raises OSError, and ClickException where the course is not a clone."""
    if is_installed():
        raise click.ClickException("The zip holds a copy of the course: run this command in a clone of it.")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in (("setup.sh", SETUP), ("run_autograder", RUN.format(id=folder.id))):
            entry = zipfile.ZipInfo(name)
            entry.external_attr = EXECUTABLE
            archive.writestr(entry, text)
        for file in _files_of_course():
            archive.write(file, Path("course", file.relative_to(COURSE)))


def _files_of_course() -> Iterator[Path]:
    yield from (COURSE / name for name in ALONE)
    for name in FOLDERS:
        for path in sorted((COURSE / name).rglob("*")):
            hidden = any(part.startswith((".", "__pycache__")) for part in path.relative_to(COURSE).parts)
            if path.is_file() and not hidden and ".kept" not in path.name:
                yield path


def grade_upload(folder: Folder, place: Path) -> None:
    """Judges what lies in submission/, and writes results/results.json, as Gradescope lays them out in `place`.

    A fault of the machine gets no score: Gradescope then says that the autograder failed, and it can be run again.
    """
    names = Names(each.name for each in all_folders(folder.root))
    files = files_in(place / "submission")
    named = [file for file in files if (names.exercise_of(file.path.name) or ("",))[0] == folder.name]
    others = [file for file in files if names.exercise_of(file.path.name) is None]
    stub = clean(stub_text(folder.solution_file.read_text(encoding="utf-8")))
    hand_in = hand_in_of(named, others, folder.name, stub)
    text = None if hand_in.text is None else Text(folder, hand_in.text, None)
    work = StudentWork(
        student="", exercise=folder.id, hand_in=hand_in, text=text, without=() if gpu_here() else (SPEED,)
    )
    work.result = judge(text) if text else None
    if work.judged:
        content = gradescope_text([work.judged.counted], work.note, work.judged.points)
    else:
        content = json_text({"output": work.note} if work.fault else {"output": work.note, "score": 0})
    (place / "results").mkdir(exist_ok=True)
    (place / "results" / "results.json").write_text(content, encoding="utf-8")


if __name__ == "__main__":
    grade_upload(Folder(COURSE / "exercises" / sys.argv[1]), Path(sys.argv[2]))
