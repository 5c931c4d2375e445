"""The time of a call against that of an anchor: in turns, on fresh data, with every output verified.

A round replays a chain of calls as one CUDA graph, so that the host's speed drops out. Each call works on its own set
of buffers; together the sets are far larger than the L2 cache. Before the chain, outputs and scratch are poisoned,
inputs are new, and the cache is flushed with a pattern that is not constant. The anchor's chain runs in the same round,
before or after.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch

from grader.gpu.answers import Measurement, Round
from grader.gpu.nvml import Clocks

ROUNDS = 7
LEAST_WARM_UP, MOST_WARM_UP = 0.05, 0.3  # seconds
ALIKE = 5  # successive readings of the clock; it has settled when they lie within 1 %
FLUSHES = 8  # 0.5 ms on an H200: longer than the host takes to launch a graph
MOST_CLOCK_DIFFERENCE = 0.03  # between the chains of a round


@dataclass
class Chain:
    """Calls that are timed together.

    `refresh` prepares them, and is not timed. `verify` returns a complaint about their outputs, or "".
    """

    calls: Sequence[Callable[[], object]]
    refresh: Callable[[], None] = lambda: None
    verify: Callable[[], str] = lambda: ""
    graph: torch.cuda.CUDAGraph = field(init=False)  # of all calls; there is none before `capture`

    def capture(self) -> None:
        self.refresh()
        for call in self.calls:  # once outside of the graph, as capturing demands
            call()
        torch.cuda.synchronize()
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            for call in self.calls:
                call()


class Flush:
    """Flushes the L2 cache: writes more than it holds, never the same number twice in a row."""

    def __init__(self, l2_bytes: int):
        self.memory = torch.arange(max(2 * l2_bytes, 64 << 20) // 4, dtype=torch.int32, device="cuda")

    def __call__(self) -> None:
        for _ in range(FLUSHES):
            self.memory.add_(1)


def measure(
    chains: dict[str, Chain], flush: Flush, clocks: Clocks, order: random.Random,
    wait_for_turn: Callable[[], None] = lambda: None, rounds: int = ROUNDS,
) -> Measurement:  # fmt: skip
    """Returns the rounds of all chains, timed in turns in random `order`; a wrong output ends them.

    Nothing is timed before `wait_for_turn` returns.
    """
    for chain in chains.values():
        chain.capture()
    wait_for_turn()
    _warm_up(list(chains.values()), clocks)
    measurement = Measurement()
    while len(measurement.rounds) < rounds and not measurement.wrong:
        timed, measurement.wrong = _round(chains, flush, clocks, order)
        measurement.rounds.append(timed)
    return measurement


def seconds_of(call: Callable[[], object]) -> float:
    """Returns a rough time of a call in seconds, perhaps of its first run: it tells microseconds from seconds."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    call()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / 1000


def _warm_up(chains: list[Chain], clocks: Clocks) -> None:
    """Replays the chains until the clock has settled, as NVML reports it, for 0.05 to 0.3 s of GPU time."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    milliseconds = 0.0
    readings: deque[float | None] = deque(maxlen=ALIKE)
    while milliseconds < 1000 * MOST_WARM_UP:
        begin.record()
        for chain in chains:
            chain.graph.replay()
        end.record()
        readings.append(clocks.megahertz())
        end.synchronize()
        milliseconds += begin.elapsed_time(end)
        if milliseconds >= 1000 * LEAST_WARM_UP and _settled(readings):
            return


def _settled(megahertz: deque[float | None]) -> bool:
    known = [reading for reading in megahertz if reading is not None]
    return len(known) == ALIKE and max(known) <= 1.01 * min(known)


def _round(chains: dict[str, Chain], flush: Flush, clocks: Clocks, order: random.Random) -> tuple[Round, str]:
    seconds, megahertz, late, wrong = {}, [], "", ""
    for name in order.sample(list(chains), len(chains)):
        chain = chains[name]
        chain.refresh()
        seconds[name], clock, was_late = _time(chain, flush, clocks)
        megahertz += [clock] if clock else []
        late = f"the host was late in launching the {name}" if was_late else late
        wrong = wrong or chain.verify()
    invalid = late or clocks.complaint()
    if megahertz and max(megahertz) / min(megahertz) - 1 > MOST_CLOCK_DIFFERENCE:
        invalid = invalid or "the clock changed between kernel and anchor"
    return Round(seconds, invalid), wrong


def _time(chain: Chain, flush: Flush, clocks: Clocks) -> tuple[float, float | None, bool]:
    """Returns (seconds per call, MHz or None, whether the GPU waited for the host)."""
    torch.cuda.synchronize()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    flush()
    begin.record()
    chain.graph.replay()
    late = begin.query()  # the flush should still be running
    end.record()
    megahertz = clocks.megahertz()
    end.synchronize()
    return begin.elapsed_time(end) / 1000 / len(chain.calls), megahertz, late
