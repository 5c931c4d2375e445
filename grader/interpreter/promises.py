"""Checks what a kernel promises to the compiler and asserts, and keeps what it prints.

Only an assertion ends the run.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from grader.interpreter.accesses import element
from grader.interpreter.batch import KernelFault, NotedPromise
from grader.interpreter.dtypes import spelled_out
from grader.interpreter.frame import Frame
from grader.interpreter.registry import carries_out
from grader.ttir.module import Operation, Type
from grader.wire.messages import ASSUME, MAX_CONSTANCY, MAX_CONTIGUOUS, MULTIPLE_OF, UNALIGNED

# The text's name of a hint -> the kernel's.
CONTIGUITY, DIVISIBILITY = "tt.contiguity", "tt.divisibility"
HINTS = {DIVISIBILITY: MULTIPLE_OF, CONTIGUITY: MAX_CONTIGUOUS, "tt.constancy": MAX_CONSTANCY}
WIDEST = 32  # elements of a byte that one thread moves at once, on the GPUs that move most
MOST_BROKEN, MOST_PRINTED = 16, 64
SHOWN = 8  # elements of a printed tensor


def has_hints(operation: Operation) -> bool:
    return any(name in operation.attributes for name in HINTS)


def with_hints(operation: Operation, run: Callable, stateful: bool) -> Callable:
    """Returns `run` with its result checked against tl.multiple_of, tl.max_contiguous and tl.max_constancy.

    The returned function takes the frame before the operands. In a batch that believes, it returns the values that
    tl.max_contiguous promises, unchecked.
    """
    shape, step = operation.result_types[0].shape, _step_of(operation.result_types[0])
    promised = {name: _per_axis(operation.attributes[name]) for name in HINTS if name in operation.attributes}

    def checked(frame: Frame, *operands: Any) -> Any:
        out = run(frame, *operands) if stateful else run(*operands)
        if frame.batch.believes:
            return _believed(spelled_out(out, shape), promised, step)
        bad = _false_hint(spelled_out(out, shape), promised, step)
        if bad is not None:
            note(frame, HINTS[bad[0]], operation, bad[1])
            if bad[0] == CONTIGUITY:
                note(frame, UNALIGNED, operation, _unaligned(spelled_out(out, shape), promised, step))
        return out

    return checked


def _per_axis(value: Any) -> list[int]:
    values = getattr(value, "values", value)
    return [int(number) for number in values] if isinstance(values, (list, tuple)) else [int(values)]


def _step_of(kind: Type) -> int:
    """Returns what lies between neighbours of a run: 1, or the bytes of an element between addresses."""
    return element(kind).itemsize if kind.kind == "pointer" else 1


def _believed(x: np.ndarray, promised: dict[str, list[int]], step: int) -> np.ndarray:
    """Returns x as tl.max_contiguous promises it: in runs, as long as an access of a thread, values count up by 1, from
    a multiple of what tl.multiple_of says.

    A thread that moves several elements at once takes the address of the first for all of them.
    """
    multiples = promised.get(DIVISIBILITY, [])
    for axis, number in enumerate(promised.get(CONTIGUITY, [])):
        length = min(number, WIDEST)
        if length > 1 and x.ndim > axis + 1 and x.shape[axis + 1] % length == 0:
            moved = np.moveaxis(x, axis + 1, -1)
            firsts = moved.reshape(*moved.shape[:-1], -1, length)[..., :1]
            firsts = firsts - firsts % _multiple(length, step, multiples, axis)
            believed = firsts + np.arange(length, dtype=x.dtype) * step
            x = np.moveaxis(believed.reshape(moved.shape), -1, axis + 1)
    return x


def _unaligned(x: np.ndarray, promised: dict[str, list[int]], step: int) -> np.ndarray:
    """Returns bools by program: true where an access of a thread, of 2, 4 ... neighbours, would begin at no multiple of
    its own length.

    Rows that wrap around begin again in the middle of a run: 64, ..., 70, 0 and then 1, where 72 was promised.
    """
    bad = np.zeros(len(x), bool)
    for axis, number in enumerate(promised[CONTIGUITY]):
        most = _multiple(min(number, WIDEST), step, promised.get(DIVISIBILITY, []), axis) // step
        for width in (2 << power for power in range(most.bit_length() - 1)):
            if x.ndim > axis + 1:
                firsts = np.moveaxis(x, axis + 1, -1)[..., ::width]
                bad |= (firsts % (width * step) != 0).reshape(len(x), -1).any(axis=1)
    return bad


def _multiple(length: int, step: int, multiples: list[int], axis: int) -> int:
    """Returns the number of which an access of up to `length` neighbours begins at a multiple, as it is promised."""
    return math.gcd(length * step, multiples[axis]) if axis < len(multiples) else 1


def _false_hint(x: np.ndarray, promised: dict[str, list[int]], step: int) -> tuple[str, np.ndarray] | None:
    """Returns the first promise that does not hold, and a bool array by program, true where it is broken.

    None if all hold.
    """
    contiguity = promised.get(CONTIGUITY, [])
    for name, numbers in promised.items():
        for axis, number in enumerate(numbers):
            if number <= 1 or (x.ndim > 1 and axis + 1 >= x.ndim):
                continue
            if name == DIVISIBILITY:  # of the first element of each contiguous run
                run = contiguity[axis] if axis < len(contiguity) else 1
                firsts = np.moveaxis(x, axis + 1, -1)[..., :: max(run, 1)] if x.ndim > 1 else x
                wrong = firsts % number != 0
            else:
                size = x.shape[axis + 1] if x.ndim > 1 else 1
                if size % number:
                    continue
                runs = np.moveaxis(x, axis + 1, -1).reshape(len(x), -1, number)
                wrong = np.diff(runs, axis=-1) != (step if name == CONTIGUITY else 0)
            bad = wrong.reshape(len(x), -1).any(axis=1)
            if bad.any():
                return name, bad
    return None


def note(frame: Frame, what: str, operation: Operation, bad: np.ndarray | np.bool_) -> None:
    """Keeps that a promise does not hold, with the first active program for which it does not."""
    bad = np.broadcast_to(bad, (frame.count,)) & frame.everyone()
    if bad.any() and len(frame.batch.broken) < MOST_BROKEN:
        program = int(frame.batch.programs[int(np.argmax(bad)) % frame.batch.count])
        if all((broken.what, broken.place) != (what, operation.place) for broken in frame.batch.broken):
            frame.batch.broken.append(NotedPromise(what, operation.place, program))


@carries_out("llvm.intr.assume", stateful=True)
def _assume(operation: Operation) -> Callable:
    def run(frame: Frame, truth: np.ndarray) -> None:
        note(frame, ASSUME, operation, ~truth.reshape(len(truth), -1).all(axis=1))

    return run


@carries_out("tt.assert", stateful=True)
def _assert(operation: Operation) -> Callable:
    message = str(operation.attributes.get("message", ""))

    def run(frame: Frame, truth: np.ndarray) -> None:
        good = truth.reshape(len(truth), -1).all(axis=1)
        bad = np.broadcast_to(~good, (frame.count,)) & frame.everyone()
        if bad.any():
            program = int(frame.batch.programs[int(np.argmax(bad)) % frame.batch.count])
            raise KernelFault(message, operation.place, program)

    return run


@carries_out("tt.print", stateful=True)
def _print(operation: Operation) -> Callable:
    prefix = str(operation.attributes.get("prefix", ""))

    def run(frame: Frame, *values: Any) -> None:
        printed = frame.batch.printed
        if len(printed) < MOST_PRINTED:
            # A screen holds no more than the first elements that the first program of a batch prints.
            shown = [np.array2string(value[0].reshape(-1)[:SHOWN]) for value in values if isinstance(value, np.ndarray)]
            printed.append(f"program {int(frame.batch.programs[0])}:{prefix} {' '.join(shown)}".rstrip())

    return run
