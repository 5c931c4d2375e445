"""One call replayed on a GPU, several times over: its result, what it wrote beside it, and whether it repeats.

Between the repeats the guards' bytes and the buffers' places change. A right kernel gives the same bits each time.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch

from grader.bounds import inputs_of
from grader.comparison import MOST_COMPARED, Comparison, bits_of, compare, quick_error, row_slices
from grader.exercise import Exercise
from grader.gpu.answers import Overrun, Replayed, Summary
from grader.gpu.buffers import POISON, Buffers
from grader.gpu.launcher import Functions
from grader.gpu.plan import Plan
from grader.gpu.replay import Replay
from grader.inputs import BITS, Data, drawing_precision, is_poison, poison_
from grader.protocol import TensorSpec

# (bytes past an aligned address, what the guards hold): NaN, a number, NaN again with the neighbours elsewhere.
REPEATS = ((0, POISON), (16, 0x5A), (64, POISON))
LARGE = 1 << 28  # bytes of buffers: beyond, those of one repeat are given back before the next

Fill = Callable[[Buffers], None]


@dataclass
class Repeat:
    """One run, enqueued, on a set of buffers of its own. `before`: the arguments' bytes as they were. `first`: the
    result of the first run; None in that one."""

    buffers: Buffers
    before: list[torch.Tensor]
    output: torch.Tensor
    first: torch.Tensor | None


def replayed(
    plan: Plan, functions: Functions, config: int, fill: Fill, arguments: list[TensorSpec], returns: str
) -> tuple[torch.Tensor, Replayed]:
    """The result of the first run, and what all runs did. `fill` gives the arguments the same bytes each time.

    After each run of a small call the host waits once: beside others on the GPU, each wait costs it a turn. It does not
    wait less: a hostile kernel could find what is kept on the GPU, and blot out what its last run has left there.
    """
    small = sum(buffer.bytes for buffer in plan.buffers) < LARGE
    kept: list[Buffers] = []
    result, found = None, Replayed()
    for shift, pattern in REPEATS:
        buffers = Buffers(plan, shift, pattern)
        fill(buffers)
        before = [buffers.data(number).clone() for number in range(len(arguments))]
        Replay(plan, functions, buffers, config).enqueue()
        one = Repeat(buffers, before, buffers.view(plan.result), result)
        if result is None:
            result = one.output.clone()
        if not small or torch.stack(_flags(one, arguments, returns)).any():
            _tell(one, found, arguments, returns)
        if small:
            kept.append(buffers)  # so that the next ones lie elsewhere
        del buffers, before, one
    return result, found


def _flags(one: Repeat, arguments: list[TensorSpec], returns: str) -> list[torch.Tensor]:
    """Each [], bool, on the GPU: true where the run did something beside giving the result. Takes some memory."""
    flags = [one.buffers.touched_guards()]
    if one.first is not None:
        flags.append((bits_of(one.output) != bits_of(one.first)).any())
    for number, spec in enumerate(arguments):
        before, after = one.before[number], one.buffers.data(number)
        if spec.name == returns:
            flags.append(_words(_without_elements(before ^ after, spec)).any())
        else:
            flags.append((_words(before) != _words(after)).any())
    return flags


def _tell(one: Repeat, found: Replayed, arguments: list[TensorSpec], returns: str) -> None:
    """Adds what a run did to what was found: the host waits, and `before` is overwritten."""
    overruns, changed = one.buffers.overruns(), []
    for number, spec in enumerate(arguments):
        before, after = one.before[number], one.buffers.data(number)
        if spec.name == returns:
            overruns += _changed_between(before.bitwise_xor_(after), spec)
        elif (_words(before) != _words(after)).any():
            changed.append(spec.name)
    if one.first is not None:
        found.differing = max(found.differing, _differing(one.first, one.output))
    found.overruns = found.overruns or overruns
    found.changed = found.changed or changed


def _changed_between(changed: torch.Tensor, spec: TensorSpec) -> list[Overrun]:
    """An argument that is filled keeps the bytes in the holes of its view. `changed`: not 0 where a byte changed."""
    if not _words(_without_elements(changed, spec)).any():
        return []
    count = sum(int(part.count_nonzero()) for part in changed.split(MOST_COMPARED))  # it takes 8 bytes for each
    return [Overrun(spec.name, "between", 0, count)]


def _without_elements(changed: torch.Tensor, spec: TensorSpec) -> torch.Tensor:
    """The same bytes of an argument's buffer, with 0 in place of those of its elements."""
    size = getattr(torch, spec.dtype).itemsize
    strides = [stride * size for stride in spec.strides]
    changed.as_strided((*spec.shape, size), (*strides, 1), changed.storage_offset() + spec.offset * size).zero_()
    return changed


