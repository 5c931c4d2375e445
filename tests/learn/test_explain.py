"""`course explain` says what a failure is that a report names."""

from __future__ import annotations

import pytest

from grader.course.folder import all_folders
from grader.course.mistakes import causes_of
from grader.explain.causes import Cause
from grader.site.failure_pages import failures_of
from tests.conftest import ROOT

FAILED = "03_softmax  outcome=fail runs=1 points=9/16 last=2026-01-02T00:00:00Z cause=padding-counted\n"


def test_every_failure_that_a_report_can_have_is_explained():
    folders = all_folders(ROOT)
    pages = {page.id: page for page in failures_of(folders)}
    known = {str(cause) for cause in Cause}.union(*map(causes_of, folders))
    assert known == set(pages)
    assert [id for id, page in pages.items() if not page.brief.strip()] == []
    meanings = [cause.meaning for cause in Cause]
    assert all(meaning.endswith(".") for meaning in meanings) and len(set(meanings)) == len(meanings)


@pytest.mark.parametrize("name", ["oob-load", "OOB_LOAD"])
def test_a_failure_is_what_it_is_how_it_comes_about_and_where_to_look(untouched, name):
    done = untouched.here("explain", name, COLUMNS="80")
    assert done.status == 0 and done.err == "" and max(map(len, done.lines)) <= 80
    told = " ".join(done.out.split())
    assert "A load reads outside of its tensor." in told
    assert "only the store has a mask: the loads run past the end of x and y. The judge says: The tl.load in" in told
    assert "Where to look Which of its lanes lie past the end?" in told
    assert "course open 01 shows the lesson." in told and "details" not in told and "README" not in told
    assert done.lines[-1] == "Next: 01_masked_add. Read it with: course open 01"


def test_without_a_name_it_is_the_last_failure_with_its_exercise_first(course):
    (course.path / "progress.txt").write_text(FAILED)
    told = course.here("explain").out
    assert told.split()[0] == "padding-counted"
    shown = [folder.id for folder in all_folders(ROOT) if f"\n{folder.id} " in told]
    assert "03_softmax" in shown and len(shown) > 1
    assert min(shown, key=lambda id: told.index(f"\n{id} ")) == "03_softmax"
    assert told.strip().endswith("Next: edit exercises/03_softmax/softmax.py and run pytest exercises/03_softmax")


def test_without_a_failure_all_names_are_listed(untouched):
    done = untouched.here("explain")
    assert any(line.startswith("oob-load ") and "A load reads outside" in line for line in done.lines)
    assert any(line.startswith("padding-counted ") for line in done.lines)
    assert done.lines[-1] == "Next: course explain NAME"


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("oob-lode", "No failure is called 'oob-lode'. Did you mean oob-load or oob-store?"),
        ("padding", "No failure is called 'padding'. Did you mean "),
        ("xyzzy", "No failure is called 'xyzzy'. A report of pytest says how its failure is called."),
    ],
)
def test_an_unknown_name_gets_the_nearest_ones(untouched, name, sentence):
    done = untouched.here("explain", name)
    assert done.status == 1 and done.out == "" and sentence in done.err
    assert "padding-counted" in done.err or name != "padding"
