"""A simulated GPU and the clock of its host, on which a measuring function is judged: a model of ten stated parts.

It knows what no real GPU tells: how long the kernel takes when nothing disturbs it. Each part is something that makes
measurements wrong, and can be left out; so the judge finds out which of them a wrong answer comes from.

What the model leaves out: an event takes the GPU no time, clocks do not fall by heat, and there is one stream.
"""

from __future__ import annotations

import math
import random
from collections import deque
from collections.abc import Collection
from dataclasses import dataclass, field
from enum import StrEnum

from grader.wire.device_calls import DRAW_INPUTS, ELAPSED, FLUSH_CACHE, NOW, RECORD, RUN, SLEEP, SYNCHRONIZE, DeviceCall

MOST_CALLS = 200_000  # of one measurement; a right one makes about a thousand
MOST_LOOKS = 50_000  # messages of one measurement, each with a look at the clock or with many calls
MOST_SECONDS = 60.0  # on the host's clock
MOST_WAITING = 1000  # launches that wait in the queue: with more of them the host waits
REST = 20e-3  # seconds without work after which the GPU's clock is down again
RECORDING, READING = 1e-6, 2e-8  # seconds of the host for an event, and for a look at its clock
SHORT, LEAST_SCATTER = 100e-6, 0.01  # from SHORT on the share by which launches scatter falls, down to the least


class GpuPart(StrEnum):
    """A part of the model that can make a measurement wrong. A learner has to mend them in this order."""

    OTHER_WORK = "other work"  # between two events the GPU may flush the cache, sleep or draw inputs
    QUEUE = "queue"  # launches return before the GPU has done the work
    COMPILING = "compiling"  # the first launch compiles
    HOST = "host"  # launches and synchronizations cost the host time
    GAP = "gap"  # between two events the GPU may wait for the host
    CACHE = "cache"  # the launch before left data in the cache
    ZEROS = "zeros"  # inputs that were not drawn are zeros, which cost less power
    RAMP = "ramp"  # the clock begins low
    DISTURBANCE = "disturbance"  # some launches take much longer
    SCATTER = "scatter"  # no two launches take the same time


@dataclass(frozen=True)
class Traits:
    """The numbers of one simulated GPU; times in seconds."""

    launch: float  # of the host, for each launch
    synchronization: float  # of the host
    compilation: float
    flush: float  # of the GPU
    saved: float  # the most that a warm cache saves a launch, where it saves `saved_share` of a shorter one
    saved_share: float
    of_zeros: float  # a launch on zeros takes this share of its time
    lowest_clock: float  # after a rest, as a share of the steady clock
    ramp: float  # in which the clock comes nearer to the steady one by a factor e
    disturbed: float  # share of the launches
    scatter: float  # standard deviation of a short launch, as a share of its time
    cycles_a_second: float
    began: float  # what the host's clock shows at first


def drawn_traits(numbers: random.Random) -> Traits:
    def of_any_size(low: float, high: float) -> float:
        return math.exp(numbers.uniform(math.log(low), math.log(high)))

    return Traits(
        launch=of_any_size(5e-6, 50e-6),
        synchronization=numbers.uniform(5e-6, 10e-6),
        compilation=numbers.uniform(0.2, 2.0),
        flush=numbers.uniform(80e-6, 200e-6),
        saved=numbers.uniform(10e-6, 30e-6),
        saved_share=numbers.uniform(0.3, 0.6),
        of_zeros=numbers.uniform(0.75, 0.9),
        lowest_clock=numbers.uniform(0.5, 0.8),
        ramp=numbers.uniform(30e-3, 90e-3),
        disturbed=numbers.uniform(0.03, 0.08),
        scatter=numbers.uniform(0.03, 0.05),
        cycles_a_second=numbers.uniform(1e9, 2e9),
        began=numbers.uniform(1e3, 1e5),
    )


class NoCall(Exception):
    """A call that no right proxy of the device sends: it has no such event."""


class EndlessMeasurement(Exception):
    """The measurement goes on beyond a limit, after `seconds` on the host's clock. `looks`: too many at the clock."""

    def __init__(self, seconds: float, looks: int = 0) -> None:
        super().__init__(seconds, looks)
        self.seconds, self.looks = seconds, looks


@dataclass
class TimedPart:
    """A part of a measurement between two events, or between two looks at the host's clock, with launches of `run`.

    `unfinished`: the clock was read before the GPU had done what was launched. `idle`: seconds in which the GPU waited
    for the host, between events.
    """

    by_events: bool
    launches: int
    seconds: float
    unfinished: bool = False
    idle: float = 0.0


@dataclass
class Log:
    """The facts of what happened on the device, from which a wrong answer is explained."""

    calls: int = 0
    launches: int = 0  # of `run`
    timed: list[TimedPart] = field(default_factory=list)

    @property
    def timed_by_events(self) -> list[TimedPart]:
        return [part for part in self.timed if part.by_events]


@dataclass
class _Event:
    at: float  # when the GPU comes to it
    told: float  # what it says, of which only differences mean anything
    launches: int  # of `run` so far
    idle: float  # seconds that the GPU had no work so far


