"""Which calls a GPU is asked about: one result of one dtype. The others are judged as on a machine without one."""

from __future__ import annotations

import pytest

from grader import replayed
from grader.asked import asked
from grader.exercise import Exercise, Folder, Result, all_folders, load_test_file
from grader.inputs import indices, normal
from grader.run import trial_of
from tests.conftest import ROOT


@pytest.mark.parametrize("folder", all_folders(ROOT), ids=lambda folder: folder.id)
def test_every_call_of_the_course_is(folder: Folder):
    module = load_test_file(folder)
    for use in asked(module, "check", "traffic", "on_gpu", "throughput"):
        assert replayed.can_be(module.exercise, trial_of(module.exercise, use.test, use.data, "float32"))


@pytest.mark.parametrize(
    ("returns", "updates", "data"),
    [
        (("z", "peak"), (), (normal(8), normal(8))),
        (Result("z", dtype="float32"), (), (normal(8), normal(8))),
        ("z", ("y",), (normal(8), normal(8))),
        ("z", (), (normal(8), 2.0)),
        ("z", (), (normal(8), indices(8, below=4))),
        ("z", (), (normal(8), normal(8).of("float32"))),
    ],
)
def test_several_results_updates_numbers_and_indices_are_not(returns, updates, data):
    exercise = Exercise("f", lambda x, y: x, "exact", 1, returns=returns, updates=updates)
    assert not replayed.can_be(exercise, trial_of(exercise, "test", data, "float16"))
