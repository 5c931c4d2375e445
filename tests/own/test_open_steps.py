"""Whole numbers that rounding decides: a kernel that quantizes may give either neighbour, and no other number."""

from __future__ import annotations

import pytest
import torch

from grader.own.open_steps import OpenSteps
from grader.own.own_reference import read_reference

ROUNDS = "import torch\ndef quantized(x):\n    return torch.floor(x / 3 + 0.5).to(torch.int8), x.argmax(dim=0)\n"


@pytest.fixture
def open_steps(tmp_path) -> OpenSteps:
    (tmp_path / "ref.py").write_text(ROUNDS)
    return OpenSteps(read_reference(tmp_path / "ref.py"))


def test_only_a_number_next_to_the_middle_of_two_steps_is_open(open_steps):
    x = torch.tensor([1.4999998, 1.5000001, 1.51, 4.5, 0.0], dtype=torch.float32)
    ref = torch.tensor([0, 1, 1, 2, 0])
    assert open_steps(0, ref, [x]).tolist() == [1, 1, 0, 1, 0]


def test_a_place_is_open_where_two_values_are_the_same_but_for_rounding(open_steps):
    assert open_steps(1, torch.tensor(2), [torch.tensor([0.0, 5.0, 5.0 + 2e-6, 1.0])]) == 1
    assert open_steps(1, torch.tensor(2), [torch.tensor([0.0, 5.0, 5.1, 1.0])]) == 0
