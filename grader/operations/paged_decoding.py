"""Decoding against a cache in pages: q [B, H, D], caches [P, page, HK, D], a table [B, T], lengths [B] -> o [B, H, D].

Key n of sequence b is row n % page of page table[b, n // page]. Each sequence is attention of a few queries, those of a
group of heads, to its keys: so are its bound and its rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch

from grader.numerics.arguments import Argument
from grader.operations import attention
from grader.operations._paged_decoding import PagedDecoding, Splits, joined, ones, right
from grader.operations.hypothesis import Hypothesis, reread, supposed
from grader.operations.softmax import LOG_OF_SMALLEST
from grader.sentences import Said

if TYPE_CHECKING:
    from grader.explain.evidence import Evidence
    from grader.wire.messages import Finding

CAUSES = (
    "table-ignored", "table-row-zero", "row-beyond-page", "page-of-block", "page-size", "page-as-row", "no-advance",
    "page-and-row-swapped", "beyond-the-table", "no-key-read", "past-the-end", "wrong-head", "length-of-first",
    "padding-counted", "keys-lost", "keys-twice", "wrong-scale", "not-rescaled", "finite-start", "wrong-join",
    "bases-mixed", "not-divided", "empty-sequence", "empty-split", "strides-of-another",
)  # fmt: skip
USUAL_PAGES = (16, 1, 32, 64, 128)
MOST_SHARE = 8  # blocks of a split, where their number is fixed
MOST_EXPLAINED = 1 << 19  # scores: every mistake makes them anew
LN_2, LOG2_E = math.log(2), 1 / math.log(2)
LOST_DIGITS = PagedDecoding.LOST_DIGITS()

Row = tuple[torch.Tensor, torch.Tensor]  # pages and rows of keys
Where = Callable[[int, torch.Tensor], Row]  # of a sequence and the numbers of keys


# ---- the bound: attention's, sequence by sequence --------------------------------------------------------------------


def rounding(inputs: Sequence[Argument], ref: torch.Tensor) -> torch.Tensor:
    """Attention's: to join splits is to join tiles, once more."""
    return _by_sequences(inputs, ref, attention.rounding)


