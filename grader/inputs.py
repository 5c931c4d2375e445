"""Named data sets: what a test file asks for (`normal(64, 200) - 20`), drawn when the run's secret seed is known.

A data set is a recipe, so a test file can be read and collected without drawing anything. Values are drawn in float64
and rounded once to the dtype under test; the reference sees the rounded values too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch

Draw = Callable[[tuple[int, ...], torch.Generator], torch.Tensor]

# Fills the holes of a view and outputs not yet written. A NaN, so reading it spoils the result; a payload of its own.
POISON_BITS = {
    torch.float64: 0x7FF8_DEAD_0000_0BAD,
    torch.float32: 0x7FC0_0BAD,
    torch.float16: 0x7EAD,
    torch.bfloat16: 0x7FAD,
}
BITS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}  # integer dtype by bytes
PADDING = 13  # elements between two padded rows; odd, so that it hides behind no power of two


@dataclass(frozen=True)
class Data:
    """A recipe for one tensor argument: shape, values and layout in memory."""

    shape: tuple[int, ...]
    draw: Draw | None  # None: an output, filled with poison
    layout: str = "contiguous"

    def __add__(self, number: float) -> Data:
        return self._then(lambda values: values + number)

    def __sub__(self, number: float) -> Data:
        return self._then(lambda values: values - number)

    def __mul__(self, number: float) -> Data:
        return self._then(lambda values: values * number)

    def _then(self, change: Callable[[torch.Tensor], torch.Tensor]) -> Data:
        draw = self.draw
        return replace(self, draw=lambda shape, generator: change(draw(shape, generator)))

    def transposed(self) -> Data:
        """The same matrix, stored column by column: strides (1, M)."""
        return replace(self, layout="transposed")

    def every_second(self) -> Data:
        """Every second row and column of a larger matrix: holes between all elements."""
        return replace(self, layout="every second element")

    def padded(self) -> Data:
        """The first N columns of a wider matrix: holes between the rows."""
        return replace(self, layout="padded rows")

    def expanded(self) -> Data:
        """One row seen M times: row stride 0."""
        return replace(self, layout="one row, expanded")

    @property
    def label(self) -> str:
        size = " x ".join(map(str, self.shape))
        return size if self.layout == "contiguous" else f"{size} ({self.layout})"

    def tensor(self, dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
        """The argument: a view, in the asked layout, of a storage whose other elements are poison."""
        view = _empty_view(self.shape, self.layout, dtype)
        if self.draw is not None:
            values = self.draw(self.shape, generator).to(dtype)
            target = view[:1] if self.layout == "one row, expanded" else view
            target.copy_(values[: len(target)])
        return view

    def shape_on(self, device: str, dtype: torch.dtype) -> torch.Tensor:
        """The argument without its values, as for the device "meta", which has no memory."""
        return _empty_view(self.shape, self.layout, dtype, device)


def poison_(tensor: torch.Tensor) -> torch.Tensor:
    """Fills a contiguous tensor with this dtype's poison."""
    tensor.view(BITS[tensor.element_size()]).fill_(POISON_BITS[tensor.dtype])
    return tensor


def is_poison(tensor: torch.Tensor) -> torch.Tensor:
    """Which elements hold the poison bits; [same shape], bool."""
    return tensor.contiguous().view(BITS[tensor.element_size()]) == POISON_BITS[tensor.dtype]


def _empty_view(shape: tuple[int, ...], layout: str, dtype: torch.dtype, device: str = "cpu") -> torch.Tensor:
    def poisoned(*size: int) -> torch.Tensor:
        return poison_(torch.empty(size, dtype=dtype, device=device))

    if layout == "contiguous":
        return poisoned(*shape)
    rows, columns = shape
    if layout == "transposed":
        return poisoned(columns, rows).t()
    if layout == "every second element":
        return poisoned(2 * rows, 2 * columns)[::2, ::2]
    if layout == "padded rows":
        return poisoned(rows, columns + PADDING)[:, :columns]
    return poisoned(1, columns).expand(rows, columns)


def generator_for(seed: int, *names: object) -> torch.Generator:
    """A generator that depends on the run's seed and on the names alone, not on which tests ran before."""
    digest = hashlib.sha256(repr((seed, *names)).encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:8], "little") >> 1)


def normal(*shape: int) -> Data:
    """Standard normal values."""
    return Data(shape, lambda size, generator: torch.randn(size, generator=generator, dtype=torch.float64))


def uniform(*shape: int) -> Data:
    """Positive values below 1: a sum grows with its length, so lost digits and dropped terms show."""
    return Data(shape, lambda size, generator: torch.rand(size, generator=generator, dtype=torch.float64))


def integers(*shape: int) -> Data:
    """-1, 0 and 1: sums are exact in fp32 in any order, so the result must match to the bit."""
    return Data(shape, lambda size, generator: torch.randint(-1, 2, size, generator=generator).double())


def one_hot(*shape: int) -> Data:
    """Each row holds a single 1: a product with it copies a row, to the bit."""

    def draw(size, generator):
        values = torch.zeros(size, dtype=torch.float64)
        picked = torch.randint(0, size[-1], (size[0], 1), generator=generator)
        return values.scatter_(-1, picked, 1.0)

    return Data(shape, draw)


def falling(*shape: int) -> Data:
    """Each row falls from 100 to -100."""
    return Data(shape, lambda size, _: torch.linspace(100, -100, size[-1], dtype=torch.float64).expand(size))


def with_some(value: float, data: Data) -> Data:
    """`data` with about a tenth of its elements replaced by `value`."""

    def draw(size, generator):
        values = data.draw(size, generator)
        chosen = torch.rand(size, generator=generator) < 0.1
        return values.masked_fill(chosen, value)

    return replace(data, draw=draw)


def leading(value: float, data: Data) -> Data:
    """`data` with the first half of each row replaced by `value`."""

    def draw(size, generator):
        values = data.draw(size, generator).clone()
        values[..., : size[-1] // 2] = value
        return values

    return replace(data, draw=draw)


def special(data: Data) -> Data:
    """`data` with infinities, NaN and -0.0 strewn in: values that arithmetic changes and a copy must not."""
    for value in (float("inf"), float("-inf"), float("nan"), -0.0):
        data = with_some(value, data)
    return data


def cancelling(M: int, K: int, N: int) -> tuple[Data, Data]:
    """a [M, K] and b [K, N] of small integers whose running sums pass 2048 and cancel to at most 8.

    fp32 holds every running sum exactly (it stays below 2**24), fp16 holds only even numbers above 2048.
    """

    def draw_a(size, generator):
        half = torch.randint(2, 5, (M, K // 2), generator=generator).double()
        values = torch.cat([half, torch.zeros(M, K % 2, dtype=torch.float64), -half], dim=1)
        values[:, -1] += torch.randint(-2, 3, (M,), generator=generator)
        return values

    def draw_b(size, generator):
        half = torch.randint(2, 5, (K // 2, N), generator=generator).double()
        return torch.cat([half, torch.zeros(K % 2, N, dtype=torch.float64), half], dim=0)

    return Data((M, K), draw_a), Data((K, N), draw_b)


def output(*shape: int) -> Data:
    """An argument that the entry fills: poison, in any layout."""
    return Data(shape, draw=None)
