"""docs/internals.md and the table of tasks in CONTRIBUTING.md name what is there: files, functions, rooms, limits."""

from __future__ import annotations

import ast
import functools
import re
import tomllib
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tests.conftest import ROOT

MAP, CONTRIBUTING, README = (
    (ROOT / page).read_text(encoding="utf-8") for page in ("docs/internals.md", "CONTRIBUTING.md", "README.md")
)
TASKS = CONTRIBUTING.partition("\n## I want to ...\n")[2].partition("\n## ")[0]
CODE = re.compile(r"`([^`\n]+)`")
PLACE = re.compile(r"((?:[\w.-]+/)*[\w-]+\.(?:py|toml|txt|md|svg|json|ini|html))(?:::(\w+(?:\.\w+)*))?")
FOLDER = re.compile(r"(?:[\w.-]+/)+")
OPTIONS = re.compile(r"\[[^\]]*\]|--?\w[\w-]*(?:=\S+)?")
FLOOR = re.compile(r"^\| (\d+) \| `([\w.]+?)/?` \|", re.MULTILINE)
LIMIT = re.compile(r"^\| `([\w/]+\.py)` \| `(\w+)` \| ([\d.*]+)(?: (s|MiB|GiB))? \|", re.MULTILINE)
UNITS = {"": 1, "s": 1, "MiB": 1 << 20, "GiB": 1 << 30}


def places(text: str) -> list[tuple[str, str]]:
    """Returns the files and folders that a text names in code, each with the name behind its "::" or ""."""
    matches = [PLACE.fullmatch(code) or FOLDER.fullmatch(code) for code in CODE.findall(text)]
    return sorted({(match[0].partition("::")[0], match[0].partition("::")[2]) for match in matches if match})


def path_of(named: str) -> Path | None:
    """Returns the file below grader/ or below the course; None if there is none. NN_name stands for any exercise."""
    pattern = named.replace("NN_name", "03_softmax").replace("NAME", "softmax")
    return next((path for path in (ROOT / "grader" / pattern, ROOT / pattern) if path.exists()), None)


@functools.cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def names_in(body: list[ast.stmt]) -> dict[str, ast.stmt]:
    """Returns the statements in which a module or a class defines its names."""
    found: dict[str, ast.stmt] = {}
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found[node.name] = node
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        for target in targets:
            found |= {name.id: node for name in ast.walk(target or ast.Pass()) if isinstance(name, ast.Name)}
    return found


def is_defined(path: Path, name: str) -> bool:
    body = tree(path).body
    for part in name.split("."):
        node = names_in(body).get(part)
        if node is None:
            return False
        body = getattr(node, "body", [])
    return True


@pytest.mark.parametrize("text", [MAP, TASKS], ids=["internals", "tasks"])
def test_every_file_and_function_that_is_named_is_there(text):
    named = places(text)
    assert len(named) > 40
    assert [one for one, _ in named if path_of(one) is None] == []
    assert [f"{one}::{name}" for one, name in named if name and not is_defined(path_of(one), name)] == []


def test_every_folder_and_file_in_the_picture_is_there():
    picture = ET.parse(ROOT / "docs" / "processes.svg")
    words = [word for text in picture.iter("{http://www.w3.org/2000/svg}text") for word in text.text.split()]
    named = [word.strip("(),:") for word in words if "/" in word]
    assert len(named) > 5 and [one for one in named if path_of(one) is None] == []


def test_no_two_classes_share_a_name():
    """A class with a leading underscore is known in its own file alone."""
    classes = [
        name
        for path in (ROOT / "grader").rglob("*.py")
        for name, node in names_in(tree(path).body).items()
        if isinstance(node, ast.ClassDef) and name[0] != "_"
    ]
    assert sorted({name for name in classes if classes.count(name) > 1}) == []


def test_what_is_not_there_is_seen():
    named = "`judging/judge.py::Judge.begin`, `a.b`, `wire/`"
    assert places(named) == [("judging/judge.py", "Judge.begin"), ("wire/", "")]
    assert path_of("judging/jury.py") is None
    judge = path_of("judging/history.py")
    assert (
        is_defined(judge, "History.kernels")
        and is_defined(judge, "MOST_ENDED")
        and is_defined(judge, "History.failures")
    )
    assert not is_defined(judge, "kernels") and not is_defined(judge, "History.kernel")


def test_every_room_stands_on_its_floor():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    floors = [sorted(room.strip() for room in floor.split("|")) for floor in contracts[0]["layers"]]
    shown = [(int(floor), room.removesuffix(".py")) for floor, room in FLOOR.findall(MAP)]
    assert shown == [(len(floors) - place, room) for place, floor in enumerate(floors) for room in floor]


def test_limits_are_those_of_the_code():
    limits = LIMIT.findall(MAP)
    assert len(limits) == len(re.findall(r"^\| `[\w/]+\.py` \| `\w+` \|", MAP, re.MULTILINE)) > 25
    wrong = [(file, name) for file, name, value, unit in limits if constant(file, name) != number(value) * UNITS[unit]]
    assert wrong == []


def number(text: str) -> float:
    base, _, exponent = text.partition("**")
    return float(base) ** float(exponent or 1)


def constant(file: str, name: str) -> float:
    """Returns the number that a module gives this name, alone or among several."""
    node = names_in(tree(path_of(file)).body)[name]
    (target,) = node.targets
    value = node.value
    if isinstance(target, ast.Tuple):
        value = value.elts[[one.id for one in target.elts].index(name)]
    return eval(compile(ast.Expression(value), file, "eval"), {"__builtins__": {}})


def test_commands_that_prove_something_name_folders_and_tests_that_are_there():
    commands = [code for code in CODE.findall(TASKS) if code.startswith(("pytest ", "python "))]
    words = [word for command in commands for word in OPTIONS.sub("", command).split()[1:]]
    assert len(words) > 10
    assert [word for word in words if path_of(word) is None and path_of(word.replace(".", "/") + ".py") is None] == []


def test_the_readme_leads_developers_to_the_map():
    assert "](CONTRIBUTING.md)" in README and "](docs/internals.md)" in CONTRIBUTING
