"""Draws values, (shape, generator, precision) -> values, and changes them, (values, generator, number) -> values.

A draw is named in a table and not handed over as a function: a data set travels to another process as text. Each takes
all its chance from the generator that it is given, so that a seed repeats a run.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

from grader.numerics.paged_draws import DRAWS_OF_PAGES, on

FP16_MAX = 65504.0
ROUNDED_TO_MAX = 65512  # a whole number above FP16_MAX that fp16 rounds to FP16_MAX
LONG_ROW = 64  # elements: a row as long can sum to ROUNDED_TO_MAX in whole numbers that fp16 holds


def _normal(size: tuple[int, ...], generator: torch.Generator, precision: torch.dtype) -> torch.Tensor:
    return torch.randn(size, dtype=precision, **on(generator))


def _uniform(size: tuple[int, ...], generator: torch.Generator, precision: torch.dtype) -> torch.Tensor:
    return torch.rand(size, dtype=precision, **on(generator))


def _level(size: tuple[int, ...], generator: torch.Generator, precision: torch.dtype) -> torch.Tensor:
    return torch.ones(size, dtype=precision, device=generator.device)


def _integers(size: tuple[int, ...], generator: torch.Generator, precision: torch.dtype) -> torch.Tensor:
    return torch.randint(-1, 2, size, dtype=torch.int8, **on(generator)).to(precision)


def _one_hot(size: tuple[int, ...], generator: torch.Generator, precision: torch.dtype) -> torch.Tensor:
    values = torch.zeros(size, dtype=precision, device=generator.device)
    return values.scatter_(-1, torch.randint(0, size[-1], (size[0], 1), **on(generator)), 1.0)


def _falling(size: tuple[int, ...], generator: torch.Generator, precision: torch.dtype) -> torch.Tensor:
    return torch.linspace(100, -100, size[-1], dtype=precision, device=generator.device).expand(size)


def _falling_down(size: tuple[int, ...], generator: torch.Generator, precision: torch.dtype) -> torch.Tensor:
    return torch.linspace(100, -100, size[-2], dtype=precision, device=generator.device)[:, None].expand(size)


def _codes(size: tuple[int, ...], generator: torch.Generator, precision: torch.dtype) -> torch.Tensor:
    return _code_of(torch.arange(size[-2], device=generator.device), size[-1]).to(precision).expand(size)


def _a_code_each(size: tuple[int, ...], generator: torch.Generator, precision: torch.dtype, below: int) -> torch.Tensor:
    return _code_of(torch.randint(0, below, size[:-1], **on(generator)), size[-1]).to(precision)


def _code_of(numbers: torch.Tensor, length: int) -> torch.Tensor:
    """Returns a row of 1 and -1 for each number below 2 * length, [*numbers.shape, length]; length is a power of two.

    The product of two rows is 0, except that of a row with itself, and with its negative: the number `length` further
    on. J. Sylvester, Thoughts on inverse orthogonal matrices, Philosophical Magazine 34 (1867).
    """
    common = numbers[..., None] & torch.arange(length, device=numbers.device)
    odd = sum(common >> bit & 1 for bit in range(max(1, length.bit_length() - 1))) % 2
    return (1 - 2 * odd) * (1 - 2 * (numbers // length % 2))[..., None]


def _cancelling_a(size: tuple[int, ...], generator: torch.Generator, precision: torch.dtype) -> torch.Tensor:
    M, K = size
    half = torch.randint(2, 5, (M, K // 2), dtype=torch.int8, **on(generator)).to(precision)
    values = torch.cat([half, half.new_zeros(M, K % 2), -half], dim=1)
    values[:, -1] += torch.randint(-2, 3, (M,), **on(generator))
    return values


def _cancelling_b(size: tuple[int, ...], generator: torch.Generator, precision: torch.dtype) -> torch.Tensor:
    K, N = size
    half = torch.randint(2, 5, (K // 2, N), dtype=torch.int8, **on(generator)).to(precision)
    return torch.cat([half, half.new_zeros(K % 2, N), half], dim=0)


def _cancelling_rows(size: tuple[int, ...], generator: torch.Generator, precision: torch.dtype) -> torch.Tensor:
    *rows, N = size
    half = torch.randint(1025, 2001, (*rows, N // 2), dtype=torch.int16, **on(generator)).to(precision)
    values = torch.cat([half, half.new_zeros(*rows, N % 2), -half], dim=-1)
    values[..., -1] += torch.randint(-2, 3, rows, **on(generator))
    return values


def _cancelling_down(size: tuple[int, ...], generator: torch.Generator, precision: torch.dtype) -> torch.Tensor:
    *others, N, D = size
    half = torch.randint(1, 4, (*others, N // 2, D), dtype=torch.int8, **on(generator)).to(precision)
    values = torch.cat([half, half.new_zeros(*others, N % 2, D), -half], dim=-2)
    values[..., -1, :] += torch.randint(-2, 3, (*others, D), **on(generator))
    return values


def _around_fp16_max(size: tuple[int, ...], generator: torch.Generator, precision: torch.dtype) -> torch.Tensor:
    """Draws rows with a sign each, and with sums between an eighth and four times the largest number of fp16.

    Half of the long rows hold whole numbers with the sum 65512, however they are added: it is above the largest number,
    and rounded to it.
    """
    *rows, N = size
    halvings = torch.rand((*rows, 1), dtype=precision, **on(generator)).mul_(5).sub_(2)
    signs = torch.randint(0, 2, (*rows, 1), dtype=torch.int8, **on(generator)).to(precision).mul_(2).sub_(1)
    of_each = FP16_MAX / max(N, 1) * signs * 2**-halvings
    values = torch.rand(size, dtype=precision, **on(generator)).mul_(0.5).add_(0.75) * of_each
    values.clamp_(-FP16_MAX, FP16_MAX)
    if N < LONG_ROW:
        return values
    number, more = divmod(ROUNDED_TO_MAX, N)
    whole = (torch.arange(N, device=values.device) < more).to(precision).add_(number) * signs
    chosen = torch.rand((*rows, 1), **on(generator)) < 0.5
    return torch.where(chosen, whole, values)


def _peak(size: tuple[int, ...], generator: torch.Generator, precision: torch.dtype) -> torch.Tensor:
    """Draws rows with a 0 each, in which exponentials of the other numbers add up to about 1."""
    *rows, N = size
    values = torch.rand(size, dtype=precision, **on(generator)).mul_(5).sub_(4 + math.log(max(N, 1)))
    return values.scatter_(-1, torch.randint(0, N, (*rows, 1), **on(generator)), 0.0) if values.numel() else values


def _whole(size: tuple[int, ...], generator: torch.Generator, precision: torch.dtype) -> torch.Tensor:
    return torch.randint(-(2**31) + 1, 2**31, size, dtype=torch.int64, **on(generator))


def _bits(size: tuple[int, ...], generator: torch.Generator, precision: torch.dtype) -> torch.Tensor:
    return torch.randint(-(2**63), 2**63 - 1, size, dtype=torch.int64, **on(generator))


def _indices_below(
    size: tuple[int, ...], generator: torch.Generator, precision: torch.dtype, below: int, least: int = 0
) -> torch.Tensor:
    values = torch.randint(least, below, size, dtype=torch.int64, **on(generator))
    if (count := values.numel()) == 0:
        return values
    last = torch.randint(0, count, (1,), **on(generator))
    first = (last + 1 + torch.randint(0, max(1, count - 1), (1,), **on(generator))) % count
    values.view(-1)[first] = least
    values.view(-1)[last] = below - 1
    return values


def _slots(
    size: tuple[int, ...], generator: torch.Generator, precision: torch.dtype, below: int, nowhere: float
) -> torch.Tensor:
    """Draws each number at most once, 0 and the last number before all others; -1 for a share of `nowhere` of the
    places, and where no number is left."""
    count = math.prod(size)
    taken = min(count - math.ceil(nowhere * count), below)
    ends = torch.tensor([0, below - 1][: min(taken, below)], dtype=torch.int64, device=generator.device)
    others = _distinct(taken - len(ends), max(0, below - 2), generator) + 1
    values = torch.full((count,), -1, dtype=torch.int64, device=generator.device)
    values[torch.randperm(count, **on(generator))[:taken]] = torch.cat([ends, others])
    return values.view(size)


def _distinct(count: int, below: int, generator: torch.Generator) -> torch.Tensor:
    """Draws different whole numbers, in any order; without a list of all of them where few are drawn of many."""
    if below < 1 << 24:
        return torch.randperm(below, **on(generator))[:count]
    numbers = torch.randint(0, below, (0,), **on(generator))
    while len(numbers) < count:
        numbers = torch.cat([numbers, torch.randint(0, below, (2 * count,), **on(generator))]).unique()
    return numbers[torch.randperm(len(numbers), **on(generator))[:count]]


def _fitting(values: torch.Tensor, number: float) -> float | int:
    """Returns the number as an int for values that are whole, so that they stay whole: torch would make fp32 of
    them."""
    return number if values.is_floating_point() else int(number)


def _with_some(values: torch.Tensor, generator: torch.Generator, value: float) -> torch.Tensor:
    return values.masked_fill(torch.rand(values.shape, **on(generator)) < 0.1, value)


def _whole_rows(values: torch.Tensor, generator: torch.Generator, value: float) -> torch.Tensor:
    chosen = torch.rand(values.shape[:-1], **on(generator)) < 0.5
    chosen[:1] = True
    return values.masked_fill(chosen[..., None], value)


def _one_special_a_row(values: torch.Tensor, generator: torch.Generator, _: float) -> torch.Tensor:
    """Puts one inf, -inf or NaN into three of four rows, and into a vector: as the first element, the last, or any.

    The nine cases take turns, so that each of them occurs in nine rows; three rows without follow.
    """
    if not values.numel():
        return values
    *rows, N = values.shape
    turn = torch.arange(math.prod(rows), device=values.device).view(rows) % 12
    order = torch.cat([torch.randperm(9, **on(generator)), torch.full((3,), 9, device=values.device)])
    kind, end = order[turn] // 3, order[turn] % 3
    place = torch.where(end == 2, torch.randint(0, N, rows, **on(generator)), end * (N - 1))
    numbers = values.new_tensor([math.inf, -math.inf, math.nan])[kind.clamp(max=2)]
    chosen = (torch.arange(N, device=values.device) == place[..., None]) & (kind < 3)[..., None]
    return torch.where(chosen, numbers[..., None], values)


def _leading(values: torch.Tensor, _: torch.Generator, value: float) -> torch.Tensor:
    values = values.clone()
    values[..., : values.shape[-1] // 2] = value
    return values


def _last(values: torch.Tensor, _: torch.Generator, value: float) -> torch.Tensor:
    values = values.clone()
    values[..., ::2, -1:] = value
    return values


def _first_row(values: torch.Tensor, _: torch.Generator, value: float) -> torch.Tensor:
    values = values.clone()
    values[..., :1, :] = value
    return values


def _last_row(values: torch.Tensor, _: torch.Generator, value: float) -> torch.Tensor:
    values = values.clone()
    values[..., -1:, :] = value
    return values


def _amid(values: torch.Tensor, _: torch.Generator, value: float) -> torch.Tensor:
    values, quarter = values.clone(), values.shape[-1] // 4
    values[..., quarter : values.shape[-1] - quarter] = value
    return values


DRAWS: dict[str, Callable[..., torch.Tensor]] = DRAWS_OF_PAGES | {
    "normal": _normal, "uniform": _uniform, "level": _level, "integers": _integers, "one hot": _one_hot,
    "falling": _falling,
    "cancelling a": _cancelling_a, "cancelling b": _cancelling_b, "cancelling rows": _cancelling_rows, "whole": _whole,
    "bits": _bits, "below": _indices_below, "slots": _slots, "around fp16's largest": _around_fp16_max, "peak": _peak,
    "falling down": _falling_down, "cancelling down": _cancelling_down, "codes": _codes, "a code each": _a_code_each,
}  # fmt: skip
MADE_OF_PARTS = {  # what is held besides the values takes as much memory again
    "integers", "cancelling a", "cancelling b", "cancelling rows", "cancelling down", "codes", "a code each",
}  # fmt: skip

CHANGES: dict[str, Callable[[torch.Tensor, torch.Generator, float], torch.Tensor]] = {
    "add": lambda values, _, number: values + _fitting(values, number),
    "times": lambda values, _, number: values * _fitting(values, number),
    "with some": _with_some,
    "leading": _leading,
    "alone": _one_special_a_row,
    "amid": _amid,
    "last": _last,
    "first row": _first_row,
    "last row": _last_row,
    "whole rows": _whole_rows,
}
