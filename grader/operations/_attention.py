"""Attention, second file: the sentences about mistakes that are its own, and how a loop over tiles of keys adds up."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from grader.operations.mistakes.joining import Walk, folded
from grader.sentences import Sentence

Results = tuple[torch.Tensor, torch.Tensor]


class Attention(Sentence):
    """Sentences about mistakes in scores, in joining tiles, past the end of the keys, at the end and in digits."""

    DOWN_THE_COLUMNS = "The softmax runs along the queries: the probabilities of each query have to sum to 1."
    NOT_TURNED = (
        "The tile of k is not turned: its numbers are taken as D rows in the order in which they lie, and a product "
        "wants rows and columns exchanged. Exchange them in the addresses, or with tl.trans."
    )

    STARTS_AT_0 = (
        "The maximum starts at 0: scores below it are measured against 0, so that each p is small and loses its digits "
        "when it is rounded to {dtype}."
    )

    OWN_MAXIMUM = (
        "p of each tile is measured against the tile's own maximum, and added to sums that are measured against the "
        "common one: p = exp(s - new maximum)."
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
    LSE_IN_BASE_2 = "{lse} is in base 2: the natural logarithm is ln(2) times as much."
    LSE_WITHOUT_MAXIMUM = "{lse} is the logarithm of l alone: the maximum that l was measured against is to be added."
    LSE_MAXIMUM_IN_BASE_2 = "{lse} adds a maximum in base 2 to a natural logarithm: one of the two has to be converted."
    LSE_LOGARITHM_IN_BASE_2 = "{lse} adds a logarithm in base 2 to a maximum in base e: one has to be converted."
    LSE_IS_THE_SUM = "{lse} holds l, not its logarithm with the maximum."
    LSE_IS_THE_MAXIMUM = "{lse} holds the maximum: the logarithm of l is to be added."

    ROUNDED_SUM = (
        "l is the sum of p after its rounding to {dtype}: {lse} shows the digits that are lost. Sum up p in fp32, and "
        "round it for the product alone."
    )
    ROUNDED_EXPONENT = "The differences s - m are rounded to fp16 before they are exponentiated."
    LOST_DIGITS = (
        "Scores, maximum, l and acc are to be in fp32: p is rounded for the second product, and nothing else is. l "
        "sums up p before that rounding."
    )


@dataclass
class Tiles(Walk):
    """The scores of queries and keys tile after tile, s [..., M, N], and v [..., N, D]."""

    v: torch.Tensor

    def outs(self, at: torch.Tensor) -> torch.Tensor:
        """Returns each tile's product of exp(s - at) and v, [..., M, D, tiles]; `at` is [..., M, tiles]."""
        rows = self.v.split(self.step, dim=-2)
        return torch.stack([e @ v for e, v in zip(self.exponentials(at), rows)], dim=-1)


def joined(
    at: torch.Tensor, sums: torch.Tensor, outs: torch.Tensor, of_sum: torch.Tensor, of_acc: torch.Tensor
) -> Results:
    """Returns o and lse of a loop that adds up these sums and products of tiles, and multiplies l and acc by these
    factors, [..., M, tiles], before each addition. `at` is the maximum that a tile is measured against."""
    total = folded(sums, of_sum)
    return folded(outs, of_acc[..., None, :]) / total[..., None], at[..., -1] + total.log()


def whole(s: torch.Tensor, v: torch.Tensor) -> Results:
    return torch.softmax(s, dim=-1) @ v, torch.logsumexp(s, dim=-1)
