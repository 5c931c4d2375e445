"""The command's end of lending: looks every LOOK seconds for workers that want a GPU, and for lenders that are gone."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable

from distributed import Client, Future

from grader.classroom.cluster.lending import Standing, is_withdrawn, loans_for
from grader.classroom.cluster.worker_plugin import borrow_there, standing_there

LOOK = 2.0  # seconds between two looks
FIRST_LOOK = 10.0  # seconds until texts are given out all the same


def present_workers(client: Client) -> dict[str, dict]:
    """Returns what the scheduler knows of each worker, by the worker's address.

    Every two seconds the client itself asks for no workers, and the answer to that may replace the answer to our
    question. So an answer without workers is asked for once more.
    """
    return client.scheduler_info(n_workers=-1)["workers"] or client.scheduler_info(n_workers=-1)["workers"]


class Loans:
    """A context that lends GPUs to workers for as long as texts are given out.

    `judges`: the name of the plugin that all workers have. `most_judges`: how many judges may use a GPU. `note` gets a
    message about each worker that cannot use what it is offered. The work is done in a thread: a worker may answer late
    or never.
    """

    def __init__(self, client: Client, judges: str, most_judges: int, note: Callable[[str], None]) -> None:
        self._client, self._judges, self._most_judges, self._note = client, judges, most_judges, note
        self._noted: set[str] = set()  # workers that `note` has heard of
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
        """Returns whether a worker uses a GPU that is gone.

        Texts that Dask has given to the worker would wait there, perhaps for ever.
        """
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
        """Submits an empty task to a worker, unless the last is still waiting.

        When a resource grows, Dask does not start the texts that wait for it until something else happens.
        """
        if worker not in self._nudges or self._nudges[worker].done():
            self._nudges[worker] = self._client.submit(int, workers=[worker], pure=False)
