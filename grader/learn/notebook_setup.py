"""The first cell of a notebook for self-study: installs missing packages, lays down the course, says what it can judge.

torch is never installed, changed or imported. Until the missing packages are there, only Python's own are imported.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

# The release, of 188 MB, that hosted notebooks with a GPU have. Without a GPU they have no Triton.
TRITON = "triton==3.6.0"
KEPT = ("torch", "numpy", "triton")  # packages that are imported already, or large, stay as they are
PIP = ("-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-input", "--retries", "1")


class CannotSetUp(Exception):
    """Exercises cannot be judged from this notebook; the message says why, and what to do."""


def set_up() -> bool:
    """Sets up the course here and prints what can be judged. Returns True if the course's commands can run."""
    try:
        _add_missing()
        _lay_down()
    except CannotSetUp as why:
        print(why)
        return False
    from grader.learn.notebooks.cells import ended

    print(ended(["-m", "grader.doctor.brief"]).stdout.rstrip("\n"))
    return True


def _add_missing() -> None:
    from grader.gpu.nvml import gpu_here

    requirements = _requirements()
    needed = dict(_lacking(requirements))
    _refuse_to_touch(needed)
    if "triton" in needed:
        print("Triton is missing here. It comes now: 188 MB. Hosted notebooks with a GPU have it.", flush=True)
        needed["triton"] = TRITON
    _install(needed)
    for_gpu = dict(_lacking(requirements, "gpu")) if gpu_here() else {}
    try:
        _install({name: text for name, text in for_gpu.items() if name not in needed})
    except CannotSetUp as why:  # without these packages all but speed is judged
        print(why)


def _refuse_to_touch(needed: dict[str, str]) -> None:
    """Raises CannotSetUp if torch is needed, or another Triton than the installed one, or Triton on another system than
    Linux. The installed torch may want its Triton as it is.
    """
    if "triton" in needed and sys.platform != "linux":
        raise CannotSetUp(
            f"Triton is published for Linux, and this is {sys.platform}. Next: open this notebook in a hosted runtime, "
            "in a container, or in WSL"
        )
    for name in ("torch", "triton"):
        here = _version(name)
        if name in needed and (here or name == "torch"):
            raise CannotSetUp(
                f"{name} {f'{here} is too old for the course' if here else 'is missing here'}, and this cell does not "
                f"touch it: {needed[name]} is needed. Next: install that as https://pytorch.org says, or take a newer "
                "runtime, restart the notebook, and run this cell again"
            )


def _requirements() -> list[str]:
    """Returns the package's own requirements; [] if it can be imported but was not installed."""
    try:
        return importlib.metadata.requires("triton-course") or []
    except importlib.metadata.PackageNotFoundError:
        return []


def _lacking(requirements: list[str], extra: str = "") -> Iterator[tuple[str, str]]:
    """Yields (name, name and versions) of each package that is needed here and is missing, or too old."""
    from packaging.requirements import Requirement  # every notebook's Python has it: ipykernel needs it

    for requirement in map(Requirement, requirements):
        applies = requirement.marker is None or requirement.marker.evaluate({"extra": extra})
        if not applies and requirement.name != "triton":  # Triton is needed on every system
            continue
        here = _version(requirement.name)
        if here is None or not requirement.specifier.contains(here, prereleases=True):
            yield requirement.name, f"{requirement.name}{requirement.specifier}"


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _install(wanted: dict[str, str]) -> None:
    """Installs packages and prints their names. `wanted`: requirements for pip, by name. Raises CannotSetUp."""
    if not wanted:
        return
    kept = [f"{name}=={_version(name)}" for name in KEPT if name not in wanted and _version(name)]
    with tempfile.TemporaryDirectory() as temporary:
        constraints = Path(temporary, "constraints.txt")
        constraints.write_text("\n".join(kept), encoding="utf-8")
        done = subprocess.run(
            [sys.executable, *PIP, "-c", constraints, *wanted.values()], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
        )  # fmt: skip
    if done.returncode:
        output = done.stdout.strip().splitlines() or ["nothing"]
        why = next((line for line in reversed(output) if line.lower().startswith("error")), output[-1])
        raise CannotSetUp(
            f"{', '.join(wanted)} could not be installed; torch is as it was. pip said: {why.strip()}\n"
            "Next: see that this machine has a network, and run this cell again"
        )
    importlib.invalidate_caches()
    print(f"Installed: {', '.join(wanted)}.")


def _lay_down() -> None:
    from grader.learn.learner_folder import version_note
    from grader.learn.notebook import MAIN, own_course
    from grader.learn.notebooks.cells import ended

    root = own_course()
    if (root / "exercises").is_dir():
        print(version_note(root), end="\n" * bool(version_note(root)))
        return
    if root.exists():
        raise CannotSetUp(f"{root} is there and holds no course. Next: rename it, and run this cell again")
    done = ended(["-c", MAIN, "init", root])
    if done.returncode:
        raise CannotSetUp(done.stdout.strip().removeprefix("Error: "))
