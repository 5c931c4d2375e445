"""Loads and stores of a small call's programs: accesses in words, and the programs that touch each element."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from grader.wire.messages import LoggedAccess

Program = tuple[int, ...]
MOST_NAMED = 4  # elements of an access that is no block
MOST_OF_SCRATCH = 64  # elements; longer memory that only kernels see is not shown


@dataclass(frozen=True)
class TouchedArgument:
    """An argument, and for each of its elements the programs that load it or store it, in their order."""

    name: str
    shape: tuple[int, ...]
    verb: str  # "loads" or "stores"
    programs: tuple[tuple[Program, ...], ...]  # by element, row by row

    @property
    def rows(self) -> int:
        return math.prod(self.shape[:-1])

    @property
    def columns(self) -> int:
        return self.shape[-1] if self.shape else 1

    def of(self, row: int, column: int) -> tuple[Program, ...]:
        return self.programs[row * self.columns + column]


def verb_of(access: LoggedAccess) -> str:
    return {"load": "loads", "store": "stores"}.get(access.kind, "updates")


def touched(accesses: Iterable[LoggedAccess], shapes: dict[str, tuple[int, ...]]) -> list[TouchedArgument]:
    """Returns the loaded arguments, then the stored arguments. Accesses outside of an argument are left out.

    Of several launches each has its own arguments, with the memory that only kernels see. `shapes`: by argument.
    """
    accesses = list(accesses)
    several = len({access.launch for access in accesses}) > 1
    shapes = _shapes_of_scratch(accesses) | shapes if several else shapes
    programs: dict[tuple[int, str, str], list[dict[Program, None]]] = {}
    for access in accesses:
        shape = shapes.get(access.argument)
        if shape is None:
            continue
        key = access.launch if several else 0, "loads" if access.kind == "load" else "stores", access.argument
        cells = programs.setdefault(key, [{} for _ in range(math.prod(shape))])
        for element in access.elements:
            if 0 <= element < len(cells):
                cells[element][tuple(access.program)] = None
    ordered = sorted(programs.items(), key=lambda item: item[0][:2])
    return [
        TouchedArgument(
            f"launch {launch + 1}, {name}" if several else name, shapes[name], verb, tuple(map(tuple, cells))
        )
        for (launch, verb, name), cells in ordered
    ]


def _shapes_of_scratch(accesses: list[LoggedAccess]) -> dict[str, tuple[int, ...]]:
    """Returns the shapes of memory that only kernels see, up to the last touched element; long memory is left out."""
    ends: dict[str, int] = {}
    for access in accesses:
        if access.argument.startswith("scratch "):
            ends[access.argument] = max(ends.get(access.argument, 0), *(element + 1 for element in access.elements))
    return {name: (end,) for name, end in ends.items() if 0 < end <= MOST_OF_SCRATCH}


def in_words(access: LoggedAccess, shape: tuple[int, ...], all_right: bool = True) -> str:
    """Returns "x[0:2, 4:5], 6 of 8 lanes touch nothing"; without `all_right` these lanes may also lie outside."""
    lanes = [element for element in access.elements if element >= 0]
    masked = len(access.elements) - len(lanes)
    where = _block(access.argument, sorted(set(lanes)), shape)
    if not masked:
        return where
    count = f"{masked} of {len(access.elements)} lane{'' if len(access.elements) == 1 else 's'}"
    if not all_right:
        return f"{where}, {count} {'is' if masked == 1 else 'are'} masked off or outside"
    return f"{where}, {count} {'touches' if masked == 1 else 'touch'} nothing"


def _block(name: str, elements: list[int], shape: tuple[int, ...]) -> str:
    """Returns the elements as a slice if they form a block, or else the first few of them."""
    if not elements:
        return f"nothing of {name}"
    indices = [_index(element, shape) for element in elements]
    spans = [sorted({index[axis] for index in indices}) for axis in range(len(shape))]
    whole = all(span == list(range(span[0], span[-1] + 1)) for span in spans)
    if whole and math.prod(map(len, spans)) == len(elements):
        return f"{name}[{', '.join(_slice(span) for span in spans)}]"
    named = ", ".join(f"{name}[{', '.join(map(str, index))}]" for index in indices[:MOST_NAMED])
    return f"{named}{', ...' if len(elements) > MOST_NAMED else ''} ({len(elements)} elements)"


def _slice(span: list[int]) -> str:
    return str(span[0]) if len(span) == 1 else f"{span[0]}:{span[-1] + 1}"


def _index(element: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    index = []
    for size in reversed(shape):
        element, at = divmod(element, size)
        index.append(at)
    return tuple(reversed(index))
