"""A thorough run draws ten times as many calls; the first of them are those of any run with its seed."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.judging.drawn_trials import DrawnTrials
from grader.session.session import THOROUGH
from tests.conftest import ROOT
from tests.course.test_drawn import FOLDERS, promise_of
from tests.typed_commands import run_pytest


@pytest.fixture
def trials(bench):
    def trials(id: str, rounds: int) -> DrawnTrials:
        folder = next(folder for folder in FOLDERS if folder.id == id)
        judged = bench(folder.solution_file.read_text(), id)
        judged.run.rounds = rounds
        promise, test = promise_of(folder)
        return DrawnTrials(judged.judge.exercise, judged.run, test, promise)

    return trials


@pytest.mark.parametrize("id", ["01_masked_add", "23_descriptor_matmul"])
def test_calls_of_more_rounds_are_others_and_have_numbers_of_their_own(trials, id):
    one, many = trials(id, 1), trials(id, THOROUGH)
    for few, all_of_them in ((one.calls, many.calls), (one.large(400), many.large(400))):
        assert all_of_them[: len(few)] == few and len(all_of_them) == THOROUGH * len(few)
        assert len({call.number for call in all_of_them}) == len(all_of_them)
        assert len({repr((call.sizes, call.dtype, call.layouts)) for call in all_of_them}) > 4 * len(few)
    assert len(many.unpromised(500)) == THOROUGH * len(one.unpromised(500))


def test_it_is_asked_for_by_an_option_and_again_in_the_command_that_repeats_it(tmp_path):
    text = (ROOT / "solutions/01_masked_add/masked_add.py").read_text()
    path: Path = tmp_path / "masked_add.py"
    path.write_text(text.replace("x + y", "tl.where(offsets == 40, 0.0, x + y)"))
    asked = ["exercises/01_masked_add", "--submission", path, "--seed", "5"]
    assert "--seed 5 --thorough" in run_pytest(*asked, "--thorough", cwd=ROOT).out
    assert "--thorough" not in run_pytest(*asked, cwd=ROOT).out
