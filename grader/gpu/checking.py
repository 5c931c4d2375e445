"""One call replayed on a GPU, several times over: its result, what it wrote beside it, and whether it repeats.

Between the repeats the guards' bytes and the buffers' places change. A right kernel gives the same bits each time.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from grader.bounds import inputs_of
from grader.comparison import MOST_ELEMENTS, Comparison, bits_of, compare, row_slices
from grader.exercise import Exercise
from grader.gpu.answers import Overrun, Replayed, Summary
from grader.gpu.buffers import POISON, Buffers
from grader.gpu.launcher import Functions
from grader.gpu.plan import Plan
from grader.gpu.replay import Replay
from grader.inputs import Data, is_poison, poison_
from grader.protocol import TensorSpec

# (bytes past an aligned address, what the guards hold): NaN, a number, NaN again with the neighbours elsewhere.
REPEATS = ((0, POISON), (16, 0x5A), (64, POISON))

Fill = Callable[[Buffers], None]


def replayed(
    plan: Plan, functions: Functions, config: int, fill: Fill, arguments: list[TensorSpec], returns: str
) -> tuple[Buffers, Replayed]:
    """The result of the first run, its other buffers given back, and what all runs did.

    `fill` gives the arguments the same bytes each time.
    """
    call = (plan, functions, config, fill, arguments, returns)
    first, found = _run(*call, *REPEATS[0])
    first.keep_only(plan.result.buffer)
    for place in REPEATS[1:]:
        other = _run_again(first, *call, *place)
        found.overruns = found.overruns or other.overruns
        found.changed = found.changed or other.changed
        found.differing = max(found.differing, other.differing)
    return first, found


def _run_again(first: Buffers, plan: Plan, *rest) -> Replayed:
    """What another run did; its buffers are gone when this returns."""
    buffers, found = _run(plan, *rest)
    found.differing = _differing(first.view(plan.result), buffers.view(plan.result))
    return found


def _run(
    plan: Plan, functions: Functions, config: int, fill: Fill, arguments: list[TensorSpec], returns: str,
    shift: int, pattern: int,
) -> tuple[Buffers, Replayed]:  # fmt: skip
    buffers = Buffers(plan, shift, pattern)
    fill(buffers)
    given = [buffers.data(number).clone() for number in range(len(arguments))]
    Replay(plan, functions, buffers, config).enqueue()
    torch.cuda.synchronize()
    found = Replayed(buffers.overruns())
    for number, spec in enumerate(arguments):
        changed = given[number].bitwise_xor_(buffers.data(number))
        if spec.name == returns:
            found.overruns += _changed_between(changed, spec)
        elif changed.any():
            found.changed.append(spec.name)
    return buffers, found


def _changed_between(changed: torch.Tensor, spec: TensorSpec) -> list[Overrun]:
    """An argument that is filled keeps the bytes in the holes of its view. `changed`: not 0 where a byte changed."""
    size = getattr(torch, spec.dtype).itemsize
    strides = [stride * size for stride in spec.strides]
    changed.as_strided((*spec.shape, size), (*strides, 1), changed.storage_offset() + spec.offset * size).zero_()
    count = sum(int(part.count_nonzero()) for part in changed.split(MOST_ELEMENTS))  # it takes 8 bytes for each
    return [Overrun(spec.name, "between", 0, count)] if count else []


def _differing(one: torch.Tensor, other: torch.Tensor) -> int:
    one, other = torch.atleast_1d(one, other)
    return sum(int((bits_of(one[rows]) != bits_of(other[rows])).sum()) for rows in row_slices(one))


# ---- arguments drawn here, compared here: for sizes that no pipe should carry ----------------------------------------


def drawn(data: list[Data], arguments: list[TensorSpec], seeds: list[int], device: str = "cuda") -> Fill:
    def fill(buffers: Buffers) -> None:
        for number, (recipe, spec, seed) in enumerate(zip(data, arguments, seeds)):
            poison_(buffers.data(number).view(getattr(torch, spec.dtype)))
            recipe.fill(buffers.argument(number, spec), torch.Generator(device).manual_seed(seed))

    return fill


def compared(
    exercise: Exercise,
    bound: str,
    plan: Plan,
    buffers: Buffers,
    data: list[Data],
    arguments: list[TensorSpec],
    seeds: list[int],
) -> Summary:
    """The result against the reference in float64, on inputs that are drawn anew: no kernel could change those.

    What was expected is overwritten before this returns.
    """
    device = buffers.memory[0].device
    exact = [_exact(recipe, spec, torch.Generator(device).manual_seed(seed))
             for recipe, spec, seed in zip(data, arguments, seeds)]  # fmt: skip
    out, ref = buffers.view(plan.result), exercise.reference(*exact)
    summary = Summary(list(ref.shape), out.numel())
    if out.shape == ref.shape:
        out, ref = torch.atleast_1d(out, ref)
        for rows in row_slices(out):
            comparison = compare(out[rows], ref[rows], bound, inputs_of(bound, rows, exact))
            _add(summary, comparison, rows.start)
            _wipe(comparison.expected)
    _wipe(ref, *(tensor for tensor, recipe in zip(exact, data) if not recipe.is_output))
    return summary


def _exact(recipe: Data, spec: TensorSpec, generator: torch.Generator) -> torch.Tensor:
    """An argument in float64; of one to be filled, which tells a reference nothing, the shape alone."""
    if recipe.is_output:
        return torch.full((), torch.nan, dtype=torch.float64, device=generator.device).expand(recipe.shape)
    return recipe.tensor(getattr(torch, spec.dtype), generator).double()


def _add(summary: Summary, part: Comparison, start: int) -> None:
    """The comparison of the rows from `start` on."""
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
