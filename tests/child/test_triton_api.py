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


@pytest.mark.parametrize(
    ("taken_away", "file", "said"),
    [
        ("triton.runtime.autotuner.Config", FILES[0], "cannot import name 'Config'"),
        ("triton.runtime.autotuner.Autotuner.prune_configs", FILES[0], "Autotuner has no prune_configs"),
        ("triton.compiler.code_generator.CodeGenerator.visit_IfExp", FILES[2], "CodeGenerator has no visit_IfExp"),
    ],
)
def test_a_release_that_lacks_a_name_is_told_so(taken_away, file, said):
    ours = "grader.child.recording_host, grader.front_end.front_end_host"
    lines = f"import triton.compiler.code_generator\ndel {taken_away}\nimport {ours}\n"
    done = subprocess.run([sys.executable, "-c", lines], cwd=ROOT, capture_output=True, text=True)
    last = done.stderr.splitlines()[-1]
    assert done.returncode == 1 and re.match(r"ImportError: Triton [\d.]+ is not known here: ", last), done.stderr
    assert said in last and f"See grader/{file}" in last


def test_what_a_method_gives_an_object_counts_as_a_member():
    from grader.front_end.triton_text_api import check_members

    class Made:
        def __init__(self) -> None:
            self.given = 1

    check_members({Made: ["given"], SimpleNamespace: ["__init__"]}, "file")
    with pytest.raises(ImportError, match="Made has no other. See grader/file"):
        check_members({Made: ["other"]}, "file")
