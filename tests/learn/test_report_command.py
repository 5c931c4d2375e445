"""course report as a command: what it writes where, and what it does with results that are no results."""

from __future__ import annotations

import json

import pytest

from grader.course.folder import all_folders
from tests.learn.conftest import ROOT


def test_before_any_run(course):
    done = course.here("report")
    shown = (course.path / "report.html").read_text()
    assert done.status == 0 and shown.count("No run of it is known here.") == len(all_folders(ROOT))


def test_it_leaves_the_home_alone_and_says_nothing_on_the_side(tried, tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    done = tried.course("report", HOME=str(home))
    assert done.status == 0 and done.err == "" and list(home.iterdir()) == []


def test_a_file_that_cannot_be_written(course):
    done = course.here("report", "--output", "no/such/folder/report.html")
    assert done.status == 1 and "cannot be written: No such file or directory." in done.err


@pytest.mark.parametrize("damage", ["", "{}", "[]", '{"tests": []}', '{"tests": [1]}', '{"tests": [{}], "message": 3}'])
def test_a_damaged_result_is_no_obstacle(course, damage):
    (course.path / ".course/results").mkdir(parents=True)
    (course.path / ".course/results/03_softmax.json").write_text(damage)
    assert course.here("report").status == 0
    assert course.here("hint", "03").status == 0


@pytest.mark.parametrize(
    "tiles", [{"rows": 3}, {"test": "test_it", "name": "z", "shape": [4], "rows": [0], "columns": [0], "tiles": []}]
)
def test_a_damaged_map_costs_the_section_only(tried, tiles):
    path = tried.path / ".course/results/01_masked_add.json"
    result = json.loads(path.read_text())
    path.write_text(json.dumps({**result, "tiles": tiles}))
    assert tried.here("report").status == 0
    assert "Its last result cannot be read. Run it again." in (tried.path / "report.html").read_text()
