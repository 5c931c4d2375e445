"""`course check --transplant` and `--unforeseen`: how many wrong kernels are explained as they are, and where."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from grader.author import direct_run, proving
from grader.author.proof import Proof, Way
from grader.author.wrong_kernels import WrongKernel
from grader.course.folder import Folder
from grader.course.mistakes import causes_of
from grader.explain.causes import Cause
from grader.explain.verdict import FAIL

NAMES_A_MISTAKE = ("cause", "guess")  # kinds of failures; the others tell what was seen
NOT_JUDGED = ("file", "region", "ended", "error", "refused")  # the compiler, or Python, says what is wrong
NAMED = AS_EXPECTED, FALSELY, UNNAMED = "as expected", "falsely", "unnamed"
LINES = RIGHT, WRONG, NONE = "right", "wrong", "none"


@dataclass(frozen=True)
class Explained:
    """An explanation of a wrong kernel, as a learner is told it. `named`: one of NAMED; `line`: one of LINES.

    A mistake that nobody foresaw has no expected name: it counts as named falsely if it is named with a line that holds
    no mistake. Whether its sentence is true has to be read.
    """

    kernel: WrongKernel
    cause: str
    message: str
    told_line: int
    named: str
    line: str


def explained(kernel: WrongKernel, seed: int) -> Explained | None:
    """Judges a kernel in a whole run; None if it is right after all, or never runs."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{kernel.exercise.name[3:]}.py"
        path.write_text(kernel.text, encoding="utf-8")
        proof = Proof("mutant", kernel.name, kernel.exercise, path, FAIL)
        found = direct_run.outcome(proof, path, Way(whole=True, seed=seed))
    if found.found != FAIL or found.kind in NOT_JUDGED or not found.ids:
        return None
    line = NONE if not found.line else RIGHT if found.line in kernel.lines else WRONG
    cause, expected = found.ids[0], kernel.expected.split()
    digits = causes_of(Folder(kernel.exercise), "digits")
    if cause in expected:
        named = AS_EXPECTED
    elif found.kind not in NAMES_A_MISTAKE or (cause == Cause.LOW_PRECISION and not digits.isdisjoint(expected)):
        named = UNNAMED  # that digits are lost is true of each mistake that loses them
    else:
        named = FALSELY if expected or line == WRONG else AS_EXPECTED
    return Explained(kernel, cause, found.message, found.line, named, line)


def measure(
    kernels: Sequence[WrongKernel], workers: int, seed: int, begin: Callable[[int], Callable[[], None]]
) -> list[Explained]:
    """Judges these kernels, several at once. `begin` takes their number, and returns what is called after each."""
    one_done, results = begin(len(kernels)), []
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=proving.prepare) as pool:
        for result in pool.map(partial(explained, seed=seed), kernels):
            one_done()
            results.append(result)
    return [one for one in results if one is not None]


def summary(results: Sequence[Explained]) -> str:
    """Returns "24 wrong kernels: named as expected 17, falsely 1, unnamed 6; line right 9, wrong 2, none 13"."""
    named, lines = Counter(one.named for one in results), Counter(one.line for one in results)
    return (
        f"{len(results)} wrong kernels: named {', '.join(f'{one} {named[one]}' for one in NAMED)}; "
        f"line {', '.join(f'{one} {lines[one]}' for one in LINES)}"
    )


def as_json(results: Sequence[Explained]) -> str:
    objects = [asdict(one) | {"kernel": asdict(one.kernel) | {"exercise": one.kernel.exercise.name}} for one in results]
    return json.dumps(objects, indent=1) + "\n"
