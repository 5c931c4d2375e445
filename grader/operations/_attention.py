"""Attention, second file: the sentences about its mistakes, and how a loop over tiles of keys adds up."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import torch

from grader.sentences import Sentence

Results = tuple[torch.Tensor, torch.Tensor]


class Attention(Sentence):
    """Sentences about mistakes in scores, past the end of the keys, in joining tiles, in turns, at the end, in
    addresses and in digits."""

    NO_SCALE = "The scores are not scaled: they are q k / sqrt(D), and here those of q k are used."
    SCALED_BY_D = "The scores are divided by D: they are q k / sqrt(D)."
    POWERS_OF_2 = "The probabilities are powers of 2, not of e: exp2 needs its argument times log2(e)."
    LOG2_E_AND_EXP = "The scores are multiplied by log2(e) and go into exp: that factor is for exp2."
    DOWN_THE_COLUMNS = "The softmax runs along the queries: the probabilities of each query have to sum to 1."
    NOT_TURNED = (
        "The tile of k is not turned: its numbers are taken as D rows in the order in which they lie, and a product "
        "wants rows and columns exchanged. Exchange them in the addresses, or with tl.trans."
    )

    PADDING_TAKES_ALL = (
        "{o} is 0 where all scores lie far below 0: lanes past the end of the keys have a finite score that is greater "
        "than these, and take all of the probability. Give them -inf."
    )
    FINITE_START = (
        "{o} is {found} where all scores lie far below 0. They are measured against a number that they do not reach: "
        "does the maximum start at -inf?"
    )
    STARTS_AT_0 = (
        "The maximum starts at 0: scores below it are measured against 0, so that each p is small and loses its digits "
        "when it is rounded to {dtype}."
    )

    NAN_FROM_THE_START = (
        "{o} is NaN everywhere. Before the first tile the maximum is -inf, l and acc are 0: is their factor "
        "exp(old maximum - new maximum), which is 0 then, and is the tile itself measured against the new maximum?"
    )
    NOTHING_RESCALED = (
        "The factor of l and acc is 1 in every turn, as where it is left out, or where it is made after the maximum "
        "has its new value. What was added before was measured against a smaller one: multiply both by "
        "exp(old maximum - new maximum)."
    )
    ACC_NOT_RESCALED = (
        "acc is not rescaled when the maximum grows, and l is: each row of acc needs the same factor, "
        "exp(old maximum - new maximum)."
    )
    SUM_NOT_RESCALED = (
        "l is not rescaled when the maximum grows, and acc is: both need the factor exp(old maximum - new maximum)."
    )
    RESCALE_INVERTED = (
        "l and acc are rescaled the wrong way round: the factor is exp(old maximum - new maximum), which is at most 1."
    )
    OWN_MAXIMUM = (
        "p of each tile is measured against the tile's own maximum, and added to sums that are measured against the "
        "common one: p = exp(s - new maximum)."
    )
    TILE_MAXIMUM = (
        "The maximum of each tile replaces the maximum so far, also by a smaller one: where scores fall, the factor of "
        "acc overflows. What is kept is the larger of the two."
    )
    BASES_MIXED = (
        "The factor of l and acc is a power of {wrong}, and p is one of {right}: both have to be of the same base, as "
        "the maximum is."
    )
    DIVIDED_EACH_TURN = (
        "acc is divided by l in every turn: what is divided once is no longer measured as the tiles to come are. "
        "Divide once, after the loop."
    )
    NOT_DIVIDED = "{o} is not divided by l: its rows are sums of p v, and p does not sum to 1."

    INFINITE_KEYS = (
        "{o} is NaN where the last tile of keys is not full: lanes past the end are loaded as -inf, and a query times "
        "-inf is infinite or NaN. It is the score that has to be -inf, after the product."
    )
    NO_TURN = (
        "The loop makes no turn for {keys:#key} in tiles of {step}: 0 is divided by 0. The number of turns is rounded "
        "up."
    )

    LSE_IN_BASE_2 = "{lse} is in base 2: the natural logarithm is ln(2) times as much."
    LSE_WITHOUT_MAXIMUM = "{lse} is the logarithm of l alone: the maximum that l was measured against is to be added."
    LSE_MAXIMUM_IN_BASE_2 = "{lse} adds a maximum in base 2 to a natural logarithm: one of the two has to be converted."
    LSE_LOGARITHM_IN_BASE_2 = "{lse} adds a logarithm in base 2 to a maximum in base e: one has to be converted."
    LSE_IS_THE_SUM = "{lse} holds l, not its logarithm with the maximum."
    LSE_IS_THE_MAXIMUM = "{lse} holds the maximum: the logarithm of l is to be added."

    BATCH_ZERO = "Every batch reads {names} of batch 0."
    HEAD_ZERO = "Every head reads {names} of head 0."
    ACROSS_BATCHES = (
        "In {names} the heads of all batches are taken to lie in a row: program_id(1) times the stride of heads is "
        "right only where a batch begins right behind the last head of the batch before it. Take batch and head apart."
    )
    STRIDES_OF_ANOTHER = "The strides of {other} are used for {names}: each tensor has its own."
    LAST_STRIDE = "The last stride of {names} is not used: the elements of a row lie apart."

    HALF_ACCUMULATOR = (
        "acc is rounded to {dtype} in every turn: large sums lose their last digits there, and the difference of two "
        "of them is wrong. Keep acc in fp32 until the store."
    )
    ROUNDED_SUM = (
        "l is the sum of p after its rounding to {dtype}: {lse} shows the digits that are lost. Sum up p in fp32, and "
        "round it for the product alone."
    )
    ROUNDED_EXPONENT = "The differences s - m are rounded to fp16 before they are exponentiated."
    ROUNDED_SCORES = "The scores are rounded to fp16: {lse} shows the digits that are lost. Keep them in fp32."
    ROUNDED_QUERIES = (
        "q is scaled and rounded to {dtype} before the product: {lse} shows the digits that are lost. Scale the "
        "scores, which are fp32."
    )
    LOST_DIGITS = (
        "Scores, maximum, l and acc are to be in fp32: p is rounded for the second product, and nothing else is. l "
        "sums up p before that rounding."
    )


@dataclass
class KeyTiles:
    """The keys tile after tile, with fewer keys in the last tile: s [..., M, N], v [..., N, D]."""

    s: torch.Tensor
    v: torch.Tensor
    step: int
    tiles: list[tuple[torch.Tensor, torch.Tensor]] = field(init=False)
    own: torch.Tensor = field(init=False)  # the maximum of each tile, [..., M, tiles]
    so_far: torch.Tensor = field(init=False)  # the maximum of all tiles up to it, [..., M, tiles]

    def __post_init__(self) -> None:
        self.tiles = list(zip(self.s.split(self.step, dim=-1), self.v.split(self.step, dim=-2)))
        self.own = torch.stack([s.amax(dim=-1) for s, _ in self.tiles], dim=-1)
        self.so_far = self.own.cummax(dim=-1).values

    @property
    def padding(self) -> int:
        """The number of lanes of the last tile that lie past the end of the keys."""
        return -self.s.shape[-1] % self.step

    def sums(self, at: torch.Tensor) -> torch.Tensor:
        """Returns each tile's sum of exp(s - at); `at` and the result are [..., M, tiles]."""
        return torch.stack([e.sum(dim=-1) for e, _ in self._exponentials(at)], dim=-1)

    def outs(self, at: torch.Tensor) -> torch.Tensor:
        """Returns each tile's product of exp(s - at) and v, [..., M, D, tiles]."""
        return torch.stack([e @ v for e, v in self._exponentials(at)], dim=-1)

    def _exponentials(self, at: torch.Tensor) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        return ((torch.exp(s - at[..., turn, None]), v) for turn, (s, v) in enumerate(self.tiles))

    def joined(self, at: torch.Tensor, of_sum: torch.Tensor, of_acc: torch.Tensor) -> Results:
        """Returns o and lse of a loop that multiplies l and acc by these factors, [..., M, tiles], before it adds a
        tile."""
        total = folded(self.sums(at), of_sum)
        acc = folded(self.outs(at), of_acc[..., None, :])
        return acc / total[..., None], at[..., -1] + total.log()


def whole(s: torch.Tensor, v: torch.Tensor) -> Results:
    return torch.softmax(s, dim=-1) @ v, torch.logsumexp(s, dim=-1)


def folded(parts: torch.Tensor, factors: torch.Tensor) -> torch.Tensor:
    found = parts[..., 0]
    for turn in range(1, parts.shape[-1]):
        found = found * factors[..., turn] + parts[..., turn]
    return found


def falls(maxima: torch.Tensor) -> torch.Tensor:
    """Returns old maximum - new maximum for each turn, and 0 for the first turn; [..., M, tiles], as `maxima`."""
    return torch.cat([torch.zeros_like(maxima[..., :1]), maxima[..., :-1] - maxima[..., 1:]], dim=-1)
