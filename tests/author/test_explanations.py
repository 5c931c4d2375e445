"""How wrong kernels of other designs, and edits that nobody foresaw, are explained: a sample with floors.

The floors may only rise: more named as expected, fewer with a wrong line, none falsely. All of them are counted by
`course check --transplant` and `course check --unforeseen SEED`. What explains failures draws one exercise of each
kind, so that its next change has another; `tox -- slow` counts those of all.
"""

from __future__ import annotations

import ast
import json
import random
from collections import Counter

import pytest

from grader.author import wrong_kernels
from grader.author.explanations import AS_EXPECTED, FALSELY, RIGHT, WRONG, Explained, as_json, explained, summary
from grader.author.wrong_kernels import WrongKernel, transplants, unforeseen
from grader.course.folder import Folder
from grader.places import PACKAGE
from tests.conftest import ROOT
from tests.learn.conftest import Course
from tests.slow import drawn
from tests.typed_commands import freeze_what_is_here

SAMPLE = 10  # transplants of an exercise
EXPLAINS = "".join(
    path.read_text(encoding="utf-8")
    for room in ("explain", "judging")
    for path in sorted((PACKAGE / room).rglob("*.py"))
)
FOLDERS = {folder.name: Folder(folder) for folder in (ROOT / "exercises").iterdir()}


@pytest.fixture(autouse=True, scope="module")
def frozen() -> None:
    freeze_what_is_here()


def counts(kernels: list[WrongKernel]) -> Counter[str]:
    results = [one for one in (explained(kernel, seed=1) for kernel in kernels) if one is not None]
    print(summary(results), *results, sep="\n")
    return Counter(one.named for one in results) + Counter(one.line for one in results)


@pytest.mark.parametrize(
    ("id", "least"), drawn([("03_softmax", 8), ("07_row_sum", 7), ("09_layer_norm", 10)], 1, EXPLAINS)
)
def test_mistakes_in_kernels_of_other_designs(id, least):
    found = counts(random.Random(1).sample(list(transplants(FOLDERS[id])), SAMPLE))
    assert found[AS_EXPECTED] >= least
    assert found[FALSELY] == 0
    assert found[WRONG] == 0


@pytest.mark.parametrize(
    ("id", "least", "most"), drawn([("02_strided_blocks", 4, 0), ("07_row_sum", 8, 0)], 1, EXPLAINS)
)
def test_edits_that_nobody_foresaw(id, least, most):
    found = counts(list(unforeseen(FOLDERS[id], seed=1)))
    assert found[RIGHT] >= least
    assert found[WRONG] <= most
    assert found[FALSELY] == 0


def test_an_edit_changes_one_place_and_leaves_python():
    kernels = list(unforeseen(FOLDERS["25_flash_attention"], seed=3))
    assert kernels == list(unforeseen(FOLDERS["25_flash_attention"], seed=3))
    assert len({one.text for one in kernels}) == len(kernels) > 10
    for one in kernels:
        ast.parse(one.text)
        assert one.lines == tuple(range(one.lines[0], one.lines[-1] + 1))


def test_each_result_is_kept_as_json():
    kernel = WrongKernel("a: b", FOLDERS["07_row_sum"].path, "text", (3,), "no-advance")
    (kept,) = json.loads(as_json([Explained(kernel, "no-advance", "said", 3, AS_EXPECTED, RIGHT)]))
    assert kept["kernel"]["exercise"] == "07_row_sum" and kept["line"] == "right"


def test_check_counts_what_is_explained(tmp_path, proven_here, monkeypatch):
    monkeypatch.setattr(wrong_kernels, "EDITS", 4)
    course = Course(tmp_path)
    done = course.here("check", "12", "--unforeseen", "2", "--findings", "edits.json", "--jobs", "1")
    assert (done.status, len(done.lines)) == (0, 2)
    assert done.lines[1].startswith("All: ") and "wrong kernels: named as expected" in done.lines[1]
    assert len(json.loads((tmp_path / "edits.json").read_text())) == int(done.lines[1].split()[1])
