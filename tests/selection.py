"""`pytest --since-record`: leaves out the tests that read nothing of what has changed since their reads were recorded.

tests/reads.json says what each test reads, and at which commit that was recorded. A test that it does not know stays.
All tests stay where something has changed that no record can tell, like the project's settings.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from grader.author.git import NoRevision, git
from grader.author.touched import OF_ONE, changed_since
from tests.parts import EVERY_EXERCISE, EVERYTHING, OWN, WHICH_EXERCISES, code_of, listing, named_in, part_of
from tests.recorded_reads import FILE, FileReads, read_record

# New and deleted files of these folders are seen by whatever lists the folder, and a list of it counts as reading.
COMES_AND_GOES = re.compile(r"tests/(?:mutants|accepted|cheats|gates)/\d\d_[a-z0-9_]+/[^/]+$")
# New modules that only an import by name, or a list of their folder, can find.
NEW_CODE = re.compile(r"grader/(?:\w+/)*(?!__init__)\w+\.py$|tests/(?:\w+/)?test_\w+\.py$")
TOLD = 6  # changed parts


class MoreChanged(Exception):
    """Something has changed of which no record tells who reads it; the message is one sentence."""


@dataclass(frozen=True)
class Selection:
    """`told`: one line that says what has changed; `changed`: the parts of the course and the files of code that have
    changed since a commit; `files`: what the tests of a file read. Without these all tests stay."""

    told: str
    changed: dict[str, frozenset[str]] = field(default_factory=dict)
    files: dict[str, FileReads] = field(default_factory=dict)

    def leaves_out_file(self, path: str) -> bool:
        """Returns whether no test of a file can be one that stays."""
        return path in self.files and not self._reads_more(path, self._changed(path) | {EVERYTHING})

    def is_recorded(self, path: str) -> bool:
        """Returns whether what is recorded of a file's tests holds: nothing that they read has changed since."""
        return path in self.files and not self._reads_more(path, self._changed(path))

    def leaves_out(self, nodeid: str) -> bool:
        path, _, test = nodeid.partition("::")
        reads = self.files[path].tests.get(test.partition("[")[0]) if path in self.files else None
        changed = self._changed(path) | {EVERYTHING}
        if reads is None or self.files[path].code & changed or _meet(reads, changed):
            return False
        return OWN not in reads or not any(_is_exercise(part) and named_in(test, part) for part in changed)

    def _changed(self, path: str) -> frozenset[str]:
        return self.changed[self.files[path].commit] if path in self.files else frozenset()

    def _reads_more(self, path: str, changed: frozenset[str]) -> bool:
        """Returns whether any test of a recorded file may read something that has changed."""
        own = any(_is_exercise(part) for part in changed)
        code, tests = self.files[path].code, self.files[path].tests.values()
        return bool(code & changed) or any(_meet(reads, changed) or (own and OWN in reads) for reads in tests)


def _meet(reads: frozenset[str], changed: frozenset[str]) -> bool:
    return bool(reads & changed) or (EVERY_EXERCISE in reads and any(_is_exercise(part) for part in changed))


def _is_exercise(part: str) -> bool:
    return OF_ONE.match(f"exercises/{part}") is not None


def selection_of(root: Path) -> Selection:
    """Returns what to run in the course at `root`."""
    try:
        files = read_record(root)
        changed = {commit: changed_parts(root, commit) for commit in {file.commit for file in files.values()}}
    except FileNotFoundError:
        return Selection(f"all tests: there is no {FILE}")
    except ValueError as error:
        return Selection(f"all tests: {FILE} cannot be read: {error}")
    except (NoRevision, MoreChanged) as why:
        return Selection(f"all tests: {why}")
    parts = sorted(frozenset().union(*changed.values()))
    what = ", ".join(parts[:TOLD]) + (f" and {len(parts) - TOLD} more" if len(parts) > TOLD else "")
    return Selection(f"tests that read what changed since that was recorded: {what or 'nothing'}", changed, files)


def changed_parts(root: Path, commit: str) -> frozenset[str]:
    """Returns the parts of the course and the code that have changed. Raises MoreChanged, and NoRevision."""
    if git(root, "merge-base", "--is-ancestor", commit, "HEAD").returncode != 0:
        raise MoreChanged(f"the commit {commit[:10]} of {FILE} is no ancestor of what is checked out.")
    return frozenset().union(*(_parts(root, commit, path) for path in changed_since(root, commit)))


def _parts(root: Path, commit: str, path: str) -> set[str]:
    """Returns what a test reads that can tell that this path has changed. Raises MoreChanged."""
    was, part = _was(root, commit, path), part_of(path)
    if was and (root / path).exists() and (part or code_of(path)):
        return {part or path}
    if path == FILE:
        return {path}
    folder = str(PurePosixPath(path).parent)
    if COMES_AND_GOES.match(path) and _was(root, commit, folder) and (root / folder).exists():
        return {part}
    if _is_exercise(part) and not _was(root, commit, f"exercises/{part}"):
        return {part, WHICH_EXERCISES}
    if code_of(path) and (was or NEW_CODE.match(path)):
        return {path, listing(path), *(f"{folder}/" for folder in PurePosixPath(path).parents[1:-1])}
    raise MoreChanged(f"{path} changed since {commit[:10]}.")


def _was(root: Path, commit: str, path: str) -> bool:
    return git(root, "cat-file", "-e", f"{commit}:./{path}").returncode == 0
