"""Mistakes of programs that loop over several tiles: something of one tile is still there in the next."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import torch

from grader.explain.causes import Cause
from grader.explain.evidence import Compared
from grader.explain.hypothesis import Hypothesis
from grader.explain.written_tiles import tiles_of
from grader.numerics.arguments import Argument
from grader.numerics.roundoff import UNIT_ROUNDOFF
from grader.sentences import Sentence

MOST_TILES = 256
Part = tuple[slice, slice]


class OfTileLoops(Sentence):
    """Sentences about programs that loop over several tiles."""

    CARRIED_OVER = (
        "A tile of {name} also holds what its program computed for the tile before: what is summed up for a tile has "
        "to start at 0 in each round."
    )
    NOTHING_LATER = (
        "Each program sums up its first tile, and the next ones hold 0: what counts the steps along the sum has to "
        "start anew in each round."
    )


def carried_over(evidence: Compared, inputs: list[Argument]) -> Iterator[Hypothesis]:
    """Yields tiles that hold their own values plus the values of the tile that their program computed before."""
    out, ref = evidence.comparison.out.double(), evidence.comparison.ref
    if not evidence.wanted.dtype.is_floating_point or evidence.wanted.dtype not in UNIT_ROUNDOFF:
        return
    result, lost, found = ref.clone(), torch.zeros_like(ref), False
    for tiles in _by_program(evidence).values():
        wrong = [part for part in tiles if bool(evidence.comparison.wrong[part].any())]
        for part in wrong if len(tiles) > 1 else ():
            found = True
            before = min((other for other in tiles if other != part), key=lambda one: _distance(out, ref, part, one))
            mine, theirs = _common(part, before)
            result[part] = out[part]  # beyond what the tile before has stored, nothing is known
            result[mine] = ref[mine] + out[theirs]
            lost[mine] = out[theirs].abs() * UNIT_ROUNDOFF[evidence.wanted.dtype]
    if found:
        yield Hypothesis(Cause.CARRIED_OVER, OfTileLoops.CARRIED_OVER(name=evidence.returns), result, lost)


def nothing_later(evidence: Compared, inputs: list[Argument]) -> Iterator[Hypothesis]:
    """Yields programs whose first tile alone is right, while all others hold 0."""
    comparison = evidence.comparison
    result, found = comparison.ref.clone(), False
    for tiles in _by_program(evidence).values():
        wrong = [part for part in tiles if bool(comparison.wrong[part].any())]
        if len(wrong) != len(tiles) - 1 or any(bool(comparison.out[part].any()) for part in wrong):
            return
        found = found or bool(wrong)
        for part in wrong:
            result[part] = 0
    if found:
        yield Hypothesis(Cause.CARRIED_OVER, OfTileLoops.NOTHING_LATER(), result, torch.zeros_like(result))


def _by_program(evidence: Compared) -> dict[int, list[Part]]:
    """Returns the tiles that each program wrote last; a program that wrote nothing is left out."""
    writers = evidence.writers
    found: dict[int, list[Part]] = defaultdict(list)
    tiles = tiles_of(writers) if writers is not None and writers.programs.dim() == 2 else None
    if writers is None or tiles is None or tiles.shape[0] * tiles.shape[1] > MOST_TILES:
        return found
    for rows, columns in tiles.parts:
        if (program := int(writers.programs[rows.start, columns.start])) >= 0:
            found[program].append((rows, columns))
    return found


def _common(one: Part, other: Part) -> tuple[Part, Part]:
    """Returns as much of two tiles, from their first corner, as both have."""
    rows, columns = (min(a.stop - a.start, b.stop - b.start) for a, b in zip(one, other))

    def first(part: Part) -> Part:
        top, left = (axis.start for axis in part)
        return slice(top, top + rows), slice(left, left + columns)

    return first(one), first(other)


def _distance(out: torch.Tensor, ref: torch.Tensor, part: Part, before: Part) -> float:
    mine, theirs = _common(part, before)
    return float((out[mine] - ref[mine] - out[theirs]).abs().mean().nan_to_num(nan=torch.inf))
