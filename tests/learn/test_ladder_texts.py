"""Figures of a ladder that stand in a text are those of ladder.json, which `course ladder NN --keep` wrote."""

from __future__ import annotations

import re

import pytest

from grader.course.folder import all_folders
from grader.learn.ladder.figures import kept
from tests.conftest import ROOT

MARKED = re.compile(r"\| *(?P<numbers>[^|]*?) *<!-- rungs: (?P<rungs>.*?) -->")
FIGURE = re.compile(r"\d\.\d+")
NONE = "-"  # stands for a figure that is no rung's
# Their explanations tabulate other calls, other runs, or rates, and not a ladder's shares.
UNMARKED = ("02", "04", "25", "26", "27", "31")
LADDERS = [folder for folder in all_folders(ROOT) if kept(folder)]


@pytest.mark.parametrize("folder", LADDERS, ids=lambda folder: folder.id)
def test_a_marked_row_states_the_shares_of_its_rungs(folder):
    rungs, rows = kept(folder).rungs, MARKED.findall(folder.hints_file.read_text(encoding="utf-8"))
    assert rows or folder.number in UNMARKED
    for numbers, names in rows:
        figures, named = FIGURE.findall(numbers), names.split(", ")
        assert len(figures) == len(named), numbers
        for figure, name in zip(figures, named, strict=True):
            assert name == NONE or figure == f"{rungs[name].share:.{len(figure) - 2}f}", name
