"""An instructor's hidden cases: data (shapes, layouts, dtypes, data sets) in a TOML file, never code.

    [[case]]                                       # hidden/03_softmax.toml
    name = "a narrow matrix in half precision"     # all that a learner ever reads about it
    points = 1
    dtypes = ["float16"]                           # left out: those of the exercise
    arguments = [{ input = "normal", shape = [409, 3], layout = "transposed" }]

Each case becomes one more test, judged by the fixture `check` like any other.
"""

from __future__ import annotations

import difflib
import math
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import torch

from grader import inputs
from grader.bounds import ACCUMULATED, EXACT
from grader.exercise import Exercise, Folder, all_folders
from grader.inputs import Data
from grader.reply import DTYPES
from grader.verdict import FAIL, Verdict

DATA_SETS = {name: getattr(inputs, name) for name in ("falling", "integers", "normal", "one_hot", "output", "uniform")}
LAYOUTS: dict[str, Callable[[Data], Data]] = {
    "contiguous": lambda data: data,
    "transposed": Data.transposed,
    "every second element": Data.every_second,
    "padded rows": Data.padded,
    "one row, expanded": Data.expanded,
}
BOUNDS = (*EXACT, *ACCUMULATED)
MOST_ELEMENTS = 1 << 22  # the interpreter has seconds, not hours


@dataclass(frozen=True)
class Case:
    name: str
    data: tuple[Data, ...]
    points: float = 1
    bound: str | None = None
    dtypes: tuple[str, ...] = ()
    constants: dict[str, int] = field(default_factory=dict)


def read_cases(directory: Path, folder: Folder) -> list[Case]:
    """The cases of one exercise; none where the directory has no file for it. Mistakes are usage errors."""
    _refuse_misnamed(directory, folder.root)
    path = directory / f"{folder.id}.toml"
    if not path.exists():
        return []
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise pytest.UsageError(f"{path}: not a TOML file: {error}.") from None
    _only(tables, {"case"}, str(path))
    cases = [_case(table, f"{path}, case {n}") for n, table in enumerate(tables.get("case", []), 1)]
    names = [case.name for case in cases]
    if len(set(names)) < len(names):
        raise pytest.UsageError(f"{path}: two cases have the same name; a name tells them apart in the feedback.")
    return cases


def _refuse_misnamed(directory: Path, root: Path) -> None:
    """A file that no exercise looks for would be left out, and nobody would know."""
    names = [folder.id for folder in all_folders(root)]
    for path in sorted(directory.glob("*.toml")):
        if path.stem not in names:
            near = difflib.get_close_matches(path.stem, names, 1, 0.4) or names[:1]
            raise pytest.UsageError(f"{path}: no exercise is called {path.stem}. Did you mean {near[0]}.toml?")


def items(cases: list[Case], module: pytest.Module) -> list[pytest.Item]:
    """The cases as tests of an exercise's module. A case that does not fit the entry function is a usage error."""
    for case in cases:
        _refuse_unfit(case, module.obj.exercise)
    return [_item(case, module) for case in cases]


def _refuse_unfit(case: Case, exercise: Exercise) -> None:
    names = exercise.arguments
    if len(case.data) != len(names):
        raise pytest.UsageError(
            f"hidden case {case.name!r}: {len(case.data)} data sets are given, and "
            f"{exercise.entry} takes {len(names)} arguments: {', '.join(names)}."
        )
    try:
        exercise.reference(*(torch.zeros(data.shape) for data in case.data))
    except Exception as error:  # what torch says of shapes that do not go together
        shapes = ", ".join(f"{name} {list(data.shape)}" for name, data in zip(names, case.data))
        said = str(error).partition("\n")[0].rstrip(".")
        raise pytest.UsageError(
            f"hidden case {case.name!r}: {exercise.entry} has no result for {shapes}: {said}."
        ) from None


