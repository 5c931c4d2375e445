"""Lesson 00: its roofline is that of the figures that are kept, and what other lessons link to stands in it."""

from __future__ import annotations

import re
import runpy

import pytest

from grader.course.folder import all_folders
from tests.conftest import ROOT

LESSON = ROOT / "exercises" / "00_memory" / "README.md"
LINK = re.compile(r"\[[^\]]*\]\(\.\./00_memory/README\.md#([\w-]+)\)")
ROOFLINE = runpy.run_path(str(ROOT / "docs" / "roofline.py"))
WORK, FIGURES = ROOFLINE["WORK"], ROOFLINE["FIGURES"]


def test_the_roofline_is_that_of_the_figures():
    assert ROOFLINE["PICTURE"].read_text(encoding="utf-8") == ROOFLINE["picture"](), "python docs/roofline.py"
    text = LESSON.read_text(encoding="utf-8")
    copy, product = ROOFLINE["roof"]("copy"), ROOFLINE["roof"]("cuBLAS")
    assert f"{copy / 1e12:.2f}" in text and f"do {product / 1e12:.0f}" in text and f"{product / copy:.0f} oper" in text


@pytest.mark.parametrize("folder", all_folders(ROOT), ids=lambda folder: folder.id)
def test_each_exercise_has_its_dot(folder):
    assert folder.number in WORK or folder.number not in FIGURES, f"docs/roofline.py: WORK lacks {folder.id}"


@pytest.mark.parametrize("number", WORK)
def test_bytes_and_operations_are_those_that_are_timed(number):
    """The ladder says both by the rate that it gives for the seconds that it measured."""
    figures = FIGURES[number]
    rungs = figures["rungs"]
    rung = rungs.get("the solution", list(rungs.values())[-1])
    work, unit = (WORK[number].bytes, 1e9) if figures["unit"] == "GB/s" else (WORK[number].flops, 1e12)
    assert work == pytest.approx(
        rung["rate"] * unit * rung["seconds"], rel=0.05
    )  # a product's rate is told for the clock of cuBLAS


@pytest.mark.parametrize("folder", all_folders(ROOT), ids=lambda folder: folder.id)
def test_links_to_words_lead_to_their_headings(folder):
    headings = re.findall(r"^#+ (.+)$", LESSON.read_text(encoding="utf-8"), re.MULTILINE)
    anchors = {heading.lower().replace(" ", "-") for heading in headings}
    linked = LINK.findall(folder.lesson_file.read_text(encoding="utf-8"))
    assert set(linked) <= anchors