class SimulatedGpu:
    """A GPU with these traits, on which `run` launches a kernel that takes `seconds`: of the drawn inputs, with a cold
    cache, at the steady clock, where nothing disturbs it. `without`: the parts that are left out."""

    def __init__(self, traits: Traits, seconds: float, seed: object, without: Collection[GpuPart] = ()) -> None:
        self.traits, self.seconds, self.log = traits, seconds, Log()
        self._without = frozenset(without)
        self._numbers = random.Random(f"{seed} launches")
        self._host = self._free = self._awake = traits.began  # the GPU has work up to `_free`, and since `_awake`
        self._idle = self._other = 0.0  # seconds of the GPU so far
        self._waiting: deque[float] = deque()  # when the launches of the queue end
        self._is_compiled = GpuPart.COMPILING in self._without
        self._is_drawn = self._is_warm = False
        self._events: list[_Event] = []
        self._told = self._messages = 0
        self._looked: tuple[float, int] | None = None  # the clock, and launches so far, at the last look

    def answer(self, calls: list[DeviceCall]) -> tuple[float | None, list[float]]:
        """Carries the calls of a message out. Returns what the host's clock shows, where the last call asks, and the
        times of the events that the GPU has come to and that were not told before.

        Raises NoCall, EndlessMeasurement."""
        self._messages += 1
        now = None
        for call in calls:
            now = self._do(call)
        if self._messages > MOST_LOOKS:
            raise EndlessMeasurement(self._host - self.traits.began, self._messages)
        return now, self._new_events()

    def _do(self, call: DeviceCall) -> float | None:
        self.log.calls += 1
        if self.log.calls > MOST_CALLS or self._host - self.traits.began > MOST_SECONDS:
            raise EndlessMeasurement(self._host - self.traits.began)
        if call.name == RUN:
            self._run()
        elif call.name == DRAW_INPUTS:
            self._is_drawn = self._is_warm = True
            self._launch_other(self.traits.flush)
        elif call.name == FLUSH_CACHE:
            self._launch_other(self.traits.flush)
            self._is_warm = False
        elif call.name == SLEEP:
            self._launch_other(call.first / self.traits.cycles_a_second)
        elif call.name == RECORD:
            self._record()
        elif call.name == ELAPSED:
            self._note_events(call.first, call.second)
        elif call.name == SYNCHRONIZE:
            self._host = max(self._host, self._free) + self._cost(self.traits.synchronization)
        elif call.name == NOW:
            return self._now()
        return None

    def _new_events(self) -> list[float]:
        reached = self._told
        while reached < len(self._events) and self._events[reached].at <= self._host:
            reached += 1
        times = [event.told for event in self._events[self._told : reached]]
        self._told = reached
        return times

    def _cost(self, seconds: float) -> float:
        return 0.0 if GpuPart.HOST in self._without else seconds

    def _launch_other(self, seconds: float) -> None:
        self._other += self._launch(seconds)

    def _launch(self, seconds: float) -> float:
        """Puts work into the queue that takes `seconds` at the steady clock. Returns the seconds that it takes."""
        self._host += self._cost(self.traits.launch * self._numbers.uniform(0.9, 1.2))
        while len(self._waiting) >= MOST_WAITING:
            self._host = max(self._host, self._waiting.popleft())
        begin = max(self._host, self._free)
        if begin - self._free > REST:
            self._awake = begin
        self._idle += begin - self._free
        self._free = begin + seconds / self._clock(begin)
        self._waiting.append(self._free)
        if GpuPart.QUEUE in self._without:
            self._host = self._free
        return self._free - begin

    def _clock(self, at: float) -> float:
        """Returns the clock as a share of the steady one."""
        if GpuPart.RAMP in self._without:
            return 1.0
        return 1.0 - (1.0 - self.traits.lowest_clock) * math.exp((self._awake - at) / self.traits.ramp)

    def _run(self) -> None:
        if not self._is_compiled:
            self._host += self.traits.compilation
            self._is_compiled = True
        self._launch(self.seconds * self._share())
        self._is_warm = True
        self.log.launches += 1

    def _share(self) -> float:
        """Returns how long this launch takes, as a share of the true time. It draws the same for all `without`."""
        scatter, is_disturbed = self._numbers.gauss(), self._numbers.random() < self.traits.disturbed
        much = self._numbers.uniform(0.5, 5.0)
        share = 1.0
        if self._is_warm and GpuPart.CACHE not in self._without:
            share -= self.traits.saved_share * min(self.seconds, self.traits.saved) / self.seconds
        if not self._is_drawn and GpuPart.ZEROS not in self._without:
            share *= self.traits.of_zeros
        if GpuPart.SCATTER not in self._without:
            deviation = self.traits.scatter * min(1.0, (SHORT / self.seconds) ** 0.25)
            share *= 1.0 + max(LEAST_SCATTER, deviation) * max(-3.0, min(scatter, 3.0))
        if is_disturbed and GpuPart.DISTURBANCE not in self._without:
            share *= 1.0 + much
        return share

    def _record(self) -> None:
        self._host += self._cost(RECORDING)
        at = max(self._host, self._free)
        idle = self._idle + at - self._free
        told = at - (idle if GpuPart.GAP in self._without else 0.0)
        told -= self._other if GpuPart.OTHER_WORK in self._without else 0.0
        self._events.append(_Event(at, told, self.log.launches, idle))

    def _note_events(self, first: int, second: int) -> None:
        if max(first, second) >= self._told:
            raise NoCall("an event that the device has not come to")
        one, other = self._events[first], self._events[second]
        if (launches := other.launches - one.launches) > 0:
            self.log.timed.append(TimedPart(True, launches, other.at - one.at, idle=other.idle - one.idle))

    def _now(self) -> float:
        self._host += READING
        if self._looked and (launches := self.log.launches - self._looked[1]):
            self.log.timed.append(TimedPart(False, launches, self._host - self._looked[0], self._free > self._host))
        self._looked = self._host, self.log.launches
        return self._host
