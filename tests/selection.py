"""`pytest --since-record`: leaves out the tests that read nothing of what has changed since their reads were recorded.

tests/reads.json says what each test reads, and at which commit that was recorded. A test that it does not know stays.
All tests stay where something else has changed than the contents of exercises, lessons and pages, and where that
cannot be told.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from grader.author.git import NoRevision, git
from grader.author.touched import OF_ONE, changed_since
from tests.reads import EVERY_EXERCISE, EVERYTHING, FILE, OWN, named_in, part_of

# New and deleted files of these folders are seen by whatever lists the folder, and a list of it counts as reading.
COMES_AND_GOES = re.compile(r"tests/(?:mutants|accepted|cheats|gates)/\d\d_[a-z0-9_]+/[^/]+$")


class MoreChanged(Exception):
    """More has changed than contents of exercises and pages, or that cannot be told; the message is one sentence."""


@dataclass(frozen=True)
class Selection:
    """`told`: one line that says what has changed; `changed`: the parts of the course, and `reads`: what each test
    reads, by file and name. Without these all tests stay."""

    told: str
    changed: frozenset[str] = frozenset()
    reads: dict[str, dict[str, set[str]]] = field(default_factory=dict)

    def leaves_out_file(self, path: str) -> bool:
        """Returns whether no test of a file can be one that stays."""
        return path in self.reads and not any(OWN in reads or self._meet(reads) for reads in self.reads[path].values())

    def leaves_out(self, nodeid: str) -> bool:
        path, _, test = nodeid.partition("::")
        reads = self.reads.get(path, {}).get(test.partition("[")[0])
        if reads is None or self._meet(reads):
            return False
        return OWN not in reads or not any(named_in(test, part) for part in self.changed)

    def _meet(self, reads: set[str]) -> bool:
        of_exercises = EVERY_EXERCISE in reads and any(OF_ONE.match(f"exercises/{part}") for part in self.changed)
        return bool(reads & self.changed) or EVERYTHING in reads or of_exercises


def selection_of(root: Path) -> Selection:
    """Returns what to run in the course at `root`."""
    try:
        kept = json.loads((root / FILE).read_text(encoding="utf-8"))
        commit, files = str(kept["commit"]), {path: _by_test(found) for path, found in kept["files"].items()}
        changed = changed_parts(root, commit)
    except FileNotFoundError:
        return Selection(f"all tests: there is no {FILE}")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        return Selection(f"all tests: {FILE} cannot be read: {type(error).__name__}: {error}")
    except (NoRevision, MoreChanged) as why:
        return Selection(f"all tests: {why}")
    what = ", ".join(sorted(changed)) or "nothing"
    return Selection(f"tests that read what changed since {commit[:7]}: {what}", changed, files)


def _by_test(found: dict[str, list[str]]) -> dict[str, set[str]]:
    return {test: set(reads.split()) for reads, tests in found.items() for test in tests}


def changed_parts(root: Path, commit: str) -> frozenset[str]:
    """Returns the parts of the course whose contents have changed. Raises MoreChanged, and NoRevision."""
    if git(root, "merge-base", "--is-ancestor", commit, "HEAD").returncode != 0:
        raise MoreChanged(f"the commit {commit[:10]} of {FILE} is no ancestor of what is checked out.")
    parts = set()
    for path in changed_since(root, commit):
        part = part_of(path)
        if not part or not _can_be_seen(root, commit, path):
            raise MoreChanged(f"{path} changed since {commit[:10]}.")
        parts.add(part)
    return frozenset(parts)


def _can_be_seen(root: Path, commit: str, path: str) -> bool:
    """Returns whether only a test that reads of the path, or lists its folder, can tell the change."""
    seen = str(PurePosixPath(path).parent) if COMES_AND_GOES.match(path) else path
    was = git(root, "cat-file", "-e", f"{commit}:./{seen}").returncode == 0
    return (was and (root / seen).exists()) or path == FILE
