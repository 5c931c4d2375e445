"""docs/what_other_judges_accept.md: the other comparison accepts each file, and this course says what the page says."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from grader.author.direct_run import outcome
from grader.author.proof import Proof, Way
from grader.course.folder import Folder
from grader.explain.verdict import FAIL
from tests.conftest import ROOT
from tests.typed_commands import freeze_what_is_here

FILES = ROOT / "tests" / "other_judges"
PAGE = (ROOT / "docs" / "what_other_judges_accept.md").read_text(encoding="utf-8")
ROWS = {row[0]: row[1] for row in re.findall(r"^\| `(\S+\.py)`:.*\| ([^|]+) \|$", PAGE, re.MULTILINE)}

# The test that finds it, where those before it take long. If it does not find it, all are asked in their order.
FOUND_BY = {
    "12_int32_product.py": "test_any_call_that_the_lesson_promises",
    "25_half_scores.py": "test_scores_rise_along_the_keys",
    "25_key_tail_zero.py": "test_the_last_tiles_are_not_full",
}


@pytest.fixture(autouse=True, scope="module")
def frozen() -> None:
    freeze_what_is_here()


def test_the_page_has_a_row_for_each_file():
    assert sorted(ROWS) == sorted(path.name for path in FILES.glob("[0-9]*.py")) and len(ROWS) == 7


def test_the_other_comparison_accepts_each_file_and_refuses_a_right_kernel():
    environment = os.environ | {"TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, FILES / "rules.py"], env=environment, cwd=ROOT, capture_output=True, text=True
    )
    said = dict(line.split(": ") for line in done.stdout.splitlines())
    assert said == dict.fromkeys(ROWS, "accepted") | {"solutions/25_flash_attention": "refused"}, done.stderr


@pytest.mark.parametrize("name", ROWS)
def test_this_course_says_what_the_page_says(name):
    (exercise,) = (ROOT / "exercises").glob(f"{name[:2]}_*")
    proof = Proof("mutant", name, Folder(exercise).path, FILES / name, FAIL, ROWS[name].strip())
    first = (FOUND_BY[name],) if name in FOUND_BY else ()
    assert outcome(proof, FILES / name, Way(seed=1, first_tests=first)).complaint == ""
