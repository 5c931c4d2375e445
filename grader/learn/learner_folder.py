"""A learner's own folder: the files that `course init` lays into it, and the manifest of these files.

The manifest holds a digest of each file as the course had it. The learner changed every file with another digest.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import click
from packaging.version import InvalidVersion, Version

from grader.course.folder import LAID_DOWN, Folder
from grader.course.regions import stub_text
from grader.files import write_whole
from grader.places import COURSE, PACKAGE

FOLDERS = ("docs/cluster", "exercises", "hints", "stories")
ALONE = (
    ".gitattributes", ".gitignore", "AGENTS.md", "LICENSE", "classroom.md", "course.md",
    "docs/compiler_race.md", "docs/threat_model.md", "docs/words.md",
)  # fmt: skip
SETTINGS = """\
# pytest takes these settings here, and none of a folder above.
[tool.pytest.ini_options]
addopts = "--import-mode=importlib -p no:cacheprovider"
"""
ABOUT = "Written by course init and course update, which leaves alone what you changed. Commit it, and do not edit it."


class BadManifest(Exception):
    """A manifest is not as it was written; the message is the end of a sentence."""


@dataclass(frozen=True)
class Manifest:
    """The version of a course that was laid down. `files`: the digest of each of its files, by path from the top."""

    version: Version
    files: dict[str, str]


def installed_version() -> Version:
    return Version(importlib.metadata.version("triton-course"))


def files_to_lay() -> dict[str, bytes]:
    """Returns the contents of the files of a learner's folder, by path from its top. Raises OSError."""
    files = {name: (COURSE / name).read_bytes() for name in ALONE}
    for path in sorted(path for name in FOLDERS for path in (COURSE / name).rglob("*")):
        if path.is_file() and _belongs(path):
            files[path.relative_to(COURSE).as_posix()] = _as_given(path)
    files["README.md"] = (PACKAGE / "learn" / "own_folder.md").read_bytes()
    files["pyproject.toml"] = SETTINGS.encode()
    return files


def _belongs(path: Path) -> bool:
    """Returns False for files that a clone gathers: hidden files, bytecode, copies kept by commands and editors."""
    hidden = any(part.startswith((".", "__pycache__")) for part in path.relative_to(COURSE).parts)
    return not hidden and ".kept" not in path.name and not path.name.endswith("~")


def _as_given(path: Path) -> bytes:
    """Returns the file's content; for the file of an exercise the stub, even if the clone's owner has filled it in."""
    folder = Folder.containing(path)
    if folder and path.name == folder.learner_file.name and folder.solution_file.exists():
        return stub_text(folder.solution_file.read_text(encoding="utf-8")).encode()
    return path.read_bytes()


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:32]


def digest_at(path: Path) -> str | None:
    """Returns the digest of a file; None if there is no file. Raises OSError."""
    try:
        return digest(path.read_bytes())
    except FileNotFoundError:
        return None


def write_manifest(root: Path, files: dict[str, str]) -> None:
    """Writes the manifest of the installed version. `files`: the digest of each file, by path. Raises OSError."""
    content = {"about": ABOUT, "version": str(installed_version()), "seal": "", "files": dict(sorted(files.items()))}
    write_whole(root / LAID_DOWN, json.dumps({**content, "seal": _seal(content)}, indent=1) + "\n")


def read_manifest(root: Path) -> Manifest:
    """Returns the manifest of a learner's folder. Raises BadManifest, OSError."""
    try:
        content = json.loads((root / LAID_DOWN).read_text(encoding="utf-8"))
    except ValueError:
        raise BadManifest("it is no JSON") from None
    try:
        if content["seal"] != _seal(content):
            raise BadManifest("someone has edited it")
        version, files = Version(content["version"]), dict(content["files"])
    except (KeyError, TypeError, ValueError, AttributeError, InvalidVersion):
        raise BadManifest("something in it is missing") from None
    if not all(map(_stays_inside, files)):
        raise BadManifest("it names a file outside of this folder")
    return Manifest(version, files)


def version_note(root: Path) -> str:
    """Returns a sentence about a folder whose version is not the installed one, or ""."""
    try:
        here, installed = read_manifest(root).version, installed_version()
    except (BadManifest, OSError):  # course update reports them
        return ""
    if here == installed:
        return ""
    following = "course update brings it here" if here < installed else "install the newer one in this environment"
    return f"This folder has version {here} of the course, and {installed} is installed: {following}."


def refusal_of(bad: BadManifest, root: Path) -> click.ClickException:
    return click.ClickException(
        f"{root / LAID_DOWN} is not as course init or course update wrote it: {bad}. Nothing was changed. "
        f"Next: restore it, as with git checkout {LAID_DOWN}; or course init another folder, and copy progress.txt "
        "and your files of exercises/ there"
    )


def _seal(content: dict) -> str:
    return digest(json.dumps([content["version"], sorted(content["files"].items())]).encode())


def _stays_inside(name: str) -> bool:
    path = PurePosixPath(name)
    return not path.is_absolute() and ".." not in path.parts
