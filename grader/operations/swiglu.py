"""SwiGLU with its gradients: dz, gate, up [M, N] -> z = silu(gate) * up, dgate, dup [M, N], of sum(dz * z).

silu(g) = g * sigmoid(g), sigmoid(g) = 1 / (1 + exp(-g)).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import torch

from grader.numerics.arguments import Argument, as_tensors
from grader.numerics.roundoff import U32
from grader.operations.hypothesis import Hypothesis, reread
from grader.operations.mistakes import exchanged, operands
from grader.operations.mistakes.half_precision import rounded
from grader.sentences import Sentence

if TYPE_CHECKING:
    from grader.operations.evidence import Compared

LEAST_SIGMOID = 2.0**-125  # twice the smallest normal number: for a smaller sigmoid exp(-g) or 1 / exp(-g) may give 0
RESULTS = ("z", "dgate", "dup")

CAUSES = (
    "sigmoid-overflow", "no-product-rule", "derivative-of-sigmoid", "sigmoid-for-silu", "silu-for-sigmoid",
    "missing-factor", "roles-swapped", "wrong-slope",
)  # fmt: skip
ALONE = {"dgate": "wrong-slope"}  # the cause where this result alone is wrong, and no formula fits
PLAIN_CAUSES = ("sigmoid-of-minus",)
RANGE = ("sigmoid-overflow",)


class Swiglu(Sentence):
    """Sentences about mistakes in the gate, in its derivative, and in what is multiplied by them."""

    SIGMOID_OVERFLOW = (  # in fp32 exp of more is infinite
        "exp(gate) overflows above 88.7, and infinity / infinity is NaN: 1 / (1 + exp(-gate)) is right at both ends."
    )
    POWERS_OF_TWO = "sigmoid is made with powers of 2, not of e: exp2 needs its argument times log2(e)."
    SIGMOID_OF_MINUS = "{z} is made with the sigmoid of -gate: 1 / (1 + exp(-gate)) is that of gate."
    SILU_TWICE = "{z} is made with gate * silu(gate): what is multiplied by gate is sigmoid(gate), and no silu."
    SIGMOID_FOR_SILU = "{z} is made with sigmoid(gate) where silu(gate) = gate * sigmoid(gate) belongs."
    NO_DZ = "{gradient} lacks the factor dz: it is the gradient of sum(z), not of sum(dz * z)."
    NO_UP = "dgate lacks the factor up: what multiplies silu(gate) multiplies its derivative too."

    ONE_TERM = "dgate has one of two terms: gate * sigmoid(gate) is a product, and its derivative is a sum."
    DERIVATIVE_OF_SIGMOID = "dgate is made with the derivative of sigmoid, s (1 - s), and not of silu."
    SLOPE_OF_SIGMOID = "In dgate 1 - s stands where the derivative of sigmoid belongs, which is s (1 - s)."
    SILU_FOR_SIGMOID = "In dgate silu stands where sigmoid belongs: of s (1 + g (1 - s)) each s is sigmoid(g)."
    TERMS_SUBTRACTED = "In dgate the two terms of the product rule are subtracted: they are added."

    INPUTS_EXCHANGED = "gate and up are exchanged: silu is taken of gate, and up is its factor."
    STRIDES_OF_ANOTHER = "{name} is addressed with the strides of {other}: each input has its own."

    ROUNDED = "{step} is rounded to {dtype} on the way: convert what is loaded to fp32, and leave it there."
    LOST_DIGITS = (
        "1 / (1 + exp(-g)) keeps the digits of sigmoid. 1 + tanh(g / 2) and 1 - 1 / (1 + exp(g)) lose them where the "
        "gate is far below 0, and exp2 wants log2(e) with all digits that fp32 has, 1.44269504."
    )


LOST_DIGITS = Swiglu.LOST_DIGITS()


def rounding(inputs: Sequence[Argument], ref: torch.Tensor) -> torch.Tensor:
    """Returns c S of z, [M, N]. exp of a rounded argument errs by |g| u and its own 2 ulp; sum, division of 2 ulp and
    products err by about 8 u; 9 are allowed, so that torch in fp32 takes less than half: in 29 million elements on an
    H200 it took up to 0.514 of what 8 would allow.

    Below -88.7 exp(-g) is infinite and sigmoid 0: what is lost is no more than LEAST_SIGMOID of |g up|.
    """
    _, gate, up = as_tensors(inputs)
    return _of_silu_times(up, gate, ref)


def rounding_of_dup(inputs: Sequence[Argument], ref: torch.Tensor) -> torch.Tensor:
    """Returns c S of dup, [M, N]: that of z, with dz instead of up."""
    dz, gate, _ = as_tensors(inputs)
    return _of_silu_times(dz, gate, ref)


def _of_silu_times(factor: torch.Tensor, gate: torch.Tensor, ref: torch.Tensor) -> torch.Tensor:
    lost = (gate * factor).abs_().mul_(LEAST_SIGMOID)
    return gate.abs().mul_(2).add_(9).mul_(ref.abs()).mul_(U32).add_(lost)


def rounding_of_dgate(inputs: Sequence[Argument], ref: torch.Tensor) -> torch.Tensor:
    """Returns c S of dgate, [M, N]. Sigmoid has the same relative error, and there are three products more, in both
    terms of 1 + g (1 - s), which may cancel; then 1 - s, or silu - silu s, loses about 4 u of |g| s. Torch in fp32 took
    up to 0.616 of what 8 would allow (H200)."""
    dz, gate, up = as_tensors(inputs)
    size = gate.abs()
    s, rest = torch.sigmoid(gate), torch.sigmoid(-gate)
    factor = (11 + 2 * size).mul_((size * rest).add_(1)).add_(size * s, alpha=4)
    return factor.mul_(s).mul_(U32).add_(size.add_(1), alpha=LEAST_SIGMOID).mul_((dz * up).abs_())


def mistakes(evidence: Compared, inputs: list[Argument]) -> Iterator[Hypothesis]:
    dz, gate, up = given = as_tensors(inputs)
    yield from _strides_of_another(evidence)
    right = evidence.exercise.expected(given)
    yield from exchanged.mistakes(right, RESULTS)
    z, dgate, dup = evidence.exercise.expected([dz, up, gate])
    for results in ((z, dgate, dup), (z, dup, dgate)):
        yield Hypothesis("roles-swapped", Swiglu.INPUTS_EXCHANGED(), results)
    s = torch.sigmoid(gate)
    z, dgate, dup = _with_sigmoid(s, *given)
    e = torch.exp(gate.float())
    yield Hypothesis("sigmoid-overflow", Swiglu.SIGMOID_OVERFLOW(), _with_sigmoid((e / (1 + e)).double(), *given))
    yield Hypothesis("exp2", Swiglu.POWERS_OF_TWO(), _with_sigmoid(1 / (1 + torch.exp2(-gate)), *given))
    said = Swiglu.SIGMOID_OF_MINUS(z=evidence.returns)
    yield Hypothesis("sigmoid-of-minus", said, _with_sigmoid(1 - s, *given))
    said = Swiglu.SILU_TWICE(z=evidence.returns)
    yield Hypothesis("silu-for-sigmoid", said, _with_sigmoid(gate * s, *given))
    yield from operands.used_twice(evidence, inputs, used=1, left_out=2)
    yield Hypothesis("sigmoid-for-silu", Swiglu.SIGMOID_FOR_SILU(z=evidence.returns), (s * up, dgate, dz * s))
    yield from _of_the_slope(given, s, z, dup)
    without_dz = _with_sigmoid(s, torch.ones_like(dz), gate, up)
    yield Hypothesis("missing-factor", Swiglu.NO_DZ(gradient=evidence.returns), (z, *without_dz[1:]))
    without_up = _with_sigmoid(s, dz, gate, torch.ones_like(up))
    yield Hypothesis("missing-factor", Swiglu.NO_UP(), (z, without_up[1], dup))
    yield from _rounded_on_the_way(given, s, (z, dgate, dup))


def _with_sigmoid(
    s: torch.Tensor, dz: torch.Tensor, gate: torch.Tensor, up: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Returns z, dgate and dup where sigmoid(gate) is s."""
    return gate * s * up, dz * up * s * (1 + gate * (1 - s)), dz * gate * s