def shown(name: str, verdict: Verdict) -> Verdict:
    """What a learner may read of a hidden case's verdict."""
    lines = [f"A hidden case fails: {name}. Its data are not shown."] if verdict.outcome == FAIL else []
    return Verdict(verdict.outcome, verdict.id, lines, verdict.kind)


def _item(case: Case, module: pytest.Module) -> pytest.Item:
    def hidden_case(check):
        check(*case.data, bound=case.bound, dtypes=case.dtypes, **case.constants)

    item = pytest.Function.from_parent(module, name=case.name, callobj=hidden_case)
    item.add_marker(pytest.mark.hidden)
    item.add_marker(pytest.mark.points(case.points))
    return item


def _case(table: object, where: str) -> Case:
    _only(table, {"name", "points", "arguments", "dtypes", "bound", "constants"}, where)
    name, points, bound = table.get("name"), table.get("points", 1), table.get("bound")
    if not isinstance(name, str) or not name.strip() or "\n" in name:
        raise pytest.UsageError(f"{where}: name is missing: one line that says what kind of case it is.")
    if type(points) not in (int, float) or not 0 < points < 1000:
        raise pytest.UsageError(f"{where}: points must be a number above 0, not {points!r}.")
    if bound is not None and bound not in BOUNDS:
        raise pytest.UsageError(f"{where}: bound {bound!r} is unknown; there are {', '.join(BOUNDS)}.")
    dtypes, constants = table.get("dtypes", []), table.get("constants", {})
    if not isinstance(dtypes, list) or not all(dtype in DTYPES for dtype in dtypes):
        raise pytest.UsageError(f"{where}: dtypes must be a list of {', '.join(DTYPES)}.")
    if not isinstance(constants, dict) or not all(type(value) is int for value in constants.values()):
        raise pytest.UsageError(f"{where}: constants must be whole numbers, for example {{ BLOCK_N = 64 }}.")
    arguments = table.get("arguments")
    if not isinstance(arguments, list) or not arguments:
        raise pytest.UsageError(f"{where}: arguments must list one data set for each argument of the entry function.")
    data = tuple(_data(argument, f"{where}, argument {n}") for n, argument in enumerate(arguments, 1))
    return Case(name.strip(), data, points, bound, tuple(dtypes), constants)


def _data(table: object, where: str) -> Data:
    _only(table, {"input", "shape", "layout", "times", "plus"}, where)
    kind, shape, layout = table.get("input"), table.get("shape"), table.get("layout", "contiguous")
    if kind not in DATA_SETS:
        raise pytest.UsageError(f"{where}: input {kind!r} is unknown; there are {', '.join(DATA_SETS)}.")
    if not isinstance(shape, list) or not shape or not all(type(size) is int and size > 0 for size in shape):
        raise pytest.UsageError(f"{where}: shape must be a list of whole numbers above 0, for example [61, 781].")
    data = DATA_SETS[kind](*shape)
    if len(shape) > 4 or math.prod(shape) > MOST_ELEMENTS:
        raise pytest.UsageError(f"{where}: at most {MOST_ELEMENTS} elements can be judged in the interpreter.")
    if layout not in LAYOUTS:
        raise pytest.UsageError(f"{where}: layout {layout!r} is unknown; there are {', '.join(LAYOUTS)}.")
    if layout != "contiguous" and len(shape) != 2:
        raise pytest.UsageError(f"{where}: layout {layout!r} is for a matrix, and shape {shape} is none.")
    times, plus = table.get("times", 1), table.get("plus", 0)
    if type(times) not in (int, float) or type(plus) not in (int, float):
        raise pytest.UsageError(f"{where}: times and plus must be numbers.")
    if not data.is_output and (times != 1 or plus != 0):
        data = data * times + plus
    return LAYOUTS[layout](data)


def _only(table: object, known: set[str], where: str) -> None:
    if not isinstance(table, dict):
        raise pytest.UsageError(f"{where}: a table was expected.")
    unknown = sorted(table.keys() - known)
    if unknown:
        raise pytest.UsageError(f"{where}: {unknown[0]!r} is unknown here; there may be {', '.join(sorted(known))}.")
