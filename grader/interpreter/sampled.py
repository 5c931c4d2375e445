"""Carries out some programs of each launch of a call, on memory that is made when they touch it.

Sizes that only a GPU can handle have more programs and bytes than can be carried out here. A sample of whole programs
shows where addresses lead, and what these programs store. The stores of the other programs are not known: memory that
another launch may have written counts as initialised.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from grader.interpreter.batch import Batch
from grader.interpreter.buffers import Buffer
from grader.interpreter.call import InterpretedCall, first_view, view_of, view_of_spec
from grader.interpreter.dtypes import Unsupported
from grader.interpreter.launch import run_launch
from grader.interpreter.program import ReadyKernel
from grader.interpreter.traffic import SUMS, ByteCounts
from grader.interpreter.views import BufferView
from grader.numerics.drawn_pages import entries_in
from grader.wire.recorded_results import results_by_name

MOST_PAGED = 160 << 20  # bytes of the pages of one buffer
MOST_LANES = 1 << 25  # elements that the operations of a launch yield; no further program is begun after that
MOST_LANES_OF_ONE = 1 << 26  # a program that goes on for this many more is given up
MOST_STEPS = 100_000  # operations of a launch: a program that goes through millions of rows is left to a GPU
LONG_AXIS = 256  # programs along an axis, of which two are chosen for their distance
MOST_NUMBERED = 1 << 31  # only programs below this number are chosen


class SampledCall(InterpretedCall):
    """A call of which a sample of programs runs. `inputs`: the bytes of each argument's table, none for an output."""

    run_programs = 0  # of the last launch
    all_ran = True  # whether no launch so far has a program that was not run

    def _buffers(self) -> Iterator[Buffer]:
        arguments = iter(zip(self.request.arguments, self.inputs, strict=True))
        for number, buffer in enumerate(self.recorded.buffers):
            if buffer.argument:
                spec, table = next(arguments)
                view = view_of_spec(spec)
                content = _content(table, view) if table.size else None
                read_only = spec.name not in self.request.writable
                made = Buffer(spec.name, spec.size, read_only=read_only, view=view, content=content, given=True,
                              virtual=True)  # fmt: skip
            else:
                view = first_view(self.recorded.steps, number) or BufferView(0, (buffer.bytes,), (1,), 1)
                made = Buffer("", buffer.bytes, initialised=False, view=view, virtual=True)
            made.most_paged = MOST_PAGED
            yield made

    def _run(self, kernel: ReadyKernel, batch: Batch, arguments: list[Any], grid: tuple[int, ...]) -> None:
        if kernel.waits:
            raise Unsupported("its programs wait for each other, and a sample of them would wait in vain")
        if len(self.launches) > 1:
            for buffer in self.buffers:
                buffer.shadow.initialised = None
        sample = self.request.sample
        if sample is None:
            raise Unsupported("no sample was asked for")
        batch.most_lanes, batch.most_steps, self.run_programs = MOST_LANES_OF_ONE, MOST_STEPS, 0
        self.memory.count_readers = False  # a table by program number: here numbers are as large as the grid
        before = {buffer: replace(buffer.counts) for buffer in self.buffers}
        for program in programs_of(grid, sample.programs, sample.seed):
            if batch.lanes > MOST_LANES:
                break
            batch.most_lanes = batch.lanes + MOST_LANES_OF_ONE
            run_launch(kernel, batch, arguments, np.array([program]))
            self.run_programs += 1
        self.all_ran &= self.run_programs == math.prod(grid)
        if self.request.count_traffic:
            self._count_for_all(before, math.prod(grid))

    def _count_for_all(self, before: dict[Buffer, ByteCounts], programs: int) -> None:
        """Scales a launch's traffic to all of its programs, as if each moved as much as a program of the sample."""
        for buffer, earlier in before.items():
            for name in SUMS:
                count = getattr(earlier, name)
                more = (getattr(buffer.counts, name) - count) * programs // max(self.run_programs, 1)
                setattr(buffer.counts, name, count + more)

    def _outputs(self) -> tuple[dict, bytes]:
        """Returns the reply's fields and blob: for each result the stored elements, as offsets, programs and values."""
        request, sampled, blob = self.request, [], bytearray()
        results = results_by_name(self.recorded.returned, request.arguments, request.returns, request.updates)
        for name, result in results.items():
            buffer, view = self.buffers[result.buffer], view_of(result)
            self.memory.name_result(buffer, name, view)
            offsets, programs = buffer.written(view.item)
            values = buffer.words(view.item)[buffer.places(offsets) // view.item]
            sampled.append({
                "name": name, "dtype": result.dtype, "shape": view.shape, "strides": view.strides,
                "start": len(blob), "stored": offsets.size, "programs": self.run_programs,
                "all_ran": self.all_ran, "grid": list(buffer.last_grid),
            })  # fmt: skip
            blob += ((offsets - view.offset) // view.item).tobytes() + programs.tobytes() + values.tobytes()
        return {"outputs": [], "sampled": sampled}, bytes(blob)


def _content(table: np.ndarray, view: BufferView) -> Callable[[np.ndarray], np.ndarray]:
    """Returns the function that gives the values of elements by their numbers."""
    values, first = table.view(f"u{view.item}"), view.offset // view.item
    return lambda elements: values[entries_in(values.size, elements, view.shape, view.strides, first)]


def programs_of(grid: tuple[int, ...], count: int, seed: int) -> list[int]:
    """Returns the numbers of at most `count` programs: the first, the last, corners of the grid, programs a power of
    two apart, which a number of fewer bits takes for the same one, and random programs.

    A number counts the first axis fastest. The last program comes second: of long programs only a few are run, and what
    is judged of a sample takes for granted that the last is one of them.
    """
    x, y, z = grid
    total = x * y * z
    if total <= count:
        return list(dict.fromkeys([0, total - 1, *range(total)]))[:total]
    corners = [(c * y + b) * x + a for c in (0, z - 1) for b in (0, y - 1) for a in (0, x - 1)]
    numbers = np.random.default_rng(seed)
    drawn = (int(number) for number in numbers.integers(0, total, 8 * count))
    apart = itertools.chain(*(_a_power_apart(grid, axis, numbers) for axis in range(3)))
    chosen = dict.fromkeys(itertools.chain([0, total - 1], corners, apart, drawn))
    return [number for number in chosen if number < MOST_NUMBERED][:count]


def _a_power_apart(grid: tuple[int, ...], axis: int, numbers: np.random.Generator) -> list[int]:
    """Returns the numbers of two programs that lie the largest power of two apart along an axis: whoever reads fewer
    bits of its number takes the second for the first."""
    if grid[axis] < LONG_AXIS:
        return []
    distance = 1 << (grid[axis] - 1).bit_length() - 1
    first = [int(numbers.integers(0, length)) for length in grid]
    first[axis] = int(numbers.integers(0, grid[axis] - distance))
    number = first[0] + grid[0] * (first[1] + grid[1] * first[2])
    return [number, number + math.prod(grid[:axis]) * distance]
