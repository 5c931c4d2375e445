"""Questions to git about the checkout of a course."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path


class NoRevision(Exception):
    """git cannot answer a question; the message says why, in one sentence."""


def git(root: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    """Runs git in `root` and returns the ended process, also if git failed. Raises NoRevision where git is missing."""
    try:
        return subprocess.run(["git", "-C", str(root), *arguments], capture_output=True)
    except FileNotFoundError:
        raise NoRevision("git is not installed here.") from None


def git_text(root: Path, *arguments: str) -> str:
    """Returns what git prints, stripped. Raises NoRevision where git fails or is missing."""
    done = git(root, *arguments)
    if done.returncode != 0:
        said = os.fsdecode(done.stderr).strip().splitlines()[-1:]
        raise NoRevision(f"git {arguments[0]} fails in {root}: {''.join(said)[:200]}")
    return os.fsdecode(done.stdout).strip()


def tree(root: Path) -> str:
    """Returns the hash of all files as they are committed, 40 hex digits or more. Raises NoRevision."""
    return git_text(root, "rev-parse", "--verify", "HEAD^{tree}")
