"""An instructor's hidden cases: data (shapes, layouts, dtypes, data sets) in a TOML file, never code.

    [[case]]                                       # hidden/03_softmax.toml
    name = "a narrow matrix in half precision"     # all that a learner ever reads about it
    points = 1
    dtypes = ["float16"]                           # left out: the exercise's dtypes
    arguments = [{ input = "normal", shape = [409, 3], layout = "transposed" }]

An argument may also be `{ input = "indices", shape = [100], below = 37, dtype = "int64" }`, have its dimensions in
another order in memory, `stored_as = [0, 2, 1, 3]`, or be a number: `{ number = 1e-5 }`. `bound` is the bound of all
results, or a table with the bounds of some results by name.

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

from grader.course.folder import Folder, all_folders
from grader.course.trial import CallBound
from grader.numerics import data_sets
from grader.numerics.arguments import DataOrNumber
from grader.numerics.data_sets import Data
from grader.wire.reply import DTYPES

OF_FLOATS = ("falling", "integers", "normal", "one_hot", "output", "uniform")
BELOW = ("indices", "lengths", "slots")  # data sets that need to know what their numbers stay below
DATA_SETS = {name: getattr(data_sets, name) for name in (*OF_FLOATS, *BELOW, "packed")}
LAYOUTS: dict[str, Callable[[Data], Data]] = {
    "contiguous": lambda data: data,
    "transposed": Data.transposed,
    "every second element": Data.every_second,
    "padded rows": Data.padded,
    "one row, expanded": Data.expanded,
}
MOST_DIMENSIONS = 5
MOST_ELEMENTS = 1 << 22  # the interpreter has seconds, not hours


@dataclass(frozen=True)
class HiddenCase:
    name: str
    data: tuple[DataOrNumber, ...]
    points: float = 1
    bound: CallBound | None = None
    dtypes: tuple[str, ...] = ()
    constants: dict[str, int] = field(default_factory=dict)


def read_cases(directory: Path, folder: Folder) -> list[HiddenCase]:
    """Returns the hidden cases of one exercise; [] where the directory has no file for it. Raises pytest.UsageError for
    mistakes in the directory or the file."""
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
    """Raises pytest.UsageError for a file that no exercise looks for: it would be left out without anyone knowing."""
    names = [folder.id for folder in all_folders(root)]
    for path in sorted(directory.glob("*.toml")):
        if path.stem not in names:
            near = difflib.get_close_matches(path.stem, names, 1, 0.4) or names[:1]
            raise pytest.UsageError(f"{path}: no exercise is called {path.stem}. Did you mean {near[0]}.toml?")


def _case(stated: object, where: str) -> HiddenCase:
    table = _only(stated, {"name", "points", "arguments", "dtypes", "bound", "constants"}, where)
    name, points, bound = table.get("name"), table.get("points", 1), table.get("bound")
    if not isinstance(name, str) or not name.strip() or "\n" in name:
        raise pytest.UsageError(f"{where}: name is missing: one line that says what kind of case it is.")
    if type(points) not in (int, float) or not 0 < points < 1000:
        raise pytest.UsageError(f"{where}: points must be a number above 0, not {points!r}.")
    for one in bound.values() if isinstance(bound, dict) else [bound]:
        if one is not None and not isinstance(one, str):
            raise pytest.UsageError(f'{where}: bound must be a name, or {{ z = "exact" }}, not {one!r}.')
    dtypes, constants = table.get("dtypes", []), table.get("constants", {})
    if not isinstance(dtypes, list) or not all(dtype in DTYPES for dtype in dtypes):
        raise pytest.UsageError(f"{where}: dtypes must be a list of {', '.join(DTYPES)}.")
    if not isinstance(constants, dict) or not all(
        name.isupper() and type(value) is int for name, value in constants.items()
    ):
        raise pytest.UsageError(
            f"{where}: constants must be names in capitals with whole numbers, for example {{ BLOCK_N = 64 }}."
        )
    arguments = table.get("arguments")
    if not isinstance(arguments, list) or not arguments:
        raise pytest.UsageError(f"{where}: arguments must list one data set for each argument of the entry function.")
    data = tuple(_argument(argument, f"{where}, argument {n}") for n, argument in enumerate(arguments, 1))
    return HiddenCase(name.strip(), data, points, bound, tuple(dtypes), constants)


def _argument(table: object, where: str) -> DataOrNumber:
    if table == {"none": True}:  # an option that is not taken: TOML has no word for it
        return None
    if not isinstance(table, dict) or "number" not in table:
        return _data(table, where)
    _only(table, {"number"}, where)
    number = table["number"]
    if type(number) not in (bool, int, float) or not math.isfinite(number):
        raise pytest.UsageError(f"{where}: number must be a finite number, true or false, not {number!r}.")
    return number


def _data(stated: object, where: str) -> Data:
    table = _only(stated, {"input", "shape", "layout", "stored_as", "dtype", "below", "times", "plus"}, where)
    kind, shape, dtype = table.get("input"), table.get("shape"), table.get("dtype")
    if kind not in DATA_SETS:
        raise pytest.UsageError(f"{where}: input {kind!r} is unknown; there are {', '.join(DATA_SETS)}.")
    if not isinstance(shape, list) or not all(type(size) is int and size > 0 for size in shape):
        raise pytest.UsageError(f"{where}: shape must be a list of whole numbers above 0, for example [61, 781].")
    if len(shape) > MOST_DIMENSIONS or math.prod(shape) > MOST_ELEMENTS:
        raise pytest.UsageError(f"{where}: at most {MOST_ELEMENTS} elements can be judged in the interpreter.")
    data = DATA_SETS[kind](*shape, **_number_below(kind, table, where))
    if dtype is not None and dtype not in DTYPES:
        raise pytest.UsageError(f"{where}: dtype {dtype!r} is unknown; there are {', '.join(DTYPES)}.")
    data = data.of(dtype) if dtype else data
    return _laid_out(_changed(data, table, where), table, where)


def _number_below(kind: str, table: dict, where: str) -> dict[str, int]:
    if kind not in BELOW:
        _only(table, table.keys() - {"below"}, where)
        return {}
    below = table.get("below")
    if type(below) is not int or below < 1:
        raise pytest.UsageError(f"{where}: {kind} need a whole number that they stay below, for example below = 37.")
    return {"below": below}


def _laid_out(data: Data, table: dict, where: str) -> Data:
    layout, order, rank = table.get("layout", "contiguous"), table.get("stored_as"), len(data.shape)
    if layout not in LAYOUTS:
        raise pytest.UsageError(f"{where}: layout {layout!r} is unknown; there are {', '.join(LAYOUTS)}.")
    if layout != "contiguous" and rank < 2:
        raise pytest.UsageError(f"{where}: layout {layout!r} is for a matrix, and shape {list(data.shape)} is none.")
    if order is None:
        return LAYOUTS[layout](data)
    if layout != "contiguous" or not isinstance(order, list) or sorted(order) != list(range(rank)):
        raise pytest.UsageError(
            f"{where}: stored_as must list the dimensions from the outermost in memory to the innermost, for example "
            "[0, 2, 1, 3], and there is no layout with it."
        )
    return data.stored_as(*order)


def _changed(data: Data, table: dict, where: str) -> Data:
    times, plus = table.get("times", 1), table.get("plus", 0)
    if type(times) not in (int, float) or type(plus) not in (int, float):
        raise pytest.UsageError(f"{where}: times and plus must be numbers.")
    return data * times + plus if not data.is_output and (times != 1 or plus != 0) else data


def _only(table: object, known: set[str], where: str) -> dict:
    """Returns the table, if it has no other keys than `known`. Raises pytest.UsageError if it has, or is no table."""
    if not isinstance(table, dict):
        raise pytest.UsageError(f"{where}: a table was expected.")
    unknown = sorted(table.keys() - known)
    if unknown:
        raise pytest.UsageError(f"{where}: {unknown[0]!r} is unknown here; there may be {', '.join(sorted(known))}.")
    return table
