"""tests/reads.json: for each test file which code it runs on, and which parts of the course its tests read.

A file's entry has three fields and holds for the files of its "commit". "code" is numbers like "0-3 7", of paths in the
list "code" of the whole, from 0. "reads" is like {"03_softmax course.md": ["test_one", "test_two"]}.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from grader.files import write_whole

FILE = "tests/reads.json"


@dataclass(frozen=True)
class FileReads:
    """The reads of one file's tests at `commit`. `code`: the files of grader/ and tests/ that any process of its tests
    opened. `tests`: by the name of a test the parts of the course that it reads."""

    commit: str
    code: frozenset[str]
    tests: dict[str, frozenset[str]]


def read_record(root: Path) -> dict[str, FileReads]:
    """Returns what is recorded, by test file. Raises FileNotFoundError, and ValueError for a text of another form."""
    try:
        kept = json.loads((root / FILE).read_text(encoding="utf-8"))
        return {path: _file_reads(entry, kept["code"]) for path, entry in kept["files"].items()}
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from error


def _file_reads(entry: dict, code: list[str]) -> FileReads:
    tests = {test: frozenset(reads.split()) for reads, tests in entry["reads"].items() for test in tests}
    return FileReads(str(entry["commit"]), frozenset(code[number] for number in _numbers(entry["code"])), tests)


def write_record(root: Path, files: dict[str, FileReads]) -> None:
    code = sorted(set().union(*(file.code for file in files.values())))
    number_of = {path: number for number, path in enumerate(code)}
    entries = {
        path: {
            "commit": file.commit,
            "code": _ranges(sorted(number_of[each] for each in file.code)),
            "reads": _by_reads(file.tests),
        }
        for path, file in sorted(files.items())
    }
    write_whole(root / FILE, json.dumps({"code": code, "files": entries}, indent=1) + "\n")


def _by_reads(tests: dict[str, frozenset[str]]) -> dict[str, list[str]]:
    """Returns the names of the tests by what they read, in one line with blanks between."""
    found: dict[str, list[str]] = {}
    for test, reads in sorted(tests.items()):
        found.setdefault(" ".join(sorted(reads)), []).append(test)
    return dict(sorted(found.items()))


def _ranges(numbers: list[int]) -> str:
    """Returns "0-3 7" for [0, 1, 2, 3, 7]: in order, numbers that follow one another as first and last."""
    runs = [[number for _, number in run] for _, run in groupby(enumerate(numbers), lambda pair: pair[1] - pair[0])]
    return " ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def _numbers(ranges: str) -> list[int]:
    ends = [[int(end) for end in each.split("-")] for each in ranges.split()]
    return [number for run in ends for number in range(run[0], run[-1] + 1)]
