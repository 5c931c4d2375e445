"""The step from a right call to a wrong one is told where a learner reads a difference, and no untruth."""

from __future__ import annotations

import torch

from grader import normal, some_minus_infinity
from grader.course.exercise import Exercise
from grader.course.folder import Folder, load_test_file
from grader.course.trial import Trial
from grader.explain.smallest_step import smallest_step
from tests.conftest import ROOT

EXERCISE: Exercise = load_test_file(Folder(ROOT / "exercises" / "01_masked_add")).exercise


def trial(*data) -> Trial:
    return Trial(EXERCISE, "any test", data, torch.float32, "exact")


def test_a_size_is_the_smallest_step():
    said = smallest_step([trial(normal(1024), normal(1024))], [trial(normal(1025), normal(1025))])
    assert said is not None and said.text.startswith("Right for 1024") and "wrong for 1025" in said.text


def test_no_call_is_called_right_in_the_words_of_a_wrong_one():
    """Values of these have no words: the label of both is their shapes."""
    right, like_it = trial(normal(64) * 3, normal(64)), trial(normal(64), normal(64))
    assert right.data_label == like_it.data_label
    assert smallest_step([right], [trial(some_minus_infinity(64), normal(64))]) is not None
    assert smallest_step([right], [trial(some_minus_infinity(64), normal(64)), like_it]) is None
