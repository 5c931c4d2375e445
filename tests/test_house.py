"""The house: rooms on floors, arrows that run down, one name for one module."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path

import pytest

from grader.course.folder import all_folders, load_test_file
from tests.conftest import ROOT

PACKAGE = ROOT / "grader"
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
FLOORS = CONTRACTS[0]["layers"]
MOST_MODULES_AT_THE_ROOT, MOST_ROOMS, MOST_FLOORS = 6, 23, 12


def rooms() -> list[Path]:
    return sorted(path.parent for path in PACKAGE.glob("*/__init__.py"))


def linted(folder: Path) -> subprocess.CompletedProcess:
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command as run; run(['--no-cache'])"]
    return subprocess.run(command, cwd=folder, env={"PYTHONPATH": str(folder)}, capture_output=True, text=True)


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """A copy, to be spoiled."""
    shutil.copytree(PACKAGE, tmp_path / "grader", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_imports_between_rooms_run_down(house):
    done = linted(house)
    assert done.returncode == 0 and "0 broken" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("module", "wrong"),
    [
        ("wire/fields.py", "from grader.judging.run import Run"),
        ("interpreter/values.py", "import triton"),
        ("child/serving.py", "from grader.numerics.roundoff import U32"),
        ("learn/hint.py", "from grader.author.check import check"),
    ],
)
def test_a_wrong_import_is_seen(house, module, wrong):
    path = house / "grader" / module
    path.write_text(f"{path.read_text() if path.exists() else ''}\n{wrong}  # noqa\n")
    done = linted(house)
    assert done.returncode == 1 and "BROKEN" in done.stdout, done.stdout + done.stderr


def test_a_room_that_stands_on_no_floor_is_seen(house):
    (house / "grader" / "attic").mkdir()
    (house / "grader" / "attic" / "__init__.py").write_text("")
    assert linted(house).returncode == 1


def name_of(path: Path) -> str:
    """Returns the name by which a module is known: its own, or "folder/module" in a folder of a room, as
    ladder/table."""
    is_in_a_folder = len(path.relative_to(PACKAGE).parts) > 2
    return f"{path.parent.name}/{path.stem}" if is_in_a_folder else path.stem


def test_no_two_modules_share_a_name():
    names = Counter(name_of(path) for path in PACKAGE.rglob("*.py") if path.stem != "__init__")
    assert [name for name, count in names.items() if count > 1] == []


def test_rooms_stay_few():
    assert len(rooms()) <= MOST_ROOMS and len(FLOORS) <= MOST_FLOORS
    assert len(list(PACKAGE.glob("*.py"))) <= MOST_MODULES_AT_THE_ROOT


def test_only_places_counts_the_parents_of_its_path():
    counting = [path for path in PACKAGE.rglob("*.py") if "__file__).resolve().parent" in path.read_text()]
    assert counting == [PACKAGE / "places.py"]


def test_the_grader_knows_no_exercise():
    """An exercise adds files and edits none: what is said of it stands in these. The demo shows one exercise."""
    folders = all_folders(ROOT)
    names = {folder.name for folder in folders} | {folder.id for folder in folders}
    names |= {load_test_file(folder).exercise.entry for folder in folders}
    of_others = {"softmax", "cumsum", "transpose", "matmul"}  # what a kernel may call, a method of torch's, an anchor
    for path in (ROOT / "grader").rglob("*.py"):
        if path == ROOT / "grader" / "learn" / "demo.py":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in names - of_others:
                raise AssertionError(f"{path}:{node.lineno} knows {node.value!r}")