def _words(data: torch.Tensor) -> torch.Tensor:
    """The bytes of a buffer, up to eight at a time: a pass over them takes less."""
    return data.view(BITS[math.gcd(data.numel(), 8)])


def _differing(one: torch.Tensor, other: torch.Tensor) -> int:
    """How many elements differ in their bits."""
    one, other = torch.atleast_1d(one, other)
    return sum(_count(bits_of(one[rows]) != bits_of(other[rows])) for rows in row_slices(one.shape, "bits"))


def _count(flags: torch.Tensor) -> int:
    return int(flags.sum()) if flags.any() else 0  # a sum takes eight times as much memory


# ---- arguments drawn here, compared here: for sizes that no pipe should carry ----------------------------------------


def drawn(data: list[Data], arguments: list[TensorSpec], seeds: list[int], device: str = "cuda") -> Fill:
    def fill(buffers: Buffers) -> None:
        for number, (recipe, spec, seed) in enumerate(zip(data, arguments, seeds)):
            view = buffers.argument(number, spec)
            if not recipe.leaves_no_hole:
                poison_(buffers.data(number).view(view.dtype))
            recipe.fill(view, torch.Generator(device).manual_seed(seed), drawing_precision(view.dtype))

    return fill


def compared(
    exercise: Exercise, bound: str, out: torch.Tensor, data: list[Data], arguments: list[TensorSpec], seeds: list[int]
) -> Summary:
    """The result against the reference in float64, on inputs that are drawn anew: no kernel could change those.

    Those inputs, the reference and what it rounds to are overwritten before this returns. What a quick look leaves
    behind is the right result of the kernel itself, or of a call that has failed and is not made again.
    """
    exact = [
        _exact(recipe, getattr(torch, spec.dtype), torch.Generator(out.device).manual_seed(seed), bound)
        for recipe, spec, seed in zip(data, arguments, seeds)
    ]
    ref = exercise.reference(*exact)
    summary = Summary(list(ref.shape), out.numel())
    if out.shape == ref.shape:
        out, parts = torch.atleast_1d(out, ref)
        for rows in row_slices(out.shape, bound):
            part = out[rows], parts[rows], bound, inputs_of(bound, rows, exact)
            if (error := float(quick_error(*part))) <= 1:
                summary.largest_error = max(summary.largest_error, error)
                continue
            comparison = compare(*part)
            _add_to(summary, comparison, rows.start)
            if comparison.expected.dtype != ref.dtype:  # else it is the reference, which later parts may share
                _wipe(comparison.expected)
    _wipe(ref, *exact)
    return summary


def _exact(recipe: Data, dtype: torch.dtype, generator: torch.Generator, bound: str) -> torch.Tensor:
    """An argument as the reference gets it: in float64, or as it is for a copy, which is exact in any dtype."""
    argument = recipe.tensor(dtype, generator, drawing_precision(dtype))
    return argument if bound == "bits" else argument.double()


def _add_to(summary: Summary, part: Comparison, start: int) -> None:
    """Counts in the comparison of the rows from `start` on."""
    if not part.right:
        if not summary.wrong:
            row, *rest = first = part.first_wrong
            summary.first = [start + row, *rest]
            summary.expected, summary.found = (f"{float(t[first]):.6g}" for t in (part.expected, part.out))
        summary.wrong += part.wrong_count
        summary.unwritten += int((_is_unwritten(part.out) & part.wrong).sum())
    summary.largest_error = max(summary.largest_error, _finite(part.largest_error))


def _wipe(*tensors: torch.Tensor) -> None:
    for tensor in tensors:
        tensor.fill_(float("nan"))


def _is_unwritten(out: torch.Tensor) -> torch.Tensor:
    """Elements that hold the poison of fresh memory, or of an argument to be filled."""
    return (bits_of(out) == -1) | is_poison(out)


def _finite(number: float) -> float:
    """JSON has no infinity."""
    return min(number, 1e300)
