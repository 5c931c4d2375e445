"""`course doctor` on a machine with a GPU: names it, measures it, and says whether speed can be judged on it.

Several processes take a sample each: an anchor timed against a copy of itself, so its share should be 1. The spread of
the shares between processes is the noise of a verdict here.
"""

from __future__ import annotations

import math
import secrets
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from grader.gpu.answers import ANCHOR, COPY, MATMUL, Measurement
from grader.gpu.device import NO_GPU, Device, device_here
from grader.gpu.nvml import driver_here

if TYPE_CHECKING:
    from grader.gpu.pool.replays import Replays

PROCESSES, LEAST_PROCESSES = 5, 3
ENOUGH = 20.0  # seconds; after them no further process is asked
NOT_NEEDED = "none found: not needed; a GPU adds large sizes and speed"
MOST_SPREAD = {COPY: 0.003, MATMUL: 0.015}  # of a share between processes; the sequential rule allows no more
LEAST_SAMPLES = 3


@dataclass
class Ceiling:
    """An anchor timed against itself.

    `rates`: bytes or FLOP per second, by process. `shares`: the time of one copy over the time of the other, by
    process.
    """

    name: str
    rates: list[float] = field(default_factory=list)
    shares: list[float] = field(default_factory=list)
    useless: list[str] = field(default_factory=list)  # why samples were of no use

    def add(self, answer: dict) -> None:
        """Adds the sample in a process's answer to a request of the kind "ceilings"."""
        sample, flops = Measurement.from_json(answer[self.name]["sample"]), answer[self.name]["flops"]
        if math.isnan(sample.share):
            self.useless.append(sample.why_invalid or "too few rounds were sound")
            return
        self.rates.append((flops if self.name == MATMUL else sample.bytes) / sample.seconds(ANCHOR))
        self.shares.append(sample.share)

    @property
    def rate(self) -> float:
        return statistics.median(self.rates) if self.rates else math.nan

    @property
    def rate_text(self) -> str:
        if self.name == COPY:
            return f"{self.rate / 1e9:,.0f} GB/s".replace(",", " ")
        return f"{self.rate / 1e12:.0f} TFLOP/s"

    @property
    def spread(self) -> float:
        """The standard deviation of the shares' logarithms between processes; nan for fewer than two shares."""
        return statistics.stdev(math.log(share) for share in self.shares) if len(self.shares) > 1 else math.nan

    @property
    def offset(self) -> float:
        """The distance of the median share from 1, as a logarithm; nan without shares.

        Only a fault of the method can cause a distance.
        """
        return abs(math.log(statistics.median(self.shares))) if self.shares else math.nan

    @property
    def complaint(self) -> str:
        """The reason why a verdict on speed cannot be trusted here; "" if nothing speaks against it."""
        most = MOST_SPREAD[self.name]
        if len(self.shares) < LEAST_SAMPLES:
            return f"{len(self.useless)} of {len(self.useless) + len(self.shares)} samples were useless: " + (
                self.useless[0] if self.useless else "there were too few"
            )
        if self.spread > most:
            return f"the {self.name}'s speed differs by {percent(self.spread)} between processes, against itself"
        if self.offset > most:
            return f"the {self.name} seems {percent(self.offset)} off its own speed, so the clock favours one of two"
        return ""


def percent(share: float) -> str:
    """Returns a share in percent, as in "0.05 %"."""
    return f"{100 * share:.2g} %" if share < 0.1 else f"{100 * share:.0f} %"


@dataclass
class FoundGpu:
    """The state of the GPU. `here`: it exists. `usable`: kernels can be judged on it. `trusted`: so can their speed."""

    here: bool = False
    usable: bool = False
    trusted: bool = False


