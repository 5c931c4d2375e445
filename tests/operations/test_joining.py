"""Blocks of a softmax that are joined: right factors give the whole sum, also where a block holds -inf alone."""

from __future__ import annotations

import torch

from grader.operations.mistakes.half_precision import added_up
from grader.operations.mistakes.joining import Walk, folded, rescaling


def walk_with_a_hollow_block(step: int = 4) -> Walk:
    x = torch.linspace(-3.0, 5.0, 30, dtype=torch.float64).view(3, 10).clone()
    x[0, :step] = -torch.inf
    x[1, step : 2 * step] = -torch.inf
    return Walk(x, step)


def test_right_factors_join_blocks_to_the_sum_of_all():
    walk = walk_with_a_hollow_block()
    total = folded(walk.sums(walk.so_far), walk.right)
    assert walk.padding == 2
    assert torch.allclose(walk.so_far[:, -1] + total.log(), torch.logsumexp(walk.s, dim=1))


def test_every_wrong_factor_gives_another_sum_where_the_maximum_grows():
    walk = walk_with_a_hollow_block()
    sums = walk.sums(walk.so_far)
    right = folded(sums, walk.right)
    for _, said, of in rescaling("the sum"):
        assert not torch.allclose(folded(sums, of(walk.right)[0])[2], right[2]), said.text


def test_a_loop_over_l_and_acc_has_mistakes_that_one_over_a_sum_has_not():
    alone, both = ([id for id, *_ in rescaling(*sums)] for sums in (("the sum",), ("l", "acc")))
    assert both == ["not-rescaled", "not-rescaled", *alone]


def test_a_sum_in_fp16_loses_what_fp16_does_not_hold():
    terms = [torch.tensor([2048.0, 1.0]).double(), torch.tensor([1.0, 1.0]).double()]
    assert added_up(terms, torch.float16).tolist() == [2048.0, 2.0]
    assert added_up(terms, torch.float16, [torch.tensor(0.5)] * 2).tolist() == [1025.0, 1.5]
