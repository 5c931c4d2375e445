"""Explains unwritten elements of a launch whose programs each go through several tiles."""

from __future__ import annotations

import torch

from grader.explain.evidence import Evidence
from grader.explain.written_tiles import as_matrix, begins_a_tile
from grader.numerics.comparison import first_index
from grader.sentences import Said, Sentence
from grader.wire.messages import MULTIPROCESSORS


class TileLoop(Sentence):
    """Sentences about tiles that a loop leaves out, each with a question that leads to the reason."""

    ONE_IS_SILENT = (
        "1 of {total:#program} writes nothing to {name}: does the loop over tiles end too early, or do tile numbers "
        "lead to the wrong places?"
    )
    SOME_ARE_SILENT = (
        "{silent} of {total:#program} write nothing to {name}: does the loop over tiles end too early, or do tile "
        "numbers lead to the wrong places?"
    )
    STEPS_TOO_FAR = (
        "{name} has more tiles than {total:#program} write, and the GPU has {processors} multiprocessors: does the "
        "loop step over tiles for which there is no program?"
    )
    ONE_TILE = (
        "The one program writes one tile of {name}, and {name} has more: does a program go on until no tile is left, "
        "and does each number lead to a tile of its own?"
    )
    ONE_TILE_EACH = (
        "Each of {total:#program} writes one tile of {name}, and {name} has more: does a program go on until no tile "
        "is left, and does each number lead to a tile of its own?"
    )
    LEAVES_OUT = (
        "The loop of {total:#program} leaves out tiles of {name}: does each go on, in equal steps, until no tile is "
        "left?"
    )


def loop_that_ends_early(evidence: Evidence, programs: torch.Tensor, silent: int, total: int) -> Said | None:
    """Returns the sentence about a loop that leaves out tiles, or None.

    None for a call that gets no number of multiprocessors, whose programs need no loop over tiles, and for a tile of
    which only a part is unwritten. programs: the number of the program that wrote each element, [shape of the result].
    silent: how many of `total` programs wrote nothing.
    """
    processors, name = evidence.trial.constants.get(MULTIPROCESSORS, 0), evidence.returns
    if not processors or not total:
        return None
    if silent == 1:
        return TileLoop.ONE_IS_SILENT(total=total, name=name)
    if silent > 0:
        return TileLoop.SOME_ARE_SILENT(silent=silent, total=total, name=name)
    unwritten = programs == -1
    if bool(unwritten.any()) and not begins_a_tile(first_index(unwritten), evidence.constants):
        return None  # a part of a tile is missing: the loop has reached this tile
    if total < processors:
        return TileLoop.STEPS_TOO_FAR(name=name, total=total, processors=processors)
    if _one_rectangle_each(programs):
        return TileLoop.ONE_TILE(name=name) if total == 1 else TileLoop.ONE_TILE_EACH(total=total, name=name)
    return TileLoop.LEAVES_OUT(total=total, name=name)


def _one_rectangle_each(programs: torch.Tensor) -> bool:
    """Returns whether all elements of each program make up a single rectangle."""
    matrix = as_matrix(programs)
    for program in matrix.unique().tolist():
        mine = matrix == program
        rows, columns = mine.any(dim=1), mine.any(dim=0)
        if program >= 0 and int(mine.sum()) != _extent(rows) * _extent(columns):
            return False
    return True


def _extent(flags: torch.Tensor) -> int:
    places = flags.nonzero().flatten()
    return int(places[-1] - places[0]) + 1
