"""tests/proven.json: the last commit whose exercises were all proven, its files' hash, and the versions of packages.

It keeps the seed of that proof too. CI draws the same data again, so that a run fails because of later changes, and
never because other data were drawn.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from grader.author.git import NoRevision, git, git_text, tree
from grader.author.seed import seed_of
from grader.files import write_whole

FILE = "tests/proven.json"
PACKAGES = ("torch", "triton")  # a proof holds for one release of each


class CannotRecord(Exception):
    """A proof of this checkout would prove no commit; the message says why, in one sentence."""


class NoRecord(Exception):
    """There is no record that holds here, so everything is to be proven; the message says why, in one sentence."""


@dataclass(frozen=True)
class ProofRecord:
    """`commit`: the last commit at which everything was proven. `seed`: the seed of all runs of that proof."""

    commit: str
    seed: int


def record_of(root: Path) -> ProofRecord:
    """Returns the record. Raises NoRecord where there is none, or it does not hold for the checkout."""
    try:
        return _checked(root, json.loads((root / FILE).read_text(encoding="utf-8")))
    except FileNotFoundError:
        raise NoRecord(f"There is no {FILE}.") from None
    except (ValueError, KeyError, TypeError) as error:
        raise NoRecord(f"{FILE} cannot be read: {type(error).__name__}: {error}.") from None
    except NoRevision as why:
        raise NoRecord(str(why)) from None


def _checked(root: Path, kept: dict) -> ProofRecord:
    """Returns the record in `kept`. Raises NoRevision where its releases, its commit or its files are not here."""
    commit, seed, versions = kept["commit"], seed_of(str(kept["seed"])), _versions()
    if kept["versions"] != versions:
        here = ", ".join(f"{name} {number}" for name, number in versions.items())
        raise NoRevision(f"{FILE} tells of other releases than {here}.")
    if not isinstance(commit, str) or len(commit) < 40 or not commit.isalnum():
        raise NoRevision(f"{FILE} names no commit.")
    if git(root, "merge-base", "--is-ancestor", commit, "HEAD").returncode != 0:
        raise NoRevision(f"The commit {commit[:10]} of {FILE} is no ancestor of what is checked out.")
    if git_text(root, "rev-parse", "--verify", f"{commit}^{{tree}}") != kept["tree"]:
        raise NoRevision(f"The files of the commit {commit[:10]} are others than {FILE} says.")
    return ProofRecord(commit, seed)


def needs_clean_checkout(root: Path) -> None:
    """Raises CannotRecord where files differ from the commit that is checked out, or git fails."""
    try:
        changed = git_text(root, "status", "--porcelain", "--", ".").splitlines()
    except NoRevision as why:
        raise CannotRecord(str(why)) from None
    if changed:
        raise CannotRecord(f"{changed[0][2:].strip()} is not committed: commit it first, or no commit is proven.")


def write(root: Path, seed: int) -> None:
    """Writes that the commit that is checked out is proven with this seed. Raises OSError and NoRevision."""
    kept = {"commit": git_text(root, "rev-parse", "HEAD"), "tree": tree(root), "seed": seed, "versions": _versions()}
    write_whole(root / FILE, json.dumps(kept, indent=1) + "\n")


def _versions() -> dict[str, str]:
    return {name: version(name).partition("+")[0] for name in PACKAGES}
