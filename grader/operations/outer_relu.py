"""relu of an outer product: x [M], y [N] -> z [M, N]. Exact: a product has one right rounding, relu has none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import torch

from grader.numerics.arguments import Argument
from grader.operations.hypothesis import Hypothesis, supposed

if TYPE_CHECKING:
    from grader.explain.evidence import Evidence

CAUSES = ("relu-of-operand", "no-relu", "wrong-half", "nan-lost", "nan-made", "axes-exchanged")


def mistakes(evidence: Evidence, inputs: list[Argument]) -> Iterator[Hypothesis]:
    if len(inputs) != 2:
        return  # of one outer product alone
    (x, y), z = inputs, evidence.returns
    x_name, y_name = evidence.exercise.arguments
    product, ref = x[:, None] * y[None, :], evidence.comparison.ref
    sentence = (
        f"{z} is 0 where the product is NaN, and NaN has to stay. Comparing NaN with anything gives false, so "
        "NaN > 0 does too; tl.maximum drops it unless told otherwise."
    )
    yield Hypothesis("nan-lost", sentence, ref.nan_to_num(nan=0.0, posinf=torch.inf))
    sentence = f"{z} is NaN where the product is -inf: 0 * inf is NaN, and so is inf - inf. Choose by value instead."
    yield Hypothesis("nan-made", sentence, torch.where(product == -torch.inf, torch.nan, ref))
    yield Hypothesis("no-relu", f"{z} holds the products as they are: those below 0 have to become 0.", product)
    yield Hypothesis("no-relu", f"{z} holds the products without their sign: those below 0 have to become 0.",
                     product.abs())  # fmt: skip
    sentence = f"{z} keeps the products below 0 and drops those above: it has to be the other way round."
    yield Hypothesis("wrong-half", sentence, product.clamp(max=0.0))
    yield Hypothesis("wrong-half", sentence, (-product).clamp(min=0.0))
    yield from _relu_of_operands(x, y, x_name, y_name)
    yield Hypothesis("wrong-operation", f"{z} holds relu of {x_name} + {y_name}: a product was expected.",
                     torch.relu(x[:, None] + y[None, :]))  # fmt: skip
    yield from _first_blocks(evidence, x, y)
    yield from _turned_tiles(evidence, x, y)
    if bool((product < 0)[evidence.comparison.wrong].all()):
        yield Hypothesis("no-relu", f"{z} is wrong where the product is below 0, and only there: it has to be 0.", None)


def _relu_of_operands(x: torch.Tensor, y: torch.Tensor, x_name: str, y_name: str) -> Iterator[Hypothesis]:
    positive = torch.relu(x), torch.relu(y)
    both = f"{x_name} and {y_name}"
    for which, column, row in ((x_name, positive[0], y), (y_name, x, positive[1]), (both, *positive)):
        sentence = (
            f"relu is taken of {which} before the product: two numbers below 0 have a product above 0, and one alone "
            "has one below."
        )
        yield Hypothesis("relu-of-operand", sentence, column[:, None] * row[None, :])


def _first_blocks(evidence: Evidence, x: torch.Tensor, y: torch.Tensor) -> Iterator[Hypothesis]:
    """Every program loads the first block of a vector."""
    names = evidence.exercise.arguments
    for number, constant in enumerate(("BLOCK_M", "BLOCK_N")):
        given, block = [x, y], evidence.constants.get(constant, 0)
        if 0 < block < len(given[number]):
            given[number] = given[number][torch.arange(len(given[number])) % block]
            sentence = f"Every program loads the first block of {names[number]}: that load does not move with it."
            yield from supposed(evidence, "local-load", sentence, given)


def _turned_tiles(evidence: Evidence, x: torch.Tensor, y: torch.Tensor) -> Iterator[Hypothesis]:
    """x along the columns of each tile: only square tiles let it pass, and whole ones tell it."""
    size = evidence.constants.get("BLOCK_M", 0)
    if not size or size != evidence.constants.get("BLOCK_N") or len(x) % size or len(y) % size:
        return
    m, n = torch.arange(len(x))[:, None], torch.arange(len(y))[None, :]
    turned = torch.relu(x[m - m % size + n % size] * y[n - n % size + m % size])
    x_name, y_name = evidence.exercise.arguments
    sentence = (
        f"{x_name} runs along the columns of each tile and {y_name} down its rows: it has to be the other way round."
    )
    yield Hypothesis("axes-exchanged", sentence, turned)
