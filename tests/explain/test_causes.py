"""One registry of what can be wrong: code, hints and mutants name nothing else, and nothing in it is unused."""

from __future__ import annotations

import shutil

import pytest

from grader.author.check import _static_complaints
from grader.course.folder import all_folders
from grader.explain.causes import Cause
from grader.progress.hints import NEEDS_A_HINT
from tests.conftest import ROOT

CODE = "\n".join(
    path.read_text(encoding="utf-8")
    for path in (ROOT / "grader").rglob("*.py")
    if path.name not in ("causes.py", "hints.py")
)


@pytest.mark.parametrize("cause", Cause)
def test_each_cause_is_found_somewhere(cause):
    assert f"Cause.{cause.name}" in CODE or f'"{cause}"' in CODE


def test_each_cause_that_needs_a_hint_has_one_somewhere():
    hints = " ".join(folder.hints_file.read_text(encoding="utf-8") for folder in all_folders(ROOT)).split()
    assert {cause for cause in NEEDS_A_HINT if cause not in hints} <= WITHOUT_A_HINT


# Not every course has a mutant that brings these about.
WITHOUT_A_HINT = {Cause.MISALIGNED, Cause.LANE_CONFLICT, Cause.NOT_ZEROED, Cause.UPDATED_TWICE}


def test_a_hint_that_fits_a_failure_which_there_is_not_is_a_complaint(tmp_path):
    for name in ("exercises", "solutions", "hints"):
        shutil.copytree(ROOT / name, tmp_path / name)
    (folder,) = (one for one in all_folders(tmp_path) if one.number == "01")
    folder.hints_file.write_text(folder.hints_file.read_text().replace("oob-load", "oob-lode"))
    said = list(_static_complaints(folder))
    assert any("speaks of the failure oob-lode, which there is not" in line for line in said), said
