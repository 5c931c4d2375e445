"""A trial: one call to be judged, with the data sets of its arguments in one dtype and the bounds of its results."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace

import torch

from grader.course.cut import Cut
from grader.course.exercise import Exercise
from grader.numerics.arguments import Argument, DataOrNumber, as_tensor, made_of
from grader.numerics.bounds import Bound
from grader.numerics.data_sets import Data, generator_for, seed_place, short_name
from grader.numerics.roundoff import EXACT, UNJUDGED
from grader.wire.messages import CAPABILITY, MULTIPROCESSORS
from grader.wire.reply import DTYPES

CallBound = str | dict[str, str]  # that a call states: of all results, or of some by name


@dataclass
class Trial:
    """A call of an exercise's entry that is judged, with the data sets of its arguments in a single dtype and the bound
    of its result.

    `bounds`: the bounds of results by name, where they have their own.
    """

    exercise: Exercise
    name: str  # of the test
    data: tuple[DataOrNumber, ...]
    dtype: torch.dtype
    bound: Bound
    constants: dict[str, int] = field(default_factory=dict)
    config: int = 0  # of an autotuned kernel
    small_dots: bool = False  # as in RecordRequest
    bounds: dict[str, Bound] = field(default_factory=dict)

    @property
    def arguments(self) -> list[str]:
        return self.exercise.arguments

    @property
    def cut(self) -> Cut:
        return Cut.of(self.exercise.cut)

    def inputs(self, seed: int, *names: object) -> list[Argument]:
        """Returns the arguments: the same for the same seed and names."""
        arguments: list[Argument] = []
        for number, data in enumerate(self.data):
            if not isinstance(data, Data):
                arguments.append(data)
            elif data.is_shared:
                arguments.append(data.within(as_tensor(arguments[self.arguments.index(data.same_as or data.part_of)])))
            else:
                generator = generator_for(seed, *names, self.name, short_dtype(self.dtype), seed_place(data, number))
                drawn = data.tensor(self.dtype, generator)
                known = dict(zip(self.arguments, [*arguments, drawn]))
                arguments.append(drawn if data.made_by is None else made_of(data.made_by, data, self.dtype, known))
        return arguments

    @property
    def begins(self) -> dict[str, tuple[str, int]]:
        """The arguments that are another argument too, or a part of it, each with that argument, and how many bytes
        behind its address it begins."""
        named = [(name, one) for name, one in zip(self.arguments, self.data) if isinstance(one, Data) and one.is_shared]
        return {
            name: (one.same_as or one.part_of, one.part_at * one.dtype_in(self.dtype).itemsize) for name, one in named
        }

    @property
    def with_plain_layouts(self) -> Trial:
        """The same call with contiguous tensors, each with memory of its own."""
        plain = (stated.in_plain_layout if isinstance(stated, Data) else stated for stated in self.data)
        return replace(self, data=tuple(plain))

    @property
    def data_label(self) -> str:
        """Shapes, layouts and dtype: "61 x 781 fp32"."""
        return f"{self.sizes_label} {short_dtype(self.dtype)}"

    @property
    def sizes_label(self) -> str:
        """Shapes and layouts, and numbers: "x 61 x 781, eps = 1e-05"."""
        labels = [data.label if isinstance(data, Data) else f"= {data}" for data in self.data]
        if len(set(labels)) > 1 and self.arguments:
            labels = [f"{name} {label}" for name, label in zip(self.arguments, labels)]
        taken = [label for label, data in zip(labels, self.data) if data is not None]  # leaves out options not taken
        return ", ".join(dict.fromkeys(taken))

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of the tensor arguments, by name."""
        return {name: data.shape for name, data in zip(self.arguments, self.data) if isinstance(data, Data)}

    def label(self, constants: Collection[str]) -> str:
        """Returns the data, the values that the trial gives to the file's own `constants`, and the GPU where it states
        one: "61 x 781 fp32, BLOCK_N = 256"."""
        label = self.data_label + "".join(f", {name} = {value}" for name, value in self.in_effect(constants).items())
        count, capability = self.constants.get(MULTIPROCESSORS), self.constants.get(CAPABILITY)
        label += f", a GPU with {count} multiprocessors" if count else ""
        return label + (f", a GPU of compute capability {capability / 10}" if capability else "")

    def in_effect(self, constants: Collection[str]) -> dict[str, int]:
        """Returns the block sizes that the trial sets, as far as the file has constants of these names."""
        return {name: value for name, value in self.constants.items() if name in constants}


def trial_of(
    exercise: Exercise,
    name: str,
    data: tuple[DataOrNumber, ...],
    dtype: str,
    bound: CallBound | None = None,
    constants: dict[str, int] | None = None,
) -> Trial:
    """Returns the trial of a call. `bound`: for all results, or for some by name; None: the exercise's bounds. Raises
    ValueError for a result that the exercise does not have, and for a name that is no bound."""
    stated = exercise.bounds
    bounds = stated | (bound if isinstance(bound, dict) else dict.fromkeys(stated, bound) if bound else {})
    if unknown := sorted(bounds.keys() - stated):
        raise ValueError(f"{exercise.entry} has no result {unknown[0]}, for which a bound is given.")
    names = (*EXACT, UNJUDGED)
    for result, one in bounds.items():
        # A model that a call brings along would be lost on the way to a GPU, which has those of the exercise.
        if one not in names if isinstance(one, str) else one is not stated[result]:
            known = f"there are {', '.join(names)}, and a RoundingModel that the exercise states"
            raise ValueError(f"{exercise.entry}: {one!r} is no bound; {known}.")
    first = next(iter(bounds.values()))
    return Trial(exercise, name, data, DTYPES[dtype], first, constants or {}, bounds=bounds)


def short_dtype(dtype: torch.dtype) -> str:
    return short_name(str(dtype).removeprefix("torch."))
