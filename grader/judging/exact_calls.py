"""The exact run of a call: the same launches on the same inputs, with 64 bits for every float.

It is asked for after a wrong result, to tell a wrong formula from lost digits. It decides no verdict: a kernel may
approximate within the bound.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

import torch

from grader.numerics.arguments import Argument
from grader.ttir.exact_text import NoExactRun, Why, exact_text
from grader.ttir.parser import parse
from grader.wire.messages import TensorSpec
from grader.wire.recorded_call import RecordedCall, RecordedParameter
from grader.wire.recorded_parts import Choice, Fill, PlannedLaunch, PlannedView, PythonNumbers, Returned, Step
from grader.wire.reply import DTYPES

BYTES = 8  # of an element in an exact run
MOST_BYTES = 1 << 30  # of all buffers together, as they are widened
WIDENED = {"float32": 4, "float16": 2, "bfloat16": 2}  # by bytes; float64 has its digits already
NUMBERS = ("fp32", "f32", "fp16", "bf16")  # types of a kernel's parameters


def exact_call(call: RecordedCall, arguments: list[TensorSpec], filename: str) -> RecordedCall:
    """Returns the call with 64 bits for every float in texts, memory and parameters. Raises NoExactRun.

    `arguments`: the tensors of the call. `filename`: of the submission in its child, which texts name.
    """
    kernels = [replace(kernel, source=kernel.source and _text(kernel.source, filename)) for kernel in call.kernels]
    sizes = _bytes_by_buffer(call, arguments)
    buffers = [
        replace(buffer, bytes=buffer.bytes * BYTES // sizes.get(number, BYTES))
        for number, buffer in enumerate(call.buffers)
    ]
    if sum(buffer.bytes for buffer in buffers) > MOST_BYTES:
        raise NoExactRun(Why.SIZE)
    steps = [_exact_step(step) for step in call.steps]
    return replace(call, kernels=kernels, buffers=buffers, steps=steps, returned=_exact_result(call.returned))


def exact_inputs(inputs: list[Argument]) -> list[Argument]:
    """Returns the same arguments, floats in float64: each in a storage laid out as its own."""
    return [_widened(one) if isinstance(one, torch.Tensor) and _is_widened(one.dtype) else one for one in inputs]


def _is_widened(dtype: torch.dtype) -> bool:
    return str(dtype).removeprefix("torch.") in WIDENED


def _widened(tensor: torch.Tensor) -> torch.Tensor:
    whole = torch.empty(0, dtype=tensor.dtype).set_(tensor.untyped_storage()).double()
    return whole.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())


@lru_cache(16)  # the calls of a run have few texts, and a wrong call is made exactly
def _text(source: str, filename: str) -> str:
    return exact_text(source, parse(source, filename))


# ---- memory ----------------------------------------------------------------------------------------------------------


def _bytes_by_buffer(call: RecordedCall, arguments: list[TensorSpec]) -> dict[int, int]:
    """Returns how many bytes a float has in each buffer that holds floats to widen. Raises NoExactRun for memory that
    is used as several dtypes."""
    seen: dict[int, set[str]] = defaultdict(set)
    for number, spec in enumerate(arguments):  # their buffers come first
        seen[number].add(spec.dtype)
    for view in [*_views_of_steps(call.steps), *_views_of_result(call.returned)]:
        seen[view.buffer].add(view.dtype)
    for number, dtypes in seen.items():
        if len(dtypes) > 1 and dtypes & WIDENED.keys():
            buffer = call.buffers[number]
            raise NoExactRun(Why.MEMORY, buffer.line, buffer.name if buffer.argument else "")
    return {number: WIDENED[dtype] for number, (dtype, *_) in seen.items() if dtype in WIDENED}


def _views_of_steps(steps: list[Step]) -> Iterator[PlannedView]:
    for step in steps:
        if isinstance(step, PlannedLaunch):
            yield from (parameter.view for parameter in step.parameters if parameter.view is not None)
        elif isinstance(step, Choice):
            yield from (view for alternative in step.alternatives for view in _views_of_steps(alternative.steps))
        else:
            yield step.view


def _views_of_result(returned: Returned) -> Iterator[PlannedView]:
    yield from [returned.view] if returned.view is not None else []
    yield from (view for item in returned.items for view in _views_of_result(item))


def _exact_view(view: PlannedView) -> PlannedView:
    size = WIDENED.get(view.dtype)
    return view if size is None else replace(view, offset=view.offset * BYTES // size, dtype="float64")


# ---- steps and results -----------------------------------------------------------------------------------------------


def _exact_step(step: Step) -> Step:
    if isinstance(step, PlannedLaunch):
        return replace(step, parameters=[_exact_parameter(parameter) for parameter in step.parameters])
    if isinstance(step, Fill):
        return replace(step, view=_exact_view(step.view))
    if isinstance(step, PythonNumbers):
        return replace(step, view=_exact_view(step.view), bytes=_exact_bytes(step))
    # Trial runs of a configuration are left out: each call runs one of them.
    alternatives = [replace(one, steps=[_exact_step(inner) for inner in one.steps]) for one in step.alternatives]
    return replace(step, alternatives=alternatives, tuning=None)


def _exact_parameter(parameter: RecordedParameter) -> RecordedParameter:
    if parameter.type in NUMBERS:
        return replace(parameter, type="fp64")
    if parameter.view is None or parameter.view.dtype not in WIDENED:
        return parameter
    view, described = _exact_view(parameter.view), parameter.descriptor
    if described is not None:
        described = replace(described, element="fp64", tf32=False)
    return replace(parameter, view=view, offset=view.offset, descriptor=described)


def _exact_bytes(step: PythonNumbers) -> bytes:
    if step.view.dtype not in WIDENED:
        return step.bytes
    numbers = torch.frombuffer(bytearray(step.bytes), dtype=DTYPES[step.view.dtype]) if step.bytes else torch.empty(0)
    return struct.pack(f"<{numbers.numel()}d", *numbers.tolist())


def _exact_result(returned: Returned) -> Returned:
    dtype = "float64" if returned.dtype in WIDENED else returned.dtype
    view = returned.view and _exact_view(returned.view)
    return replace(returned, dtype=dtype, view=view, items=[_exact_result(item) for item in returned.items])