def conversion(inputs: Sequence[Argument], ref: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Attention's: p is rounded to the dtype of v."""
    return tuple(
        _by_sequences(inputs, ref, lambda *of, which=which: attention.conversion(*of)[which]) for which in (0, 1)
    )


def terms(inputs: Sequence[Argument], ref: torch.Tensor) -> torch.Tensor:
    """The sum of p |v|."""
    return _by_sequences(inputs, ref, attention.terms)


def _by_sequences(inputs: Sequence[Argument], ref: torch.Tensor, of_heads: Callable) -> torch.Tensor:
    """[B, H, D]: what `of_heads` makes of each sequence as attention of one batch; 0 where there is no key."""
    found = torch.zeros_like(ref)
    for b, (q, k, v) in enumerate(_sequences(inputs)):
        if k.shape[1]:
            of = of_heads([q[None], k[None], v[None]], ref[b].view(1, *q.shape))
            found[b] = of.reshape(found[b].shape)
    return found


def _sequences(
    inputs: Sequence[Argument], where: Where | None = None
) -> Iterator[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]:
    """q [HK, G, D], k and v [HK, N, D] of each sequence; `where`: its keys are read in place of the right ones."""
    q, k_cache, v_cache, table, lengths = inputs
    page, HK = k_cache.shape[1:3]
    for b, length in enumerate(lengths.tolist()):
        n = torch.arange(length, device=table.device)
        at = where(b, n) if where is not None else (table[b, n // page], n % page)
        yield q[b].unflatten(0, (HK, -1)), k_cache[at].transpose(0, 1), v_cache[at].transpose(0, 1)


# ---- mistakes --------------------------------------------------------------------------------------------------------


@dataclass
class Call:
    """What is known of a call: its arguments in float64, and the sequences as a right kernel reads them."""

    evidence: Evidence
    inputs: list[Argument]
    step: int = field(init=False)
    count: int = field(init=False)
    splits: list[Splits | None] = field(init=False)  # None: no key

    def __post_init__(self) -> None:
        constants = self.evidence.constants
        self.step, self.count = max(1, constants.get("BLOCK_N", 32)), max(1, constants.get("SPLITS", 1))
        self.splits = [
            Splits(attention.scores(q, k), v, self.step, self.count) if k.shape[1] else None
            for q, k, v in _sequences(self.inputs)
        ]

    @property
    def page(self) -> int:
        return self.inputs[1].shape[1]

    @property
    def lengths(self) -> list[int]:
        return self.inputs[4].tolist()

    def of_each(self, make: Callable[[Splits], torch.Tensor]) -> torch.Tensor:
        """[B, H, D] of [HK, G, D] of each sequence; 0 where there is no key."""
        o = torch.zeros_like(self.inputs[0])
        for b, splits in enumerate(self.splits):
            if splits is not None:
                o[b] = make(splits).reshape(o[b].shape)
        return o

    def read(self, where: Where) -> torch.Tensor | None:
        """[B, H, D] where keys are read so; None where that leads out of the table or a cache."""
        o = torch.zeros_like(self.inputs[0])
        try:
            for b, (q, k, v) in enumerate(_sequences(self.inputs, where)):
                if k.shape[1]:
                    o[b] = (torch.softmax(attention.scores(q, k), dim=-1) @ v).reshape(o[b].shape)
        except IndexError:
            return None
        return o


def mistakes(evidence: Evidence, inputs: list[Argument]) -> Iterator[Hypothesis]:
    if len(inputs) != 5 or not inputs[0].numel() or inputs[0].is_meta:
        return
    if inputs[0].shape[1] * int(inputs[4].sum()) > MOST_EXPLAINED:
        return
    call = Call(evidence, inputs)
    yield from _without_keys(call)
    for id, said, where in _readings(call):
        if (result := call.read(where)) is not None:
            yield Hypothesis(id, said, result)
    yield from _of_strides(call)
    yield from _of_heads(call)
    yield from _past_the_end(call)
    yield from _in_dealing_out(call)
    yield from _in_splits(call)
    yield from _in_joining(call)
    yield from _where_nan_is(call)


def astray(evidence: Evidence, inputs: list[Argument], finding: Finding) -> Hypothesis | None:
    """Names the mistake that leads out of a cache, or to a part that nobody has written."""
    if len(inputs) != 5 or inputs[0].is_meta or not inputs[0].numel():
        return None
    names = evidence.exercise.arguments
    if finding.kind == "uninitialised-read" and finding.argument not in names:
        call = Call(evidence, inputs)
        if any(splits is None or splits.used < call.count for splits in call.splits):
            return Hypothesis("empty-split", PagedDecoding.EMPTY_SPLIT_STORES_NOTHING(), None)
    if finding.kind != "out-of-bounds-load" or finding.argument not in names[1:3] or finding.between:
        return None
    strided = any(not tensor.is_contiguous() for _, tensor in evidence.tensors)
    if strided and evidence.right_when_contiguous:
        return None
    call, place = Call(evidence, inputs), names.index(finding.argument)
    _, _, *of_others = evidence.inputs[place].stride()
    inner = sum((size - 1) * stride for size, stride in zip(inputs[place].shape[2:], of_others))
    for id, said, where in _readings(call):
        if id != "beyond-the-table" and _leads_to(call, where, evidence.inputs[place], finding.linear, inner):
            return Hypothesis(id, said, None)
    (table,) = (inputs[3],)
    P, of_page = inputs[1].shape[0], evidence.inputs[place].stride(0)
    within = (page * of_page + rest for page in (-1, 900_001) for rest in (0,))
    if any(0 <= finding.linear - start < of_page for start in within) and bool(((table < 0) | (table >= P)).any()):
        return Hypothesis("beyond-the-table", PagedDecoding.BEYOND_THE_TABLE(table=names[3]), None)
    return None


def _leads_to(call: Call, where: Where, cache: torch.Tensor, linear: int, inner: int) -> bool:
    """Whether a key that is looked up so has an element there; `inner`: from a row's first element to its last."""
    of_page, of_row = cache.stride()[:2]
    for b, length in enumerate(call.lengths):
        try:
            pages, rows = where(b, torch.arange(length))
        except IndexError:
            continue
        start = pages * of_page + rows * of_row
        if bool(((linear - start >= 0) & (linear - start <= inner)).any()):
            return True
    return False


def _without_keys(call: Call) -> Iterator[Hypothesis]:
    """Sequences without a key, and those of which a split has none."""
    comparison, o = call.evidence.comparison, call.evidence.returns
    wrong, empty = _of_sequences(comparison.wrong), torch.tensor([length == 0 for length in call.lengths])
    nan = _of_sequences(comparison.out.isnan())
    if torch.equal(wrong, empty) and bool(empty.any()):
        said = (
            PagedDecoding.EMPTY_SEQUENCE(o=o) if torch.equal(nan, empty) else PagedDecoding.EMPTY_SEQUENCE_NOT_ZERO(o=o)
        )
        yield Hypothesis("empty-sequence", said, None)
    few = torch.tensor([splits is None or splits.used < call.count for splits in call.splits])
    if call.count > 1 and bool(few.any()) and torch.equal(nan, few) and torch.equal(wrong, few) and not bool(few.all()):
        yield Hypothesis("empty-split", PagedDecoding.EMPTY_SPLIT(o=o), None)


def _of_sequences(flags: torch.Tensor) -> torch.Tensor:
    """[B, H, D] -> [B]: whether any is true."""
    return flags.flatten(1).any(dim=1)


def _readings(call: Call) -> Iterator[tuple[str, Said, Where]]:
    """Other pages and rows than those of the keys."""
    table, page, step = call.inputs[3], call.page, call.step
    names = call.evidence.exercise.arguments

    def entries(b: int, places: torch.Tensor) -> torch.Tensor:
        found = table[b, places]
        if bool((found < 0).any()):
            raise IndexError  # torch would count from the end
        return found

    said = PagedDecoding.TABLE_IGNORED(table=names[3])
    yield "table-ignored", said, lambda b, n: (n // page, n % page)
    yield "table-ignored", said, lambda b, n: (b * table.shape[1] + n // page, n % page)
    yield "table-row-zero", PagedDecoding.TABLE_ROW_ZERO(table=names[3]), lambda b, n: (entries(0, n // page), n % page)
    said = PagedDecoding.PAGE_OF_BLOCK(table=names[3])
    of_block = lambda n: n // step * step // page  # noqa: E731
    yield "page-of-block", said, lambda b, n: (entries(b, of_block(n)), n % page)
    yield "page-of-block", said, lambda b, n: _flat(entries(b, of_block(n)), n - of_block(n) * page, page)
    for used in dict.fromkeys((call.inputs[1].shape[0], *USUAL_PAGES, step)):
        if used != page:
            said = PagedDecoding.PAGE_SIZE(used=used, cache=names[1], page=page)
            yield "page-size", said, lambda b, n, used=used: _flat(entries(b, n // used), n % used, page)
            yield "page-size", said, lambda b, n, used=used: (entries(b, n // used), n % page)
    said = PagedDecoding.ROW_BEYOND_PAGE()
    yield "row-beyond-page", said, lambda b, n: _flat(entries(b, n // page), n, page)
    said = PagedDecoding.SWAPPED(table=names[3])
    yield "page-and-row-swapped", said, lambda b, n: _flat(entries(b, n % page), n // page, page)
    said = PagedDecoding.PAGE_AS_ROW()
    yield "page-as-row", said, lambda b, n: _flat(torch.zeros_like(n), entries(b, n // page) + n % page, page)
    said = PagedDecoding.NO_ADVANCE()
    yield "no-advance", said, lambda b, n: (entries(b, n % step // page), n % step % page)


def _flat(pages: torch.Tensor, rows: torch.Tensor, page: int) -> Row:
    """Rows beyond the end of a page lie in those after it."""
    return pages + rows // page, rows % page


def _of_strides(call: Call) -> Iterator[Hypothesis]:
    evidence, inputs, names = call.evidence, call.inputs, call.evidence.exercise.arguments
    for place, other in ((1, 2), (2, 1)):
        given = evidence.inputs[place]
        tight = tuple(math.prod(given.shape[axis + 1 :]) for axis in range(4))
        for id, said, strides in (
            ("strides-of-another", PagedDecoding.STRIDES_OF(cache=names[place], other=names[other]),
             evidence.inputs[other].stride()),
            ("stride-ignored", PagedDecoding.AS_CONTIGUOUS(cache=names[place]), tight),
        ):  # fmt: skip
            if strides != given.stride() and (misread := reread(given, strides)) is not None:
                changed = [*inputs[:place], misread.double(), *inputs[place + 1 :]]
                yield from supposed(evidence, id, said, changed)


def _of_heads(call: Call) -> Iterator[Hypothesis]:
    """Queries that meet another head of the caches; one sequence that is as long as another."""
    q, k_cache, v_cache, table, lengths = call.inputs
    HK, H = k_cache.shape[2], q.shape[1]
    group, h = H // HK, torch.arange(H)
    for said, heads in (
        (PagedDecoding.HEADS_IN_TURN(HK=HK, group=group), h % HK), (PagedDecoding.HEADS_BY_NUMBER(HK=HK, group=group), h // HK),
        (PagedDecoding.HEAD_ZERO(), h * 0),
    ):  # fmt: skip
        if int(heads.max()) < HK and not torch.equal(heads, h // group):
            others = [q, k_cache[:, :, heads], v_cache[:, :, heads], table, lengths]
            yield from supposed(call.evidence, "wrong-head", said, others)
    if bool((lengths != lengths[0]).any()):
        said = PagedDecoding.LENGTH_OF_FIRST(lengths=call.evidence.exercise.arguments[4])
        others = [q, k_cache, v_cache, table, lengths[:1].expand_as(lengths)]
        yield from supposed(call.evidence, "length-of-first", said, others)


def _past_the_end(call: Call) -> Iterator[Hypothesis]:
    def counted(splits: Splits) -> torch.Tensor:
        shift = (
            splits.s.amax(dim=-1, keepdim=True).clamp(min=0.0) if splits.padding else splits.s.amax(-1, keepdim=True)
        )
        e = torch.exp(splits.s - shift)
        return e @ splits.v / (e.sum(dim=-1, keepdim=True) + splits.padding * torch.exp(-shift))

    yield Hypothesis("padding-counted", PagedDecoding.LANES_COUNTED(), call.of_each(counted))


def _in_dealing_out(call: Call) -> Iterator[Hypothesis]:
    """Shares of the splits that are too few keys, or no whole blocks."""
    step, count, keys, o = call.step, call.count, max(call.lengths, default=0), call.evidence.returns
    floors = {
        "blocks": lambda n: -(-n // step) // count * step, "whole blocks": lambda n: n // step // count * step,
        "keys": lambda n: -(-(n // step) // count) * step, "a split": lambda n: n // count,
    }  # fmt: skip
    for share in floors.values():
        kept = min(keys, count * share(keys))
        said = PagedDecoding.KEYS_LOST(kept=kept, keys=keys, splits=count, share=share(keys), o=o)
        yield Hypothesis("keys-lost", said, call.of_each(lambda one, share=share: _first(one, count * share(one.keys))))
    for blocks in range(1, MOST_SHARE):
        kept = blocks * step * count
        if kept < keys:
            said = PagedDecoding.FIXED_SHARE(kept=kept, keys=keys, blocks=blocks, step=step, o=o)
            yield Hypothesis("keys-lost", said, call.of_each(lambda one, kept=kept: _first(one, kept)))
    share = -(-keys // count)
    said = PagedDecoding.KEYS_TWICE(share=share, step=step)
    yield Hypothesis("keys-twice", said, call.of_each(_twice))


def _first(splits: Splits, kept: int) -> torch.Tensor:
    """The first keys alone; without any 0, as where the second launch guards its division."""
    return torch.softmax(splits.s[..., :kept], dim=-1) @ splits.v[:, :kept]


def _twice(splits: Splits) -> torch.Tensor:
    share = -(-splits.keys // splits.count)
    ranges = [
        torch.arange(first, min(first + -(-share // splits.step) * splits.step, splits.keys))
        for first in range(0, splits.keys, share)
    ]
    n = torch.cat(ranges)
    return torch.softmax(splits.s[..., n], dim=-1) @ splits.v[:, n]


def _in_splits(call: Call) -> Iterator[Hypothesis]:
    """Scores, and blocks of a split that are joined wrongly."""
    D = call.inputs[0].shape[2]
    for factor, said in (
        (math.sqrt(D), PagedDecoding.NO_SCALE), (1 / math.sqrt(D), PagedDecoding.SCALED_BY_D),
        (LN_2, PagedDecoding.POWERS_OF_2), (LOG2_E, PagedDecoding.LOG2_E_AND_EXP),
    ):  # fmt: skip
        result = call.of_each(lambda one, factor=factor: torch.softmax(one.s * factor, dim=-1) @ one.v)
        yield Hypothesis("wrong-scale", said(), result)
    for said, of in (
        (PagedDecoding.ACC_NOT_RESCALED, lambda walk: (right(walk), ones(walk))),
        (PagedDecoding.SUM_NOT_RESCALED, lambda walk: (ones(walk), right(walk))),
        (PagedDecoding.NOTHING_RESCALED, lambda walk: (ones(walk), ones(walk))),
    ):
        yield Hypothesis("not-rescaled", said(), call.of_each(lambda one, of=of: joined(one.parts(of))))


def _in_joining(call: Call) -> Iterator[Hypothesis]:
    """The second launch: parts that are weighed wrongly, or left out."""
    o, count = call.evidence.returns, call.count
    yield Hypothesis(
        "wrong-join", PagedDecoding.NOT_MEASURED_ANEW(), call.of_each(lambda one: joined(one.parts(), 0, 0))
    )
    for over in ("used", "count"):
        yield Hypothesis(
            "wrong-join", PagedDecoding.AVERAGE(o=o), call.of_each(lambda one, over=over: _average(one, over))
        )
    for power, wrong, of in ((LOG2_E, "e", "2"), (LN_2, "2", "e")):
        said = PagedDecoding.JOIN_OF_ANOTHER_BASE(wrong=wrong, right=of)
        yield Hypothesis("bases-mixed", said, call.of_each(lambda one, power=power: joined(one.parts(), power, power)))
    for said, powers in ((PagedDecoding.SUM_NOT_WEIGHED(), (0, 1)), (PagedDecoding.ACC_NOT_WEIGHED(), (1, 0))):
        yield Hypothesis("wrong-join", said, call.of_each(lambda one, powers=powers: joined(one.parts(), *powers)))
    for which, place in (("first", 0), ("last", -1)):
        said = PagedDecoding.ONE_SPLIT_ALONE(which=which, splits=count, o=o)
        yield Hypothesis("wrong-join", said, call.of_each(lambda one, place=place: _of_split(one, place)))
    said = PagedDecoding.NOT_DIVIDED(o=o)
    yield Hypothesis(
        "not-divided", said, call.of_each(lambda one: torch.exp(one.s - one.s.amax(-1, keepdim=True)) @ one.v)
    )


def _average(splits: Splits, over: str) -> torch.Tensor:
    _, total, acc = splits.parts()
    return (acc / total[..., None]).sum(dim=-2) / getattr(splits, over)


def _of_split(splits: Splits, place: int) -> torch.Tensor:
    _, total, acc = splits.parts()
    return acc[..., place, :] / total[..., place, None]


def _where_nan_is(call: Call) -> Iterator[Hypothesis]:
    """What NaN, or 0 in place of small numbers, tells where no formula fits."""
    evidence, o = call.evidence, call.evidence.returns
    out, wrong = evidence.comparison.out, _of_sequences(evidence.comparison.wrong)
    far = torch.tensor([one is not None and bool((one.s < LOG_OF_SMALLEST).all()) for one in call.splits])
    if bool((wrong & far).any()) and bool((far | ~wrong).all()):
        found = "NaN" if bool(out[wrong].isnan().all()) else "" if bool(out[wrong].any()) else "0"
        lanes = (1 << (call.count - 1).bit_length()) - call.count
        if found and lanes:
            yield Hypothesis(
                "finite-start", PagedDecoding.FAR_BELOW_ZERO_OR_PADDED(o=o, found=found, lanes=lanes), None
            )
        elif found:
            yield Hypothesis("finite-start", PagedDecoding.FAR_BELOW_ZERO(o=o, found=found), None)
    nan = _of_sequences(out.isnan() & evidence.comparison.ref.isfinite())
    if not bool(nan.any()):
        return
    if torch.equal(nan, wrong) and torch.equal(nan, torch.tensor([_holes_in_block(call, b) for b in range(len(nan))])):
        yield Hypothesis("past-the-end", PagedDecoding.VALUES_PAST_THE_END(o=o), None)
    if _has_holes(call):
        yield Hypothesis("no-key-read", PagedDecoding.NO_KEY_READ(o=o), None)


def _holes_in_block(call: Call, b: int) -> bool:
    """Whether a sequence's last block goes on, in its last page, into rows of v that are NaN."""
    length, page = call.lengths[b], call.page
    end = min(-(-length // call.step) * call.step, -(-length // page) * page)
    n = torch.arange(length, end)
    return bool(call.inputs[2][call.inputs[3][b, n // page], n % page].isnan().any()) if len(n) else False


def _has_holes(call: Call) -> bool:
    return any(bool(cache.isnan().any()) for cache in call.inputs[1:3])
