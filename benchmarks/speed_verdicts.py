"""How far verdicts on speed can be trusted here.

    python benchmarks/speed_verdicts.py [--samples 150] [--busy] [--out FILE]

Each sample is a fresh process that times an anchor against a copy of itself with the grader's own code: right would be
a share of 1. The sequential rule then judges them as a submission would be judged: at a gate of 1.00, where it must
never say "too slow", and at a gate 6 % above the share, where it must never say "fast enough". With --busy another
process keeps the GPU at work meanwhile. Runs are disjoint stretches of the samples, and 1000 random orders of them.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import statistics
import subprocess
import sys
from collections import Counter
from pathlib import Path

from grader.gpu.answers import Measurement
from grader.gpu.device import Device, device_here
from grader.gpu.pool.replays import Replays
from grader.judging.speed_rule import FAST, INCONCLUSIVE, MORE, SLOW, decide, distance_of

TOGETHER = 8  # processes that start side by side before the GPU is taken
SLOWER = math.exp(0.06)
ORDERS = 1000
NEIGHBOUR = """
import torch, time
a = torch.randn(4096, 4096, device="cuda", dtype=torch.float16)
x, z = (torch.empty(1 << 27, device="cuda") for _ in range(2))
print("busy", flush=True)
while True:
    for _ in range(20):
        torch.mm(a, a)
        z.copy_(x)
    torch.cuda.synchronize()
    time.sleep(0.002)
"""


def collected(device: Device, count: int) -> dict[str, list[float]]:
    """Shares by anchor; samples without enough valid rounds are left out, as a verdict leaves them out."""
    replays, shares = Replays(device), {"copy": [], "matmul": []}
    try:
        for number in range(count):
            if number % TOGETHER == 0:
                replays.start(min(TOGETHER, count - number))
            found = replays.ceilings(number)
            for name, taken in shares.items():
                share = Measurement.from_json(found[name]["sample"]).share
                taken += [] if math.isnan(share) else [share]
    finally:
        replays.end()
    return shares


def judged(shares: list[float], gate: float) -> tuple[str, int]:
    """(verdict, samples that it took); MORE if there were too few."""
    distances = [distance_of(share, gate) for share in shares]
    for count in range(2, len(distances) + 1):
        outcome = decide(distances[:count]).outcome
        if outcome != MORE:
            return outcome, count
    return MORE, len(distances)


def disjoint(shares: list[float], gate: float) -> Counter:
    outcomes, start = Counter(), 0
    while True:
        outcome, count = judged(shares[start:], gate)
        if outcome == MORE:
            return outcomes
        outcomes[outcome] += 1
        start += count


def shuffled(shares: list[float], gate: float) -> Counter:
    order = random.Random(1)
    return Counter(judged(order.sample(shares, min(15, len(shares))), gate)[0] for _ in range(ORDERS))


def told(outcomes: Counter) -> str:
    return ", ".join(f"{outcomes[name]} {name}" for name in (FAST, SLOW, INCONCLUSIVE, MORE) if outcomes[name])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=150)
    parser.add_argument("--busy", action="store_true")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    device = device_here()
    if not isinstance(device, Device):
        raise SystemExit(f"This benchmark wants a GPU: {device}.")
    neighbour = None
    if given.busy:
        neighbour = subprocess.Popen([sys.executable, "-c", NEIGHBOUR], stdout=subprocess.PIPE, text=True)
        neighbour.stdout.readline()
    try:
        shares = collected(device, given.samples)
    finally:
        if neighbour is not None:
            neighbour.kill()
    print(f"{device.name}, {given.samples} processes, {'beside a busy one' if given.busy else 'idle GPU'}")
    for name, taken in shares.items():
        if len(taken) < 2:
            print(f"{name}: {len(taken)} usable samples")
            continue
        spread = statistics.stdev(math.log(share) for share in taken)
        span = f"{min(taken):.4f} to {max(taken):.4f}"
        print(
            f"{name}: {len(taken)} usable samples, share {statistics.median(taken):.4f} ({span}), spread {spread:.2%}"
        )
        for label, gate in (("at its gate", 1.0), ("6 % under its gate", SLOWER)):
            print(f"  {label}: {told(disjoint(taken, gate))}; in {ORDERS} orders {told(shuffled(taken, gate))}")
    if given.out:
        given.out.write_text(json.dumps({"gpu": device.name, "busy": given.busy, "shares": shares}) + "\n")


if __name__ == "__main__":
    main()
