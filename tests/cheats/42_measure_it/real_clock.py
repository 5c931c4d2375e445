"""Reads the clock of the machine, on which the judge simulates.

Rejected with: Python's own clocks tell nothing of this GPU: it is simulated
"""

import time


def seconds_of(run, device):
    run.draw_inputs()
    began = time.perf_counter_ns()
    for _ in range(100):
        run()
    device.synchronize()
    return (time.perf_counter_ns() - began) / 1e11
