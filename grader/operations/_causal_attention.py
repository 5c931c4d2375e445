"""Causal attention, second file: the keys that a query sees, the walk over them, and the sentences about mistakes."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch

from grader.operations._attention import Results
from grader.operations.attention import probabilities
from grader.sentences import Sentence


class CausalAttention(Sentence):
    """Sentences about mistakes in the mask, in the window, at both ends of the walk, in the cap, and where nothing is
    seen."""

    OWN_KEY_HIDDEN = (
        "Each query leaves out its own key: it stands at position i + N - M and sees the key there too, j <= i + N - M."
    )
    ONE_KEY_MORE = "Each query sees one key too many, the one behind its own: j <= i + N - M is the last."
    TOP_LEFT = (
        "Query i is taken to stand at position i: with {queries} queries and {keys} keys it stands at i + N - M, so "
        "that the last query is the last key's."
    )
    NO_MASK = (
        "Nothing is hidden inside a tile: where the rule cuts a tile, the keys behind a query's own have to get -inf "
        "as their score."
    )
    HIDDEN_WITH_ZERO = (
        "Hidden keys take part with the score 0: what a query does not see has to get -inf, before the maximum is "
        "taken."
    )

    ENDS_A_TILE_EARLY = "The walk ends one tile early: the tile in which the last query's own key lies is left out."
    ENDS_WITH_FIRST_QUERY = (
        "The walk ends with the key of the tile's first query: the last one stands BLOCK_M - 1 keys further on."
    )
    ENDS_WITHOUT_SHIFT = (
        "The walk ends as if query i stood at position i: with {queries} queries and {keys} keys all positions are "
        "N - M further on."
    )

    WINDOW_ONE_MORE = "The window has one key too many: of w keys, j > i + N - M - w."
    WINDOW_ONE_LESS = "The window has one key too few: w keys are seen, the query's own among them."
    WINDOW_WITHOUT_SHIFT = (
        "The window begins as if query i stood at position i: it moves with the position, j > i + N - M - w."
    )
    WINDOW_OF_TILES = (
        "The window is cut at tiles, not at keys: in the tile in which it begins, the keys before it have to get -inf."
    )
    NO_WINDOW = "The window is left out: every query sees all keys up to its own."
    WINDOW_ALONE = (
        "The window takes the place of the causal rule: keys behind the query's own are seen. Both have to hold."
    )
    BEGINS_WITH_LAST_QUERY = (
        "The walk begins with the first key that the tile's last query sees: its first query sees keys before that."
    )
    BEGINS_TOO_LATE = (
        "The walk begins with the tile behind the one in which the first query's window begins: the first key is to be "
        "rounded down to a tile."
    )
    BEGINS_WITHOUT_SHIFT = (
        "The walk begins as if query i stood at position i: with {queries} queries and {keys} keys the window of the "
        "tile's first query begins earlier."
    )

    BEGINS_BELOW_ZERO = (
        "The walk begins in front of key 0: where the window reaches below 0, it visits a tile of keys that are not "
        "there. // rounds towards 0: take the greater of its first key and 0, and divide then."
    )

    NAN_OF_NOTHING = (
        "{name} is NaN where a query has seen no key yet: its maximum is still -inf then, and (-inf) - (-inf) is NaN. "
        "Subtract something finite in such rows, in p and in the factor."
    )
    NAN_OF_EMPTY_TILES = (
        "{name} is NaN where the walk begins with a tile of which a query sees nothing, as a window makes it: its "
        "maximum is still -inf then, and (-inf) - (-inf) is NaN. Subtract something finite in such rows, in p and in "
        "the factor."
    )
    ZERO_BY_ZERO = "{name} is NaN in rows that see no key: l is 0 there, and so is acc. Divide by something else."
    AVERAGE_OF_HIDDEN = (
        "Queries that see no key get the average of hidden ones: where every score is the same large negative number, "
        "each p is 1. With -inf in its place, and a guard, they are 0."
    )
    STAND_IN_KEPT = (
        "0 stays as the maximum where a query has seen no key yet: scores far below it are measured against it, and "
        "lose their digits, or all become 0. What is subtracted for want of a maximum is not to be kept."
    )

    NO_CAP = "The scores are not capped: they are c tanh(s / c)."
    CAP_AFTER_MASK = (
        "The cap comes after the mask: it makes -c of -inf, and hidden keys take part. Cap first, then hide."
    )
    CAP_BEFORE_SCALE = "The cap is put on q k, before it is divided by sqrt(D): it is for the scaled scores."
    CAP_IN_BASE_2 = (
        "The cap is put on scores that are multiplied by log2(e) already: cap them first, in base e, and go to base 2 "
        "after that."
    )
    CAP_CLAMPS = "The scores are cut off at c and -c: a cap is c tanh(s / c), which bends long before."
    CAP_NOT_MULTIPLIED = "The cap is tanh(s / c) alone: it has to be multiplied by c."
    CAP_OVERFLOWS = (
        "{name} is NaN where a score is many times the cap: exp overflows in tanh, and infinity / infinity is NaN. "
        "Write it so that exp stands in the divisor alone."
    )


@dataclass
class Rule:
    """The keys that each query sees, and the tiles that a walk visits; numbers of keys are [keys], of queries [M, 1].

    Behind the N keys the last tile has `padding` lanes, which count as keys here: they hold 0.
    """

    M: int
    N: int
    window: int | None
    rows: int  # of a tile
    step: int  # keys of a tile
    device: torch.device = torch.device("cpu")
    at: torch.Tensor = field(init=False)
    keys: torch.Tensor = field(init=False)

    def __post_init__(self) -> None:
        self.at = torch.arange(self.M, device=self.device)[:, None] + self.N - self.M
        self.keys = torch.arange(self.N + self.padding, device=self.device)

    @property
    def padding(self) -> int:
        return -self.N % self.step

    @property
    def causal(self) -> torch.Tensor:
        return self.keys <= self.at

    @property
    def seen(self) -> torch.Tensor:
        """The keys that each query sees, [M, keys], bool."""
        return self.causal if self.window is None else self.causal & (self.keys > self.at - self.window)

    @property
    def first(self) -> torch.Tensor:
        """The position of the first query in each query's tile, [M, 1]."""
        return (self.at - self.shift) // self.rows * self.rows + self.shift

    @property
    def shift(self) -> int:
        return self.N - self.M

    @property
    def end(self) -> torch.Tensor:
        """The end of each query's walk, [M, 1]: behind the last key that the tile's last query sees."""
        return (self.first + self.rows).clamp(max=self.N)

    def begin(self, first: torch.Tensor | None = None) -> torch.Tensor:
        """Returns where each query's walk begins, [M, 1]: at the first key that a query at `first` sees, rounded down
        to a tile. `first` is the position of the tile's first query unless given."""
        if self.window is None:
            return torch.zeros_like(self.first)
        reached = (self.first if first is None else first) - self.window + 1
        return reached.clamp(min=0) // self.step * self.step

    def visited(self, begin: torch.Tensor | None = None, end: torch.Tensor | None = None) -> torch.Tensor:
        """Returns the keys in the tiles that a walk from `begin` to `end` visits, [M, keys], bool; both are right
        unless given."""
        begin, end = self.begin() if begin is None else begin, self.end if end is None else end
        reached = begin - (begin - end) // self.step * self.step  # rounded up to a tile, from `begin` on
        return (self.keys >= begin) & (self.keys < reached)

    def sees_nothing_at_first(self) -> torch.Tensor:
        """Returns the queries that see no key of the first tile that their walk visits, [M], bool."""
        begin = self.begin()
        of_tile = (self.keys >= begin) & (self.keys < begin + self.step)
        return (begin < self.end)[:, 0] & ~(self.seen & of_tile).any(dim=1)

    def padded(self, tensor: torch.Tensor, dim: int) -> torch.Tensor:
        """Returns the tensor with zeros along `dim` for the lanes behind the last key."""
        shape = list(tensor.shape)
        shape[dim] = self.padding
        return torch.cat((tensor, tensor.new_zeros(shape)), dim=dim)


def made(s: torch.Tensor, v: torch.Tensor, seen: torch.Tensor) -> Results:
    """Returns o and lse of scores [..., M, keys] over the keys that are seen; 0 and -inf for queries that see none."""
    s = s.masked_fill(~seen, -torch.inf)
    return probabilities(s) @ v, torch.logsumexp(s, dim=-1)


def capped(s: torch.Tensor, softcap: float | None) -> torch.Tensor:
    return s if softcap is None else softcap * torch.tanh(s / softcap)
