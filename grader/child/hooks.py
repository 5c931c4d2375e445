"""Where the memory checker takes hold of Triton's interpreter: the same names in Triton 3.6.0 to 3.9.0.

The trailing arguments of the builder's functions differ between the releases and are passed on as they come.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator

import numpy as np
import torch
import triton.language as tl
from triton.runtime import interpreter

from grader.child.memory import MemoryChecker
from grader.child.pointers import TAG_SHIFT, make_handle

BUILDER = getattr(interpreter, "InterpreterBuilder", None)
EXECUTOR = getattr(interpreter, "GridExecutor", None)


def _number_pointers(checker, original):
    def convert(argument):
        converted = original(argument)
        tag = checker.tags.get(id(argument)) if hasattr(argument, "data_ptr") else None
        if tag is not None:
            converted.handle.data = np.array([int(converted.handle.data[0]) | tag << TAG_SHIFT], np.uint64)
        return converted

    return convert


def _launch(checker, original):
    def launch(executor, *args, **kwargs):
        grid = executor.grid

        def noted_grid(meta):  # asked for after the arguments are registered
            given = _whole(grid(meta) if callable(grid) else grid)
            checker.grid_given(given)
            return given

        executor.grid = noted_grid
        try:
            # What masked lanes hold makes inf - inf. The interpreter's own torch calls need no naming.
            with np.errstate(all="ignore"), torch._C.DisableTorchFunction():
                return original(executor, *args, **kwargs)
        finally:
            checker.end_launch()

    return launch


def _whole(grid):
    if not isinstance(grid, (tuple, list)):
        raise TypeError("the grid must be a tuple, such as (n,)")
    if not all(hasattr(size, "__index__") for size in grid):
        raise TypeError("the grid must hold whole numbers: triton.cdiv rounds up")
    return tuple(int(size) for size in grid)


def _defaults(function) -> dict[str, object]:
    parameters = inspect.signature(function).parameters.values()
    return {p.name: p.default for p in parameters if p.default is not p.empty}


def _register_arguments(checker, original):
    def init_args(executor, args, kwargs):
        host_args, host_kwargs = original(executor, args, kwargs)
        named = [*zip(executor.arg_names, host_args, strict=False), *host_kwargs.items()]
        given = {name for name, _ in named}
        named += [(name, value) for name, value in _defaults(executor.fn).items() if name not in given]
        checker.begin_launch(getattr(executor.fn, "__name__", "kernel"), named)
        return host_args, host_kwargs

    return init_args


def _begin_grid(checker, original):
    def set_grid_dim(builder, x, y, z):
        checker.begin_grid((x, y, z))
        return original(builder, x, y, z)

    return set_grid_dim


def _begin_program(checker, original):
    def set_grid_idx(builder, x, y, z):
        return original(builder, *checker.begin_program(x, y, z))

    return set_grid_idx


def _load(checker, original):
    def load(builder, pointers, mask, other, *rest, **named):
        asked = mask = _as_handle(mask)
        access = checker.access(pointers, mask, "load")
        mask = access.mask
        if other is None and mask is not None and not mask.data.all():
            if not asked.data.all():
                checker.note_masked_fill()
            if checker.fill == "poison":
                other = _poison(pointers, mask.data)
        return original(builder, access.pointers, mask, other, *rest, **named)

    return load


def _poison(pointers, lanes):
    """For masked-off lanes without `other`: +inf and -inf in turn, since a maximum would skip NaN; large integers."""
    element = pointers.get_element_ty()
    dtype = np.dtype(interpreter._get_np_dtype(element))
    high, low = 0, 0
    if element == tl.bfloat16:
        high, low = 0x7F80, 0xFF80
    elif element.is_fp8():
        high, low = 0x7F, 0xFF  # NaN
    elif dtype.kind == "f":
        high, low = np.inf, -np.inf
    elif dtype.kind in "iu":
        high = np.iinfo(dtype).max // 3
        low = -high if dtype.kind == "i" else high
    masked = ~np.broadcast_to(lanes, pointers.data.shape)
    odd = (np.cumsum(masked) % 2 == 1).reshape(masked.shape)
    return make_handle(np.where(odd, high, low).astype(dtype), element)


def _store(checker, original):
    def store(builder, pointers, values, mask, *rest, **named):
        access = checker.access(pointers, _as_handle(mask), "store")
        result = original(builder, access.pointers, values, access.mask, *rest, **named)
        checker.check_lanes(access, values)
        return result

    return store


def _atomic(checker, original):
    def read_modify_write(builder, operation, pointers, values, mask, *rest, **named):
        checker.launch.atomics = True
        checker.note_semantics(rest[0] if rest else None)
        access = checker.access(pointers, _as_handle(mask), "atomic")
        return original(builder, operation, access.pointers, values, access.mask, *rest, **named)

    return read_modify_write


def _compare_and_swap(checker, original):
    def compare_and_swap(builder, pointers, expected, values, *rest, **named):
        checker.launch.atomics = True
        checker.note_semantics(rest[0] if rest else None)
        access = checker.access(pointers, None, "atomic")
        if access.mask is not None and not access.mask.data.all():  # it takes no mask: all lanes, or none
            return make_handle(np.array(expected.data), expected.dtype)
        return original(builder, access.pointers, expected, values, *rest, **named)

    return compare_and_swap


def _as_handle(mask):
    """Triton 3.6 passes the masks of descriptors as bare arrays."""
    data = mask if isinstance(mask, np.ndarray) else getattr(mask, "data", None)
    return mask if data is None else make_handle(data.astype(bool, copy=False), tl.int1)


HOOKS: list[tuple[object, str, Callable]] = [
    (interpreter, "_implicit_cvt", _number_pointers),
    (EXECUTOR, "__call__", _launch),
    (EXECUTOR, "_init_args_hst", _register_arguments),
    (BUILDER, "set_grid_dim", _begin_grid),
    (BUILDER, "set_grid_idx", _begin_program),
    (BUILDER, "create_masked_load", _load),
    (BUILDER, "create_masked_store", _store),
    (BUILDER, "create_atomic_rmw", _atomic),
    (BUILDER, "create_atomic_cas", _compare_and_swap),
]
USED = ["TensorHandle", "TensorDescriptor", "_unwrap_tensor", "_interpreter", "_get_np_dtype"]


def missing_hooks() -> list[str]:
    """What this release of Triton lacks. Any of it, and there is no memory checker: half of one would mislead."""
    missing = [name for owner, name, _ in HOOKS if not hasattr(owner, name)]
    return missing + [name for name in USED if not hasattr(interpreter, name)]


@contextlib.contextmanager
def checked_memory(checker: MemoryChecker) -> Iterator[None]:
    """Launches inside this context are checked; outside it the interpreter is as it was."""
    hooks = [] if missing_hooks() else HOOKS
    originals = [(owner, name, getattr(owner, name)) for owner, name, _ in hooks]
    try:
        for (owner, name, make), (_, _, original) in zip(hooks, originals, strict=True):
            setattr(owner, name, make(checker, original))
        yield
    finally:
        for owner, name, original in originals:
            setattr(owner, name, original)
