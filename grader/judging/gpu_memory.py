"""Decides whether a call fits into the GPU's memory and, if it does not, whether the submission is to blame.

The most bytes that torch holds while it computes a reference are found on its meta device, where nothing is computed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode

from grader.course.trial import Trial
from grader.explain import gpu_findings
from grader.explain.verdict import Verdict
from grader.gpu.plan import PackedPlan
from grader.numerics.arguments import exact, without_values
from grader.numerics.bounds import Bound, held
from grader.numerics.comparison import BYTES_PER_ELEMENT, MOST_COMPARED
from grader.numerics.data_sets import Data, drawing_precision
from grader.numerics.draws import MADE_OF_PARTS
from grader.numerics.roundoff import EXACT
from grader.wire.messages import DTYPE_BYTES

SHARE_OF_MEMORY = 0.8
SHARE_BESIDE_OTHERS = 0.1  # a call that needs more runs alone: a class may share one GPU
KEPT_BY_LIBRARIES = 1 << 26  # bytes: cuBLAS takes 32 MiB on an H200 for the first product, and keeps them
SHARE_FOR_SCRATCH = 1 / 16  # what a kernel may use apart from its arguments and its result, however small these are


def bytes_needed(trial: Trial, packed: PackedPlan) -> int:
    """Returns the bytes of GPU memory that a call needs at its peak.

    The results of the first repeat are kept throughout. The peak is in the next repeat, with all buffers and a copy of
    the arguments, or in the comparison, with arguments and references in float64 (as they are, for a copy), compared
    part by part. The memory that a reference needs on the way to its results is looked up on torch's meta device, which
    takes two seconds at first.
    """
    plan = packed.plan
    buffers = sum(buffer.bytes for buffer in plan.buffers)
    return _needed_with(buffers, trial, packed, [view.shape for view in plan.results.values()])


def _needed_with(buffers: int, trial: Trial, packed: PackedPlan, shapes: Sequence[Sequence[int]]) -> int:
    """Returns the bytes needed if all buffers take `buffers` bytes. shapes: of the results, in the plan's order."""
    plan, tensors = packed.plan, [stated for stated in trial.data if isinstance(stated, Data)]
    elements = [math.prod(shape) for shape in shapes]
    kept = sum(count * DTYPE_BYTES[view.dtype] for count, view in zip(elements, plan.results.values()))
    arguments = [0, *(buffer.bytes for buffer in plan.buffers if buffer.argument)]
    drawn = [_bytes_drawn(data, trial.dtype) for data in tensors]
    sizes = [_bytes_given(data, trial) for data in tensors]
    repeating = buffers + max(sum(arguments) + max(arguments) // 2, *drawn)  # a flag for 2 bytes or more
    drawing = max(0, *(one - other for one, other in zip(drawn, sizes)))
    rounded = max(data.dtype_in(trial.dtype).itemsize * data.elements for data in tensors)
    references = (trial.dtype.itemsize if _is_copy(trial) else 8) * sum(elements)
    results = list(zip(plan.results, shapes, _bounds(trial), strict=True))
    rows = {
        name: trial.cut.rows_at_once(name, shape, bound, trial.shapes, MOST_COMPARED) for name, shape, bound in results
    }
    bounds = max(0 if bound in EXACT else _bytes_of_bound(trial, name, bound, rows[name]) for name, _, bound in results)
    on_the_way = _bytes_of_reference(trial)
    comparing = sum(sizes) + max(on_the_way, references + bounds, drawing + rounded)
    at_once = max(min(math.prod(shape), rows[name] * math.prod(shape[1:])) for name, shape, _ in results)
    return kept + max(repeating, comparing) + BYTES_PER_ELEMENT * at_once + KEPT_BY_LIBRARIES


def _bytes_of_reference(trial: Trial) -> int:
    """Returns the peak in bytes that the reference adds to its arguments; 0 if it reads values, which are not there."""
    as_drawn = without_values(trial.data, trial.dtype)
    arguments = as_drawn if _is_copy(trial) else exact(as_drawn)
    try:
        with PeakBytes() as memory:
            trial.exercise.expected(arguments)
    except RuntimeError:
        return 0
    return memory.peak


def _bounds(trial: Trial) -> list[Bound]:
    """Returns the results' bounds, in the order of the results."""
    return list(trial.bounds.values())


def _is_copy(trial: Trial) -> bool:
    return set(_bounds(trial)) == {"bits"}


def _bytes_given(data: Data, trial: Trial) -> int:
    """Returns the bytes of an argument as the reference gets it: in float64, or as it is for a copy."""
    return (data.dtype_in(trial.dtype).itemsize if _is_copy(trial) else 8) * data.elements


def _bytes_of_bound(trial: Trial, result: str, bound: Bound, rows: int) -> int:
    """Returns the bytes that a tolerance takes: float64 copies of its inputs, and what the bound itself keeps.

    The inputs are cut to the `rows` that are compared at a time, except for inputs that each row needs whole.
    """
    own, whole = (count(result, trial.shapes) for count in (trial.cut.row_elements, trial.cut.whole_elements))
    return 8 * (rows * own + whole + held(bound, list(trial.shapes.values())))


def _bytes_drawn(data: Data, run: torch.dtype) -> int:
    """Returns the bytes needed to draw an argument: its values twice if made of parts, three times if changed later."""
    dtype, (draw, *changes) = data.dtype_in(run), [step[0] for step in data.steps] or [""]
    drawn = drawing_precision(dtype).itemsize if dtype.is_floating_point else 8
    return drawn * (3 if changes else 2 if draw in MADE_OF_PARTS else 1) * data.elements


def blame(trial: Trial, packed: PackedPlan, memory_bytes: int) -> Verdict | None:
    """Returns the failure of a submission that left its call too little memory.

    None if it did not, or if any other submission would have found too little as well. The shapes that the reference
    returns are looked up on torch's meta device.
    """
    plan = packed.plan
    expected = [list(ref.shape) for ref in trial.exercise.expected(exact(without_values(trial.data, trial.dtype)))]
    if [view.shape for view in plan.results.values()] != expected:
        return gpu_findings.another_result(trial.exercise.entry)
    arguments = sum(buffer.bytes for buffer in plan.buffers if buffer.argument)
    own = [
        0 if plan.buffers[view.buffer].argument else math.prod(shape) * DTYPE_BYTES[view.dtype]
        for view, shape in zip(plan.results.values(), expected)
    ]
    least = arguments + sum(own)
    if _needed_with(least, trial, packed, expected) > SHARE_OF_MEMORY * memory_bytes:
        return None
    excess = sum(buffer.bytes for buffer in plan.buffers) - least
    if excess > max(least, SHARE_FOR_SCRATCH * memory_bytes):
        return gpu_findings.too_much_memory(trial.exercise.entry, excess)
    return None


class PeakBytes(TorchDispatchMode):
    """`with PeakBytes() as memory:` memory.peak is the most that tensors made in there have held at a time, in bytes.

    Memory that a view shares with another tensor counts once; memory that an operation needs inside a kernel does not
    count.
    """

    def __init__(self) -> None:
        super().__init__()
        self.peak = 0
        self._living: dict[int, tuple[StorageWeakRef, int]] = {}  # by the storage's address: bytes

    def __torch_dispatch__(self, operation: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        result = operation(*args, **(kwargs or {}))
        self._living = {place: living for place, living in self._living.items() if not living[0].expired()}
        storages = {argument.untyped_storage()._cdata for argument in _tensors([*args, *(kwargs or {}).values()])}
        for tensor in _tensors([result]):
            storage = tensor.untyped_storage()
            if storage._cdata not in storages:  # a view, or what is changed in place, is its argument's memory
                self._living[storage._cdata] = StorageWeakRef(storage), storage.nbytes()
        self.peak = max(self.peak, sum(size for _, size in self._living.values()))
        return result


def _tensors(values: Iterable[Any]) -> Iterable[torch.Tensor]:
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from _tensors(value)
