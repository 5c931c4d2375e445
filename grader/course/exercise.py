"""What an exercise is, where its files lie, and which of its marked regions a submission has filled in."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from grader.places import COURSE

if TYPE_CHECKING:
    import torch

    from grader.numerics.arguments import Recipe

FOLDER_NAME = re.compile(r"\d\d_[a-z0-9_]+")
BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"
STUB = ("# YOUR CODE HERE", "pass")  # `raise` does not compile inside a kernel; `pass` leaves the output unwritten


class Example:
    """A call small enough to be looked at element by element: data sets, and block sizes that cut them into tiles."""

    def __init__(self, *data: Recipe, **constants: int) -> None:
        self.data, self.constants = data, constants


@dataclass(frozen=True)
class Result:
    """A result with a dtype or a bound of its own; "" is the dtype of the run, and the exercise's bound.

    A result that is an argument has that argument's dtype. Whole numbers are compared exactly.
    """

    name: str
    dtype: str = ""
    bound: str = ""


@dataclass(frozen=True)
class Exercise:
    """What a test file states about its exercise.

    entry: the host function that is graded. reference: its meaning in torch, called with float64 tensors; for a quick
    look at timed results with float32, for copies with the call's own dtype. Whole numbers come in int64, numbers of
    Python's as they are. It gives the results in order, a tuple of them where there are several.
    returns: the result's name, or those of several; where an argument has that name, the entry fills and returns this
    very argument. updates: arguments that are changed in place, whether they are returned or not; as results they come
    after those returned. No other argument may change.
    bound: how much rounding a right kernel may show, a key of `grader.numerics.bounds`.
    time_limit: seconds of a core for one call in the interpreter. example: what `course programs` shows.
    cut: which part of each input a part of the result is made of, for samples of large calls: "a[m, :], b[:, n] ->
    c[m, n]". Dimensions with a letter are cut, those with a colon are whole.
    """

    entry: str
    reference: Callable
    bound: str
    minutes: int
    returns: str | Result | tuple[str | Result, ...] = "z"
    updates: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ("float32", "float16")
    presumes: tuple[str, ...] = ()
    time_limit: float = 10.0
    example: Example | None = None
    cut: str = ""

    def __post_init__(self) -> None:
        if not set(self.updates) <= set(self.arguments):
            raise ValueError(f"{self.entry}: updates={self.updates!r}: a tuple of names of arguments was expected.")

    @property
    def arguments(self) -> list[str]:
        """The names of the entry's arguments."""
        return list(inspect.signature(self.reference).parameters)

    @property
    def returned(self) -> tuple[Result, ...]:
        """What the entry returns, in order."""
        several = self.returns if isinstance(self.returns, tuple) else (self.returns,)
        return tuple(one if isinstance(one, Result) else Result(one) for one in several)

    @property
    def results(self) -> tuple[Result, ...]:
        """What a call is judged by: what it returns, then the arguments that it updates."""
        names = [one.name for one in self.returned]
        return (*self.returned, *(Result(name) for name in self.updates if name not in names))

    @property
    def written(self) -> list[str]:
        """The arguments that a call may change."""
        return [one.name for one in self.results if one.name in self.arguments]

    def expected(self, arguments: Sequence) -> list[torch.Tensor]:
        """What the reference makes of these arguments, in the order of `results`."""
        results = self.reference(*arguments)
        return list(results) if isinstance(results, (tuple, list)) else [results]

    @property
    def result_text(self) -> str:
        """ "z", or "z, mean and rstd": what the entry returns, for a sentence."""
        return in_words([one.name for one in self.returned])

    @property
    def fills_argument(self) -> bool:
        """Whether the one result is an argument that is filled and returned."""
        return self.returns in self.arguments


def in_words(names: list[str]) -> str:
    """ "x, y and z" """
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


