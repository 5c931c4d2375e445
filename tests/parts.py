"""The parts of `tox`: what each runs, on which release of Triton, and how long it took.

`tox` runs all, and goes on after a part that failed, so that one run tells all that is wrong. Parts run beside each
other: alone, each leaves cores idle at its beginning and at its end. First come those on the release that learners get;
then those on other releases, each of which gets a folder of its own. `tox -- tests proofs` runs these two alone, and
`tox -- slow` what takes an hour and is no part of the rest: a class on all exercises, every GPU generation, all proofs
to their end.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from grader.doctor.doctor import TESTED_TRITONS

ROOT = Path(__file__).resolve().parent.parent
LEARNERS = re.findall(r"^triton==(.+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE)[0]
OLDEST, NEWEST = TESTED_TRITONS[0], TESTED_TRITONS[-1]
(BETWEEN,) = set(TESTED_TRITONS) - {OLDEST, LEARNERS, NEWEST}
# Three workers for two cores: some tests wait for processes, and others compute meanwhile. A file's tests stay on one.
PYTEST = "pytest -q -n 3 --dist loadfile"
BESIDE = "pytest -q -n 2"  # of the parts that run beside each other on other releases
FIRST_MISTAKES = sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("tests/explain/test_first_mistakes*.py"))
# What differs by release: Triton's private names, the texts that it writes, its machine code, and what it refuses.
REACHES_INTO_TRITON = (
    "tests/child tests/claims tests/compiler tests/front_end tests/interpreter tests/ttir "
    "tests/forkservers/test_start.py "
    "tests/gpu/test_facts.py tests/gpu/test_plan.py tests/judging/test_ahead.py tests/judging/test_autotuning.py "
    "tests/judging/test_products_of_sums.py tests/wire/test_reading.py tests/wire/test_cubin_of_every_function.py "
    f"{' '.join(FIRST_MISTAKES)} "
    # These test code that is ours alone: damaged texts, the interpreter on random calls, who compiles what when, the
    # fence.
    "--ignore=tests/ttir/test_hostile.py --ignore=tests/interpreter/test_memory_model.py "
    "--ignore=tests/compiler/test_pool.py --ignore=tests/child/test_seccomp.py --ignore=tests/child/test_landlock.py "
    "--ignore=tests/child/test_capabilities.py"
)
LAST_LINES = 40  # of a command that failed: pytest's summary, or what `course check` says of all exercises
PROGRESS = re.compile(r"[.sFEx]* *\[ *\d+%\]|")  # lines of pytest that tell no test's name
TRITONS = Path(sys.prefix) / "tritons"  # below Python's own folder, which a fenced process may read
SEED = 61  # of all proofs: what fails comes from a change, and not from data that nobody has seen


class Part(NamedTuple):
    """`triton`: the release to run on; "" for a part that imports none. `commands`: one after the other."""

    triton: str
    commands: tuple[str, ...]


PARTS = {
    "lint": Part("", ("ruff check .", "ruff format --check .", "lint-imports", "mypy")),
    "tests": Part(LEARNERS, ("course doctor", f"{PYTEST} --no-loadscope-reorder --ignore=tests/classroom/slow")),
    "proofs": Part(LEARNERS, (f"course check --seed {SEED}",)),
    "oldest": Part(OLDEST, ("course doctor", f"{BESIDE} --dist loadfile {REACHES_INTO_TRITON}")),
    "newest": Part(NEWEST, ("course doctor", f"{BESIDE} --dist loadfile {REACHES_INTO_TRITON}")),
    "between": Part(BETWEEN, ("course doctor", f"{BESIDE} tests/between.py tests/claims")),
}
SLOW = Part(
    LEARNERS,
    (
        "env SLOW=1 pytest -q tests/author/test_explanations.py tests/classroom/slow tests/classroom/test_class.py "
        "tests/compiler/test_targets.py "
        "tests/compiler/test_same_code.py tests/compiler/test_texts.py tests/course/test_covering.py "
        "tests/course/test_drawn.py tests/course/test_shared_views.py tests/interpreter/test_memory_model.py "
        "tests/judging/test_order_of_calls.py tests/judging/test_sampled.py tests/learn/test_ladder_rungs.py "
        "tests/own/test_ordinary_kernels.py tests/exercises/test_kv_cache_write.py "
        "tests/exercises/test_paged_decoding.py tests/wire/test_cubin_of_every_function.py",
        "course check --whole",
    ),
)


def main(names: list[str]) -> int:
    """Runs the parts of these names, or all, and prints a line for each. Returns an exit status."""
    parts = {**PARTS, "slow": SLOW}
    if unknown := [name for name in names if name not in parts]:
        print(f"There is no part {unknown[0]!r}: {', '.join(parts)}.")
        return 2
    lines, last_lines = [], []
    for group in filter(None, _beside_each_other([(name, parts[name]) for name in names or PARTS])):
        with ThreadPoolExecutor(len(group)) as pool:
            jobs = [pool.submit(_timed, name, part) for name, part in group]
        for (name, part), job in zip(group, jobs):
            command, last, seconds = job.result()
            outcome = f"FAILED: {command}\n         alone: tox -- {name}" if command else "passed"
            lines.append(f"{name:<8}{seconds:5.0f} s  Triton {part.triton or 'any':<6} {outcome}")
            if command:
                last_lines += ["", f"{name}: the last lines of {command}", *last]
    print(*last_lines, "", *lines, sep="\n")
    return int(bool(last_lines))


def _beside_each_other(parts: list[tuple[str, Part]]) -> tuple[list[tuple[str, Part]], ...]:
    """Returns the parts on the learners' release or any, then those on others: all at once would need more memory."""
    return tuple([one for one in parts if (one[1].triton in ("", LEARNERS)) is first] for first in (True, False))


def _timed(name: str, part: Part) -> tuple[str, list[str], float]:
    begun, folder, environment = time.monotonic(), TRITONS / part.triton, dict(os.environ)
    install = list(_installing(part.triton))
    if install:
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(folder), environment.get("PYTHONPATH")]))
    return *_failing(name, [*install, *part.commands], environment), time.monotonic() - begun


def _failing(name: str, commands: Iterable[str], environment: dict[str, str]) -> tuple[str, list[str]]:
    """Runs commands up to the first that fails, each line that they print behind the name. Returns that command and the
    last lines that it printed, which may stand far above what else runs; "" if none fails."""
    for command in commands:
        _say(f"{name:<8}{command}")
        begun = subprocess.Popen(
            shlex.split(command),
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        assert begun.stdout is not None
        last: deque[str] = deque(maxlen=LAST_LINES)
        for line in begun.stdout:
            _say(f"{name:<8}{line.rstrip()}")
            if not PROGRESS.fullmatch(line.strip()):
                last.append(line.rstrip())
        if begun.wait():
            return command, list(last)
    return "", []


def _say(line: str) -> None:
    """Prints a line as one piece: others are printed meanwhile."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _installing(triton: str) -> Iterable[str]:
    """Yields the command that puts this release into a folder of its own, where another is installed: torch's CUDA
    build names one, and works with the others."""
    if triton and version("triton") != triton:
        target = f"--upgrade --target {TRITONS / triton}"  # what an install that was broken off has left is replaced
        yield f"{sys.executable} -m pip install -q --no-compile --no-deps {target} triton=={triton}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
