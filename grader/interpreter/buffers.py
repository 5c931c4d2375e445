"""The memory of a call: buffers of bytes, and the pointers that name a launch's parameter and an offset in its buffer.

    pointer = (number of the launch's parameter + 1) << 48 | (1 << 46) + byte offset from the buffer's first byte

The bias lets an offset be negative without changing the number, so a pointer always tells which parameter it was made
from, wherever it leads. A buffer too large to hold is virtual: its pages are made when they are first touched.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from grader.interpreter.shadow import Shadow
from grader.interpreter.traffic import ByteCounts
from grader.interpreter.views import BufferView

SHIFT = 48
BIAS = 1 << 46
POISON = 0xFF  # every byte of memory that nobody has written: NaN for floats, -1 for integers
# The byte that repeats in lanes that read outside of any memory, by name of a fill; 0x5A5A is 203 in fp16.
FILLS = {"poison": POISON, "zero": 0, "lowest": 0, "large": 0x5A}
MOST_DENSE = 256 << 20  # bytes; a larger buffer without data is virtual
MOST_PAGED = 256 << 20  # bytes of one virtual buffer's pages; what is recorded about them takes two to four times that
PAGE = 1 << 12  # bytes; each row of a tile may touch another page
PAGE_BITS = PAGE.bit_length() - 1


class OutOfMemory(Exception):
    """A kernel touched more of its virtual buffers than this process may hold."""


def base_of(parameter: int) -> int:
    """Returns the pointer to its buffer's first byte that a launch's parameter, counted from 0, carries."""
    return (parameter + 1) << SHIFT | BIAS


class Buffer:
    """The bytes of one storage of a call, an argument's or an allocation's, and who read and wrote them.

    name: of the entry's argument, or "" for memory that the entry allocates. view: the tensor that names this storage.
    data: uint8, copied. None: the bytes are poison, or computed by `content`, which maps numbers of elements (int64) to
    their values; elements have `view.item` bytes and are counted from the buffer's first byte. given: the buffer is an
    argument of the entry; then `view` is that argument, and no other byte of the buffer belongs to the entry.
    """

    def __init__(
        self, name: str, nbytes: int, *, data: np.ndarray | None = None, initialised: bool = True,
        read_only: bool = False, view: BufferView, content: Callable[[np.ndarray], np.ndarray] | None = None,
        given: bool = False, virtual: bool = False,
    ):  # fmt: skip
        self.name, self.parameter = name, ""
        self.nbytes, self.view, self.read_only, self.given = nbytes, view, read_only, given
        self.address = 0  # pretended; a Memory gives one to each of its buffers
        self._content, self._content_item = content, view.item
        self.last_grid = (1, 1, 1)  # of the launch that wrote here last
        self.results: list[tuple[str, BufferView]] = []  # results of the entry in this memory, if it was allocated
        self.counts = ByteCounts()
        virtual = virtual or (data is None and (content is not None or nbytes > MOST_DENSE))
        self.most_paged = MOST_PAGED
        self.pages: dict[int, int] | None = {} if virtual else None  # number of a page -> of its frame in `bytes`
        self.bytes = np.full(PAGE if virtual else -(-nbytes // 8) * 8, POISON, np.uint8)
        if data is not None:
            self.bytes[:nbytes] = data.reshape(-1).view(np.uint8)[:nbytes]
        self._words: dict[int, np.ndarray] = {}
        self.shadow = Shadow(self.bytes.size, view.item, initialised, fixed=not virtual)

    @property
    def label(self) -> str:
        """The name of the entry's argument or result; "scratch" and a parameter's name for memory of kernels alone."""
        return self.name or (f"scratch {self.parameter}" if self.parameter else "")

    def part_at(self, offset: int) -> tuple[str, BufferView]:
        """Returns the name and the view of the tensor at this byte offset.

        It is the first result of the entry with an element there, if results lie in the buffer.
        """
        parts = (part for part in self.results if part[1].holds(offset))
        return next(parts, (self.label, self.view))

    def words(self, item: int) -> np.ndarray:
        """Returns all bytes as unsigned integers of `item` (1, 2, 4 or 8) bytes, not copied."""
        words = self._words.get(item)
        if words is None:
            words = self._words[item] = self.bytes.view(f"u{item}")
        return words

    # ---- pages -------------------------------------------------------------------------------------------------

    def places(self, offsets: np.ndarray) -> np.ndarray:
        """Returns the positions in `bytes` of these byte offsets (int64, inside of the buffer).

        Makes the pages of a virtual buffer that it needs. Raises OutOfMemory.
        """
        if self.pages is None or not offsets.size:
            return offsets
        numbers = offsets >> PAGE_BITS
        ends = np.flatnonzero(numbers[1:] != numbers[:-1]) + 1
        starts = np.concatenate([[0], ends])
        frames = [self._frame(self.pages, number) for number in numbers[starts].tolist()]
        lengths = np.diff(np.append(starts, numbers.size))
        return np.repeat(np.array(frames, np.int64) << PAGE_BITS, lengths) | (offsets & (PAGE - 1))

    def _frame(self, pages: dict[int, int], number: int) -> int:
        frame = pages.get(number)
        if frame is None:
            frame = pages[number] = len(pages)
            start = frame << PAGE_BITS
            if start >= self.bytes.size:
                self._grow(2 * self.bytes.size)
            if self._content is not None:
                drawn = self._drawn(self._content, number)
                self.bytes[start : start + drawn.size] = drawn
        return frame

    def _grow(self, size: int) -> None:
        if size > self.most_paged:
            raise OutOfMemory(f"a kernel touched more than {self.most_paged >> 20} MiB of {self.label or 'a buffer'}")
        self.bytes = np.concatenate([self.bytes, np.full(size - self.bytes.size, POISON, np.uint8)])
        self._words = {}
        self.shadow.grow(size)

    def _drawn(self, content: Callable[[np.ndarray], np.ndarray], number: int) -> np.ndarray:
        first, item = number << PAGE_BITS, self._content_item
        end = min(first + PAGE, self.nbytes)
        return np.ascontiguousarray(content(np.arange(first // item, end // item, dtype=np.int64))).view(np.uint8)

    # ---- what the host does, and what it gets back -------------------------------------------------------------

    def write(self, view: BufferView, values: np.ndarray) -> None:
        """Carries out a fill or a copy by the host. Raises OutOfMemory for too large a part of a virtual buffer.

        values: elements of `view.item` bytes, in the view's shape or broadcast to it.
        """
        raw = np.ascontiguousarray(values).view(f"u{view.item}").reshape(np.shape(values))
        self.shadow.refine(view.item)
        step = view.item // self.shadow.unit
        if self.pages is None:
            _strided(self.words(view.item), view, 1)[...] = raw
            if self.shadow.initialised is not None:
                for part in range(step):
                    _strided(self.shadow.initialised, view, step, part)[...] = True
            return
        if raw.ndim == 0 and view.span * view.item == self.nbytes and not view.has_holes:
            self._fill(raw)
            return
        if math.prod(view.shape) * view.item > self.most_paged:
            raise OutOfMemory(f"the host fills more than {self.most_paged >> 20} MiB of a part of a buffer")
        offsets = self.places(view.offsets)
        self.words(view.item)[offsets // view.item] = np.broadcast_to(raw, view.shape).reshape(-1)
        for part in range(step):
            self.shadow.fill(offsets // self.shadow.unit + part)

    def _fill(self, value: np.ndarray) -> None:
        """Sets every element of a virtual buffer to this value, including pages that are made later."""
        self.words(value.itemsize)[:] = value
        self._content = lambda elements: np.full(elements.shape, value)
        self._content_item = value.itemsize
        self.shadow.initialised = None

    def read(self, view: BufferView) -> np.ndarray:
        """Returns a copy of the view's elements as unsigned integers, in the view's shape."""
        if self.pages is None:
            return _strided(self.words(view.item), view, 1).copy()
        places = self.places(view.offsets)
        return self.words(view.item)[places // view.item].reshape(view.shape)

    def written(self, item: int) -> tuple[np.ndarray, np.ndarray]:
        """Returns byte offsets (int64) of elements that kernels have written, and the last writer of each (int32)."""
        self.shadow.refine(item)
        step = item // self.shadow.unit
        table = self.shadow.writers()[::step]
        places = np.flatnonzero(table >= 0)
        offsets = places * item
        if self.pages is not None:
            numbers = np.array(list(self.pages), np.int64)  # by frame: frames are numbered in the order of their making
            offsets = numbers[offsets >> PAGE_BITS] << PAGE_BITS | (offsets & (PAGE - 1))
        return offsets, table[places]

    def writers(self, view: BufferView) -> np.ndarray:
        """Returns int32 in the view's shape: the last program that wrote each element, negative if there is none."""
        self.shadow.refine(view.item)
        if self.pages is None:
            return _strided(self.shadow.writers(), view, view.item // self.shadow.unit).copy()
        return self.shadow.writers()[self.places(view.offsets) // self.shadow.unit].reshape(view.shape)


def _strided(table: np.ndarray, view: BufferView, step: int, part: int = 0) -> np.ndarray:
    """Returns entry number `part` of each of the view's elements, in the view's shape.

    `table` holds `step` entries for each element of the buffer; the result shares its memory.
    """
    if not all(view.shape):
        return np.empty(view.shape, table.dtype)
    strides = [stride * step * table.itemsize for stride in view.strides]
    return np.lib.stride_tricks.as_strided(table[view.offset // view.item * step + part :], view.shape, strides)


class Argument:
    """A pointer parameter of a launch: its name in the kernel, where it points, and the tensor it was made from."""

    def __init__(self, name: str, buffer: Buffer, offset: int = 0, view: BufferView | None = None) -> None:
        """Makes a parameter that points `offset` bytes into a buffer. view: None stands for all of the buffer."""
        item = buffer.view.item
        self.name, self.buffer, self.offset = name, buffer, offset
        self.view = BufferView(0, (buffer.nbytes // item,), (1,), item) if view is None else view
