"""A call replayed on a GPU several times: its results, its writes outside of them, and whether the results repeat.

Between the repeats the guards' bytes and the buffers' addresses change. A right kernel gives the same bits each time.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch

from grader.course.cut import Cut
from grader.course.exercise import Exercise
from grader.gpu.answers import Overrun, Replayed, Summary
from grader.gpu.inside.guarded_buffers import POISON, Buffers
from grader.gpu.inside.launcher import Functions
from grader.gpu.inside.replay import Replay
from grader.gpu.plan import Plan
from grader.numerics.arguments import Argument, DataOrNumber, exact, tensors_of
from grader.numerics.bounds import Bound
from grader.numerics.comparison import MOST_COMPARED, Comparison, bits_of, compare, quick_error, row_slices
from grader.numerics.data_sets import Data, drawing_precision
from grader.numerics.poison import BITS, is_poison, poison_
from grader.numerics.roundoff import EXACT
from grader.wire.messages import TensorSpec

# (bytes past an aligned address, what the guards hold): NaN, a number, NaN again with the neighbours elsewhere.
REPEATS = ((0, POISON), (16, 0x5A), (64, POISON))
LARGE = 1 << 28  # bytes of buffers: from here on, the buffers of a repeat are freed before the next

Fill = Callable[[Buffers], None]


@dataclass
class Repeat:
    """An enqueued run on its own set of buffers.

    `before`: each argument's bytes before the run. `outputs`: the results by name, as views of the buffers. `first`:
    the results of the first run by name; empty in the first run.
    """

    buffers: Buffers
    before: list[torch.Tensor]
    outputs: dict[str, torch.Tensor]
    first: dict[str, torch.Tensor]


def replayed(
    plan: Plan, functions: Functions, config: int, fill: Fill, arguments: list[TensorSpec], written: list[str]
) -> tuple[dict[str, torch.Tensor], Replayed]:
    """Returns the results of the first run by name, and the side effects of all runs.

    `fill` gives the arguments the same bytes each time. `written`: the names of the arguments that the call may change.

    After each run of a small call the host waits once: while others use the GPU, each wait costs a time slice. The host
    must not wait less often: a hostile kernel could find data that is kept on the GPU, and erase the traces of earlier
    runs.
    """
    small = sum(buffer.bytes for buffer in plan.buffers) < LARGE
    kept: list[Buffers] = []
    results: dict[str, torch.Tensor] = {}
    replay = Replayed()
    for shift, pattern in REPEATS:
        buffers = Buffers(plan, shift, pattern)
        fill(buffers)
        before = [buffers.data(number).clone() for number in range(len(arguments))]
        Replay(plan, functions, buffers, config).enqueue()
        repeat = Repeat(buffers, before, {name: buffers.view(view) for name, view in plan.results.items()}, results)
        if not small or torch.stack(_flags(repeat, arguments, written)).any():
            _tell(repeat, replay, arguments, written)
        results = results or {name: output.clone() for name, output in repeat.outputs.items()}
        if small:
            kept.append(buffers)  # so that the next ones lie elsewhere
        del buffers, before, repeat
    return results, replay


def _flags(repeat: Repeat, arguments: list[TensorSpec], written: list[str]) -> list[torch.Tensor]:
    """Returns flags, bool tensors [] on the GPU: true where the run had a side effect. Takes memory for copies."""
    flags = [repeat.buffers.touched_guards()]
    flags += [(bits_of(repeat.outputs[name]) != bits_of(first)).any() for name, first in repeat.first.items()]
    for number, spec in enumerate(arguments):
        before, after = repeat.before[number], repeat.buffers.data(number)
        if spec.name in written:
            flags.append(_words(_without_elements(before ^ after, spec)).any())
        else:
            flags.append((_words(before) != _words(after)).any())
    return flags


def _tell(repeat: Repeat, replay: Replayed, arguments: list[TensorSpec], written: list[str]) -> None:
    """Adds a run's side effects to `replay`. The host waits, and `before` is overwritten."""
    overruns, changed = repeat.buffers.overruns(), []
    for number, spec in enumerate(arguments):
        before, after = repeat.before[number], repeat.buffers.data(number)
        if spec.name in written:
            overruns += _changed_between(before.bitwise_xor_(after), spec)
        elif (_words(before) != _words(after)).any():
            changed.append(spec.name)
    for name, first in repeat.first.items():
        if differing := _differing(first, repeat.outputs[name]):
            replay.differing[name] = max(differing, replay.differing.get(name, 0))
    replay.overruns = replay.overruns or overruns
    replay.changed = replay.changed or changed


def _changed_between(changed: torch.Tensor, spec: TensorSpec) -> list[Overrun]:
    """Returns the overrun of changes in the holes of an argument's view, which a call that fills it must keep.

    Returns [] if there are none. `changed`: uint8 [bytes], not 0 where a byte changed; overwritten.
    """
    if not _words(_without_elements(changed, spec)).any():
        return []
    count = sum(int(part.count_nonzero()) for part in changed.split(MOST_COMPARED))  # it takes 8 bytes for each
    return [Overrun(spec.name, "between", 0, count)]


def _without_elements(changed: torch.Tensor, spec: TensorSpec) -> torch.Tensor:
    """Sets the bytes of an argument's elements to 0, so that only its holes are left; returns `changed`."""
    size = getattr(torch, spec.dtype).itemsize
    strides = [stride * size for stride in spec.strides]
    changed.as_strided((*spec.shape, size), (*strides, 1), changed.storage_offset() + spec.offset * size).zero_()
    return changed


