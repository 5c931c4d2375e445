"""`course check --changed REF`: the exercises whose proofs a change since a revision of git can touch."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

from grader.author.git import NoRevision, git
from grader.course.folder import Folder, all_folders
from grader.course.gate_figures import FIGURES

# Files that no proof uses: a proof runs pytest in its own process, and gpu/pool only with a GPU.
OF_NONE = re.compile(
    r"grader/(?:(?:classroom|doctor|learn|show|gpu/pool)/|(?:cli|session/judging_process)\.py$|author/(?:templates/|"
    r"(?:author_commands|git|kept_findings|record|seed|skeleton|touched)\.py$))"
)
OF_OPERATION = re.compile(r"grader/operations/(?!__init__|bounds|comparison|evidence|hypothesis)(\w+)\.py$")
OF_ALL = re.compile(r"grader/|(pyproject\.toml|constraints\.txt)$")
OF_ONE = re.compile(r"(?:exercises|solutions|hints|tests/(?:mutants|accepted|cheats|gates))/(\d\d_[a-z0-9_]+)")
OF_FIGURES = f"tests/gates/{FIGURES}"  # one file, a few entries for each exercise


def touched_since(root: Path, revision: str) -> tuple[list[Folder], str]:
    """Returns the exercises to prove, and a line that says which and why.

    Changes that are not committed count as well, and so do new files unless git ignores them. Raises NoRevision.
    """
    changed, folders = changed_since(root, revision), all_folders(root)
    if of_all := [path for path in changed if _touches_all(path)]:
        return folders, f"Proves all {len(folders)} exercises: {_some(of_all)} changed since {revision}."
    paths: dict[str, list[str]] = {}
    for path in changed:
        for id in _ids_touched_by(path, root, revision):
            paths.setdefault(id, []).append(path)
    chosen = [folder for folder in folders if folder.id in paths]
    if not chosen:
        return [], f"Proves no exercise: nothing that has changed since {revision} touches one."
    why = ", ".join(f"{folder.id} ({_some(paths[folder.id])})" for folder in chosen)
    return chosen, f"Proves {why}: changed since {revision}."


def _some(paths: list[str]) -> str:
    return paths[0] + (f" and {len(paths) - 1} more" if len(paths) > 1 else "")


def _touches_all(path: str) -> bool:
    return bool(OF_ALL.match(path)) and not OF_NONE.match(path) and not OF_OPERATION.match(path)


def _ids_touched_by(path: str, root: Path, revision: str) -> set[str]:
    if operation := OF_OPERATION.match(path):
        return _ids_that_name(operation[1], root)
    if path == OF_FIGURES:
        return _ids_with_other_figures(root, revision)
    return {match[1]} if (match := OF_ONE.match(path)) else set()


def _ids_that_name(operation: str, root: Path) -> set[str]:
    """Returns the ids of the exercises whose tests state this operation, or an operation whose file imports it."""
    names = {operation}
    before: set[str] = set()
    while names != before:
        before = set(names)
        for path in (root / "grader" / "operations").glob("*.py"):
            imports = [line for line in path.read_text(encoding="utf-8").splitlines() if "import" in line]
            if any(re.search(rf"operations\b.*\b{name}\b", line) for line in imports for name in before):
                names.add(path.stem)
    stated = re.compile(rf"""["'](?:{"|".join(sorted(names))})["'.]""")
    return {folder.id for folder in all_folders(root) if stated.search(folder.test_file.read_text(encoding="utf-8"))}


def _ids_with_other_figures(root: Path, revision: str) -> set[str]:
    file, before = root / OF_FIGURES, git(root, "show", f"{revision}:./{OF_FIGURES}")
    old = json.loads(before.stdout) if before.returncode == 0 else {}
    new = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    return {name.partition("::")[0] for name in old.keys() | new.keys() if old.get(name) != new.get(name)}


def changed_since(root: Path, revision: str) -> list[str]:
    """Returns the paths of changed, new and deleted files below `root`, as git writes them. Raises NoRevision."""
    if git(root, "rev-parse", "--is-inside-work-tree").returncode != 0:
        raise NoRevision(f"{root} is no checkout of git: what has changed there cannot be told.")
    # What begins with "-" is an option to git, also where a revision is expected.
    known = not revision.startswith("-") and git(root, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
    if not known or known.returncode != 0:
        raise NoRevision(f"git knows no revision {revision!r} in {root}.")
    tracked = git(root, "diff", "--name-only", "--no-renames", "--relative", "-z", revision, "--")
    untracked = git(root, "ls-files", "--others", "--exclude-standard", "-z")
    for done in (tracked, untracked):
        if done.returncode != 0:
            raise NoRevision(f"git cannot tell what has changed in {root}: {os.fsdecode(done.stderr).strip()}")
    return sorted({os.fsdecode(path) for path in (tracked.stdout + untracked.stdout).split(b"\0") if path})
