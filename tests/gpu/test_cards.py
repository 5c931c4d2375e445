"""What is known of cards, and that no right figure is called impossible."""

from __future__ import annotations

import math

import pytest

from grader.gpu.cards import CARDS, card_named
from grader.gpu.models import MODELS


@pytest.mark.parametrize("name", CARDS)
def test_a_card_that_reaches_what_is_stated_is_possible_and_one_of_twice_that_is_not(name):
    card = card_named(name)
    assert not card.is_impossible(card.bandwidth, 0) and card.is_impossible(2 * card.bandwidth, 0)
    assert math.isinf(card.flops) or not card.is_impossible(0, card.flops) and card.is_impossible(0, 2 * card.flops)


@pytest.mark.parametrize(
    ("name", "bandwidth"),
    [
        ("NVIDIA H100 80GB HBM3", 3350e9),
        (
            "NVIDIA A100-SXM-64GB",
            2039e9,
        ),  # a form that is not in the table: none of its kind is faster than the fastest
        ("NVIDIA A100-SXM4-40GB", 1555e9),
        ("NVIDIA GeForce RTX 4070", 504e9),
        ("NVIDIA GeForce RTX 4090 Laptop GPU", None),
        ("NVIDIA GeForce RTX 4070 Ti SUPER", None),
        ("Quadro P600", None),
        ("NVIDIA H20", None),  # not an H200, whose name begins so
        ("NVIDIA A10-24Q", 600e9),  # part of an A10, and not of an A100
    ],
)
def test_a_card_is_known_by_the_name_that_the_driver_tells(name, bandwidth):
    card = card_named(name)
    assert (card and card.bandwidth) == bandwidth


def test_every_generation_has_a_card():
    known = {model.name.removeprefix("NVIDIA ") for model in MODELS.values()} - {"B300"}
    assert all(any(name in card for card in CARDS) for name in known)
