"""Checks numbers on the way to addresses and masks: notes where a value does not fit its type, without ending the run.

An offset that wraps around, or that fp32 rounds, leads to another element, which may well lie in bounds. Wrapping alone
is no mistake: masked lanes may do it. It is noted where an active lane uses the offset, or where a mask is computed
from it (lost_offsets.py follows the lanes), and explains a call that has gone wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from grader.interpreter.batch import NotedOverflow
from grader.interpreter.dtypes import dtype_of, is_float
from grader.interpreter.frame import Frame
from grader.interpreter.known_operations import ACCESSES, entry_of
from grader.interpreter.lost_offsets import Lanes, hand_on
from grader.ttir.data_flow import Value, sources_of
from grader.ttir.module import Module, Operation

MOST_NOTED = 16  # of one launch
# Operations whose result is no longer an offset: memory's content, or the truth of a comparison of floats.
ENDS = (*ACCESSES, "arith.cmpf", "tt.dot", "tt.map_elementwise", "tt.reduce", "tt.scan")


def leading_to_memory(module: Module) -> set[Value]:
    """Returns the integers and floats from which any address, mask or corner of a block is computed."""
    made_of, values = sources_of(module, ENDS), set()
    waiting = [(f.name, value) for f in module.functions.values() for op in f.walk() for value in _roots(op)]
    while waiting:
        value = waiting.pop()
        if value not in values:
            values.add(value)
            waiting += made_of[value]
    return values


def _roots(op: Operation) -> list[int]:
    """Returns the values that say where an access leads, or whether it takes place; [] for any other operation."""
    return [op.operands[at] for at in ACCESSES[op.name].leading(op)] if op.name in ACCESSES else []


# ---- what is noted ---------------------------------------------------------------------------------------------------


def with_checks(operation: Operation, run: Callable, stateful: bool, leads: bool) -> Callable | None:
    """Returns `run` with a check of offsets, as a function of the frame and the operands; None where none is needed.

    The result of an operation that leads to memory is compared with the exact result, and takes over the lost lanes of
    the operands. An access notes the lost lanes that it uses. No integer of 64 bits is checked: no memory has that many
    elements.
    """
    if operation.name in ACCESSES:
        return _using(operation, run)
    if leads and operation.operands and operation.name not in ENDS and not entry_of(operation.name).control:
        return _losing(operation, run, stateful)
    return None


def _losing(operation: Operation, run: Callable, stateful: bool) -> Callable:
    check = _check(operation)
    origin = (_name(operation), operation.place) if check is not None else ("", operation.place)

    def checked(frame: Frame, *operands: Any) -> Any:
        out = run(frame, *operands) if stateful else run(*operands)
        if not frame.batch.checks_offsets:
            return out
        lost = frame.batch.lost
        if lost:
            hand_on(lost, operation, run, operands, out)
        bad = check(out, *operands) if check is not None else None
        if bad is not None:
            lost.note(out, origin, bad)
        return out

    return checked


def _using(operation: Operation, run: Callable) -> Callable:
    """Returns `run` for an access, which first notes the lost lanes that it uses.

    Its operands say where it leads, and a mask, if it has one, in which lanes.
    """
    entry = ACCESSES[operation.name]
    where, at = entry.leading(operation), entry.mask_of(operation)

    def checked(frame: Frame, *operands: Any) -> Any:
        lost = frame.batch.lost
        if lost:
            mask = None if at is None else operands[at]
            for number in where:
                active = mask if number != at else None  # lanes that are off because of a lost number count, too
                _note(frame, lost.of(operands[number]), active)
        return run(frame, *operands)

    return checked


def _note(frame: Frame, lanes: Lanes, mask: np.ndarray | None) -> None:
    """Notes the first program that runs here and uses a lost lane."""
    for (held, place), bad in lanes.items():
        used = bad if mask is None else bad & mask
        rows = used.reshape(len(used), -1).any(axis=1)
        rows = np.broadcast_to(rows, (frame.count,)) & frame.everyone()
        overflows = frame.batch.overflows
        if rows.any() and len(overflows) < MOST_NOTED and all(overflow.place != place for overflow in overflows):
            overflows.append(NotedOverflow(held, place, int(frame.batch.programs[int(np.argmax(rows))])))


def _name(operation: Operation) -> str:
    dtype = dtype_of(operation.result_types[0])
    return str(dtype) if not is_float(dtype) else "fp32" if dtype.itemsize == 4 else str(dtype).replace("float", "fp")


def _check(operation: Operation) -> Callable[..., np.ndarray | None] | None:
    """Returns a function (result, operands) -> bools, true where the result is not exact, or None: nowhere.

    None for an operation that needs no check.
    """
    if len(operation.results) != 1 or operation.result_types[0].kind != "number":
        return None
    dtype, name = dtype_of(operation.result_types[0]), operation.name
    if dtype.kind == "i" and dtype.itemsize < 8:
        return _of_integers(name, dtype)
    if is_float(dtype) and dtype.itemsize < 8:
        return _of_floats(name)
    return None


EXACT = {"addi": np.add, "subi": np.subtract, "muli": np.multiply, "addf": np.add, "subf": np.subtract,
         "mulf": np.multiply}  # fmt: skip


def _of_integers(name: str, dtype: np.dtype) -> Callable[..., np.ndarray | None] | None:
    limits = np.iinfo(dtype)
    if name == "arith.trunci":
        return lambda out, x: out.astype(x.dtype) != x
    exact = EXACT.get(name.removeprefix("arith."))
    if exact is None:
        return None

    def lost(out: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray | None:
        ends = [exact(int(a), int(b)) for a in (x.min(), x.max()) for b in (y.min(), y.max())]
        if limits.min <= min(ends) and max(ends) <= limits.max:
            return None
        return exact(x.astype(np.int64), y.astype(np.int64)) != out

    return lost


def _of_floats(name: str) -> Callable[..., np.ndarray | None] | None:
    """Returns a check for rounded whole numbers. Other floats are rounded as a matter of course."""
    if name in ("arith.sitofp", "arith.uitofp"):
        return lambda out, x: out.astype(np.float64) != x.astype(np.float64)
    exact = EXACT.get(name.removeprefix("arith."))
    if exact is None:
        return None

    def lost(out: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        wanted = exact(x.astype(np.float64), y.astype(np.float64))
        return (out.astype(np.float64) != wanted) & (np.floor(wanted) == wanted) & np.isfinite(wanted)

    return lost
