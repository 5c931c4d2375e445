"""Decoding against a cache in pages: q [B, H, D], caches [P, page, HK, D], a table [B, T], lengths [B] -> o [B, H, D].

Key n of sequence b is row n % page of page table[b, n // page]. Each sequence is attention of a few queries, the heads
of a group, to its keys: so its bound is attention's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch

from grader.numerics.arguments import Argument, as_tensor, as_tensors
from grader.numerics.data_sets import short_name
from grader.numerics.paged_data import lengths_stated, pages_stated
from grader.operations import attention
from grader.operations._attention import Attention
from grader.operations._paged_decoding import (
    PagedDecoding,
    Splits,
    Where,
    average,
    first_keys,
    keys_twice,
    lanes_counted,
    of_split,
    ones,
    readings,
    rescaled,
    right,
    rounded_parts,
    scaled,
    shared_out,
    undivided,
    weighed,
)
from grader.operations.comparison import Comparison
from grader.operations.hypothesis import Hypothesis, reread, supposed
from grader.operations.softmax import LOG_OF_SMALLEST
from grader.sentences import Said

if TYPE_CHECKING:
    from grader.operations.evidence import Compared, Evidence
    from grader.wire.messages import Finding

CAUSES = (
    "table-ignored", "table-row-zero", "row-beyond-page", "page-of-block", "page-size", "page-as-row",
    "page-and-row-swapped", "rescale-inverted", "beyond-the-table", "no-key-read", "past-the-end", "wrong-head",
    "length-of-first", "keys-lost", "keys-twice", "wrong-scale", "not-rescaled", "finite-start",
    "wrong-join", "bases-mixed", "empty-sequence", "empty-split", "strides-of-another",
)  # fmt: skip
MOST_SHARE = 8  # blocks of a split, where their number is fixed
MOST_EXPLAINED = 1 << 19  # scores: every mistake computes them anew
LN_2, LOG2_E = math.log(2), 1 / math.log(2)
LOST_DIGITS = PagedDecoding.LOST_DIGITS()


# ---- the bound: attention's, sequence by sequence --------------------------------------------------------------------


def rounding(inputs: Sequence[Argument], ref: torch.Tensor) -> torch.Tensor:
    """Returns c S as attention does: to join splits is to join tiles, once more."""
    return _by_sequences(inputs, ref, attention.rounding)


def conversion(inputs: Sequence[Argument], ref: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns R and L as attention does: p is rounded to the dtype of v."""
    rounded = _by_sequences(inputs, ref, lambda *of: attention.conversion(*of)[0])
    return rounded, _by_sequences(inputs, ref, lambda *of: attention.conversion(*of)[1])


def terms(inputs: Sequence[Argument], ref: torch.Tensor) -> torch.Tensor:
    """Returns the sum of p |v|, [B, H, D]."""
    return _by_sequences(inputs, ref, attention.terms)


def _by_sequences(inputs: Sequence[Argument], ref: torch.Tensor, of_heads: attention.Heads) -> torch.Tensor:
    """Returns what `of_heads` makes of each sequence as attention of one batch, [B, H, D]; 0 where it has no key."""
    found = torch.zeros_like(ref)
    for b, (q, k, v) in enumerate(_sequences(inputs)):
        if k.shape[1]:
            of = of_heads([q[None], k[None], v[None]], ref[b].view(1, *q.shape))
            found[b] = of.reshape(found[b].shape)
    return found


