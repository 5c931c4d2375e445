"""Rows into two caches in pages: k, v [T, H, D], caches [P, page, H, D], slots [T] -> both caches. Nothing is rounded.

A wrong kernel is recognised by the address that it makes of each slot. The stores that land in the cache give a result
to compare with; the memory checker has seen the other stores.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import torch

from grader.numerics.arguments import Argument, as_tensors
from grader.operations.hypothesis import Hypothesis, reread
from grader.operations.mistakes import pages
from grader.operations.mistakes.strides import contiguous
from grader.sentences import Said, Sentence

if TYPE_CHECKING:
    from grader.explain.evidence import Compared, Evidence
    from grader.wire.messages import Finding

CAUSES = (
    "minus-one-stored", "minus-one-as-zero", "zero-skipped", "slot-ignored", "flat-slot",
    "page-forgotten", "row-forgotten", "neighbouring-slot", "wrong-tokens", "heads-left-out",
)  # fmt: skip
PLAIN_CAUSES = ("rest-lost",)
USUAL_BLOCKS = (1, 2, 4, 8, 16, 32)  # of heads


class KvCacheWrite(Sentence):
    """Sentences about where rows go instead of the rows of the cache that the slots name."""

    MINUS_ONE_STORED = (
        "-1 in {slots} is taken as a slot: its token is stored one row before {name}. -1 means that a token goes "
        "nowhere."
    )
    MINUS_ONE_AS_ZERO = "A token with -1 in {slots} is stored at slot 0, which belongs to another token or to none."
    ZERO_SKIPPED = "The token with slot 0 is not stored: 0 is a slot like any other, only -1 is none."
    SLOT_IGNORED = (
        "Token t is stored at slot t: {slots} is not used. Load {slots}[t] first, and make the address of it."
    )
    FLAT_SLOT = (
        "A slot is multiplied by the stride of a row: that goes past the end of its page, and the next page of {name} "
        "begins elsewhere. Cut it into page and row, each with its own stride."
    )
    PAGE_FORGOTTEN = "Every token is stored in page 0 of {name}: its page is not in the address."
    ROW_FORGOTTEN = "Every token is stored in row 0 of its page of {name}: its row is not in the address."
    NEIGHBOURING_SLOT = "Each token is stored one slot after its own."
    AS_CONTIGUOUS = "The strides of {name} are not used: it is written as if contiguous."
    STRIDES_OF = "{name} is written with the strides of {other}: each cache has its own."
    READ_WITH_STRIDES_OF = "{tokens} is read with the strides of {other}: each has its own."
    WRONG_TOKENS = "{name} holds rows of {used}; those of {tokens} belong there."
    HEADS_LEFT_OUT = "Heads from {first} on are not copied: {first:#head} are one block, and a token has {H}."
    REST_LOST = "Rows of {name} to which no token goes are lost: they have to stay as they were."


@dataclass(frozen=True)
class Storing:
    """The stores of a kernel: values by token, head and column, each with an address, in elements from the first
    element of a cache. Tokens that are not live are not stored."""

    id: str
    sentence: Said
    values: torch.Tensor  # [T, H, D]
    address: torch.Tensor  # int64, [T, H, D]
    live: torch.Tensor  # bool, [T]


@dataclass(frozen=True)
class Cache:
    """A cache before the call, and how its elements lie in memory."""

    name: str
    values: torch.Tensor  # [P, page, H, D]
    strides: tuple[int, ...]

    def address(self, page: torch.Tensor, row: torch.Tensor, strides: tuple[int, ...] = ()) -> torch.Tensor:
        """Returns the addresses of all elements in the rows of some tokens: [T] and [T] -> [T, H, D]. `strides`: other
        strides than the cache's."""
        of_page, of_row, of_head, of_column = strides or self.strides
        *_, H, D = self.values.shape
        start = (page * of_page + row * of_row)[:, None, None]
        return start + torch.arange(H)[:, None] * of_head + torch.arange(D) * of_column

    @cached_property
    def elements(self) -> tuple[torch.Tensor, torch.Tensor]:
        """The addresses of all elements, increasing, and the element at each, counted in C order; both [elements]."""
        places = torch.zeros((), dtype=torch.int64)
        for size, stride in zip(self.values.shape, self.strides):
            places = places[..., None] + torch.arange(size) * stride
        return places.flatten().sort()

    def met(self, address: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns whether an element lies at each address, and which, in C order; both of the shape of `address`."""
        addresses, elements = self.elements
        nearest = torch.searchsorted(addresses, address).clamp(max=len(addresses) - 1)
        return addresses[nearest] == address, elements[nearest]

    def after(self, storing: Storing) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns the cache after these stores, and how many stores went to each element; both of the cache's shape."""
        there, elements = self.met(storing.address)
        there &= storing.live[:, None, None]
        values = self.values.flatten().clone()
        values[elements[there]] = storing.values[there]
        counts = torch.bincount(elements[there], minlength=values.numel())
        return values.view(self.values.shape), counts.view(self.values.shape)


def mistakes(evidence: Compared, inputs: list[Argument]) -> Iterator[Hypothesis]:
    given = as_tensors(inputs)
    cache = _cache(evidence, given, evidence.returns)
    for storing in _storings(evidence, given, cache):
        after, counts = cache.after(storing)
        if bool(counts.any()):  # where no store lands in the cache, mistakes cannot be told apart
            yield Hypothesis(storing.id, storing.sentence, after)
    emptied, right = replace(cache, values=torch.zeros_like(cache.values)), _right(evidence, given, cache)
    yield Hypothesis(right.id, right.sentence, emptied.after(right)[0])


def astray(evidence: Evidence, inputs: list[Argument], finding: Finding) -> Hypothesis | None:
    """Returns the mistake that leads outside of a cache, or two tokens to one place, if the rest of the cache fits it;
    else None."""
    name, out = finding.argument, evidence.reply.outputs.get(finding.argument)
    given = as_tensors(inputs)
    if name not in evidence.exercise.updates or out is None or given[0].is_meta:
        return None
    cache = _cache(evidence, given, name)
    for storing in _storings(evidence, given, cache):
        after, counts = cache.after(storing)
        if finding.kind == "out-of-bounds-store":
            leads_there = bool((storing.address[storing.live] == finding.linear).any())
        elif finding.kind in ("race-write-write", "lane-conflict") and finding.element:
            leads_there = int(counts[tuple(finding.element)]) > 1
        else:
            return None
        right = (out == after.to(out.dtype)) | (out.isnan() & after.isnan()) | (counts > 1)
        if leads_there and bool(right.all()):
            return Hypothesis(storing.id, storing.sentence, None)
    return None


def _cache(evidence: Evidence, inputs: Sequence[torch.Tensor], name: str) -> Cache:
    place = evidence.exercise.arguments.index(name)
    return Cache(name, inputs[place], tuple(dict(evidence.tensors)[name].stride()))


def _right(evidence: Evidence, inputs: Sequence[torch.Tensor], cache: Cache) -> Storing:
    """Returns the stores of a right kernel. With these, only the other rows of the cache can be wrong."""
    slots, page = inputs[-1], cache.values.shape[1]
    tokens = inputs[evidence.exercise.arguments.index(cache.name) - 2]
    address = cache.address(slots // page, slots % page)
    return Storing("rest-lost", KvCacheWrite.REST_LOST(name=cache.name), tokens, address, slots >= 0)


def _storings(evidence: Evidence, inputs: Sequence[torch.Tensor], cache: Cache) -> Iterator[Storing]:
    """Yields the stores into this cache of kernels with one mistake each, the likeliest first."""
    slots, names = inputs[-1], evidence.exercise.arguments
    right = _right(evidence, inputs, cache)
    yield from _of_minus_one(right, cache, slots, names[-1])
    yield from _of_places(right, cache, slots, names[-1])
    yield from _of_strides(right, cache, slots, evidence, inputs)
    yield from _of_tokens(right, cache, evidence, inputs)


def _of_minus_one(right: Storing, cache: Cache, slots: torch.Tensor, name: str) -> Iterator[Storing]:
    """Yields stores of kernels that take -1 for a slot, or 0 for none."""
    page, all_live = cache.values.shape[1], torch.ones_like(right.live)
    if not bool(right.live.all()):
        address = cache.address(slots.div(page, rounding_mode="trunc"), slots.fmod(page))  # as a GPU divides
        said = KvCacheWrite.MINUS_ONE_STORED(slots=name, name=cache.name)
        yield replace(right, id="minus-one-stored", sentence=said, address=address, live=all_live)
        at_zero, said = slots.clamp(min=0), KvCacheWrite.MINUS_ONE_AS_ZERO(slots=name)
        zeros = right.values.masked_fill(~right.live[:, None, None], 0.0)
        for values in (right.values, zeros):
            address = cache.address(at_zero // page, at_zero % page)
            yield Storing("minus-one-as-zero", said, values, address, all_live)
    if bool((slots == 0).any()):
        yield replace(right, id="zero-skipped", sentence=KvCacheWrite.ZERO_SKIPPED(), live=slots > 0)


def _of_places(right: Storing, cache: Cache, slots: torch.Tensor, name: str) -> Iterator[Storing]:
    """Yields stores into another page, or into another row of it."""
    (P, page, *_), T, live = cache.values.shape, len(slots), right.live
    said = KvCacheWrite.SLOT_IGNORED(slots=name)
    for alive in (live, torch.ones_like(live)):
        tokens = torch.arange(T)
        address = cache.address(tokens // page, tokens % page)
        yield replace(right, id="slot-ignored", sentence=said, address=address, live=alive)
    for id, said, cut in pages.wrong_cuts("Slots", cache.name, page, P):
        yield replace(right, id=id, sentence=said, address=cache.address(*cut(slots)))
    nothing, after = torch.zeros_like(slots), slots + 1
    for id, sentence, of_page, of_row in (
        ("flat-slot", KvCacheWrite.FLAT_SLOT(name=cache.name), nothing, slots),
        ("page-forgotten", KvCacheWrite.PAGE_FORGOTTEN(name=cache.name), nothing, slots % page),
        ("row-forgotten", KvCacheWrite.ROW_FORGOTTEN(name=cache.name), slots // page, nothing),
        ("neighbouring-slot", KvCacheWrite.NEIGHBOURING_SLOT(), after // page, after % page),
    ):
        yield replace(right, id=id, sentence=sentence, address=cache.address(of_page, of_row))


def _of_strides(
    right: Storing, cache: Cache, slots: torch.Tensor, evidence: Evidence, inputs: Sequence[torch.Tensor]
) -> Iterator[Storing]:
    """Yields stores into the right page and row with strides that are not the cache's, or of values read with strides
    that are not the tokens'."""
    names, page, memory = evidence.exercise.arguments, cache.values.shape[1], dict(evidence.tensors)
    place = names.index(cache.name)
    tight = contiguous(cache.values)
    other = names[2 + 3 - place]  # the fourth argument for the third, and the third for the fourth
    readings = [(tight, KvCacheWrite.AS_CONTIGUOUS(name=cache.name))]
    readings.append((memory[other].stride(), KvCacheWrite.STRIDES_OF(name=cache.name, other=other)))
    for strides, said in readings:
        if tuple(strides) != cache.strides:
            address = cache.address(slots // page, slots % page, tuple(strides))
            yield replace(right, id="stride-ignored", sentence=said, address=address)
    tokens, partner = names[place - 2], names[3 - place]
    mine, theirs = memory[tokens], memory[partner]
    misread = reread(mine, theirs.stride()) if mine.stride() != theirs.stride() else None
    if misread is not None:
        said = KvCacheWrite.READ_WITH_STRIDES_OF(tokens=tokens, other=partner)
        yield replace(right, id="stride-ignored", sentence=said, values=misread.to(right.values.dtype))


def _of_tokens(right: Storing, cache: Cache, evidence: Evidence, inputs: Sequence[torch.Tensor]) -> Iterator[Storing]:
    """Yields stores of other values into the right places, and stores that leave out some heads."""
    names, (*_, H, _) = evidence.exercise.arguments, cache.values.shape
    place = names.index(cache.name)
    tokens, other = names[place - 2], names[3 - place]
    said = KvCacheWrite.WRONG_TOKENS(name=cache.name, used=other, tokens=tokens)
    yield replace(right, id="wrong-tokens", sentence=said, values=inputs[3 - place])
    nowhere = torch.iinfo(torch.int64).min  # no element has this address
    for first in dict.fromkeys((evidence.constants.get("BLOCK_H", H), *USUAL_BLOCKS)):
        if first < H:
            address = right.address.clone()
            address[:, first:] = nowhere
            said = KvCacheWrite.HEADS_LEFT_OUT(first=first, H=H)
            yield replace(right, id="heads-left-out", sentence=said, address=address)
