"""The command's end of lending: looks again and again which workers want a GPU, and whether one that lent is gone."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable

from distributed import Client, Future

from grader.classroom.judges import borrow_there, standing_there
from grader.classroom.lending import Standing, is_withdrawn, loans_for

LOOK = 2.0  # seconds between two
FIRST_LOOK = 10.0  # seconds until texts are given out all the same


def present_workers(client: Client) -> dict[str, dict]:
    """Returns what the scheduler tells of each worker, by its address.

    Every two seconds the client itself asks for no workers, and that answer may come between our question and what we
    are told. So an answer without workers is asked for once more.
    """
    return client.scheduler_info(n_workers=-1)["workers"] or client.scheduler_info(n_workers=-1)["workers"]


class Loans:
    """A context, for as long as texts are given out; the worker plugin `judges` is on all workers.

    It has a thread of its own: a worker may take its time to answer, or never do so. `note` hears of a worker that
    cannot use what it is offered.
    """

    def __init__(self, client: Client, judges: str, most_judges: int, note: Callable[[str], None]) -> None:
        self._client, self._judges, self._most_judges, self._note = client, judges, most_judges, note
        self._noted: set[str] = set()  # workers
        self._nudges: dict[str, Future] = {}
        self._lenders: set[str] = set()
        self._withdrawn, self._looked, self._over = threading.Event(), threading.Event(), threading.Event()

    def __enter__(self) -> Loans:
        threading.Thread(target=self._lend, daemon=True).start()
        self._looked.wait(FIRST_LOOK)
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()

    def are_withdrawn(self) -> bool:
        """Whether a worker uses a GPU that is gone: texts that Dask has given it would wait there, perhaps for ever."""
        return self._withdrawn.is_set() or not self._lenders <= present_workers(self._client).keys()

    def _lend(self) -> None:
        while not self._over.is_set():
            with contextlib.suppress(Exception):  # workers come and go while they are asked: the next look tells
                self._look()
            self._looked.set()
            self._over.wait(LOOK)

    def _look(self) -> None:
        standings: dict[str, Standing] = self._client.run(standing_there, self._judges, on_error="ignore")
        if is_withdrawn(standings, present_workers(self._client)):
            self._withdrawn.set()
            return
        for worker, (offer, count) in loans_for(standings, self._most_judges).items():
            told = self._client.run(borrow_there, self._judges, offer, count, workers=[worker], on_error="ignore")
            if (why := told.get(worker)) == "":
                self._lenders |= {offer.worker}
            elif why and worker not in self._noted:
                self._noted.add(worker)
                self._note(f"Worker {worker} has no GPU and can borrow none: {why}.")
        for worker in (one for one, standing in standings.items() if standing.borrowed):
            self._nudge(worker)

    def _nudge(self, worker: str) -> None:
        """Where a resource is raised Dask leaves texts that wait for it as they are, until something else happens."""
        if worker not in self._nudges or self._nudges[worker].done():
            self._nudges[worker] = self._client.submit(int, workers=[worker], pure=False)
