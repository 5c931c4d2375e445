"""Elements that nobody wrote, where each program was to walk over several tiles: where does the walk end?"""

from __future__ import annotations

import torch

from grader.explain.evidence import Evidence
from grader.sentences import count_text
from grader.wire.messages import MULTIPROCESSORS


def walk_that_ends_early(evidence: Evidence, silent: int, total: int) -> str:
    """ "" where the call was told of no number of multiprocessors: then programs need not walk.

    `silent` of `total` programs wrote nothing.
    """
    processors, name = evidence.trial.constants.get(MULTIPROCESSORS, 0), evidence.returns
    if not processors or not total:
        return ""
    programs = count_text(total, "program")
    if silent > 0:
        some = "it" if silent == total == 1 else f"{silent} of {programs}"
        return (
            f"{some} write{'s' if silent == 1 else ''} nothing to {name}: does the walk over tiles end too early, or "
            "do tile numbers lead to the wrong places?"
        )
    if total < processors:
        return (
            f"{name} has more tiles than {programs} write, and the GPU has {processors} multiprocessors: does the walk "
            "step over tiles for which there is no program?"
        )
    if _one_rectangle_each(evidence.writers.programs):
        each = "The one program writes" if total == 1 else f"Each of {programs} writes"
        return (
            f"{each} one tile of {name}, and {name} has more: does a program go on until no tile is left, and does "
            "each number lead to a tile of its own?"
        )
    return f"The walk of {programs} leaves out tiles of {name}: does each go on, in equal steps, until no tile is left?"


def _one_rectangle_each(programs: torch.Tensor) -> bool:
    """Whether no program wrote two parts that lie apart."""
    for program in programs.unique().tolist():
        mine = programs == program
        rows, columns = mine.any(dim=-1).flatten(), mine.flatten(0, -2).any(dim=0)
        if program >= 0 and int(mine.sum()) != _extent(rows) * _extent(columns):
            return False
    return True


def _extent(flags: torch.Tensor) -> int:
    places = flags.nonzero().flatten()
    return int(places[-1] - places[0]) + 1
