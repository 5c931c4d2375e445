"""What interpreted kernels pay for checked memory: python benchmarks/checked_memory.py [--rounds 5]

Accesses as some kernels make them, in batches of programs; the processor's time is the memory's alone: no pointers are
made, no values computed. "bare" is the least that numpy needs to move the same values.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from grader.interpreter.buffers import Argument, Buffer, BufferView, base_of
from grader.interpreter.memory import CheckedMemory
from grader.ttir.module import SourcePlace

ELEMENTS = 1 << 18  # of a batch


@dataclass
class Step:
    """One access of a batch: `offsets` [programs, lanes] int64, in bytes."""

    kind: str
    argument: int
    offsets: np.ndarray


@dataclass
class Case:
    name: str
    programs: int
    lanes: int
    arguments: Callable[[], list[Argument]]
    steps: Callable[[np.ndarray], list[Step]]  # of a batch of programs
    options: dict


def matrix(name: str, rows: int, columns: int, stride: int = 0, kept: bool = True) -> Argument:
    """float32; `kept`: an input, initialised and not to be written."""
    view = BufferView(0, (rows, columns), (stride or columns, 1), 4)
    data = np.zeros(view.high, np.uint8) if kept else None
    return Argument(name, Buffer(name, view.high, data=data, initialised=kept, read_only=kept, view=view), 0, view)


def add(count: int, block: int, **options) -> Case:
    def steps(programs: np.ndarray) -> list[Step]:
        offsets = 4 * (programs[:, None] * block + np.arange(block))
        return [Step("load", 0, offsets), Step("load", 1, offsets), Step("store", 2, offsets)]

    def arguments() -> list[Argument]:
        return [matrix("x", 1, count), matrix("y", 1, count), matrix("z", 1, count, kept=False)]

    counted = ", traffic counted" if options else ""
    return Case(f"add of {count}, blocks of {block}{counted}", count // block, block, arguments, steps, options)


def softmax(rows: int, columns: int, stride: int) -> Case:
    def steps(programs: np.ndarray) -> list[Step]:
        lanes = np.arange(columns)
        read, written = (4 * (programs[:, None] * n + lanes) for n in (stride, columns))
        return [Step("load", 0, read), Step("store", 1, written)]

    def arguments() -> list[Argument]:
        return [matrix("x", rows, columns, stride), matrix("z", rows, columns, kept=False)]

    name = f"softmax of {rows} x {columns}, rows {stride} apart"
    return Case(name, rows, columns, arguments, steps, {})


def transpose(size: int, tile: int) -> Case:
    across = size // tile

    def steps(programs: np.ndarray) -> list[Step]:
        row, column = (n[:, None, None] * tile for n in (programs // across, programs % across))
        i, j = np.arange(tile)[:, None], np.arange(tile)
        read, written = (row + i) * size + column + j, (column + j) * size + row + i
        return [Step("load", 0, 4 * read), Step("store", 1, 4 * written)]

    def arguments() -> list[Argument]:
        return [matrix("x", size, size), matrix("z", size, size, kept=False)]

    return Case(f"transpose of {size} x {size}, tiles of {tile}", across**2, tile**2, arguments, steps, {})


def product(size: int, tile: int, **options) -> Case:
    across = size // tile

    def steps(programs: np.ndarray) -> list[Step]:
        row, column = (n[:, None, None] * tile for n in (programs // across, programs % across))
        i, j = np.arange(tile)[:, None], np.arange(tile)
        made = []
        for k in range(0, size, tile):
            made.append(Step("load", 0, 4 * ((row + i) * size + k + j)))
            made.append(Step("load", 1, 4 * ((k + i) * size + column + j)))
        return [*made, Step("store", 2, 4 * ((row + i) * size + column + j))]

    def arguments() -> list[Argument]:
        return [matrix("a", size, size), matrix("b", size, size), matrix("c", size, size, kept=False)]

    counted = ", traffic of 8 at once" if options else ""
    return Case(f"product of {size}, tiles of {tile}{counted}", across**2, tile**2, arguments, steps, options)


def histogram(count: int, block: int, bins: int) -> Case:
    keys = np.random.default_rng(0).integers(0, bins, count)

    def steps(programs: np.ndarray) -> list[Step]:
        at = programs[:, None] * block + np.arange(block)
        return [Step("load", 0, 4 * at), Step("atomic", 1, 4 * keys[at])]

    def arguments() -> list[Argument]:
        return [matrix("x", 1, count), matrix("z", 1, bins, kept=False)]

    return Case(f"histogram of {count} in {bins} bins", count // block, block, arguments, steps, {})


def batches(case: Case) -> Iterator[np.ndarray]:
    size = max(1, ELEMENTS // case.lanes)
    for start in range(0, case.programs, size):
        yield np.arange(start, min(start + size, case.programs), dtype=np.int32)


def checked(case: Case) -> float:
    """Seconds; the pointers are made before the clock runs."""
    memory, arguments, spent = CheckedMemory(**case.options), case.arguments(), 0.0
    memory.begin_launch((case.programs, 1, 1), 1, arguments)
    for programs in batches(case):
        memory.begin_batch(programs)
        owners = np.repeat(programs, case.lanes)
        for line, step in enumerate(case.steps(programs)):
            pointers = (base_of(step.argument) + step.offsets).reshape(-1)
            values = np.zeros(pointers.size, np.uint32)
            start = time.thread_time()
            if step.kind == "load":
                memory.load(pointers, 4, SourcePlace(line), owners)
            elif step.kind == "store":
                memory.store(pointers, values, 4, SourcePlace(line), owners)
            else:
                memory.atomic(pointers, 4, SourcePlace(line), owners, lambda old, which: old + np.uint32(1))
            spent += time.thread_time() - start
    start = time.thread_time()
    memory.end_launch()
    assert not memory.findings()
    return spent + time.thread_time() - start


def bare(case: Case) -> float:
    arguments, spent = case.arguments(), 0.0
    for programs in batches(case):
        for step in case.steps(programs):
            words, index = arguments[step.argument].buffer.words(4), (step.offsets // 4).reshape(-1)
            values = np.zeros(index.size, np.uint32)
            start = time.thread_time()
            if step.kind == "load":
                words[index]
            elif step.kind == "store":
                words[index] = values
            else:
                np.add.at(words, index, np.uint32(1))
            spent += time.thread_time() - start
    return spent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    cases = [
        add(1 << 20, 1024), add(1 << 20, 1024, count_traffic=True), softmax(256, 1000, 1000), softmax(256, 1000, 1024),
        softmax(4096, 4096, 4096), transpose(2048, 32), product(1024, 64),
        product(512, 32, count_traffic=True, at_once=8), histogram(1 << 18, 1024, 256),
    ]  # fmt: skip
    print(f"{'':56} {'checked':>10} {'bare':>10}")
    for case in cases:
        times = [min(measure(case) for _ in range(rounds)) for measure in (checked, bare)]
        print(f"{case.name:56} {1e3 * times[0]:7.1f} ms {1e3 * times[1]:7.1f} ms", flush=True)


if __name__ == "__main__":
    main()