def _of_the_slope(
    inputs: Sequence[torch.Tensor], s: torch.Tensor, z: torch.Tensor, dup: torch.Tensor
) -> Iterator[Hypothesis]:
    """Yields wrong derivatives of silu."""
    dz, gate, up = inputs
    slopes = (
        ("no-product-rule", Swiglu.ONE_TERM, s),
        ("no-product-rule", Swiglu.ONE_TERM, gate * s * (1 - s)),
        ("derivative-of-sigmoid", Swiglu.DERIVATIVE_OF_SIGMOID, s * (1 - s)),
        ("derivative-of-sigmoid", Swiglu.SLOPE_OF_SIGMOID, s + gate * (1 - s)),
        ("silu-for-sigmoid", Swiglu.SILU_FOR_SIGMOID, s * (1 + gate * (1 - gate * s))),
        ("silu-for-sigmoid", Swiglu.SILU_FOR_SIGMOID, gate * s * (1 + gate * (1 - s))),
        ("no-product-rule", Swiglu.TERMS_SUBTRACTED, s * (1 - gate * (1 - s))),
    )
    for id, sentence, slope in slopes:
        yield Hypothesis(id, sentence(), (z, dz * up * slope, dup))


def _strides_of_another(evidence: Compared) -> Iterator[Hypothesis]:
    """Yields an input addressed with the strides of another input."""
    memory = dict(evidence.tensors)
    for name, tensor in memory.items():
        for other, theirs in memory.items():
            misread = reread(tensor, theirs.stride()) if tensor.stride() != theirs.stride() else None
            if misread is not None:
                changed = [(misread if one == name else memory[one]).double() for one in memory]
                said = Swiglu.STRIDES_OF_ANOTHER(name=name, other=other)
                yield Hypothesis("stride-ignored", said, tuple(evidence.exercise.expected(changed)))


def _rounded_on_the_way(
    inputs: Sequence[torch.Tensor], s: torch.Tensor, right: tuple[torch.Tensor, ...]
) -> Iterator[Hypothesis]:
    """Yields one step rounded to fp16 or bf16, with the other steps in fp32."""
    dz, gate, up = inputs
    z, dgate, dup = right
    for short, dtype in (("fp16", torch.float16), ("bf16", torch.bfloat16)):
        short_s, short_silu = rounded(s, dtype), rounded(gate * s, dtype)
        product = rounded(dz * up, dtype)
        slope = s * (1 + gate * torch.sigmoid(-gate))
        for step, result in (
            ("sigmoid(gate)", _with_sigmoid(short_s, *inputs)),
            ("silu(gate)", (short_silu * up, dgate, dz * short_silu)),
            ("dz * up", (z, product * slope, dup)),
        ):
            yield Hypothesis("low-precision", Swiglu.ROUNDED(step=step, dtype=short), result)
