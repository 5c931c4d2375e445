"""Writes the failing call as a few lines of torch that make the same numbers, for a GPU or for a report."""

from __future__ import annotations

import keyword
import math
from collections.abc import Sequence
from pathlib import Path

import torch

from grader.course.trial import Trial, short_dtype
from grader.explain.verdict import Verdict
from grader.judging.run import Run
from grader.numerics.arguments import Argument, DataOrNumber
from grader.numerics.data_sets import Data, seed_for, seed_place

MOST_LINES = 5
MOST_LISTED = 64  # elements of a tensor whose values are listed where no draw of torch gives them
RESULT = "result"


def in_torch(run: Run, trial: Trial, verdict: Verdict, file: Path) -> list[str]:
    """Returns the lines; none where a tensor is made in a way that no few lines of torch can repeat."""
    module, entry = file.stem, trial.exercise.entry
    names = trial.arguments
    if not module.isidentifier() or keyword.iskeyword(module) or module in names or entry in names or RESULT in names:
        return []
    inputs = run.inputs(trial)
    made = [_made(run, trial, place, recipe, inputs[place]) for place, recipe in enumerate(trial.data)]
    if None in made:
        return []
    tensors = [f"{name} = {text}" for name, text, one in zip(names, made, inputs) if isinstance(one, torch.Tensor)]
    draws = any("seeded(" in one for one in tensors)
    head = f"import torch; from {module} import {entry}"
    head += "; seeded = lambda n: torch.Generator().manual_seed(n)" if draws else ""
    numbers = [name if isinstance(one, torch.Tensor) else repr(one) for name, one in zip(names, inputs)]
    call = f"{RESULT} = {entry}({', '.join(numbers)})"
    return [head, *_joined(tensors, MOST_LINES - 3), call, f"print({_shown(trial, verdict)})"]


def _shown(trial: Trial, verdict: Verdict) -> str:
    """Returns the expression of the first wrong element, as result[0, 5]; of all results where none is told."""
    returned = [one.name for one in trial.exercise.returned]
    for said in verdict.said:
        name, bracket, index = str(said.evidence.get("element", "")).partition("[")
        if bracket and name in returned:
            which = f"[{returned.index(name)}]" if len(returned) > 1 else ""
            return f"{RESULT}{which}[{index}"
        if bracket and name in trial.exercise.updates:
            return f"{name}[{index}"
    return RESULT if returned else ", ".join(trial.exercise.updates)


def _joined(statements: Sequence[str], most: int) -> list[str]:
    """Returns the statements in at most so many lines."""
    each = max(1, math.ceil(len(statements) / most))
    return ["; ".join(statements[first : first + each]) for first in range(0, len(statements), each)]


def _made(run: Run, trial: Trial, place: int, recipe: DataOrNumber, given: Argument) -> str | None:
    """Returns the expression that makes an argument; None where there is none."""
    if not isinstance(recipe, Data) or not isinstance(given, torch.Tensor):
        return repr(recipe)
    if given.is_meta or recipe.is_shared:
        return None
    names = (run.folder.id, trial.name, short_dtype(trial.dtype), seed_place(recipe, place))
    values = _listed(given) if recipe.made_by is not None else _drawn(recipe, given, seed_for(run.seed, *names))
    if values is None:
        return None
    on_gpu = f'{values}.to("cuda", {given.dtype})'
    if recipe.layout.fits_together:
        return on_gpu
    if recipe.layout.overlaps:
        return None
    strides, elements = recipe.layout.strides(recipe.shape)
    memory = f'torch.empty({elements}, dtype={given.dtype}, device="cuda")'
    view = f"{memory}.as_strided({recipe.shape}, {strides}, {recipe.layout.offset})"
    if not recipe.layout.repeated:
        return f"{view}.copy_({on_gpu})"
    once = ", ".join(":1" if place in recipe.layout.repeated else ":" for place in range(given.ndim))
    seen = f"torch.as_strided(memory, {recipe.shape}, {strides}, {recipe.layout.offset})"
    return f"(memory := {memory}, {seen}[{once}].copy_({on_gpu}[{once}]), {seen})[2]"


def _drawn(recipe: Data, given: torch.Tensor, seed: int) -> str | None:
    """Returns the expression that draws the values as the judge drew them."""
    if recipe.is_output:
        return f"torch.empty({recipe.shape})"
    (draw, *numbers), *changes = recipe.scaled_for(given.dtype).steps
    generator = f"generator=seeded({seed})"
    if draw == "below" and given.is_contiguous():
        below, least = int(numbers[0]), int(numbers[1]) if len(numbers) > 1 else 0
        text = f"torch.randint({least}, {below}, {recipe.shape}, {generator})"
        text += _with_ends(recipe, below, least, seed)
    elif draw in ("normal", "uniform"):
        text = f"torch.rand{'n' * (draw == 'normal')}({recipe.shape}, dtype=torch.float64, {generator})"
    else:
        return _listed(given)
    for change, *rest in changes:
        if change not in ("times", "add"):
            return _listed(given)
        text = f"({text} {'*' if change == 'times' else '+'} {rest[0]!r})"
    return text


def _with_ends(recipe: Data, below: int, least: int, seed: int) -> str:
    """Returns what puts the smallest and the largest index where a draw of indices has put them."""
    plain = torch.randint(least, below, recipe.shape, generator=torch.Generator().manual_seed(seed))
    drawn = recipe.values(torch.Generator().manual_seed(seed)).flatten()
    changed = (drawn != plain.flatten()).nonzero().flatten().tolist()
    if not changed:
        return ""
    values = [int(drawn[place]) for place in changed]
    return f".put_(torch.tensor({changed}), torch.tensor({values}))"


def _listed(given: torch.Tensor) -> str | None:
    """Returns the values themselves; None where they are many."""
    if given.numel() > MOST_LISTED:
        return None
    wide = given.double() if given.is_floating_point() else given
    listed = repr(wide.tolist()).replace("nan", 'float("nan")').replace("inf", 'float("inf")')
    return f"torch.tensor({listed}, dtype={wide.dtype}).reshape({tuple(given.shape)})"
