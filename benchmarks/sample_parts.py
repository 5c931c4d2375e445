"""What the time of a sample of speed goes into. On a GPU:

    python benchmarks/sample_parts.py

The samples are those that the solutions' tests of speed ask for, taken in this process one after the other; the host
waits for the GPU after each part. A part that is not timed still holds the GPU alone, so its time counts in a class.
"""

from __future__ import annotations

import contextlib
import gc
import io
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import pytest  # noqa: E402
import torch  # noqa: E402

from grader.course.folder import all_folders  # noqa: E402
from grader.gpu.device import driver_device  # noqa: E402
from grader.gpu.inside import measuring, process, timing  # noqa: E402
from grader.gpu.pool.pool import ReplayPool  # noqa: E402

TIMES = 5  # that each sample is taken; the first, which loads what torch needs, does not count
PARTS = ("prepared", "warm-up", "drawn", "timed", "verified", "all, alone")


def samples_asked() -> list[tuple[dict, bytes]]:
    """The first sample of each call that the solutions' tests time: (request, blob)."""
    asked = {}

    class Listening(ReplayPool):
        def sample(self, request, blob, work, served):
            asked.setdefault(repr((request["folder"], request["data"], request["arguments"])), (request, blob))
            return super().sample(request, blob, work, served)

    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(io.StringIO()):
        patch.setattr("grader.gpu.pool.replays.ReplayPool", Listening)
        for folder in all_folders(ROOT):
            pytest.main([str(folder.path), "--submission", str(folder.solution_file)])
    return list(asked.values())


class Parts:
    """Seconds of each part of the samples taken since `clear`."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)

    def clear(self) -> None:
        self.seconds.clear()

    @contextlib.contextmanager
    def timing(self, part: str) -> Iterator[None]:
        torch.cuda.synchronize()
        begun = time.perf_counter()
        yield
        torch.cuda.synchronize()
        self.seconds[part] += time.perf_counter() - begun

    def of(self, part: str, function: Callable) -> Callable:
        def timed(*args):
            with self.timing(part):
                return function(*args)

        return timed

    def watch(self, patch: pytest.MonkeyPatch) -> None:
        def watched(chain: Callable) -> Callable:
            def made(*args):
                found = chain(*args)
                found.refresh = self.of("drawn", found.refresh)
                found.verify = self.of("verified", found.verify)
                return found

            return made

        for name in ("plan_chain", "anchor_chain", "torch_chain"):
            patch.setattr(measuring, name, watched(getattr(measuring, name)))
        patch.setattr(timing, "_warm_up", self.of("warm-up", timing._warm_up))
        patch.setattr(timing, "_time", self.of("timed", timing._time))


def take(request: dict, blob: bytes, parts: Parts) -> None:
    """One sample, as the replay process takes it."""
    turn = []

    def wait_for_turn() -> None:
        torch.cuda.synchronize()
        turn.append(time.perf_counter())
        parts.clear()  # drawing for the capture was part of preparing

    begun = time.perf_counter()
    reply, _ = process._answer(request, blob, wait_for_turn)
    torch.cuda.synchronize()
    ended = time.perf_counter()
    gc.collect()
    process.give_memory_back()
    if reply["kind"] != "measured" or reply["wrong"]:
        raise SystemExit(f"A sample failed: {reply}")
    parts.seconds["prepared"], parts.seconds["all, alone"] = turn[0] - begun, ended - turn[0]


def main() -> None:
    device = driver_device()
    if isinstance(device, str):
        raise SystemExit(f"{device}.")
    asked, parts = samples_asked(), Parts()
    torch.zeros(1, device="cuda")  # makes the context and keeps it current
    print(f"{'milliseconds of a sample':40}" + "".join(f"{part:>12}" for part in PARTS))
    with pytest.MonkeyPatch.context() as patch:
        parts.watch(patch)
        for request, blob in asked:
            total: dict[str, float] = defaultdict(float)
            for number in range(TIMES):
                take(request, blob, parts)
                for part in PARTS if number else ():
                    total[part] += 1000 * parts.seconds[part] / (TIMES - 1)
            shapes = " ".join("x".join(map(str, one["shape"])) for one in request["arguments"])
            named = f"{Path(request['folder']).name[:2]} {shapes} {request['arguments'][0]['dtype']}"
            print(f"{named:40}" + "".join(f"{total[part]:12.1f}" for part in PARTS), flush=True)


if __name__ == "__main__":
    main()
