"""Judged texts on disk: results/NN_name/KEY.json, and the text next to it as KEY.py. Equal texts share a result.

The key covers all that a verdict depends on: text, tests, solution, hidden cases, the judge's code, and the versions of
torch, Triton and NumPy.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.metadata
import json
from dataclasses import dataclass
from pathlib import Path

from grader.classroom.json_text import json_text
from grader.classroom.rubric import is_decided
from grader.course.folder import Folder
from grader.files import write_whole
from grader.places import PACKAGE

# Rooms and files whose code decides no verdict.
NOT_THE_JUDGE = (
    "classroom",
    "author",
    "learn",
    "progress",
    "show",
    "doctor",
    "cli.py",
)


@dataclass(frozen=True)
class Text:
    """A text to judge; students who hand in the same text share it."""

    exercise: Folder
    text: str
    hidden: Path | None  # the folder of hidden cases

    @functools.cached_property
    def key(self) -> str:
        parts = [self.text.encode(), *(_bytes(path) for path in self._files), _judge()]
        return hashlib.sha256(b"\0".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()[:32]

    @property
    def hidden_file(self) -> Path | None:
        """The file of this exercise's hidden cases; None where there is none."""
        path = self.hidden / f"{self.exercise.id}.toml" if self.hidden else None
        return path if path and path.exists() else None

    @property
    def _files(self) -> list[Path | None]:
        return [self.exercise.test_file, self.exercise.solution_file, self.hidden_file]


@dataclass(frozen=True)
class Results:
    """The folder of results. A fault of the machine is kept apart, so that the next run judges again."""

    folder: Path

    def path(self, text: Text) -> Path:
        return self.folder / text.exercise.id / f"{text.key}.json"

    def find(self, text: Text) -> dict | None:
        """Returns the result of exactly this text; else the fault of the last attempt; else None."""
        path = self.path(text)
        return _read(path) or _read(_fault_path(path))

    def is_missing(self, text: Text, gpu: bool) -> bool:
        """Returns whether the text has to be judged: it has no result, or has open tests and there is a GPU now.

        A fault is no result. `gpu`: whether there is a GPU.
        """
        result = _read(self.path(text))
        if result is None:
            return True
        return gpu and not all(map(is_decided, result["tests"]))

    def store(self, text: Text, result: dict) -> None:
        path = self.path(text)
        path.parent.mkdir(exist_ok=True)  # not its parents: where a share is away, nothing is written beneath it
        content = json_text(result)
        if result["fault"]:
            if not path.exists():  # a result that waits for a GPU is better than the fault that met the next attempt
                write_whole(_fault_path(path), content)
            return
        write_whole(path.with_suffix(".py"), text.text)
        write_whole(path, content)
        _fault_path(path).unlink(missing_ok=True)


def faulty(exercise: str, fault: str) -> dict:
    """Returns what stands for a result when the judge gave none: no tests, and the fault."""
    return {"exercise": exercise, "tests": [], "points": 0, "fault": fault, "report": "", "seed": None}


def _read(path: Path) -> dict | None:
    try:
        result = json.loads(path.read_text(encoding="utf-8"))
        return result if isinstance(result.get("tests"), list) and "fault" in result else None
    except (OSError, ValueError, AttributeError):
        return None


def _fault_path(path: Path) -> Path:
    return path.with_suffix(".fault.json")


def _bytes(path: Path | None) -> bytes:
    with contextlib.suppress(OSError):
        return path.read_bytes() if path else b""
    return b""


@functools.cache
def _judge() -> bytes:
    """Returns a digest of the judge's code, and of the versions of torch, Triton and NumPy."""
    digest = hashlib.sha256()
    for path in sorted(PACKAGE.rglob("*.py")):
        if path.relative_to(PACKAGE).parts[0] not in NOT_THE_JUDGE:
            digest.update(path.read_bytes())
    for name in ("torch", "triton", "numpy"):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            digest.update(f"{name} {importlib.metadata.version(name)}".encode())
    return digest.digest()
