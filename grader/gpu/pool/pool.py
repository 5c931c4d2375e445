"""The replay processes on one GPU: some check calls until a kernel ruins them, the others take samples of speed."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager

from grader.gpu.lock import gpu_held, next_to_measure
from grader.gpu.pool.replay_process import ReplayEnded, Replayer
from grader.gpu.pool.samplers import Samplers

KEPT = 2  # processes that have taken a sample: as many as most calls need


class ReplayPool:
    """The replay processes of a GPU, for any number of threads.

    Checks run one at a time; benchmarks/checks_side_by_side.py measures how several would do side by side. `checkers`:
    the most processes for checks; when a kernel ruins a checker, the next is warm. `kept`, `spare`: see Samplers.
    """

    def __init__(self, uuid: str, checkers: int = 1, kept: int = KEPT, spare: int = 0) -> None:
        self._uuid, self._most_checkers = uuid, checkers
        self._samplers = Samplers(uuid, kept, spare)
        self._checkers: list[Replayer] = []  # that are free now; the last is asked next
        self._one_check = threading.Lock()
        self._lock = threading.RLock()

    def start(self, samplers: int, checkers: int = 0) -> None:
        """Starts processes in the background until this many fresh samplers and free checkers run.

        There are never more free checkers than `checkers` of the pool.
        """
        with self._lock:
            for replayer in [checker for checker in self._checkers if not checker.alive]:
                self._checkers.remove(replayer)
                replayer.end()
            while len(self._checkers) < min(checkers, self._most_checkers):
                self._checkers.insert(0, Replayer(self._uuid))
        self._samplers.start(samplers)

    def check(self, request: dict, blob: bytes, limit: float, alone: bool) -> tuple[dict, bytes]:
        """Returns (reply, blob) to a request "check" or "draw". Raises ReplayEnded, GpuBusy.

        `limit`: in seconds. `alone`: while nobody else uses the GPU. A request that finds too little memory is repeated
        alone: by then other processes have given nearly all of their memory back.
        """
        try:
            return self._check_once(request, blob, limit, alone)
        except ReplayEnded as ended:
            if ended.how != "no-room" or alone:
                raise
        return self._check_once(request, blob, limit, alone=True)

    def sample(self, request: dict, blob: bytes, work: str, served: Collection[int]) -> tuple[dict, int]:
        """Returns what Samplers.sample returns for these arguments."""
        return self._samplers.sample(request, blob, work, served)

    def ceilings(self, request: dict) -> dict:
        """Returns what Samplers.ceilings returns for this request."""
        return self._samplers.ceilings(request)

    def lent(self, request: dict) -> AbstractContextManager[tuple[Replayer, dict]]:
        """Returns what Samplers.lent returns for this request."""
        return self._samplers.lent(request)

    def end(self) -> None:
        replayers = [*self._checkers, *self._samplers.all()]
        for replayer in replayers:
            replayer.kill()
        for replayer in replayers:
            replayer.end()

    def _check_once(self, request: dict, blob: bytes, limit: float, alone: bool) -> tuple[dict, bytes]:
        with ExitStack() as held:
            if alone:  # the wait for it holds no checker, which others can use meanwhile
                held.enter_context(next_to_measure(self._uuid))  # no buffers are in memory for a later measurement
            replayer = held.enter_context(self._checker())
            replayer.wait_until_ready()  # not while others wait for the GPU
            held.enter_context(gpu_held(self._uuid, alone))
            return replayer.ask(request, blob, limit)

    @contextmanager
    def _checker(self) -> Iterator[Replayer]:
        """Lends a checker for one request; if the request ruins the checker, another is started at once."""
        with self._one_check:
            with self._lock:
                self.start(0, checkers=1)
                replayer = self._checkers.pop()
            try:
                yield replayer
            finally:
                with self._lock:
                    self._checkers.append(replayer)
                    self.start(0, self._most_checkers)
