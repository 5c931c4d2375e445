"""The words of tests/reads.json for things that a test can read: parts of the course, and files of code."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from grader.author.touched import OF_ONE

OF_PAGES = re.compile(r"docs/|[^/]+\.md$|tests/(?:proven|reads|(?:mutants|gates)/[^/]+)\.json$")
OF_CODE = re.compile(r"(?:grader|tests)/")
BYTECODE = re.compile(r"__pycache__/(\w+)\.[^/]*$")
BY_EXERCISE = ("exercises", "solutions", "hints", "tests/mutants", "tests/accepted", "tests/cheats", "tests/gates")
EVERYTHING = "*"
EVERY_EXERCISE = "exercises"  # of these, lessons too
WHICH_EXERCISES = "exercises/"  # not what is in them, but which there are
OWN = "{id}"  # the exercises that the parameters in brackets name


def part_of(path: str, listed: bool = False) -> str:
    """Returns the id of the exercise or lesson that a file belongs to, or the path of a page; "" of other files.

    A folder that is `listed` counts only where files come and go with one exercise, its mutants and their like, and
    where exercises do.
    """
    if listed and path in BY_EXERCISE:
        return WHICH_EXERCISES
    if match := OF_ONE.match(path):
        return match[1] if not listed or path.startswith("tests/") else ""
    return path if OF_PAGES.match(path) and not listed else ""


def code_of(path: str) -> str:
    """Returns the path of the file of grader/ or tests/ that is read where `path` is opened; "" of other files."""
    return BYTECODE.sub(r"\1.py", path) if OF_CODE.match(path) and not part_of(path) else ""


def listing(path: str) -> str:
    """Returns what a test reads that sees a file of code come and go: "grader/judge/" for grader/judge/run.py.

    An import lists a folder too. So a test is taken to go through a folder if it opens nearly all modules there.
    """
    return f"{PurePosixPath(path).parent}/"


def named_in(test: str, id: str) -> bool:
    """Returns whether the parameters of a test, which stand in brackets, name the exercise: by its id or number."""
    parameters = test.partition("[")[2]
    return id in parameters or re.search(rf"(?<![\w.]){id[:2]}(?![\w.])", parameters) is not None
