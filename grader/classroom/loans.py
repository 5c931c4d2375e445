"""The command's end of lending: looks again and again which workers want a GPU, and whether one that lent is gone."""

from __future__ import annotations

import contextlib
import threading

from distributed import Client

from grader.classroom.judges import borrow_there, standing_there
from grader.classroom.lending import Standing, is_withdrawn, loans_for

LOOK = 2.0  # seconds between two
FIRST_LOOK = 10.0  # seconds until texts are given out all the same


class Loans:
    """A context, for as long as texts are given out; the worker plugin `judges` is on all workers.

    It has a thread of its own: a worker may take its time to answer, or never do so. `withdrawn` is set once a worker
    uses a GPU that is gone: texts that Dask has given it would wait there for ever, so all have to be given out anew.
    """

    def __init__(self, client: Client, judges: str, most_judges: int) -> None:
        self._client, self._judges, self._most_judges = client, judges, most_judges
        self.withdrawn, self._looked, self._over = threading.Event(), threading.Event(), threading.Event()

    def __enter__(self) -> Loans:
        threading.Thread(target=self._lend, daemon=True).start()
        self._looked.wait(FIRST_LOOK)
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()

    def _lend(self) -> None:
        while not self._over.is_set():
            with contextlib.suppress(Exception):  # workers come and go while they are asked: the next look tells
                self._look()
            self._looked.set()
            self._over.wait(LOOK)

    def _look(self) -> None:
        standings: dict[str, Standing] = self._client.run(standing_there, self._judges, on_error="ignore")
        if is_withdrawn(standings, self._client.scheduler_info(n_workers=-1)["workers"]):
            self.withdrawn.set()
            return
        for worker, loan in loans_for(standings, self._most_judges).items():
            self._client.run(borrow_there, self._judges, *loan, workers=[worker], on_error="ignore")
