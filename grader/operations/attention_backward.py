"""Backward pass of attention: q, do [B, H, M, D], k, v [B, H, N, D], o, lse as `attention` gives them -> dq, dk, dv.

P = exp(s - lse), delta = sum of o do in each row, dS = P (do v^T - delta), dv = P^T do, dk = dS^T q / sqrt(D),
dq = dS k / sqrt(D). Tensor cores multiply tiles of one dtype, so P and dS are rounded to it; nothing else is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import torch

from grader.numerics.arguments import Argument, as_tensor, as_tensors
from grader.operations import attention
from grader.operations._attention_backward import Backward, Pairs, Results
from grader.operations._attention_heads import TENSORS, of_other_elements
from grader.operations.attention import (
    LN_2,
    LOG2_E,
    MOST_EXPLAINED,
    TELLING,
    by_heads,
    explains,
)
from grader.operations.hypothesis import Hypothesis, reread
from grader.operations.mistakes import turns
from grader.operations.mistakes.half_precision import rounded
from grader.operations.mistakes.turns import Index, Loop
from grader.sentences import Said

if TYPE_CHECKING:
    from grader.operations.evidence import Compared

CAUSES = (
    "wrong-lse", "wrong-scale", "bases-mixed", "block-maximum", "wrong-delta", "wrong-factor", "strides-of-another",
    "stride-ignored", "head-across-batches", "not-turned", "rounded-too-early",
)  # fmt: skip
DIGITS = ("rounded-too-early",)
RANGE = ("block-maximum",)

SLACK = 1.25  # where a sum has one term, all of the error may be two roundings: of P or dS, and of the result
HUGE = 4.0  # -lse: exp(-lse) times a delta of ordinary size may pass the largest number of fp16
Q, K, V, DO = 0, 1, 2, 5  # places of the arguments that have heads, tokens and elements


def rounding_of_dv(inputs: Sequence[Argument], ref: torch.Tensor) -> torch.Tensor:
    """Returns c S of dv, [B, H, N, D]: 2 sum of the errors of P times |do|; half of it is for the sum itself."""
    return by_heads(inputs, ref, lambda *given: 2 * (pairs := Pairs(*given)).of_p.mT @ pairs.do.abs())


def rounding_of_dk(inputs: Sequence[Argument], ref: torch.Tensor) -> torch.Tensor:
    return by_heads(inputs, ref, lambda *given: 2 * (pairs := Pairs(*given)).scale * pairs.of_ds.mT @ pairs.q.abs())


def rounding_of_dq(inputs: Sequence[Argument], ref: torch.Tensor) -> torch.Tensor:
    return by_heads(inputs, ref, lambda *given: 2 * (pairs := Pairs(*given)).scale * pairs.of_ds @ pairs.k.abs())


def conversion_of_dv(inputs: Sequence[Argument], ref: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns R and L of dv: P is rounded to the dtype of do. R is SLACK sum P |do|; L pays for P below the normal
    numbers."""
    return terms_of_dv(inputs, ref).mul_(SLACK), _of_each(inputs, ref, 5)


