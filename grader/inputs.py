"""Named data sets: what a test file asks for (`normal(64, 200) - 20`), drawn when the run's secret seed is known.

A data set is a recipe, so a test file can be read and collected without drawing anything, and a recipe can be handed to
another process as plain text. Values are drawn in float64 and rounded once to the dtype under test; the reference sees
the rounded values too. On a GPU, where gigabytes are drawn, they may be drawn in less (`drawing_precision`).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch

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
    """A recipe for one tensor argument: shape, values and layout in memory.

    `steps`: a draw of DRAWS, then changes of CHANGES, each a name and its numbers. No step: an output, left as poison.
    """

    shape: tuple[int, ...]
    steps: tuple[tuple[str | float, ...], ...] = ()
    layout: str = "contiguous"

    def __add__(self, number: float) -> Data:
        return self.then("add", number)

    def __sub__(self, number: float) -> Data:
        return self.then("add", -number)

    def __mul__(self, number: float) -> Data:
        return self.then("times", number)

    def then(self, change: str, number: float) -> Data:
        return replace(self, steps=(*self.steps, (change, float(number))))

    @property
    def is_output(self) -> bool:
        return not self.steps

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

    def shifted(self) -> Data:
        """One element past the start of its memory: no address is a multiple of 16 bytes."""
        return replace(self, layout="shifted by one element")

    @property
    def label(self) -> str:
        size = " x ".join(map(str, self.shape))
        return size if self.layout == "contiguous" else f"{size} ({self.layout})"

    @property
    def leaves_no_hole(self) -> bool:
        """Whether all of the argument's memory gets a value."""
        return self.layout == "contiguous" and not self.is_output

    @property
    def elements(self) -> int:
        return math.prod(self.shape)

    def values(self, generator: torch.Generator, precision: torch.dtype = torch.float64) -> torch.Tensor:
        """The values alone: [shape], in this precision, on the generator's device."""
        (name, *numbers), *changes = self.steps
        values = DRAWS[name](self.shape, generator, precision, *numbers)
        for change, number in changes:
            values = CHANGES[change](values, generator, number)
        return values

    def tensor(
        self, dtype: torch.dtype, generator: torch.Generator, precision: torch.dtype = torch.float64
    ) -> torch.Tensor:
        """The argument: a view, in the asked layout, of a storage whose other elements are poison."""
        if self.leaves_no_hole:
            view = torch.empty(self.shape, dtype=dtype, device=generator.device)
        else:
            view = _empty_view(self.shape, self.layout, dtype, generator.device)
        self.fill(view, generator, precision)
        return view

    def fill(self, view: torch.Tensor, generator: torch.Generator, precision: torch.dtype = torch.float64) -> None:
        """Draws the values into a view of this shape and layout; an output stays as it is."""
        if not self.is_output:
            target = view[:1] if self.layout == "one row, expanded" else view
            target.copy_(self.values(generator, precision)[: len(target)])

    def shape_on(self, device: str, dtype: torch.dtype) -> torch.Tensor:
        """The argument without its values, as for the device "meta", which has no memory."""
        return _empty_view(self.shape, self.layout, dtype, device)

    def to_json(self) -> dict:
        return {"shape": self.shape, "steps": self.steps, "layout": self.layout}

    @staticmethod
    def from_json(data: dict) -> Data:
        return Data(tuple(data["shape"]), tuple(tuple(step) for step in data["steps"]), data["layout"])


def drawing_precision(dtype: torch.dtype) -> torch.dtype:
    """Enough for values of this dtype: in float32 they take half of the memory's traffic."""
    return torch.float64 if dtype == torch.float64 else torch.float32


def poison_(tensor: torch.Tensor) -> torch.Tensor:
    """Fills a contiguous tensor with this dtype's poison."""
    tensor.view(BITS[tensor.element_size()]).fill_(POISON_BITS[tensor.dtype])
    return tensor


def is_poison(tensor: torch.Tensor) -> torch.Tensor:
    """Which elements hold the poison bits; [same shape], bool."""
    return tensor.contiguous().view(BITS[tensor.element_size()]) == POISON_BITS[tensor.dtype]


def _empty_view(shape: tuple[int, ...], layout: str, dtype: torch.dtype, device: str | torch.device) -> torch.Tensor:
    def poisoned(*size: int) -> torch.Tensor:
        return poison_(torch.empty(size, dtype=dtype, device=device))

    if layout == "contiguous":
        return poisoned(*shape)
    if layout == "shifted by one element":
        return poisoned(math.prod(shape) + 1)[1:].view(shape)
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
    return torch.Generator().manual_seed(seed_for(seed, *names))


def seed_for(seed: int, *names: object) -> int:
    digest = hashlib.sha256(repr((seed, *names)).encode()).digest()
    return int.from_bytes(digest[:8], "little") >> 1


