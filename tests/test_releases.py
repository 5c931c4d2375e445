"""docs/releases.md says the versions of the code, and the files that it names are all that reach into Triton."""

from __future__ import annotations

import ast
import functools
import re
import tomllib

from grader.doctor.doctor import PYTHONS, SUPPORTED, TESTED_TRITONS
from grader.gpu.models import MODELS
from grader.learn.notebook_setup import TRITON
from tests.conftest import ROOT
from tests.test_project_files import broken_links

PATH = ROOT / "docs" / "releases.md"
PAGE = PATH.read_text(encoding="utf-8")
IN_A_LINE = " ".join(PAGE.split())
ROW = re.compile(r"^\| (.*?) \| (.*?) \| (.*?) \| (.*?) \|$", re.MULTILINE)
ROWS = {name.partition(",")[0]: versions for name, *versions in ROW.findall(PAGE)}
PINNED = dict(re.findall(r"^([\w-]+)==(\S+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
OF_TRITON = re.compile(r"^\| `(grader/\S+\.py)` \| (no name: )?", re.MULTILINE)


def joined(names: list[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}"


def least(package: str) -> str:
    asked = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["classroom"]]
    return next(one.partition(">=")[2].partition(";")[0] for one in asked if one.startswith(f"{package}>="))


def test_the_table_has_the_versions_of_the_code():
    ends = [".".join(map(str, version)) for version in PYTHONS]
    assert ROWS["Python"][0] == ends[0] == PROJECT["requires-python"].removeprefix(">=")
    assert ROWS["Python"][2].startswith(f"{joined(ends)},")
    for package in ("triton", "torch", "numpy", "pytest", "nbgrader"):
        name = package.replace("triton", "Triton")
        assert ROWS[name][:2] == [least(package), PINNED[package]]
        assert ROWS[name][2] == (joined(list(TESTED_TRITONS)) if package == "triton" else PINNED[package])
    assert {name: ".".join(map(str, version)) for name, version in SUPPORTED.items()} == {
        name: least(name) for name in SUPPORTED
    }
    assert f"Triton {TRITON.removeprefix('triton==')} where there is none" in IN_A_LINE
    assert f"compiled for {joined(list(MODELS))} without one" in IN_A_LINE


@functools.cache
def imports() -> dict[str, set[str]]:
    """Returns the modules of Triton that each file of the grader imports."""
    found: dict[str, set[str]] = {}
    for path in (ROOT / "grader").rglob("*.py"):
        names: set[str] = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names |= {alias.name for alias in node.names} if isinstance(node, ast.Import) else set()
            names |= {node.module or ""} if isinstance(node, ast.ImportFrom) else set()
        found[str(path.relative_to(ROOT))] = {name for name in names if name.partition(".")[0] == "triton"}
    return found


def test_what_imports_triton_lies_in_the_rooms_that_the_page_names():
    """The doctor's self-test imports it in a text that a child runs."""
    (sentence,) = re.findall(r"Only (.*?) import Triton at all", IN_A_LINE)
    importing = {file.split("/")[1] for file, names in imports().items() if names}
    assert importing | {"doctor"} == set(re.findall(r"`grader/(\w+)/`", sentence))


def test_files_that_take_private_names_are_those_that_the_page_lists():
    """The others ask for them there: who imports a part of Triton that is not public stands in the table."""
    private = ("triton.compiler", "triton.runtime", "triton.backends", "triton._C", "triton._utils")
    taking = {file for file, names in imports().items() if any(name.startswith(private) for name in names)}
    assert taking == {path for path, nothing in OF_TRITON.findall(PAGE) if not nothing}


def test_every_file_and_link_of_the_page_is_there():
    named = re.findall(r"`((?:[\w.-]+/)+[\w-]+\.(?:py|yml))(?:::\w+)?", PAGE)
    assert len(named) > 8 and [name for name in named if not (ROOT / name).exists()] == []
    assert broken_links(PATH) == []