def examine_gpu(say: Callable[[str, str, bool], None], wait: Callable) -> FoundGpu:
    """Examines and measures the GPU, and says what it finds. Returns the GPU's state.

    `say` takes a name, a finding, and whether it is in order. `wait(text)` is a context to show while time passes.
    """
    device = device_here()
    if device == NO_GPU:
        say("GPU", NOT_NEEDED, True)
        return FoundGpu()
    if isinstance(device, str):
        say("GPU", f"there is one, and it cannot be used: {device}", False)
        return FoundGpu(here=True)
    say("GPU", describe(device, driver_here()), True)
    from grader.gpu.lock import GpuBusy
    from grader.gpu.pool.replay_process import ReplayEnded
    from grader.gpu.pool.replays import Replays

    replays = Replays(device)
    try:
        with wait("Measuring the GPU ..."):
            answers = ask(replays)
    except ReplayEnded as ended:
        say("speed", why_ended(ended), False)
        return FoundGpu(here=True, usable=ended.how == "no-room")
    except GpuBusy as busy:
        say("speed", f"not measured now: {busy}", False)
        return FoundGpu(here=True, usable=True)
    finally:
        replays.end()
    return FoundGpu(here=True, usable=True, trusted=tell(answers, device, say))


def describe(device: Device, driver: str) -> str:
    """Returns a description, as in "NVIDIA H200, 140 GiB, sm_90, driver 570.133.20"."""
    memory = f"{device.model.memory_bytes / (1 << 30):.0f} GiB"
    return ", ".join([device.name, memory, device.model.target] + [f"driver {driver}"] * bool(driver))


def ask(replays: Replays) -> list[dict]:
    """Returns the answers of LEAST_PROCESSES to PROCESSES fresh processes.

    They start side by side and measure one after the other. Raises ReplayEnded and GpuBusy.
    """
    replays.start(PROCESSES)
    started = time.monotonic()
    answers: list[dict] = []
    while len(answers) < PROCESSES:
        answers.append(replays.ceilings(secrets.randbits(62)))
        if len(answers) >= LEAST_PROCESSES and time.monotonic() - started > ENOUGH:
            break
    return answers


def why_ended(ended) -> str:
    if ended.how == "no-room":
        return "not measured: the GPU has too little free memory; other programs hold it"
    if ended.how == "time":
        return "the process that owns the GPU did not answer in time"
    return f"the process that owns the GPU ended{': ' * bool(ended.detail)}{ended.detail}"


def tell(answers: list[dict], device: Device, say: Callable[[str, str, bool], None]) -> bool:
    """Says line by line what the answers mean; returns whether verdicts on speed can be trusted."""
    ceilings = [Ceiling(COPY), Ceiling(MATMUL)]
    for ceiling, kind in zip(ceilings, ("copy", "fp16 matmul")):
        for answer in answers:
            ceiling.add(answer)
        say(kind, f"{ceiling.rate_text}{_of_datasheet(ceiling, device)}" if ceiling.rates else "not measured", True)
    held_down = next((answer["complaint"] for answer in answers if answer["complaint"]), "")
    say("clock", _clock(answers[-1], held_down), not held_down)
    for ceiling in ceilings:
        if len(ceiling.shares) > 1:
            text = f"{percent(ceiling.spread)} between {len(ceiling.shares)} processes, at most "
            say(f"A/A {ceiling.name}", f"{text}{percent(MOST_SPREAD[ceiling.name])}: timed against itself", True)
    complaints = [text for text in (held_down, *(ceiling.complaint for ceiling in ceilings)) if text]
    if device.is_impossible(bytes_per_second=ceilings[0].rate, flops=ceilings[1].rate):
        complaints.append("it seems faster than its datasheet allows; please report this")
    say("speed", f"verdicts cannot be trusted now: {complaints[0]}" if complaints else "verdicts can be trusted here",
        not complaints)  # fmt: skip
    return not complaints


def _of_datasheet(ceiling: Ceiling, device: Device) -> str:
    if device.card is None:
        return ""
    stated = device.card.flops if ceiling.name == MATMUL else device.card.bandwidth
    return "" if math.isinf(stated) else f", {100 * ceiling.rate / stated:.0f} % of the datasheet"


def _clock(answer: dict, held_down: str) -> str:
    """Returns the state of the clock, as in "1980 of 1980 MHz, not throttled"."""
    now, most = answer["megahertz"], answer["most_megahertz"]
    if not now:
        return "not known: the driver's NVML does not answer"
    return f"{now:.0f}{f' of {most:.0f}' if most else ''} MHz, {held_down or 'not throttled'}"