def _sequences(
    inputs: Sequence[Argument], where: Where | None = None
) -> Iterator[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]:
    """Yields q [HK, G, D], k and v [HK, N, D] of each sequence; `where` gives other places of its keys."""
    q, k_cache, v_cache, table, lengths = as_tensors(inputs)
    page, HK = k_cache.shape[1:3]
    for b, length in enumerate(lengths.tolist()):
        at_most = table.shape[1] * page  # a number that is no length may be anything
        n = torch.arange(min(max(length, 0), at_most), device=table.device)
        at = where(b, n) if where is not None else (table[b, n // page], n % page)
        yield q[b].unflatten(0, (HK, -1)), k_cache[at].transpose(0, 1), v_cache[at].transpose(0, 1)


# ---- mistakes --------------------------------------------------------------------------------------------------------


@dataclass
class PagedCall:
    """A call to be explained: its arguments in float64, and the sequences as a right kernel reads them."""

    evidence: Evidence
    inputs: Sequence[torch.Tensor]
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
    def table(self) -> tuple[torch.Tensor, int, int, list[str], int]:
        """The arguments of `readings`."""
        return self.inputs[3], self.page, self.step, self.evidence.exercise.arguments, self.inputs[1].shape[0]

    @property
    def is_first_with_holes(self) -> bool:
        """True where earlier calls were right, and this call's caches are the first with pages that no sequence has:
        then NaN everywhere comes from these pages."""
        return bool(self.evidence.right_trials) and not self.holes_before and self.has_holes

    @property
    def holes_before(self) -> bool:
        """True where a call was right whose caches had pages that no sequence has."""
        stated = [trial.data[4] for trial in self.evidence.right_trials]
        calls = ((pages_stated(one), lengths_stated(one)) for one in stated if lengths_stated(one))
        return any(sum(-(-length // page) for length in lengths) < P for (P, page), lengths in calls)

    @property
    def has_holes(self) -> bool:
        return any(bool(cache.isnan().any()) for cache in self.inputs[1:3])

    @property
    def ragged_before(self) -> bool:
        """True where a call was right in which the last block of a sequence was not full."""
        trials = self.evidence.right_trials
        steps = [(trial.constants.get("BLOCK_N", self.step), lengths_stated(trial.data[4])) for trial in trials]
        return any(length % step for step, lengths in steps for length in lengths)

    @property
    def lengths(self) -> list[int]:
        return self.inputs[4].tolist()

    def of_each(self, make: Callable[..., torch.Tensor], *given: object) -> torch.Tensor:
        """Returns [B, H, D], made of `make(splits, *given)`, [HK, G, D], of each sequence; 0 where there is no key."""
        o = torch.zeros_like(self.inputs[0])
        for b, splits in enumerate(self.splits):
            if splits is not None:
                o[b] = make(splits, *given).reshape(o[b].shape)
        return o

    def read(self, where: Where) -> torch.Tensor | None:
        """Returns o, [B, H, D], of keys read from `where`; None where that leads out of the table or a cache."""
        o = torch.zeros_like(self.inputs[0])
        try:
            for b, (q, k, v) in enumerate(_sequences(self.inputs, where)):
                if k.shape[1]:
                    o[b] = (torch.softmax(attention.scores(q, k), dim=-1) @ v).reshape(o[b].shape)
        except IndexError:
            return None
        return o


def mistakes(evidence: Compared, inputs: list[Argument]) -> Iterator[Hypothesis]:
    if len(inputs) != 5:
        return
    q, *_, lengths = given = as_tensors(inputs)
    if not q.numel() or q.is_meta or q.shape[1] * int(lengths.sum()) > MOST_EXPLAINED:
        return
    call = PagedCall(evidence, given)
    yield from _without_keys(call, evidence.comparison)
    for id, said, where in readings(*call.table):
        if (result := call.read(where)) is not None:
            yield Hypothesis(id, said, result, may_be_constant=call.is_first_with_holes)
    yield from _of_strides(call)
    yield from _of_heads(call)
    yield Hypothesis("padding-counted", PagedDecoding.LANES_COUNTED(), call.of_each(lanes_counted))
    yield from _in_dealing_out(call)
    yield from _in_splits(call)
    yield from _in_joining(call)
    yield from _where_nan_is(call, evidence.comparison)


def astray(evidence: Evidence, inputs: list[Argument], finding: Finding) -> Hypothesis | None:
    """Returns the mistake that leads out of a cache, or to a part that no split has written; None where none fits."""
    if len(inputs) != 5:
        return None
    q, _, _, table, _ = given = as_tensors(inputs)
    if q.is_meta or not q.numel():
        return None
    names = evidence.exercise.arguments
    if finding.kind == "uninitialised-read" and finding.argument not in names:
        call = PagedCall(evidence, given)
        if any(splits is None or splits.used < call.count for splits in call.splits):
            return Hypothesis("empty-split", PagedDecoding.EMPTY_SPLIT_STORES_NOTHING(), None)
    if finding.kind != "out-of-bounds-load" or finding.argument not in names[1:3] or finding.between:
        return None
    strided = any(not tensor.is_contiguous() for _, tensor in evidence.tensors)
    if strided and evidence.needs_plain_layouts:
        return None
    call, cache = PagedCall(evidence, given), as_tensor(evidence.inputs[names.index(finding.argument)])
    for id, said, where in readings(*call.table):
        if _leads_to(call, where, cache, finding):
            return Hypothesis(id, said, None)
    P, of_page = cache.shape[0], cache.stride(0)
    no_pages = table[(table < 0) | (table >= P)].unique()
    if any(0 <= finding.linear - page * of_page < of_page for page in no_pages.tolist()):
        return Hypothesis("beyond-the-table", PagedDecoding.BEYOND_THE_TABLE(table=names[3]), None)
    return None


def _leads_to(call: PagedCall, where: Where, cache: torch.Tensor, finding: Finding) -> bool:
    """Returns whether keys in `where` lead to the finding's element, and `finding.count` elements outside a cache."""
    (*_, HK, D), (of_page, of_row, of_head, of_column) = cache.shape, cache.stride()
    inner = torch.arange(HK)[:, None] * of_head + torch.arange(D) * of_column
    span, outside = 1 + sum((n - 1) * stride for n, stride in zip(cache.shape, cache.stride())), []
    for b, length in enumerate(call.lengths):
        try:
            pages, rows = where(b, torch.arange(length))
        except IndexError:
            return False
        elements = (pages * of_page + rows * of_row)[:, None, None] + inner
        outside.append(elements[(elements < 0) | (elements >= span)])
    found = torch.cat(outside)
    return len(found) == finding.count and bool((found == finding.linear).any())


def _without_keys(call: PagedCall, comparison: Comparison) -> Iterator[Hypothesis]:
    """Yields mistakes that show in sequences without a key, and in sequences of which a split has no key."""
    o = call.evidence.returns
    wrong, empty = _of_sequences(comparison.wrong), torch.tensor([length == 0 for length in call.lengths])
    nan = _of_sequences(comparison.out.isnan())
    if torch.equal(wrong, empty) and bool(empty.any()):
        said = (
            PagedDecoding.EMPTY_SEQUENCE(o=o) if torch.equal(nan, empty) else PagedDecoding.EMPTY_SEQUENCE_NOT_ZERO(o=o)
        )
        yield Hypothesis("empty-sequence", said, None)
    few = torch.tensor([splits is None or splits.used < call.count for splits in call.splits])
    alone = not bool(few.all()) or call.ragged_before
    if call.count > 1 and bool(few.any()) and torch.equal(nan, few) and torch.equal(wrong, few) and alone:
        yield Hypothesis("empty-split", PagedDecoding.EMPTY_SPLIT(o=o), None)


def _of_sequences(flags: torch.Tensor) -> torch.Tensor:
    """Returns which sequences hold any True: [B, H, D] -> [B]."""
    return flags.flatten(1).any(dim=1)


def _of_strides(call: PagedCall) -> Iterator[Hypothesis]:
    """Yields caches, a single cache or both, that are read with other strides than their own."""
    evidence, names = call.evidence, call.evidence.exercise.arguments
    caches = {place: as_tensor(evidence.inputs[place]) for place in (1, 2)}
    tight = tuple(math.prod(caches[1].shape[axis + 1 :]) for axis in range(4))
    for place, other in ((1, 2), (2, 1)):
        said = PagedDecoding.STRIDES_OF(cache=names[place], other=names[other])
        yield from _reread(call, "strides-of-another", said, {place: caches[other].stride()})
    for places in ((1,), (2,), (1, 2)):
        said = PagedDecoding.AS_CONTIGUOUS(caches=" and ".join(names[place] for place in places))
        yield from _reread(call, "stride-ignored", said, dict.fromkeys(places, tight))


def _reread(call: PagedCall, id: str, said: Said, strides: dict[int, tuple[int, ...]]) -> Iterator[Hypothesis]:
    given = {place: as_tensor(call.evidence.inputs[place]) for place in strides}
    misread = {at: one for at, of_one in strides.items() if (one := reread(given[at], of_one)) is not None}
    if len(misread) == len(strides):
        others = [misread[place].double() if place in misread else one for place, one in enumerate(call.inputs)]
        if any(given[place].stride() != of_one for place, of_one in strides.items()):
            yield from supposed(call.evidence, id, said, others)


def _of_heads(call: PagedCall) -> Iterator[Hypothesis]:
    """Yields queries that meet another head of the caches, and sequences that are as long as the first sequence."""
    q, k_cache, v_cache, table, lengths = call.inputs
    HK, H = k_cache.shape[2], q.shape[1]
    group, h = H // HK, torch.arange(H)
    for said, heads in (
        (PagedDecoding.HEAD_ZERO(), h * 0),
        (PagedDecoding.HEADS_IN_TURN(HK=HK, group=group), h % HK),
        (PagedDecoding.HEADS_BY_NUMBER(HK=HK, group=group), h // HK),
    ):  # fmt: skip
        if int(heads.max()) < HK and not torch.equal(heads, h // group):
            others = [q, k_cache[:, :, heads], v_cache[:, :, heads], table, lengths]
            yield from supposed(call.evidence, "wrong-head", said, others)
    if bool((lengths != lengths[0]).any()):
        said = PagedDecoding.LENGTH_OF_FIRST(lengths=call.evidence.exercise.arguments[4])
        others = [q, k_cache, v_cache, table, lengths[:1].expand_as(lengths)]
        yield from supposed(call.evidence, "length-of-first", said, others)


def _in_dealing_out(call: PagedCall) -> Iterator[Hypothesis]:
    """Yields shares of the splits that are too few keys, or no whole blocks."""
    step, count, keys, o = call.step, call.count, max(call.lengths, default=0), call.evidence.returns
    floors = {
        "blocks": lambda n: -(-n // step) // count * step, "whole blocks": lambda n: n // step // count * step,
        "keys": lambda n: -(-(n // step) // count) * step, "a split": lambda n: n // count,
    }  # fmt: skip
    for floor in floors.values():
        short = max((n for n in call.lengths if count * floor(n) < n), default=0)
        if not short:
            continue
        said = PagedDecoding.KEYS_LOST(kept=count * floor(short), keys=short, splits=count, share=floor(short), o=o)
        yield Hypothesis("keys-lost", said, call.of_each(shared_out, floor))
    for blocks in range(1, MOST_SHARE):
        kept = blocks * step * count
        if kept < keys:
            said = PagedDecoding.FIXED_SHARE(kept=kept, keys=keys, blocks=blocks, step=step, o=o)
            yield Hypothesis("keys-lost", said, call.of_each(first_keys, kept))
    share = max((even for n in call.lengths if (even := -(-n // count)) % step), default=-(-keys // count))
    said = PagedDecoding.KEYS_TWICE(share=share, step=step)
    yield Hypothesis("keys-twice", said, call.of_each(keys_twice))


def _in_splits(call: PagedCall) -> Iterator[Hypothesis]:
    """Yields wrong scores, and blocks of a split that are joined wrongly."""
    D = call.inputs[0].shape[2]
    for factor, said in (
        (math.sqrt(D), PagedDecoding.NO_SCALE), (1 / math.sqrt(D), PagedDecoding.SCALED_BY_D),
        (LN_2, PagedDecoding.POWERS_OF_2), (LOG2_E, PagedDecoding.LOG2_E_AND_EXP),
    ):  # fmt: skip
        yield Hypothesis("wrong-scale", said(), call.of_each(scaled, factor))
    for said, of in (
        (PagedDecoding.ACC_NOT_RESCALED, lambda walk: (right(walk), ones(walk))),
        (PagedDecoding.SUM_NOT_RESCALED, lambda walk: (ones(walk), right(walk))),
        (PagedDecoding.NOTHING_RESCALED, lambda walk: (ones(walk), ones(walk))),
    ):
        yield Hypothesis("not-rescaled", said(), call.of_each(rescaled, of))


def _in_joining(call: PagedCall) -> Iterator[Hypothesis]:
    """Yields mistakes of the second launch: parts that are weighed wrongly, or left out."""
    o, count = call.evidence.returns, call.count
    yield Hypothesis("wrong-join", PagedDecoding.NOT_MEASURED_ANEW(), call.of_each(weighed, 0, 0))
    for over in ("used", "count"):
        yield Hypothesis("wrong-join", PagedDecoding.AVERAGE(o=o), call.of_each(average, over))
    for power, wrong, of in ((LOG2_E, "e", "2"), (LN_2, "2", "e")):
        said = PagedDecoding.JOIN_OF_ANOTHER_BASE(wrong=wrong, right=of)
        yield Hypothesis("bases-mixed", said, call.of_each(weighed, power, power))
    for said, powers in ((PagedDecoding.SUM_NOT_WEIGHED(), (0, 1)), (PagedDecoding.ACC_NOT_WEIGHED(), (1, 0))):
        yield Hypothesis("wrong-join", said, call.of_each(weighed, *powers))
    for which, place in (("first", 0), ("last", -1)):
        said = PagedDecoding.ONE_SPLIT_ALONE(which=which, splits=count, o=o)
        yield Hypothesis("wrong-join", said, call.of_each(of_split, place))
    dtype = call.evidence.trial.dtype
    said = PagedDecoding.ROUNDED_PARTS(dtype=short_name(str(dtype).removeprefix("torch.")))
    for unit in (LN_2, 1.0):
        yield Hypothesis("low-precision", said, call.of_each(rounded_parts, dtype, unit))
    yield Hypothesis("not-divided", PagedDecoding.NOT_DIVIDED(o=o), call.of_each(undivided))


def _where_nan_is(call: PagedCall, comparison: Comparison) -> Iterator[Hypothesis]:
    """Yields the mistakes that NaN, or 0 instead of small numbers, points to where no formula fits."""
    evidence, o = call.evidence, call.evidence.returns
    out, wrong = comparison.out, _of_sequences(comparison.wrong)
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
    nan = _of_sequences(out.isnan() & comparison.ref.isfinite())
    strided = any(not tensor.is_contiguous() for _, tensor in evidence.tensors)
    if not bool(nan.any()) or strided and evidence.needs_plain_layouts:
        return
    in_block = torch.tensor([_holes_in_block(call, b) for b in range(len(nan))])
    before = bool(evidence.right_before)
    if not before and bool(nan.all()):
        yield Hypothesis("rescale-inverted", Attention.NAN_FROM_THE_START(o=o), None)
    if before and torch.equal(nan, wrong) and torch.equal(nan, in_block) and not call.ragged_before:
        yield Hypothesis("past-the-end", PagedDecoding.VALUES_PAST_THE_END(o=o), None)
    if before and call.has_holes:
        yield Hypothesis("no-key-read", PagedDecoding.NO_KEY_READ(o=o), None)


def _holes_in_block(call: PagedCall, b: int) -> bool:
    """Returns whether a sequence's last block goes on, in its last page, into rows of v that are NaN."""
    length, page = call.lengths[b], call.page
    end = min(-(-length // call.step) * call.step, -(-length // page) * page)
    n = torch.arange(length, end)
    return bool(call.inputs[2][call.inputs[3][b, n // page], n % page].isnan().any()) if len(n) else False