def _words(data: torch.Tensor) -> torch.Tensor:
    """Returns the bytes of a buffer as integers of up to eight bytes, over which a pass is faster."""
    return data.view(BITS[math.gcd(data.numel(), 8)])


def _differing(one: torch.Tensor, other: torch.Tensor) -> int:
    """Returns the number of elements that differ in their bits."""
    one, other = torch.atleast_1d(one, other)
    rows_at_once = max(1, MOST_COMPARED // max(1, math.prod(one.shape[1:])))
    slices = row_slices(len(one), rows_at_once)
    return sum(_count(bits_of(one[rows]) != bits_of(other[rows])) for rows in slices)


def _count(flags: torch.Tensor) -> int:
    return int(flags.sum()) if flags.any() else 0  # a sum takes eight times as much memory


# ---- arguments drawn here, compared here: for sizes that no pipe should carry ----------------------------------------


def drawn(all_stated: list[DataOrNumber], arguments: list[TensorSpec], seeds: list[int], device: str = "cuda") -> Fill:
    """Returns a function that fills the buffers' arguments as their data sets say, with the same values each time.

    `all_stated` and `seeds`: of all arguments of the entry; `arguments`: the tensors among them.
    """
    tensors = [(stated, seed) for stated, seed in zip(all_stated, seeds, strict=True) if isinstance(stated, Data)]

    def fill(buffers: Buffers) -> None:
        for number, ((stated, seed), spec) in enumerate(zip(tensors, arguments, strict=True)):
            view = buffers.argument(number, spec)
            if not stated.leaves_no_hole:
                poison_(buffers.data(number).view(view.dtype))
            stated.fill(view, torch.Generator(device).manual_seed(seed), drawing_precision(view.dtype))

    return fill


def compared(
    exercise: Exercise, bounds: dict[str, Bound], outputs: dict[str, torch.Tensor], all_stated: list[DataOrNumber],
    dtype: torch.dtype, seeds: list[int],
) -> dict[str, Summary]:  # fmt: skip
    """Compares each result with the reference in float64, on inputs drawn anew, which no kernel could have changed.

    Returns summaries by name of a result. `bounds`, `outputs`: by name of a result; `all_stated`, `seeds`: of all
    arguments of the entry; `dtype`: the run's. A call whose bounds are all "bits" is a copy, and compared as it is.

    The inputs, the reference and its rounded form are overwritten before this returns. A quick look leaves behind only
    the right result of the kernel itself, or the result of a call that has failed and is not repeated.
    """
    device, as_it_is = next(iter(outputs.values())).device, set(bounds.values()) == {"bits"}
    fresh = (_drawn_anew(stated, dtype, seed, device) for stated, seed in zip(all_stated, seeds, strict=True))
    inputs = list(fresh) if as_it_is else exact(fresh)  # one at a time: a copy is exact in any dtype
    refs = exercise.expected(inputs)
    summaries = {
        result.name: _summary(exercise, result.name, outputs[result.name], ref, bounds[result.name], inputs)
        for result, ref in zip(exercise.results, refs, strict=True)
    }
    _wipe(*refs, *(argument for argument in inputs if isinstance(argument, torch.Tensor)))
    return summaries


def _drawn_anew(stated: DataOrNumber, dtype: torch.dtype, seed: int, device: torch.device) -> Argument:
    if not isinstance(stated, Data):
        return stated
    generator = torch.Generator(device).manual_seed(seed)
    return stated.tensor(dtype, generator, drawing_precision(stated.dtype_in(dtype)))


def _summary(
    exercise: Exercise, name: str, out: torch.Tensor, ref: torch.Tensor, bound: Bound, inputs: list[Argument]
) -> Summary:
    summary = Summary(list(ref.shape), out.numel())
    if out.shape != ref.shape:
        return summary
    out, parts = torch.atleast_1d(out, ref)
    cut, names = Cut.of(exercise.cut), exercise.arguments
    shapes = {argument: tensor.shape for argument, tensor in tensors_of(names, inputs)}
    for rows in row_slices(len(out), cut.rows_at_once(name, out.shape, bound, shapes, MOST_COMPARED)):
        part = out[rows], parts[rows], bound, [] if bound in EXACT else cut.rows(name, names, inputs, rows)
        if (error := float(quick_error(*part))) <= 1:
            summary.largest_error = max(summary.largest_error, error)
            continue
        comparison = compare(*part)
        _add_to(summary, comparison, rows.start)
        if comparison.expected.dtype != ref.dtype:  # else it is the reference, which later parts may share
            _wipe(comparison.expected)
    return summary


def _add_to(summary: Summary, part: Comparison, start: int) -> None:
    """Adds the comparison of the rows from `start` on to a summary."""
    if not part.right:
        if not summary.wrong:
            row, *rest = first = part.first_wrong
            summary.first = [start + row, *rest]
            summary.expected, summary.found = (f"{float(t[first]):.6g}" for t in (part.expected, part.out))
        summary.wrong += part.wrong_count
        summary.unwritten += int((_is_unwritten(part.out) & part.wrong).sum())
    summary.largest_error = max(summary.largest_error, min(part.largest_error, 1e300))  # JSON has no infinity


def _wipe(*tensors: torch.Tensor) -> None:
    for tensor in tensors:
        tensor.fill_(float("nan") if tensor.is_floating_point() else 0)


def _is_unwritten(out: torch.Tensor) -> torch.Tensor:
    """Returns a bool tensor: true for elements that hold the poison of fresh memory, or of an argument to be filled."""
    return (bits_of(out) == -1) | is_poison(out)
