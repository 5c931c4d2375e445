"""Products of fp32: as tensor cores make them of three products of tf32 they are right, and as one of them wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from grader import normal
from grader.explain.verdict import FAIL, PASS, Verdict
from grader.numerics.comparison import compare
from grader.numerics.data_sets import generator_for, uniform
from grader.numerics.rounding_models import PRODUCT
from tests.conftest import ROOT

SOLUTION = Path(ROOT, "solutions/05_grouped_matmul/grouped_matmul.py").read_text()
CHOSEN = ', input_precision="tf32x3"'
BLOCKS = dict(BLOCK_M=32, BLOCK_N=128, BLOCK_K=64, GROUP_M=2)


def cut(x: torch.Tensor) -> torch.Tensor:
    """Cuts numbers of fp32 to what tensor cores see of them: 10 bits behind the first."""
    return (x.view(torch.int32) >> 13 << 13).view(torch.float32)


def nearest(x: torch.Tensor) -> torch.Tensor:
    """As `cvt.rna.tf32.f32` of PTX rounds, which Triton splits a number by: half away from zero."""
    return cut((x.view(torch.int32) + 0x1000).view(torch.float32))


def in_three_products(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """The product that tf32x3 stands for, without the rounding of its sums."""
    (large_a, rest_a), (large_b, rest_b) = ((nearest(x).double(), cut(x - nearest(x)).double()) for x in (a, b))
    return (large_a @ large_b + (rest_a @ large_b + large_a @ rest_b)).float()


def pair(draw, K: int, seed: int) -> list[torch.Tensor]:
    return [draw(*shape).tensor(torch.float32, generator_for(seed, shape)) for shape in ((200, K), (K, 201))]


def largest_error(out: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> float:
    return compare(out, a.double() @ b.double(), PRODUCT, [a.double(), b.double()]).largest_error


@pytest.mark.parametrize("draw", [normal, uniform])
@pytest.mark.parametrize("K", [1, 2, 3, 8, 33, 160, 1024])
def test_three_products_of_tf32_stay_well_inside_the_bound_and_one_does_not(draw, K):
    for seed in range(5):
        a, b = pair(draw, K, seed)
        assert largest_error(in_three_products(a, b), a, b) <= 0.8
        assert largest_error(a @ b, a, b) <= 0.8
        assert largest_error((cut(a).double() @ cut(b).double()).float(), a, b) >= 1.5


def judged(bench, precision: str, **constants: int) -> Verdict:
    assert SOLUTION.count(CHOSEN) == 1
    source = SOLUTION.replace(CHOSEN, precision)
    return bench(source, "05_grouped_matmul").check(normal(33, 75), normal(75, 20), dtypes=("float32",), **constants)


@pytest.mark.parametrize("precision", ["", ', input_precision="tf32"', ", allow_tf32=True"])
def test_operands_that_are_cut_to_tf32_are_named_with_their_product(bench, precision):
    verdict = judged(bench, precision, **BLOCKS)
    assert verdict.outcome == FAIL and verdict.id == "rounded-operands"
    assert verdict.lines[0].startswith("a and b are cut to tf32, 11 significant bits, before the product.")
    assert f"tl.dot(a, b, acc{precision})" in verdict.lines[1]


@pytest.mark.parametrize("precision", [CHOSEN, ', input_precision="ieee"', ", allow_tf32=False"])
def test_both_ways_to_keep_the_digits_are_right(bench, precision):
    assert judged(bench, precision, **BLOCKS).outcome == PASS