def conversion_of_dk(inputs: Sequence[Argument], ref: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns R and L of dk: dS is rounded to the dtype of q, before the scale or after it."""
    return terms_of_dk(inputs, ref).mul_(SLACK), _of_each(inputs, ref, 0)


def conversion_of_dq(inputs: Sequence[Argument], ref: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return terms_of_dq(inputs, ref).mul_(SLACK), _of_each(inputs, ref, 1)


def _of_each(inputs: Sequence[Argument], ref: torch.Tensor, place: int) -> torch.Tensor:
    """Returns L, [shape of ref], for a factor that is rounded and multiplied with the argument at `place`: SLACK / 2
    times the sum of that argument's |numbers| over all its rows, as each rounded number may lose half of eta."""
    return as_tensor(inputs[place]).abs().sum(dim=-2, keepdim=True).mul(SLACK / 2).expand(ref.shape).contiguous()


def terms_of_dv(inputs: Sequence[Argument], ref: torch.Tensor) -> torch.Tensor:
    return by_heads(inputs, ref, lambda *given: (pairs := Pairs(*given)).p.mT @ pairs.do.abs())


def terms_of_dk(inputs: Sequence[Argument], ref: torch.Tensor) -> torch.Tensor:
    return by_heads(inputs, ref, lambda *given: (pairs := Pairs(*given)).scale * pairs.ds.abs().mT @ pairs.q.abs())


def terms_of_dq(inputs: Sequence[Argument], ref: torch.Tensor) -> torch.Tensor:
    return by_heads(inputs, ref, lambda *given: (pairs := Pairs(*given)).scale * pairs.ds.abs() @ pairs.k.abs())


def held(shapes: Sequence[Sequence[int]]) -> int:
    """Returns how many numbers the bounds keep: twice as many for each score as attention keeps."""
    return 2 * attention.held(shapes)


LOST_DIGITS = Backward.LOST_DIGITS()


def mistakes(evidence: Compared, inputs: list[Argument]) -> Iterator[Hypothesis]:
    if len(inputs) != 6:
        return
    q, k, *_ = given = as_tensors(inputs)
    if q.dim() != 4 or not q.numel():
        return
    if q.numel() // q.shape[3] * k.shape[2] > MOST_EXPLAINED:
        return
    pairs = Pairs(*given)
    (rows, keys), constants = pairs.s.shape[2:], evidence.constants
    steps = max(constants.get("BLOCK_M", 0), 0) or rows, max(constants.get("BLOCK_N", 0), 0) or keys
    yield from _where_it_is_nan(evidence, pairs, steps[1])
    yield from _in_p(pairs, steps[1])
    yield from _in_ds(pairs)
    yield from _in_the_scale(evidence, pairs)
    yield from _in_walks(evidence, pairs, steps)
    yield from _not_turned(pairs, *steps)
    yield from _of_other_rows(evidence, pairs)
    yield from of_other_elements(evidence, inputs, (*TENSORS, (DO,), (Q, DO), (Q, K, V, DO)))
    yield from _in_few_digits(evidence, pairs, steps)


def _where_it_is_nan(evidence: Compared, pairs: Pairs, step: int) -> Iterator[Hypothesis]:
    """Yields the mistake that makes dq NaN in rows whose lse is far below 0: P of keys past the end is infinite, or dS
    overflows in fp16."""
    nan = evidence.comparison.out.isnan().all(dim=-1)
    if evidence.returns != "dq" or not bool(nan.any()) or pairs.s.shape[-1] % step == 0:
        return
    if bool((pairs.lse[nan] < -HUGE).all()) and not bool((nan ^ evidence.comparison.wrong.any(dim=-1)).any()):
        yield Hypothesis("padding-counted", Backward.PADDING_IS_INFINITE(name=evidence.returns), None)


def _in_p(pairs: Pairs, step: int) -> Iterator[Hypothesis]:
    """Yields mistakes that make P of something else than exp(s - lse)."""
    s, lse = pairs.s, pairs.lse[..., None]
    yield Hypothesis("wrong-lse", Backward.WITHOUT_LSE(), pairs.results(torch.exp(s)))
    yield Hypothesis("wrong-lse", Backward.LSE_IN_BASE_2(), pairs.results(torch.exp(s - lse * LN_2)))
    yield Hypothesis("wrong-scale", Backward.POWERS_OF_2(), pairs.results(torch.exp((s - lse) * LN_2)))
    yield Hypothesis("bases-mixed", Backward.LSE_ALONE_IN_BASE_2(), pairs.results(torch.exp(s * LN_2 - lse)))
    yield Hypothesis("wrong-scale", Backward.LOG2_E_AND_EXP(), pairs.results(torch.exp((s - lse) * LOG2_E)))
    tiles = [torch.exp(tile - tile.amax(dim=-1, keepdim=True)) for tile in s.split(step, dim=-1)]
    yield Hypothesis("block-maximum", Backward.OWN_MAXIMUM(), pairs.results(torch.cat(tiles, dim=-1)))
    said = Backward.SCORES_NOT_SCALED()
    yield Hypothesis("wrong-scale", said, pairs.results(torch.exp(s / pairs.scale - lse)))


def _in_ds(pairs: Pairs) -> Iterator[Hypothesis]:
    """Yields a wrong or missing delta, dS without its factor P, and products that take dS instead of P, or P instead of
    dS."""
    p, dp, delta, (dq, dk, dv) = pairs.p, pairs.dp, pairs.delta, pairs.results()
    for said, wrong in (
        (Backward.NO_DELTA(), 0 * delta), (Backward.DELTA_ADDED(), -delta),
        (Backward.DELTA_OF(made_of="o alone"), pairs.o.square().sum(dim=-1, keepdim=True)),
        (Backward.DELTA_OF(made_of="do alone"), pairs.do.square().sum(dim=-1, keepdim=True)),
    ):  # fmt: skip
        yield Hypothesis("wrong-delta", said, pairs.results(ds=p * (dp - wrong)))
    yield Hypothesis("wrong-factor", Backward.NO_P_IN_DS(), pairs.results(ds=dp - delta))
    yield Hypothesis("wrong-factor", Backward.DV_FROM_DS(), (dq, dk, pairs.ds.mT @ pairs.do))
    from_p = pairs.results(ds=p)
    yield Hypothesis("wrong-factor", Backward.FROM_P(name="dk", formula="dS^T q / sqrt(D)"), (dq, from_p[1], dv))
    yield Hypothesis("wrong-factor", Backward.FROM_P(name="dq", formula="dS k / sqrt(D)"), (from_p[0], dk, dv))


def _in_the_scale(evidence: Compared, pairs: Pairs) -> Iterator[Hypothesis]:
    (dq, dk, dv), scale, name = pairs.results(), pairs.scale, evidence.returns
    formula = {"dq": "dS k", "dk": "dS^T q"}.get(name, "")
    yield Hypothesis("wrong-scale", Backward.NOT_SCALED(name=name, formula=formula), (dq / scale, dk / scale, dv))
    yield Hypothesis("wrong-scale", Backward.SCALED_TWICE(name=name), (dq * scale, dk * scale, dv))
    for factor in (scale, 1 / scale):
        yield Hypothesis("wrong-scale", Backward.DV_SCALED(), (dq, dk, dv * factor))


def _in_walks(evidence: Compared, pairs: Pairs, steps: tuple[int, int]) -> Iterator[Hypothesis]:
    """Yields mistakes in the walk that made the result: dq comes from a walk over the keys, dk and dv come from a walk
    over the queries."""
    name, (M, N) = evidence.returns, pairs.s.shape[-2:]
    tensors = {one: getattr(pairs, one) for one in ("q", "k", "v", "do", "lse", "delta")}
    names: tuple[str, ...] = ("k", "v") if name == "dq" else ("q", "do", "lse", "delta")

    def of(*indices: Index) -> Results:
        found = dict(zip(names, indices))
        parts = {one: tensors[one] if one not in found else tensors[one][..., found[one], :] for one in tensors
                 if one != "lse"}  # fmt: skip
        lse = tensors["lse"][..., found["lse"]] if "lse" in found else tensors["lse"]
        p = torch.exp(parts["q"] @ parts["k"].mT * pairs.scale - lse[..., None])
        ds = p * (parts["do"] @ parts["v"].mT - parts["delta"])
        return ds @ parts["k"] * pairs.scale, ds.mT @ parts["q"] * pairs.scale, p.mT @ parts["do"]

    walked, others = (("keys", N), ("queries", M)) if name == "dq" else (("queries", M), ("keys", N))
    step, still = (steps[1], ()) if name == "dq" else (steps[0], (names[:2], names[:1], names[1:2], names))
    loop = Loop(
        walked[1], step, names, of, others=others,
        terms=f"{walked[0]} reach {name}", last=f"tile of {walked[0]} is in {name}",
    )  # fmt: skip
    if loop.count > loop.step:
        yield from turns.only_last(loop)
        yield from turns.ends_too_early(loop)
        yield from turns.no_advance(loop, still)


def _not_turned(pairs: Pairs, rows: int, keys: int) -> Iterator[Hypothesis]:
    """Yields square tiles of P or dS that are not transposed, where all tiles are full."""
    M, N = pairs.s.shape[-2:]
    if rows != keys or M % rows or N % keys:
        return
    dq, dk, dv = pairs.results()

    def untransposed(tiles: torch.Tensor, factor: torch.Tensor) -> torch.Tensor:
        columns = tiles.split(keys, dim=-1)
        sums = [sum(a @ b for a, b in zip(one.split(rows, dim=-2), factor.split(rows, dim=-2))) for one in columns]
        return torch.cat(sums, dim=-2)

    yield Hypothesis("not-turned", Backward.P_NOT_TURNED(), (dq, dk, untransposed(pairs.p, pairs.do)))
    yield Hypothesis("not-turned", Backward.DS_NOT_TURNED(), (dq, untransposed(pairs.ds, pairs.q) * pairs.scale, dv))


def _of_other_rows(evidence: Compared, pairs: Pairs) -> Iterator[Hypothesis]:
    """Yields lse, or delta, read as if the heads before it took N numbers each, as many as there are keys, instead of
    M."""
    B, H, M, N = pairs.s.shape
    said = dict(wrong=N, right=M)
    for what in ("lse", "delta"):
        one = getattr(pairs, what).reshape(B, H, M).contiguous()
        if (others := reread(one, (H * N, N, 1))) is None:
            continue
        p = torch.exp(pairs.s - others[..., None]) if what == "lse" else pairs.p
        ds = p * (pairs.dp - (pairs.delta if what == "lse" else others[..., None]))
        yield Hypothesis("strides-of-another", Backward.ROWS_OF_ANOTHER(what=what, **said), pairs.results(p, ds))


def _in_few_digits(evidence: Compared, pairs: Pairs, steps: tuple[int, int]) -> Iterator[Hypothesis]:
    """Yields mistakes that round anything but P and dS for their products; nothing for few pairs, as some rounding
    explains any result then."""
    if pairs.s.numel() < TELLING:
        return
    place = [one.name for one in evidence.exercise.results].index(evidence.returns)
    for id, said, results in _rounded_on_the_way(evidence, pairs, steps):
        decided = explains(evidence, results[place])
        yield Hypothesis(id, said, None if decided else results[place])


def _rounded_on_the_way(
    evidence: Compared, pairs: Pairs, steps: tuple[int, int]
) -> Iterator[tuple[str, Said, Results]]:
    dtype = evidence.trial.dtype
    short = "bf16" if dtype == torch.bfloat16 else "fp16"

    def results(p: torch.Tensor, ds: torch.Tensor) -> Results:
        return pairs.results(rounded(p, dtype), rounded(ds, dtype))

    p, dp, delta, lse = pairs.p, pairs.dp, pairs.delta, pairs.lse[..., None]
    products = rounded(pairs.o * pairs.do, dtype).sum(dim=-1, keepdim=True)
    for sentence, found in (
        (Backward.DELTA_ROUNDED, dp - rounded(delta, dtype)), (Backward.DELTA_FROM_ROUNDED_PRODUCTS, dp - products),
        (Backward.DELTA_FROM_ROUNDED_PRODUCTS, dp - rounded(products, dtype)),
        (Backward.DP_ROUNDED, rounded(dp, dtype) - delta),
        (Backward.DP_ROUNDED, rounded(dp, dtype) - rounded(delta, dtype)),
    ):  # fmt: skip
        yield "rounded-too-early", sentence(dtype=short), results(p, p * found)
    for name in ("q", "k"):
        for unit in (1.0, LN_2):
            factors = {"q": pairs.q, "k": pairs.k}
            factors[name] = rounded(factors[name] * pairs.scale / unit, dtype) * unit
            other = torch.exp(factors["q"] @ factors["k"].mT - lse)
            said = Backward.FACTOR_ROUNDED(name=name, dtype=short)
            yield "rounded-too-early", said, results(other, other * (dp - delta))
    for unit in (1.0, LN_2, pairs.scale):  # scaled, in base 2, or not scaled yet
        other = torch.exp(rounded(pairs.s / unit, torch.float16) * unit - lse)
        yield "rounded-too-early", Backward.SCORES_ROUNDED(), results(other, other * (dp - delta))
    said = Backward.HALF_ACCUMULATOR(name=evidence.returns, dtype=short)
    rows, keys = steps
    p, ds = rounded(p, dtype), rounded(pairs.ds, dtype)
    in_turns = (
        _folded(ds.split(keys, dim=-1), pairs.k.split(keys, dim=-2), dtype) * pairs.scale,
        _folded(ds.mT.split(rows, dim=-1), pairs.q.split(rows, dim=-2), dtype) * pairs.scale,
        _folded(p.mT.split(rows, dim=-1), pairs.do.split(rows, dim=-2), dtype),
    )
    yield "half-accumulator", said, in_turns


def _folded(tiles: Sequence[torch.Tensor], factors: Sequence[torch.Tensor], dtype: torch.dtype) -> torch.Tensor:
    """Returns the sum of the products of tiles and factors, rounded after each addition."""
    found = 0 * (tiles[0] @ factors[0])
    for tile, factor in zip(tiles, factors):
        found = rounded(found + tile @ factor, dtype)
    return found
