"""The call of one's own kernel that is timed on a GPU: its sizes are the user's, its values ordinary, its tensors
contiguous."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import torch

from grader.course.drawn_calls import drawn_calls
from grader.course.promise import Promised, only
from grader.gpu.answers import COPY, MATMUL
from grader.numerics.arguments import Argument, DataOrNumber, exact
from grader.numerics.data_sets import Data
from grader.own.cannot_judge import CannotJudge
from grader.own.own_exercise import OwnExercise
from grader.own.own_reference import OwnReference

SIZE = re.compile(r"([A-Za-z_]\w*)=(\d{1,10})")
EXAMPLE = '--time "M=4096 N=4096"'
ALIKE = 1e-9  # of the largest value: two results in float64 are the same


def timed_data(own: OwnExercise, line: str, seed: int) -> tuple[DataOrNumber, ...]:
    """Returns the arguments of the call. `line`: as --time, a size for each name; a name that it leaves out has the
    largest size that was judged. Of stated calls it is the largest. Raises CannotJudge."""
    if own.promise is None:
        return max(own.calls, key=_elements)
    stated = _sizes(line, list(own.promise.sizes))
    sizes = {name: only(stated.get(name, one.most)) for name, one in own.promise.sizes.items()}
    arguments = {name: _plain(one) for name, one in own.promise.arguments.items()}
    promise = replace(own.promise, sizes=sizes, arguments=arguments)
    drawn = promise.data(drawn_calls(promise, seed, "timed")[0])
    # A drawn call may have one argument in the memory of another; a timed one draws each anew.
    return tuple(one.in_plain_layout if isinstance(one, Data) else one for one in drawn)


def _plain(one: Promised) -> Promised:
    """Returns the argument with its first kind of values, and the simplest layout."""
    return replace(one, values=one.values[:1], families=one.families[:1])


def _sizes(line: str, names: Sequence[str]) -> dict[str, int]:
    found = {}
    for word in line.split():
        match = SIZE.fullmatch(word)
        if match is None or not int(match[2]):
            raise CannotJudge(f"--time: {word!r} states no size.", f"write {EXAMPLE}")
        if match[1] not in names:
            raise CannotJudge(f"--time: {match[1]} is the size of no argument.", f"state {', '.join(names)}.")
        found[match[1]] = int(match[2])
    return found


def _elements(data: Sequence[DataOrNumber]) -> int:
    return sum(one.elements for one in data if isinstance(one, Data))


def anchor_of(own: OwnExercise, reference: OwnReference, small: Sequence[Argument]) -> str:
    """Returns what the speed is compared with: cuBLAS where the reference is the product of its first two arguments,
    else a copy of as many bytes. `small`: the arguments of a call."""
    tensors = [one for one in small if isinstance(one, torch.Tensor)][:2]
    if len(tensors) < 2 or any(one.dim() != 2 or not one.is_floating_point() for one in tensors):
        return COPY
    if tensors[0].shape[1] != tensors[1].shape[0]:
        return COPY
    result, product = reference.exactly(*exact(small))[0], tensors[0].double() @ tensors[1].double()
    if result.shape != product.shape:
        return COPY
    same = (result - product).abs().max() <= ALIKE * product.abs().max() if result.numel() else False
    return MATMUL if same else COPY
