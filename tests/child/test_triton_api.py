"""Triton's private names stand in three files, and a release that lacks one of them is told so."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from types import SimpleNamespace

import pytest

from tests.conftest import ROOT

FILES = ("child/triton_api.py", "front_end/triton_text_api.py", "front_end/triton_visitor_api.py")
PUBLIC = {"triton", "triton.language"}


def imported(tree: ast.Module) -> set[str]:
    """Returns the modules of Triton that a file imports, or imports from."""
    nodes = list(ast.walk(tree))
    names = {one.name for node in nodes if isinstance(node, ast.Import) for one in node.names}
    names |= {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
    return {name for name in names if name.partition(".")[0] == "triton"}


def test_no_other_file_imports_what_is_private():
    others = [path for path in (ROOT / "grader").rglob("*.py") if str(path.relative_to(ROOT / "grader")) not in FILES]
    assert [(path, names) for path in others if (names := imported(ast.parse(path.read_text())) - PUBLIC)] == []


@pytest.mark.parametrize("file", FILES)
def test_every_member_that_is_listed_is_used(file):
    """A name that nobody uses any longer would be looked for in a new Triton."""
    text = (ROOT / "grader" / file).read_text()
    table = next(node for node in ast.parse(text).body if getattr(getattr(node, "target", None), "id", "") == "MEMBERS")
    listed = {one.value for value in table.value.values for one in getattr(value, "elts", ())}
    paths = [path for room in ("child", "compiler", "front_end") for path in (ROOT / "grader" / room).glob("*.py")]
    used = "\n".join(path.read_text() for path in paths).replace(ast.get_source_segment(text, table), "")
    assert len(listed) > 5 and [name for name in listed if not re.search(rf"[.\"]{name}\b|def {name}\b", used)] == []


TAKEN_AWAY = {
    "triton.runtime.autotuner.Config": (FILES[0], "cannot import name 'Config'"),
    "triton.runtime.autotuner.Autotuner.prune_configs": (FILES[0], "Autotuner has no prune_configs"),
    "triton.compiler.code_generator.CodeGenerator.visit_IfExp": (FILES[2], "CodeGenerator has no visit_IfExp"),
}
# Imports Triton once, and what needs it in a fork for each name that is taken away before.
LACKING = """
import os, sys
import triton.compiler.code_generator
for taken_away in sys.argv[1:]:
    if os.fork() == 0:
        try:
            exec(f"del {taken_away}")
            import grader.child.recording_host, grader.front_end.front_end_host
        except ImportError as error:
            print(f"{taken_away}: {error}", flush=True)
        os._exit(0)
    os.wait()
"""


@pytest.fixture(scope="module")
def told() -> dict[str, str]:
    """What is told where a name is taken away, by name."""
    command = [sys.executable, "-c", LACKING, *TAKEN_AWAY]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    return dict(line.split(": ", 1) for line in done.stdout.splitlines())


@pytest.mark.parametrize("taken_away", TAKEN_AWAY)
def test_a_release_that_lacks_a_name_is_told_so(told, taken_away):
    file, said = TAKEN_AWAY[taken_away]
    assert re.match(r"Triton [\d.]+ is not known here: ", told[taken_away])
    assert said in told[taken_away] and f"See grader/{file}" in told[taken_away]


def test_what_a_method_gives_an_object_counts_as_a_member():
    from grader.front_end.triton_text_api import check_members

    class Made:
        def __init__(self) -> None:
            self.given = 1

    check_members({Made: ["given"], SimpleNamespace: ["__init__"]}, "file")
    with pytest.raises(ImportError, match="Made has no other. See grader/file"):
        check_members({Made: ["other"]}, "file")
