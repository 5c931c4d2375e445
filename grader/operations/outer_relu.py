"""relu of an outer product: x [M], y [N] -> z [M, N]. Exact: a product has one right rounding, relu has none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import torch

from grader.numerics.arguments import Argument, as_tensors
from grader.operations.hypothesis import Hypothesis, supposed
from grader.sentences import Sentence

if TYPE_CHECKING:
    from grader.operations.evidence import Compared

CAUSES = ("relu-of-operand", "no-relu", "wrong-half", "nan-lost", "nan-made", "axes-exchanged")


class OuterRelu(Sentence):
    """Sentences about wrong relus of an outer product; {x} and {y} are the names of the vectors."""

    NAN_LOST = (
        "{result} is 0 where the product is NaN, and NaN has to stay. Comparing NaN with anything gives false, so "
        "NaN > 0 does too."
    )
    NAN_LOST_BY_MAXIMUM = (
        "{result} is 0 where the product is NaN, and NaN has to stay: the tl.maximum in line {line} gives 0 for it. "
        "With propagate_nan=tl.PropagateNan.ALL it gives NaN; tl.where(v < 0, 0.0, v) does so, too."
    )
    NAN_MADE = (
        "{result} is NaN where the product is -inf: 0 * inf is NaN, and so is inf - inf. Choose by value instead."
    )
    NO_RELU = "{result} holds the products as they are: those below 0 have to become 0."
    NO_SIGN = "{result} holds the products without their sign: those below 0 have to become 0."
    WRONG_BELOW_0 = "{result} is wrong where the product is below 0, and only there: it has to be 0."
    WRONG_HALF = "{result} keeps the products below 0 and drops those above: it has to be the other way round."
    RELU_OF_OPERAND = (
        "relu is taken of {name} before the product: two numbers below 0 have a product above 0, and one alone has one "
        "below."
    )
    RELU_OF_BOTH = (
        "relu is taken of {x} and {y} before the product: two numbers below 0 have a product above 0, and one alone "
        "has one below."
    )
    SUM = "{result} holds relu of {x} + {y}: a product was expected."
    FIRST_BLOCK = "Every program loads the first block of {name}: that load does not move with it."
    AXES_EXCHANGED = "{x} runs along the columns of each tile and {y} down its rows: it has to be the other way round."


def mistakes(evidence: Compared, inputs: list[Argument]) -> Iterator[Hypothesis]:
    if len(inputs) != 2:
        return  # of one outer product alone
    (x, y), z = as_tensors(inputs), evidence.returns
    x_name, y_name = evidence.exercise.arguments
    product, ref = x[:, None] * y[None, :], evidence.comparison.ref
    line = evidence.line_of_maximum
    said = OuterRelu.NAN_LOST_BY_MAXIMUM(result=z, line=line) if line else OuterRelu.NAN_LOST(result=z)
    yield Hypothesis("nan-lost", said, ref.nan_to_num(nan=0.0, posinf=torch.inf), line=line, of_special=True)
    nan_made = torch.where(product == -torch.inf, torch.nan, ref)
    yield Hypothesis("nan-made", OuterRelu.NAN_MADE(result=z), nan_made, of_special=True)
    yield Hypothesis("no-relu", OuterRelu.NO_RELU(result=z), product)
    yield Hypothesis("no-relu", OuterRelu.NO_SIGN(result=z), product.abs())
    yield Hypothesis("wrong-half", OuterRelu.WRONG_HALF(result=z), product.clamp(max=0.0))
    yield Hypothesis("wrong-half", OuterRelu.WRONG_HALF(result=z), (-product).clamp(min=0.0))
    yield from _relu_of_operands(x, y, x_name, y_name)
    of_sum = torch.relu(x[:, None] + y[None, :])
    yield Hypothesis("wrong-operation", OuterRelu.SUM(result=z, x=x_name, y=y_name), of_sum)
    yield from _first_blocks(evidence, x, y)
    yield from _turned_tiles(evidence, x, y)
    if bool((product < 0)[evidence.comparison.wrong].all()):
        yield Hypothesis("no-relu", OuterRelu.WRONG_BELOW_0(result=z), None)


def _relu_of_operands(x: torch.Tensor, y: torch.Tensor, x_name: str, y_name: str) -> Iterator[Hypothesis]:
    positive_x, positive_y = torch.relu(x), torch.relu(y)
    for said, column, row in (
        (OuterRelu.RELU_OF_OPERAND(name=x_name), positive_x, y),
        (OuterRelu.RELU_OF_OPERAND(name=y_name), x, positive_y),
        (OuterRelu.RELU_OF_BOTH(x=x_name, y=y_name), positive_x, positive_y),
    ):
        yield Hypothesis("relu-of-operand", said, column[:, None] * row[None, :])


def _first_blocks(evidence: Compared, x: torch.Tensor, y: torch.Tensor) -> Iterator[Hypothesis]:
    """Yields programs that all load the first block of a vector."""
    names = evidence.exercise.arguments
    for number, constant in enumerate(("BLOCK_M", "BLOCK_N")):
        given, block = [x, y], evidence.constants.get(constant, 0)
        if 0 < block < len(given[number]):
            given[number] = given[number][torch.arange(len(given[number])) % block]
            yield from supposed(evidence, "local-load", OuterRelu.FIRST_BLOCK(name=names[number]), given)


def _turned_tiles(evidence: Compared, x: torch.Tensor, y: torch.Tensor) -> Iterator[Hypothesis]:
    """Yields x along the columns of each tile: only square tiles run with this mistake, and only full tiles show it."""
    size = evidence.constants.get("BLOCK_M", 0)
    if not size or size != evidence.constants.get("BLOCK_N") or len(x) % size or len(y) % size:
        return
    m, n = torch.arange(len(x))[:, None], torch.arange(len(y))[None, :]
    turned = torch.relu(x[m - m % size + n % size] * y[n - n % size + m % size])
    x_name, y_name = evidence.exercise.arguments
    yield Hypothesis("axes-exchanged", OuterRelu.AXES_EXCHANGED(x=x_name, y=y_name), turned)
