"""The rates that this GPU reaches now, and the error of measuring them: each anchor, timed against a copy of itself.

Both chains of a measurement do the same work, each on its own buffers, through the code that times submissions. Their
difference is the error of the clock, the GPU and its neighbours.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import asdict

import torch

from grader.gpu.answers import ANCHOR, COPY, KERNEL, MATMUL, Measurement
from grader.gpu.inside.anchors import Anchor, copy_of, matmul_of
from grader.gpu.inside.timing import Chain, Flush, measure
from grader.gpu.nvml import Clocks

SLOTS = 4  # sets of buffers per chain
COPY_BYTES = 1 << 30  # read and written, together, by a call; less where the GPU has little memory
SHARE_OF_MEMORY = 1 / 16  # for one call: two chains of four then take half
MATMUL_SIZE = 4096  # M, N and K, in fp16


def answer(uuid: str, seed: int, l2_bytes: int, memory_bytes: int) -> dict:
    """Returns the reply "ceilings": for each anchor a sample of speed as JSON, with the bytes and flops of a call.

    It also holds the clock in MHz just after the samples, its highest frequency, and the reason that holds it down.
    """
    clocks, order = Clocks(uuid), random.Random(seed)
    generator = torch.Generator("cuda").manual_seed(seed)
    copy_bytes = min(COPY_BYTES, int(SHARE_OF_MEMORY * memory_bytes))
    makers: dict[str, Callable[[], Anchor]] = {
        COPY: lambda: copy_of(copy_bytes, SLOTS),
        MATMUL: lambda: matmul_of(MATMUL_SIZE, MATMUL_SIZE, MATMUL_SIZE, torch.float16, SLOTS),
    }
    reply: dict = {"kind": "ceilings"}
    for name, make in makers.items():
        anchors = {KERNEL: make(), ANCHOR: make()}
        chains = {chain: _chain(anchor, generator) for chain, anchor in anchors.items()}
        sample: Measurement = measure(chains, Flush(l2_bytes), clocks, order)
        sample.bytes = anchors[KERNEL].bytes
        reply[name] = {"sample": asdict(sample), "flops": anchors[KERNEL].flops}
    return reply | {
        "megahertz": clocks.megahertz(),
        "most_megahertz": clocks.most_megahertz(),
        "complaint": clocks.complaint(),
    }


def _chain(anchor: Anchor, generator: torch.Generator) -> Chain:
    def refresh() -> None:
        for tensor in anchor.inputs:
            tensor.normal_(generator=generator)

    return Chain(anchor.calls, refresh)