def normal(*shape: int) -> Data:
    """Standard normal values."""
    return Data(shape, (("normal",),))


def uniform(*shape: int) -> Data:
    """Positive values below 1: a sum grows with its length, so lost digits and dropped terms show."""
    return Data(shape, (("uniform",),))


def integers(*shape: int) -> Data:
    """-1, 0 and 1: sums are exact in fp32 in any order, so the result must match to the bit."""
    return Data(shape, (("integers",),))


def one_hot(*shape: int) -> Data:
    """Each row holds a single 1: a product with it copies a row, to the bit."""
    return Data(shape, (("one hot",),))


def falling(*shape: int) -> Data:
    """Each row falls from 100 to -100."""
    return Data(shape, (("falling",),))


def with_some(value: float, data: Data) -> Data:
    """`data` with about a tenth of its elements replaced by `value`."""
    return data.then("with some", value)


def leading(value: float, data: Data) -> Data:
    """`data` with the first half of each row replaced by `value`."""
    return data.then("leading", value)


def special(data: Data) -> Data:
    """`data` with infinities, NaN and -0.0 strewn in: values that arithmetic changes and a copy must not."""
    for value in (float("inf"), float("-inf"), float("nan"), -0.0):
        data = with_some(value, data)
    return data


def cancelling(M: int, K: int, N: int) -> tuple[Data, Data]:
    """a [M, K] and b [K, N] of small integers whose running sums pass 2048 and cancel to at most 8.

    fp32 holds every running sum exactly (it stays below 2**24), fp16 holds only even numbers above 2048.
    """
    return Data((M, K), (("cancelling a",),)), Data((K, N), (("cancelling b",),))


def output(*shape: int) -> Data:
    """An argument that the entry fills: poison, in any layout."""
    return Data(shape)


# ---- draws: (shape, generator, precision) -> values, and changes: (values, generator, number) -> values --------------


def _on(generator: torch.Generator) -> dict:
    return {"generator": generator, "device": generator.device}


def _normal(size: tuple[int, ...], generator: torch.Generator, precision: torch.dtype) -> torch.Tensor:
    return torch.randn(size, dtype=precision, **_on(generator))


def _uniform(size: tuple[int, ...], generator: torch.Generator, precision: torch.dtype) -> torch.Tensor:
    return torch.rand(size, dtype=precision, **_on(generator))


def _integers(size: tuple[int, ...], generator: torch.Generator, precision: torch.dtype) -> torch.Tensor:
    return torch.randint(-1, 2, size, dtype=torch.int8, **_on(generator)).to(precision)


def _one_hot(size: tuple[int, ...], generator: torch.Generator, precision: torch.dtype) -> torch.Tensor:
    values = torch.zeros(size, dtype=precision, device=generator.device)
    return values.scatter_(-1, torch.randint(0, size[-1], (size[0], 1), **_on(generator)), 1.0)


def _falling(size: tuple[int, ...], generator: torch.Generator, precision: torch.dtype) -> torch.Tensor:
    return torch.linspace(100, -100, size[-1], dtype=precision, device=generator.device).expand(size)


def _cancelling_a(size: tuple[int, ...], generator: torch.Generator, precision: torch.dtype) -> torch.Tensor:
    M, K = size
    half = torch.randint(2, 5, (M, K // 2), dtype=torch.int8, **_on(generator)).to(precision)
    values = torch.cat([half, half.new_zeros(M, K % 2), -half], dim=1)
    values[:, -1] += torch.randint(-2, 3, (M,), **_on(generator))
    return values


def _cancelling_b(size: tuple[int, ...], generator: torch.Generator, precision: torch.dtype) -> torch.Tensor:
    K, N = size
    half = torch.randint(2, 5, (K // 2, N), dtype=torch.int8, **_on(generator)).to(precision)
    return torch.cat([half, half.new_zeros(K % 2, N), half], dim=0)


def _with_some(values: torch.Tensor, generator: torch.Generator, value: float) -> torch.Tensor:
    return values.masked_fill(torch.rand(values.shape, **_on(generator)) < 0.1, value)


def _leading(values: torch.Tensor, _: torch.Generator, value: float) -> torch.Tensor:
    values = values.clone()
    values[..., : values.shape[-1] // 2] = value
    return values


DRAWS: dict[str, Callable[..., torch.Tensor]] = {
    "normal": _normal, "uniform": _uniform, "integers": _integers, "one hot": _one_hot, "falling": _falling,
    "cancelling a": _cancelling_a, "cancelling b": _cancelling_b,
}  # fmt: skip
CHANGES: dict[str, Callable[[torch.Tensor, torch.Generator, float], torch.Tensor]] = {
    "add": lambda values, _, number: values + number,
    "times": lambda values, _, number: values * number,
    "with some": _with_some,
    "leading": _leading,
}
