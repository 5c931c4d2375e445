"""The replay processes on one GPU: those that check calls until a kernel ruins them, and those that take samples."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager

from grader.gpu.lock import gpu_held, next_to_measure
from grader.gpu.pool.replay_process import ReplayEnded, Replayer
from grader.gpu.pool.samplers import Samplers

KEPT = 2  # processes that took a sample: as many as the samples of most calls


class Pool:
    """Several threads may ask at a time. One call at a time is checked; how several get on side by side is measured by
    benchmarks/checks_side_by_side.py.

    `checkers`: processes for that. When a kernel ruins one, the next is warm.
    """

    def __init__(self, uuid: str, checkers: int = 1, kept: int = KEPT, spare: int = 0) -> None:
        self._uuid, self._most_checkers = uuid, checkers
        self._samplers = Samplers(uuid, kept, spare)
        self._checkers: list[Replayer] = []  # that nobody asks now; the next one to be asked is the last
        self._one_check = threading.Lock()
        self._lock = threading.RLock()

    def start(self, samplers: int, checkers: int = 0) -> None:
        """Starts what will be needed, while other work goes on. Nothing is started twice."""
        with self._lock:
            for replayer in [one for one in self._checkers if not one.alive]:
                self._checkers.remove(replayer)
                replayer.end()
            while len(self._checkers) < min(checkers, self._most_checkers):
                self._checkers.insert(0, Replayer(self._uuid))
        self._samplers.start(samplers)

    def check(self, request: dict, blob: bytes, limit: float, alone: bool) -> tuple[dict, bytes]:
        """The answer to "check" or "draw", beside others or alone. Raises ReplayEnded, GpuBusy.

        Where memory is short it is asked once more, alone: by then others have given nearly all of theirs back.
        """
        try:
            return self._check_once(request, blob, limit, alone)
        except ReplayEnded as ended:
            if ended.how != "no-room" or alone:
                raise
        return self._check_once(request, blob, limit, alone=True)

    def sample(self, request: dict, blob: bytes, work: str, served: Collection[int]) -> tuple[dict, int]:
        """As Samplers.sample."""
        return self._samplers.sample(request, blob, work, served)

    def ceilings(self, request: dict) -> dict:
        """As Samplers.ceilings."""
        return self._samplers.ceilings(request)

    def end(self) -> None:
        replayers = [*self._checkers, *self._samplers.all()]
        for replayer in replayers:
            replayer.kill()
        for replayer in replayers:
            replayer.end()

    def _check_once(self, request: dict, blob: bytes, limit: float, alone: bool) -> tuple[dict, bytes]:
        with ExitStack() as held:
            if alone:  # waited for without a checker, which others could use meanwhile
                held.enter_context(next_to_measure(self._uuid))  # nobody's buffers wait for a measurement
            replayer = held.enter_context(self._checker())
            replayer.wait_until_ready()  # not while others wait for the GPU
            held.enter_context(gpu_held(self._uuid, alone))
            return replayer.ask(request, blob, limit)

    @contextmanager
    def _checker(self) -> Iterator[Replayer]:
        """For one question. One that is ruined by it is replaced at once."""
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
