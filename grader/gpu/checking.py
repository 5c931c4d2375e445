"""One call replayed on a GPU, several times over: its result, what it wrote beside it, and whether it repeats.

Between the repeats the guards' bytes and the buffers' places change. A right kernel gives the same bits each time.
"""

from __future__ import annotations

import math
from collections.abc import Callable

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


def replayed(
    plan: Plan, functions: Functions, config: int, fill: Fill, arguments: list[TensorSpec], returns: str
) -> tuple[torch.Tensor, Replayed]:
    """The result of the first run, and what all runs did. `fill` gives the arguments the same bytes each time."""
    kept: list[Buffers] = []
    result, found = None, Replayed()
    for place in REPEATS:
        buffers, other = _run(plan, functions, config, fill, arguments, returns, *place)
        output = buffers.view(plan.result)
        if result is None:
            result = output.clone()
        else:
            found.differing = max(found.differing, _differing(result, output))
        found.overruns = found.overruns or other.overruns
        found.changed = found.changed or other.changed
        if sum(map(len, buffers.memory)) < LARGE:
            kept.append(buffers)  # so that the next ones lie elsewhere
        del buffers, output
    return result, found


def _run(
    plan: Plan, functions: Functions, config: int, fill: Fill, arguments: list[TensorSpec], returns: str,
    shift: int, pattern: int,
) -> tuple[Buffers, Replayed]:  # fmt: skip
    buffers = Buffers(plan, shift, pattern)
    fill(buffers)
    given = [buffers.data(number).clone() for number in range(len(arguments))]
    Replay(plan, functions, buffers, config).enqueue()
    torch.cuda.synchronize()
    found, inputs = Replayed(buffers.overruns()), {}
    for number, spec in enumerate(arguments):
        if spec.name == returns:
            found.overruns += _changed_between(given[number].bitwise_xor_(buffers.data(number)), spec)
        else:
            inputs[spec.name] = (_words(given[number]) != _words(buffers.data(number))).any()
    if inputs and torch.stack([*inputs.values()]).any():  # of all at once: the host waits once
        found.changed = [name for name, changed in inputs.items() if changed]
    return buffers, found


def _changed_between(changed: torch.Tensor, spec: TensorSpec) -> list[Overrun]:
    """An argument that is filled keeps the bytes in the holes of its view. `changed`: not 0 where a byte changed."""
    size = getattr(torch, spec.dtype).itemsize
    strides = [stride * size for stride in spec.strides]
    changed.as_strided((*spec.shape, size), (*strides, 1), changed.storage_offset() + spec.offset * size).zero_()
    if not _words(changed).any():
        return []
    count = sum(int(part.count_nonzero()) for part in changed.split(MOST_COMPARED))  # it takes 8 bytes for each
    return [Overrun(spec.name, "between", 0, count)]


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
