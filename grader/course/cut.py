"""Which part of each input a part of a result is made of, as an exercise states it: Exercise.cut."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch

from grader.numerics.arguments import Argument, as_tensor
from grader.numerics.roundoff import EXACT

PART = re.compile(r"(\w+)\[([^\]]*)\]")


@dataclass(frozen=True)
class Cut:
    """A letter or ":" for each dimension, of inputs and results by name. Dimensions of one letter are cut alike."""

    inputs: dict[str, list[str]] = field(default_factory=dict)
    results: dict[str, list[str]] = field(default_factory=dict)

    @staticmethod
    def of(text: str) -> Cut:
        """Of "a[m, :], b[:, n] -> c[m, n]"; of "" one that cuts nothing. Inputs that are left out are numbers."""
        given, _, made = text.partition("->")
        return Cut(_letters(given), _letters(made))

    def shape(self, result: str, inputs: dict[str, torch.Tensor]) -> tuple[int, ...]:
        """A dimension has the size of the input's with its letter, or with ":" in the same place."""
        sizes = []
        for dimension, letter in enumerate(self.results[result]):
            found = (_size(dimension, letter, self.inputs[name], one) for name, one in inputs.items())
            sizes.append(next(size for size in found if size is not None))
        return tuple(sizes)

    def rows(self, result: str, names: Sequence[str], inputs: Sequence[Argument], rows: slice) -> list[Argument]:
        """What these rows of a result are made of; `rows` is a slice of its first dimension. `names`: of the inputs."""
        letter = self._row_letter(result)
        return [
            as_tensor(one)[(slice(None),) * axis + (rows,)] if (axis := self._axis(name, letter)) is not None else one
            for name, one in zip(names, inputs, strict=True)
        ]

    def rows_at_once(
        self, result: str, shape: Sequence[int], bound: str, inputs: Mapping[str, Sequence[int]], most: int
    ) -> int:
        """How many rows of a result to compare at a time: so many that neither they nor what they are made of have
        more than `most` elements, or one; all, where a bound takes all inputs whole. `inputs`: shapes."""
        made_of = self.row_elements(result, inputs)
        if bound not in EXACT and not made_of:
            return max([1, *shape[:1]])
        return max(1, most // max(1, math.prod(shape[1:]), 0 if bound in EXACT else made_of))

    def row_elements(self, result: str, inputs: Mapping[str, Sequence[int]]) -> int:
        """How many elements of all inputs a row of a result is made of alone; 0 where none is cut as the rows are."""
        letter = self._row_letter(result)
        cut = ((shape, self._axis(name, letter)) for name, shape in inputs.items())
        return sum(math.prod(shape) // max(1, shape[axis]) for shape, axis in cut if axis is not None)

    def whole_elements(self, result: str, inputs: Mapping[str, Sequence[int]]) -> int:
        """How many elements of all inputs each row of a result is made of."""
        letter = self._row_letter(result)
        return sum(math.prod(shape) for name, shape in inputs.items() if self._axis(name, letter) is None)

    def _row_letter(self, result: str) -> str:
        return next(iter(self.results.get(result, ())), ":")

    def _axis(self, name: str, letter: str) -> int | None:
        letters = self.inputs.get(name, [])
        return letters.index(letter) if letter != ":" and letter in letters else None


def _letters(side: str) -> dict[str, list[str]]:
    return {name: [letter.strip() for letter in part.split(",")] for name, part in PART.findall(side)}


def _size(dimension: int, letter: str, letters: list[str], tensor: torch.Tensor) -> int | None:
    places = [at for at, other in enumerate(letters) if other == letter and (letter != ":" or at == dimension)]
    return tensor.shape[places[0]] if places else None
