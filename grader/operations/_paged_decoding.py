"""Paged decoding, second file: the sentences about its mistakes, and how the splits of a sequence are joined."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch

from grader.operations._attention import Tiles
from grader.operations.mistakes import exponentials, pages
from grader.operations.mistakes.joining import Of, folded
from grader.sentences import Said, Sentence


class PagedDecoding(Sentence):
    """Sentences about mistakes in finding a key, at the end of a sequence, in dealing out keys, in joining splits."""

    TABLE_IGNORED = (
        "Page number n // page of the cache is read as it lies there: {table} is not used. It tells which page a "
        "sequence has its next keys in."
    )
    TABLE_ROW_ZERO = "Every sequence goes through row 0 of {table}: the row of sequence b is b."
    ROW_BEYOND_PAGE = (
        "The row in a page is the key's number n: beyond the first page that leads into other pages. It is n % page."
    )
    PAGE_OF_BLOCK = (
        "All keys of a block are read from the page of its first key. A block may begin within a page and reach into "
        "others: each key has a page of its own, {table}[b, n // page]."
    )
    PAGE_AS_ROW = "A page is multiplied by the stride of a row: that is the way to a row of page 0."
    NO_ADVANCE = "Every turn of the loop reads the first block of keys: a key's number has to move with it."
    BEYOND_THE_TABLE = (
        "What stands in {table} past a sequence's last page is taken as a page: it is no number of one. Load the table "
        "with a mask: keys from lengths[b] on have no entry."
    )
    NO_KEY_READ = (
        "{o} is NaN: rows past the end of a sequence and pages that no sequence has are NaN here, so what was read is "
        "no key of the sequence. Which page, and which row of it, belong to key n?"
    )
    VALUES_PAST_THE_END = (
        "{o} is NaN where the last block of a sequence is not full: rows of a cache past its end are loaded, and they "
        "hold NaN. Such lanes need -inf as their score, and 0 for v, by a mask with `other`: p is 0 there, and 0 times "
        "NaN is NaN."
    )

    LENGTH_OF_FIRST = "Every sequence is as long as the first one: the length of sequence b is {lengths}[b]."

    LANES_COUNTED = (
        "The lanes past the end of a sequence take part in the softmax, as keys with the score 0: their scores have to "
        "be -inf."
    )
    KEYS_LOST = (
        "Only {kept} of {keys} keys of a sequence reach {o}: {splits} splits with {share} keys each do not reach its "
        "end. Both divisions are rounded up: of keys into blocks, and of blocks into splits."
    )
    FIXED_SHARE = (
        "Only {kept} of {keys} keys of a sequence reach {o}: each split takes {blocks:#block} of {step} keys, however "
        "long a sequence is. Its share follows from the length."
    )
    KEYS_TWICE = (
        "Keys are counted twice: a split takes {share} keys, which are no whole blocks of {step}, and its last block "
        "goes on into the next split. Deal out whole blocks, or end each split where it ends."
    )

    FAR_BELOW_ZERO_OR_PADDED = (
        "{o} is {found} where all scores lie far below 0. They are measured against a number that they do not reach: "
        "does the maximum of each split start at -inf, and what stands in for the maximum of the {lanes:#lane} past "
        "the last split?"
    )

    NOT_MEASURED_ANEW = (
        "The second launch adds up parts as they are, and each was measured against its own maximum: multiply l and "
        "acc of each by exp(own maximum - greatest maximum)."
    )
    AVERAGE = (
        "{o} is the average of what the splits say each: keys of all splits compete. A split counts by its l, measured "
        "against the greatest maximum."
    )
    JOIN_OF_ANOTHER_BASE = (
        "The splits' weights are powers of {wrong}, and their maxima belong to powers of {right}: both launches have "
        "to use one base."
    )
    SUM_NOT_WEIGHED = "In the second launch acc of each split gets its weight, and l does not: both need it."
    ACC_NOT_WEIGHED = "In the second launch l of each split gets its weight, and acc does not: both need it."
    ONE_SPLIT_ALONE = "Only the {which} split is in {o}: the second launch has to join all {splits}."
    ROUNDED_PARTS = "m and l of the splits are rounded to {dtype} between the launches: what is kept there is fp32."

    EMPTY_SEQUENCE = (
        "{o} is NaN where a sequence has no key. The maximum of all its splits is -inf then: (-inf) - (-inf) is NaN, "
        "and so is 0 / 0. It has to be 0."
    )
    EMPTY_SEQUENCE_NOT_ZERO = "{o} is not 0 where a sequence has no key."
    EMPTY_SPLIT = (
        "{o} is NaN for sequences of which a split has no key. What such a split leaves has to add nothing: the "
        "maximum -inf, and 0 for l and acc."
    )
    EMPTY_SPLIT_STORES_NOTHING = (
        "The second launch reads parts that nobody has written: a split without keys leaves its place as torch.empty "
        "has made it. It owes a part that adds nothing, the maximum -inf, and 0 for l and acc."
    )

    LOST_DIGITS = (
        "Scores, m, l and acc are to be in fp32, in scratch memory too: p is rounded for the second product, and "
        "nothing else is."
    )


Row = tuple[torch.Tensor, torch.Tensor]  # pages and rows of keys
Where = Callable[[int, torch.Tensor], Row]  # the places of keys, from the number of their sequence and their own
Part = tuple[torch.Tensor, torch.Tensor, torch.Tensor]  # m and l [HK, G], acc [HK, G, D]


@dataclass
class Splits:
    """A sequence with at least one key, s [HK, G, N] and v [HK, N, D], cut into `count` splits of whole blocks of
    `step` keys."""

    s: torch.Tensor
    v: torch.Tensor
    step: int
    count: int

    @property
    def keys(self) -> int:
        return self.s.shape[-1]

    @property
    def share(self) -> int:
        """The number of keys of a split."""
        return -(-self.keys // self.step // self.count) * self.step if self.keys else 0

    @property
    def used(self) -> int:
        """The number of splits that have a key."""
        return -(-self.keys // self.share)

    @property
    def padding(self) -> int:
        return -self.keys % self.step

    def part(self, first: int, end: int, of: Of | None = None) -> Part:
        """Returns m, l and acc of the keys from `first` to `end`; `of` makes other factors between its blocks of the
        right factors."""
        walk = Tiles(self.s[..., first:end], self.step, self.v[:, first:end])
        at, right = walk.so_far, walk.right
        of_sum, of_acc = of(right) if of is not None else (right, right)
        return at[..., -1], folded(walk.sums(at), of_sum), folded(walk.outs(at), of_acc[..., None, :])

    def parts(self, of: Of | None = None) -> Part:
        """Returns m and l of all splits that have a key, [HK, G, splits], and acc, [HK, G, splits, D]."""
        ends = [(split * self.share, min((split + 1) * self.share, self.keys)) for split in range(self.used)]
        m, total, acc = zip(*(self.part(*end, of) for end in ends))
        return torch.stack(m, dim=-1), torch.stack(total, dim=-1), torch.stack(acc, dim=-2)

    # Results of wrong kernels, [HK, G, D].

    def joined(self, of_sum: float, of_acc: float) -> torch.Tensor:
        """Returns the join of right parts, with the weights of l and of acc raised to these powers."""
        return joined(self.parts(), of_sum, of_acc)

    def rescaled(self, of: Of) -> torch.Tensor:
        """Returns the join of parts whose blocks are rescaled by these factors."""
        return joined(self.parts(of))

    def scaled(self, factor: float) -> torch.Tensor:
        """Returns attention with the scores times this factor."""
        return torch.softmax(self.s * factor, dim=-1) @ self.v

    def rounded_parts(self, dtype: torch.dtype, unit: float) -> torch.Tensor:
        """Returns the join of parts whose m, measured in this unit, and l are rounded to a dtype."""
        m, total, acc = self.parts()
        return joined(((m / unit).to(dtype).double() * unit, total.to(dtype).double(), acc))

    def undivided(self) -> torch.Tensor:
        return torch.exp(self.s - self.s.amax(dim=-1, keepdim=True)) @ self.v

    def average(self, over: int | None = None) -> torch.Tensor:
        """Returns the sum of the results of all splits, divided by `over`, or by the number of splits with a key."""
        _, total, acc = self.parts()
        return (acc / total[..., None]).sum(dim=-2) / (over or self.used)

    def of_split(self, place: int) -> torch.Tensor:
        _, total, acc = self.parts()
        return acc[..., place, :] / total[..., place, None]

    def lanes_counted(self) -> torch.Tensor:
        """Returns attention in which the lanes past the end of the last block are keys with the score 0, and v 0."""
        e, total, _ = exponentials.with_lanes(self.s, self.padding)
        return e @ self.v / total

    def of_keys(self, n: slice | torch.Tensor) -> torch.Tensor:
        """Returns attention to these keys alone; 0 without any, as where the second launch guards its division."""
        return torch.softmax(self.s[..., n], dim=-1) @ self.v[:, n]

    def shared_out(self, floor: Callable[[int], int]) -> torch.Tensor:
        """Returns attention to the keys that are left where each split gets `floor(all keys)` of them."""
        return self.of_keys(slice(self.count * floor(self.keys)))

    def keys_twice(self) -> torch.Tensor:
        share = -(-self.keys // self.count)
        taken = -(-share // self.step) * self.step
        ranges = [torch.arange(at, min(at + taken, self.keys)) for at in range(0, self.keys, share)]
        return self.of_keys(torch.cat(ranges))


def joined(parts: Part, of_sum: float = 1.0, of_acc: float = 1.0) -> torch.Tensor:
    """Returns o, [HK, G, D]. The weights of l and of acc are raised to these powers: with a power of 0 all are 1."""
    m, total, acc = parts
    weight = torch.exp(m - m.amax(dim=-1, keepdim=True))
    return (acc * weight[..., None] ** of_acc).sum(dim=-2) / (total * weight**of_sum).sum(dim=-1, keepdim=True)


# ---- keys that are looked for elsewhere ------------------------------------------------------------------------------


def readings(table: torch.Tensor, page: int, step: int, names: list[str], P: int) -> Iterator[tuple[str, Said, Where]]:
    """Yields id, sentence and places of keys for each wrong way to look up a key. `step`: keys of a block, `P`: pages
    of the cache. Looking up raises IndexError where it leads out of the table."""

    def entries(b: int, places: torch.Tensor) -> torch.Tensor:
        found = table[b, places]
        if bool((found < 0).any()):
            raise IndexError  # torch would count from the end
        return found

    def cut_by(cut: pages.Cut) -> Where:
        return lambda b, n: _flat(entries(b, cut(n)[0]), cut(n)[1], page)

    said = PagedDecoding.TABLE_IGNORED(table=names[3])
    yield "table-ignored", said, lambda b, n: (n // page, n % page)
    yield "table-ignored", said, lambda b, n: (b * table.shape[1] + n // page, n % page)
    yield "table-row-zero", PagedDecoding.TABLE_ROW_ZERO(table=names[3]), lambda b, n: (entries(0, n // page), n % page)
    said = PagedDecoding.ROW_BEYOND_PAGE()
    yield "row-beyond-page", said, lambda b, n: _flat(entries(b, n // page), n, page)
    said = PagedDecoding.PAGE_OF_BLOCK(table=names[3])
    of_block = lambda n: n // step * step // page  # noqa: E731
    yield "page-of-block", said, lambda b, n: (entries(b, of_block(n)), n % page)
    yield "page-of-block", said, lambda b, n: _flat(entries(b, of_block(n)), n - of_block(n) * page, page)
    for id, said, cut in pages.wrong_cuts("Numbers of keys", names[1], page, P, step):
        yield id, said, cut_by(cut)
    said = PagedDecoding.PAGE_AS_ROW()
    yield "page-as-row", said, lambda b, n: _flat(torch.zeros_like(n), entries(b, n // page) + n % page, page)
    said = PagedDecoding.NO_ADVANCE()
    yield "no-advance", said, lambda b, n: (entries(b, n % step // page), n % step % page)


def _flat(pages: torch.Tensor, rows: torch.Tensor, page: int) -> Row:
    """Returns pages and rows in which a row beyond the end of a page is a row of the pages after it."""
    return pages + rows // page, rows % page
