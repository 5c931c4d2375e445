"""GPUs lent to workers that have none: their judges interpret and compile, and ask a GPU's pool over the network.

    worker with a GPU       takes connections with its pool at a door: grader.classroom.cluster.door
    the command             asks each worker for its Standing, and lends: grader.classroom.cluster.loans
    worker without a GPU    announces a GPU like the others from then on, so Dask gives it texts

A verdict does not depend on where a text is judged: the pool of a GPU does the same for every judge.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass

from grader.classroom.cluster.door import Offer


@dataclass(frozen=True)
class Standing:
    """A worker's report on itself.

    `judges`: how many texts at a time it announces for a lent GPU; how many it could judge where it announces none.
    """

    judges: int
    own: Offer | None = None  # for its own GPU
    borrows: bool = False  # it has no GPU, and texts want one
    borrowed: Offer | None = None
    announced: bool = False  # Dask gives it texts that want a GPU
    waiting: bool = False  # it has texts that want a GPU, and no GPU to judge them with


def loans_for(standings: dict[str, Standing], most_judges: int) -> dict[str, tuple[Offer, int]]:
    """Returns an offer for each worker that has no GPU yet, and how many texts at a time it may judge with it.

    Keys are workers' addresses. The GPU with the fewest judges comes first, and no GPU gets more than `most_judges`.
    There is one exception: a worker to which Dask gives texts already, or gave some before its GPU was taken back, gets
    an offer in any case, since nobody takes the texts from it. A worker that has borrowed a GPU and announces none,
    since another command took it back, counts as a worker without a GPU.
    """
    load = Counter({one.own: one.judges for one in standings.values() if one.own})
    for one in standings.values():
        if one.borrowed is not None and one.borrowed in load and one.announced:
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
    """Returns whether a worker uses a GPU whose owner is gone or began anew.

    `present`: the addresses of the workers that the scheduler knows. An owner that is present but does not answer may
    only be slow.
    """
    for one in standings.values():
        if (offer := one.borrowed) is None:
            continue
        owner = standings.get(offer.worker)
        if offer.worker not in present or (owner is not None and owner.own != offer):
            return True
    return False
