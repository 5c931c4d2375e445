"""Whether a GPU checks more calls if several replay processes work side by side. On a GPU:

    python benchmarks/checks_side_by_side.py

The calls are those that the solutions of 02, 03 and 05 make: small ones, whose inputs come from the tests, and large
ones, which are drawn on the GPU.
"""

from __future__ import annotations

import contextlib
import io
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import pytest  # noqa: E402

from grader.course.folder import all_folders  # noqa: E402
from grader.gpu.device import driver_device  # noqa: E402
from grader.gpu.pool.pool import ReplayPool  # noqa: E402
from grader.gpu.pool.replay_process import Replayer  # noqa: E402

NUMBERS = ("02", "03", "05")
PROCESSES = (1, 2, 3, 5)
TIMES = {"check": 4, "draw": 1}  # that each process answers all of these questions


def questions() -> list[tuple[dict, bytes, float]]:
    """What the tests ask of the replay process: (request, blob, limit)."""
    asked = []

    class Listening(ReplayPool):
        def check(self, request, blob, limit, alone):
            asked.append((request, blob, limit))
            return super().check(request, blob, limit, alone)

    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(io.StringIO()):
        patch.setattr("grader.gpu.pool.replays.ReplayPool", Listening)
        for folder in all_folders(ROOT):
            if folder.number in NUMBERS:
                pytest.main([str(folder.path), "--submission", str(folder.solution_file)])
    return asked


def measure(kind: str, asked: list[tuple[dict, bytes, float]], replayers: list[Replayer]) -> None:
    def answer(replayer: Replayer) -> None:
        for question in TIMES[kind] * asked:
            replayer.ask(*question)

    threads = [threading.Thread(target=answer, args=[replayer]) for replayer in replayers]
    computed, begun = sum(map(_core_seconds, replayers)), time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds, computed = time.monotonic() - begun, sum(map(_core_seconds, replayers)) - computed
    answers = TIMES[kind] * len(asked) * len(replayers)
    print(
        f"{kind}, {len(replayers)} side by side: one more answer each {1000 * seconds / answers:.2f} ms, "
        f"{1000 * seconds * len(replayers) / answers:.2f} ms from question to answer, "
        f"{1000 * computed / answers:.2f} ms of a core",
        flush=True,
    )


def _core_seconds(replayer: Replayer) -> float:
    return int(Path(f"/proc/{replayer.pid}/schedstat").read_text().split()[0]) / 1e9


def main() -> None:
    device = driver_device()
    if isinstance(device, str):
        raise SystemExit(f"{device}.")
    asked = questions()
    replayers = [Replayer(device.uuid) for _ in range(max(PROCESSES))]
    for kind in TIMES:
        of_kind = [question for question in asked if question[0]["kind"] == kind]
        for replayer in replayers:  # the first answer loads what torch needs for it
            for question in of_kind:
                replayer.ask(*question)
        for count in PROCESSES:
            measure(kind, of_kind, replayers[:count])
    for replayer in replayers:
        replayer.end()


if __name__ == "__main__":
    main()
