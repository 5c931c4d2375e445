"""How long the driver takes to make contexts, when several processes want one at the same time.

    python benchmarks/contexts.py

Each process initialises the driver, takes the primary context of its GPU, and gives it back when all have theirs.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time

from grader.classroom.cluster import gpus

PROCESS = """
import ctypes, sys, time
started, cuda = time.time(), ctypes.CDLL("libcuda.so.1")
cuda.cuInit(0)
initialised, device, context = time.time(), ctypes.c_int(), ctypes.c_void_p()
cuda.cuDeviceGet(ctypes.byref(device), 0)
cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)
print(initialised - started, time.time() - initialised, flush=True)
sys.stdin.read()
begun = time.time()
cuda.cuDevicePrimaryCtxRelease_v2(device)
print(time.time() - begun, flush=True)
"""


def measure(processes: int, here: list[str]) -> None:
    """On these GPUs in turns."""
    begun = time.time()
    running = [
        subprocess.Popen(
            [sys.executable, "-I", "-c", PROCESS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "CUDA_VISIBLE_DEVICES": here[number % len(here)]},
        )
        for number in range(processes)
    ]  # fmt: skip
    made = [[float(word) for word in process.stdout.readline().split()] for process in running]
    seconds = time.time() - begun
    for process in running:
        process.stdin.close()
    released = [float(process.stdout.readline()) for process in running]
    contexts = sorted(context for _, context in made)
    print(
        f"{processes:2} contexts on {len(here)} GPU{'s' * (len(here) > 1)}: all there after {seconds:.2f} s; a context "
        f"{contexts[processes // 2]:.2f} s in the median, {contexts[-1]:.2f} s at most; released in {max(released):.2f}"
        " s at most",
        flush=True,
    )


def main() -> None:
    here = gpus.identifiers()
    if not here:
        raise SystemExit("There is no GPU here.")
    for processes in (1, 4, 16):
        for count in sorted({1, min(2, len(here)), min(4, len(here))} if processes > 1 else {1}):
            measure(processes, here[:count])


if __name__ == "__main__":
    main()
