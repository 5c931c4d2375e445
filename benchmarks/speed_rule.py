"""How often the speed rule errs, simulated: python benchmarks/speed_rule.py [--runs 20000] [--kernels 1000]

A sample is the median of 7 rounds in one process. Each process has an offset of its own (sigma, the noise that counts);
rounds have noise of 1 %, and one in ten is hit by a burst that makes it 10 to 30 % slower. Printed for each true
distance x from the gate: the share of runs that end as fast enough, too slow and inconclusive, and the mean number of
samples. Then for kernels that are run again, unchanged, up to 20 times: the share of them that pass at last, and that
would if each run began anew.
"""

from __future__ import annotations

import argparse

import numpy as np

from grader.judging.speed_rule import FAST, GRACE, INCONCLUSIVE, MORE, SLOW, STAGES, decide, decide_again

ROUNDS, ROUND_NOISE, BURSTS, BURST = 7, 0.01, 0.10, (0.10, 0.30)
SIGMAS = (0.001, 0.0089, 0.015, 0.02, 0.03)
TRIES = 20
DISTANCES = (-0.16, -0.10, -0.05, 0.0, GRACE / 2, GRACE, 0.06, 0.10, 0.15)


def samples(generator: np.random.Generator, x: float, sigma: float) -> np.ndarray:
    """As many samples as the rule can ask for."""
    rounds = generator.normal(0, ROUND_NOISE, (STAGES[-1], ROUNDS))
    rounds += (generator.random(rounds.shape) < BURSTS) * generator.uniform(*BURST, rounds.shape)
    return x + generator.normal(0, sigma, STAGES[-1]) + np.median(rounds, axis=1)


def outcome(values: np.ndarray, earlier: list[float] | None = None) -> tuple[str, int]:
    for count in range(1, len(values) + 1):
        own = list(values[:count])
        decision = decide_again(earlier, own) if earlier else decide(own)
        if decision.outcome != MORE:
            return decision.outcome, count
    raise AssertionError("the last stage decides")


def passes_at_last(generator: np.random.Generator, x: float, sigma: float, goes_on: bool) -> bool:
    """Whether a kernel passes in one of TRIES runs."""
    earlier: list[float] = []
    for _ in range(TRIES):
        values = samples(generator, x, sigma)
        said, count = outcome(values, earlier)
        if said == FAST:
            return True
        earlier = [*earlier, *values[:count]] if goes_on else []
    return False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20000)
    parser.add_argument("--kernels", type=int, default=1000)
    given = parser.parse_args()
    runs = given.runs
    generator = np.random.default_rng(1)
    print(f"{'sigma':>7} {'x':>6}   {FAST:>12} {SLOW:>12} {INCONCLUSIVE:>13} {'samples':>8}")
    for sigma in SIGMAS:
        for x in DISTANCES:
            ended = [outcome(samples(generator, x, sigma)) for _ in range(runs)]
            shares = [sum(name == which for name, _ in ended) / runs for which in (FAST, SLOW, INCONCLUSIVE)]
            mean = sum(count for _, count in ended) / runs
            print(f"{sigma:7.4f} {x:6.2f}   {shares[0]:12.5f} {shares[1]:12.5f} {shares[2]:13.5f} {mean:8.1f}")
    print(f"\n{TRIES} runs\n{'sigma':>7} {'x':>6}   {'pass at last':>12} {'begun anew':>12}")
    for sigma in SIGMAS:
        for x in (GRACE, 0.06):
            found = [
                sum(passes_at_last(generator, x, sigma, goes_on) for _ in range(given.kernels)) / given.kernels
                for goes_on in (True, False)
            ]
            print(f"{sigma:7.4f} {x:6.2f}   {found[0]:12.4f} {found[1]:12.4f}")


if __name__ == "__main__":
    main()
