"""A GPU lent to workers without one: their judges interpret and compile, and ask that GPU's pool over the network.

    worker with a GPU       takes connections with its pool at a door: grader.classroom.door
    the command             looks what each worker says of itself, its Standing, and lends: grader.classroom.loans
    worker without a GPU    announces a GPU like the others from then on, so Dask gives it texts

Where a text is judged changes no verdict: whoever asks, the pool of a GPU does what it always does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass

from grader.classroom.door import Offer


@dataclass(frozen=True)
class Standing:
    """What a worker says of itself. judges: as many texts at a time, with a GPU, as it announces; or could."""

    judges: int
    own: Offer | None = None  # of its own GPU
    borrows: bool = False  # it has none
    borrowed: Offer | None = None
    announced: bool = False  # Dask gives it texts that want a GPU
    waiting: bool = False  # it has such texts, and none to judge them with


def loans_for(standings: dict[str, Standing], most_judges: int) -> dict[str, tuple[Offer, int]]:
    """By worker that has no GPU yet: an offer, and how many texts at a time it may judge by it.

    The GPU with the fewest judges comes first, and none gets more than `most_judges`; except that a worker to which
    Dask gives texts already, or gave some before its GPU was taken back, has to have one: nobody takes them from it.
    A worker that has one and announces none, since another command took it back, counts as one that has none.
    """
    load = Counter({one.own: one.judges for one in standings.values() if one.own})
    for one in standings.values():
        if one.borrowed in load and one.announced:
            load[one.borrowed] += one.judges
    loans: dict[str, tuple[Offer, int]] = {}
    for worker, one in sorted(standings.items()):
        if not load or not one.borrows or (one.borrowed and one.announced):
            continue
        offer = min(load, key=lambda offer: (load[offer], offer.worker))
        count = min(one.judges, max(most_judges - load[offer], int(one.announced or one.waiting)))
        if count > 0:
            loans[worker] = offer, count
            load[offer] += count
    return loans


def is_withdrawn(standings: dict[str, Standing], present: Collection[str]) -> bool:
    """Whether a worker uses the GPU of one that is gone, or that began anew. `present`: whom the scheduler knows.

    One that is present and does not answer may only be slow.
    """
    for one in standings.values():
        if (offer := one.borrowed) is None:
            continue
        owner = standings.get(offer.worker)
        if offer.worker not in present or (owner is not None and owner.own != offer):
            return True
    return False