@dataclass(frozen=True)
class Folder:
    """Where the files of exercise NN_name lie; `path` is exercises/NN_name."""

    path: Path

    @classmethod
    def containing(cls, path: Path) -> Folder | None:
        """The exercise folder that `path` is or lies in, if it is one."""
        path = path.resolve()
        for folder in (path, *path.parents):
            if FOLDER_NAME.fullmatch(folder.name) and folder.parent.name == "exercises":
                return cls(folder)
        return None

    @property
    def id(self) -> str:
        return self.path.name

    @property
    def number(self) -> str:
        return self.id[:2]

    @property
    def name(self) -> str:
        return self.id[3:]

    @property
    def root(self) -> Path:
        return self.path.parent.parent

    @property
    def learner_file(self) -> Path:
        return self.path / f"{self.name}.py"

    @property
    def test_file(self) -> Path:
        return self.path / f"test_{self.name}.py"

    @property
    def solution_file(self) -> Path:
        return self.root / "solutions" / self.id / f"{self.name}.py"

    @property
    def hints_file(self) -> Path:
        return self.root / "hints" / f"{self.id}.md"

    def next(self) -> Folder | None:
        """The exercise after this one, if there is one."""
        later = [folder for folder in all_folders(self.root) if folder.id > self.id]
        return later[0] if later else None

    def submission_file(self, submission: str | None) -> Path:
        """The file to grade. `submission`: nothing, "solutions", a .py file, or a folder laid out NN_name/NAME.py."""
        if submission is None:
            return self.learner_file
        if submission == "solutions" and not Path(submission).is_dir():
            return self.solution_file
        path = Path(os.path.realpath(submission))  # resolve() raises on links in a circle
        if not path.is_dir():
            return path
        nested = path / self.id / f"{self.name}.py"
        beside = path / f"{self.name}.py"
        return beside if beside.exists() and not nested.exists() else nested


def all_folders(root: Path) -> list[Folder]:
    """Every exercise of the course at `root`, in order."""
    return [Folder(path) for path in sorted((root / "exercises").glob("[0-9][0-9]_*")) if path.is_dir()]


def found_here(folder: Folder) -> Folder:
    """This exercise; where the folder is another machine's and not shared, the same one of this course."""
    return folder if folder.test_file.exists() else Folder(COURSE / "exercises" / folder.id)


def load_test_file(folder: Folder) -> ModuleType:
    """An exercise's test file as a module; it is ours, not the learner's."""
    spec = importlib.util.spec_from_file_location(f"tests_of_{folder.id}", folder.test_file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def marked_regions(solution: str) -> list[tuple[int, int]]:
    """(first line, last line) of each marked region of a solution file, markers included, counted from 1."""
    regions, start = [], 0
    for number, line in enumerate(solution.splitlines(), 1):
        if line.strip() == BEGIN:
            start = number
        elif line.strip() == END:
            regions.append((start, number))
    return regions


def stub_text(solution: str) -> str:
    """What a learner starts from: the solution without what its marked regions hold.

    The stubs in exercises/ are derived by nbgrader, which a learner need not have; a test holds the two together.
    """
    lines = solution.splitlines(keepends=True)
    for first, last in reversed(marked_regions(solution)):
        marker = lines[first - 1]
        indent = marker[: len(marker) - len(marker.lstrip())]
        lines[first - 1 : last] = [f"{indent}{line}\n" for line in STUB]
    return "".join(lines)


def empty_regions(solution: str, submission: ast.Module) -> tuple[list[str], int]:
    """(functions of the submission whose marked region is still empty, number of functions with a region).

    Compared as syntax trees: comments, blank lines and docstrings do not count as an attempt, nor does `pass`.
    """
    regions = marked_regions(solution)
    theirs = {node.name: node for node in submission.body if isinstance(node, ast.FunctionDef)}
    marked = [
        node
        for node in ast.parse(solution).body
        if isinstance(node, ast.FunctionDef) and any(node.lineno < first <= node.end_lineno for first, _ in regions)
    ]
    empty = []
    for node in marked:
        given = [s for s in node.body if not any(first < s.lineno < last for first, last in regions)]
        if node.name in theirs and _statements(given) == _statements(theirs[node.name].body):
            empty.append(node.name)
    return empty, len(marked)


def _statements(body: list[ast.stmt]) -> list[str]:
    def counts(statement: ast.stmt) -> bool:
        is_text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        return not (is_text or isinstance(statement, ast.Pass))

    return [ast.dump(statement) for statement in body if counts(statement)]
