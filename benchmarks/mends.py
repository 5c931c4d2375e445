"""Measures what the search for a mend costs: python benchmarks/mends.py [--rounds 3]

Solutions with one mistake, for which the search finds a line, and with two, for which it tries all that it may. Each is
judged once. The seconds that the search adds to that run, and the milliseconds that one try takes in the interpreter,
are medians of several rounds. The first row, a process that only imports torch and triton, is the anchor: it tells a
slow machine from a slow grader.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from times import COMMANDS, sample  # noqa: E402

from grader.author.direct_run import outcome  # noqa: E402
from grader.author.proof import Proof, Way  # noqa: E402
from grader.course.folder import Folder  # noqa: E402
from grader.explain import mend  # noqa: E402
from grader.explain.verdict import FAIL  # noqa: E402
from grader.interpreter.interpreter_host import InterpreterHost  # noqa: E402
from grader.interpreter.mends import Mender  # noqa: E402
from grader.judging import mended_calls  # noqa: E402
from grader.judging.run import Run  # noqa: E402
from grader.session import grading  # noqa: E402

ANCHOR = "import torch, triton (anchor)"
# The second mistake of each is made as well where the search is to find nothing.
MISTAKES = {
    "02_strided_blocks": (("+ cols * stride_zn", "- cols * stride_zn"), ("+ cols * stride_xn", "- cols * stride_xn")),
    "05_grouped_matmul": (("range(0, K,", "range(1, K,"), ("+ n[None, :] * stride_cn", "- n[None, :] * stride_cn")),
    "25_flash_attention": (("+ h * stride_oh", "- h * stride_oh"), ("tl.sum(p, 1)", "tl.max(p, 1)")),
}


class Watched:
    """Makes each search several times, and keeps the seconds of each, what it found, and the requests of the last."""

    def __init__(self, rounds: int) -> None:
        self.seconds, self.found, self.requests = [], None, []
        ask = Run._asked_exactly

        def asked(run, request, blob):
            if request.mending is not None:
                self.requests.append((request.to_json(), blob))
            return ask(run, request, blob)

        def mended(*given):
            self.seconds.clear()
            for _ in range(rounds + 1):  # the first one makes the exact calls, and warms the caches
                self.requests.clear()
                began = time.perf_counter()
                self.found = mended_calls.mended(*given)
                self.seconds.append(time.perf_counter() - began)
            return self.found

        Run._asked_exactly, grading.mended = asked, mended
        mend.is_asked_for = lambda verdict: verdict.outcome == FAIL  # also where a listed mistake is told

    def tries(self) -> tuple[int, float]:
        """Makes the requests of the last search here: how many tries they are, and their seconds."""
        host, count, call = InterpreterHost(), 0, Mender._call

        def counted(*given):
            nonlocal count
            count += 1
            return call(*given)

        Mender._call = counted
        try:
            began = time.perf_counter()
            for header, blob in self.requests:
                assert host.handle(header, blob)[0]["kind"] == "ran"
            return count, time.perf_counter() - began
        finally:
            Mender._call = call


def judged(id: str, mistakes: int) -> None:
    """Judges a solution with so many mistakes."""
    folder = Folder(ROOT / "exercises" / id)
    text = folder.solution_file.read_text()
    for right, wrong in MISTAKES[id][:mistakes]:
        assert right in text, right
        text = text.replace(right, wrong)
    with tempfile.TemporaryDirectory() as place:
        path = Path(place, f"{folder.name}.py")
        path.write_text(text)
        outcome(Proof("mutant", "a mistake", folder.path, path, FAIL), path, Way(whole=True, seed=1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    watched = Watched(rounds)
    anchor = statistics.median([sample(*COMMANDS[ANCHOR]).wall for _ in range(rounds + 1)][1:])
    print(f"{ANCHOR:<36}{anchor:6.2f} s")
    for id, mistakes in itertools.product(MISTAKES, (1, 2)):
        judged(id, mistakes)
        search, line = statistics.median(watched.seconds[1:]), watched.found.line if watched.found else "no"
        tries = [watched.tries() for _ in range(rounds)]
        a_try = statistics.median(took / count for count, took in tries)
        name = f"{id}, {mistakes} mistake{'s' * (mistakes > 1)}"
        print(f"{name:<36}{search:6.2f} s  {search / anchor:5.2f} x anchor  a try {1000 * a_try:5.2f} ms  "
              f"{a_try / anchor:.5f} x anchor  ({tries[0][0]} tries, line: {line})", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
