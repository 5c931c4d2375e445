"""The part of each input that a part of a result depends on, as an exercise states it: Exercise.cut."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch

from grader.numerics.arguments import Argument, as_tensor
from grader.numerics.bounds import Bound
from grader.numerics.roundoff import EXACT

PART = re.compile(r"(\w+)\[([^\]]*)\]")


@dataclass(frozen=True)
class Cut:
    """A letter or ":" for each dimension, of inputs and results by name. Dimensions with the same letter are cut alike;
    a dimension with ":" is whole. In a dimension with "h/", neighbours along h share an index: there are fewer of them,
    as there are fewer heads of keys than of queries. A letter that is the name of an input stands for the rows that its
    values pick."""

    inputs: dict[str, list[str]] = field(default_factory=dict)
    results: dict[str, list[str]] = field(default_factory=dict)

    @staticmethod
    def of(text: str) -> Cut:
        """Returns the cut that a text such as "a[m, :], b[:, n] -> c[m, n]" states; the cut of "" cuts nothing. An
        input that the text leaves out is taken whole, as a number is."""
        inputs, _, made = text.partition("->")
        return Cut(_letters(inputs), _letters(made))

    def whole(self, inputs: Mapping[str, int], results: Mapping[str, int]) -> Cut:
        """Returns the cut that takes inputs and results whole, but of "table[index, n]" the rows that the index picks:
        of a large table few are needed. inputs, results: their numbers of dimensions."""
        given, made = ({name: [":"] * rank for name, rank in ranks.items()} for ranks in (inputs, results))
        picked = {name: [one if one in inputs else ":" for one in letters] for name, letters in self.inputs.items()}
        return Cut(given | picked, made)

    def shape(self, result: str, inputs: dict[str, torch.Tensor]) -> tuple[int, ...]:
        """Returns a result's shape. Its dimensions are as long as the dimensions of inputs with the same letter, or
        with ":" at the same place. Raises ValueError where no input has it."""
        sizes = []
        for dimension, letter in enumerate(self.results[result]):
            found = (_size(dimension, letter, self.inputs.get(name, []), value) for name, value in inputs.items())
            size = next((size for size in found if size is not None), None)
            if size is None:
                raise ValueError(f"the cut of {result} has a dimension {letter!r} that no input has")
            sizes.append(size)
        return tuple(sizes)

    def shared(self, shapes: Mapping[str, Sequence[int]]) -> dict[str, int]:
        """Returns for each letter such as "h/" how many neighbours along h share an index. `shapes`: of the inputs."""
        sizes = {
            letter: size for name, letters in self.inputs.items() for letter, size in zip(letters, shapes.get(name, ()))
        }
        return {
            letter: max(1, sizes[letter.removesuffix("/")] // max(1, size))
            for letter, size in sizes.items()
            if letter.endswith("/")
        }

    def rows(self, result: str, names: Sequence[str], inputs: Sequence[Argument], rows: slice) -> list[Argument]:
        """Returns the arguments that some rows of a result depend on: inputs cut as these rows are, and the others
        whole. `rows`: a slice of the result's first dimension. `names`: the inputs' names."""
        letter = self._row_letter(result)
        return [
            as_tensor(one)[(slice(None),) * axis + (rows,)] if (axis := self._axis(name, letter)) is not None else one
            for name, one in zip(names, inputs, strict=True)
        ]

    def rows_at_once(
        self, result: str, shape: Sequence[int], bound: Bound, inputs: Mapping[str, Sequence[int]], most: int
    ) -> int:
        """Returns how many rows of a result to compare at a time, at least 1. Neither the rows nor the parts of inputs
        that they depend on have more than `most` elements; inputs do not count for a bound that is exact. All rows,
        where another bound takes all inputs whole. `inputs`: their shapes."""
        made_of = self.row_elements(result, inputs)
        if bound not in EXACT and not made_of:
            return max([1, *shape[:1]])
        return max(1, most // max(1, math.prod(shape[1:]), 0 if bound in EXACT else made_of))

    def row_elements(self, result: str, inputs: Mapping[str, Sequence[int]]) -> int:
        """Returns how many elements of inputs are for one row of a result alone; 0 where no input is cut as the rows
        are."""
        letter = self._row_letter(result)
        cut = ((shape, self._axis(name, letter)) for name, shape in inputs.items())
        return sum(math.prod(shape) // max(1, shape[axis]) for shape, axis in cut if axis is not None)

    def whole_elements(self, result: str, inputs: Mapping[str, Sequence[int]]) -> int:
        """Returns how many elements of inputs are for every row of a result: of the inputs that are not cut as the rows
        are."""
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
