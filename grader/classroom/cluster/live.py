"""The instructor's view while a class is judged: how far it is, how fast, when it will end, and what failed so far."""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from datetime import datetime, timedelta

from rich.console import Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from grader.explain.verdict import NOT_ATTEMPTED, PASS
from grader.gpu import nvml
from grader.show.terminal import console

RECENT = 100  # judged texts that the expected end is reckoned from
EVERY = 60.0  # seconds between two lines in a pipe
RIGHT, WRONG, EMPTY, FAULT = "right", "not right", "not attempted", "fault of the machine"


class View:
    """A context that shows progress: a few lines that change on a terminal, a line a minute in a pipe."""

    def __init__(self, total: int, say: Callable[[str], None], dashboard: str = "") -> None:
        self.total, self.say, self.dashboard = total, say, dashboard
        self.counts: Counter[str] = Counter()
        self.workers: int | None = None
        self._noted = ""
        self._busy: list[int] = []  # percent, by GPU
        self._started = self._told = time.monotonic()
        self._recent: deque[float] = deque([self._started], RECENT)
        self._live = Live(console=console(), get_renderable=self._drawn, transient=True, refresh_per_second=2)
        self._ended = threading.Event()

    def __enter__(self) -> View:
        if sys.stdout.isatty():
            self._live.start()
            threading.Thread(target=self._watch_gpus, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._live.stop()
        done, seconds = self.counts.total(), time.monotonic() - self._started
        if done:
            self.say(f"{done} judged in {_span(seconds)}, {60 * done / seconds:.0f} a minute: {self._outcomes()}.")

    def judged(self, result: dict) -> None:
        outcome = {PASS: RIGHT, NOT_ATTEMPTED: EMPTY}.get(result.get("outcome", ""), WRONG)
        self.counts[FAULT if result["fault"] else outcome] += 1
        self._recent.append(time.monotonic())
        self.tick()

    def tick(self, workers: int | None = None) -> None:
        """Updates the view; called about once a second.

        `workers`: the number of the scheduler's workers; None leaves the last number.
        """
        self.workers = self.workers if workers is None else workers
        if workers == 0:
            self.note("The scheduler has no worker. Waiting for one: dask worker ADDRESS.")
        elif workers:
            self._noted = ""  # so that the next trouble is shown even if it is the same
        now = time.monotonic()
        if not self._live.is_started and now - self._told > EVERY:
            self._told = now
            self.say(f"  {self._progress()}: {self._outcomes()}")

    def note(self, text: str) -> None:
        """Shows a message at once; a message that repeats itself is shown once."""
        if text != self._noted:
            self._noted = text
            self._live.console.print(text, markup=False) if self._live.is_started else self.say(text)

    def _progress(self) -> str:
        done = self.counts.total()
        rate = (len(self._recent) - 1) / max(1e-9, time.monotonic() - self._recent[0])
        if not done or self.workers == 0:
            return f"{done} of {self.total} judged"
        seconds = (self.total - done) / rate
        end = f"{datetime.now() + timedelta(seconds=seconds):%H:%M}"
        return f"{done} of {self.total} judged, {60 * rate:.0f} a minute, {_span(seconds)} left, until {end}"

    def _outcomes(self) -> str:
        counts = [(self.counts[name], name) for name in (RIGHT, WRONG, EMPTY, FAULT) if self.counts[name]]
        return ", ".join(f"{n} {name.replace('fault', 'faults') if n > 1 else name}" for n, name in counts)

    def _drawn(self) -> Group:
        bar = Table.grid(padding=(0, 1))
        bar.add_row("Judging", ProgressBar(self.total, self.counts.total(), width=30), self._progress())
        busy = "".join(f"   GPU {number} {share} %" for number, share in enumerate(self._busy))
        lines = [f"{self._outcomes() or 'nothing yet'}{busy}"]
        lines += [f"Dask's dashboard: {self.dashboard}"] if self.dashboard else []
        return Group(bar, *map(Text, lines))

    def _watch_gpus(self) -> None:
        while not self._ended.wait(2):
            self._busy = nvml.utilization()


def _span(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
