"""`course update`: brings the files of the installed version into a learner's folder, and keeps the learner's own.

Each file is replaced whole, and the manifest is written last. An update that was cut off goes on with the next one.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from pathlib import Path

import click

from grader.course.by_name import NO_COURSE, course_here
from grader.course.folder import LAID_DOWN
from grader.files import write_whole
from grader.learn.learner_folder import (
    BadManifest,
    Manifest,
    digest,
    digest_at,
    files_to_lay,
    installed_version,
    read_manifest,
    refusal_of,
    write_manifest,
)


@dataclass
class Changes:
    """Lists the files that an update changes, by their names from the folder's top.

    `both`: the learner and the course have changed the file.
    """

    new: list[str] = field(default_factory=list)
    replaced: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    both: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)  # the course has them no more, and the learner changed them


@click.command(short_help="newer lessons, tests and exercises; leaves alone what you wrote")
def update() -> None:
    """Brings the lessons, tests, hints and exercises of the installed version into your folder.

    A file that you changed stays as it is. Where the course has changed it too, the new one is laid next to yours, and
    its name says from which version it is.

    \b
    Example:  course update
    """
    root = _folder_laid_down()
    manifest = _read(root)
    try:
        files = files_to_lay()
        changes = _changes(root, manifest.files, files)
        aside = _bring(root, changes, files)
        write_manifest(root, {name: digest(content) for name, content in files.items()})
    except OSError as error:
        raise click.ClickException(
            f"{error.filename}: {error.strerror}. What you wrote is as it was. Next: mend that and run course update "
            "again; it goes on where it ended"
        ) from None
    _say(manifest, changes, aside)


def _folder_laid_down() -> Path:
    root = course_here()
    if root is None:
        raise click.ClickException(NO_COURSE)
    if not (root / LAID_DOWN).exists():
        raise click.ClickException(
            f"{root} is a clone of the course: it has no {LAID_DOWN}, which course init writes. Next: git pull"
        )
    return root


def _read(root: Path) -> Manifest:
    try:
        manifest = read_manifest(root)
    except BadManifest as bad:
        raise refusal_of(bad, root) from None
    except OSError as error:
        raise click.ClickException(f"{error.filename}: {error.strerror}. Nothing was changed.") from None
    if manifest.version > installed_version():
        raise click.ClickException(
            f"{root} has version {manifest.version} of the course, and {installed_version()} is installed, which is "
            "older. Nothing was changed. Next: install the newer one in this environment"
        )
    return manifest


def _changes(root: Path, laid_down: dict[str, str], files: dict[str, bytes]) -> Changes:
    changes = Changes()
    for name, content in files.items():
        here, before, now = digest_at(root / name), laid_down.get(name), digest(content)
        if here is None:
            changes.new.append(name)
        elif here not in (now, before) and now != before:
            changes.both.append(name)
        elif here == before and now != before:
            changes.replaced.append(name)
    for name in laid_down.keys() - files.keys():
        if here := digest_at(root / name):
            (changes.removed if here == laid_down[name] else changes.left).append(name)
    return changes


def _bring(root: Path, changes: Changes, files: dict[str, bytes]) -> dict[str, str]:
    """Writes and removes files. Returns the paths of new versions of files that both have changed, by their names."""
    for name in (*changes.new, *changes.replaced):
        _lay(root / name, files[name])
    aside = {}
    for name in changes.both:
        path = _free(root / name)
        _lay(path, files[name])
        aside[name] = path.relative_to(root).as_posix()
    for name in changes.removed:
        (root / name).unlink()
        with contextlib.suppress(OSError):  # other files lie there
            (root / name).parent.rmdir()
    return aside


def _lay(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, content.decode("utf-8", errors="surrogateescape"))


def _free(path: Path) -> Path:
    """Returns NAME.from-VERSION, or if it is taken NAME.from-VERSION-2, -3 and so on, the first that is free."""
    first = path.with_name(f"{path.name}.from-{installed_version()}")
    number, free = 1, first
    while free.exists():
        number += 1
        free = first.with_name(f"{first.name}-{number}")
    return free


def _say(manifest: Manifest, changes: Changes, aside: dict[str, str]) -> None:
    from grader.show.terminal import say

    counted = (len(changes.new), "new"), (len(changes.replaced), "replaced"), (len(changes.removed), "removed")
    done = ", ".join(f"{count} {what}" for count, what in counted if count)
    version = installed_version()
    here = (
        f"went from version {manifest.version} to {version}"
        if manifest.version != version
        else f"is at version {version}"
    )
    say(f"Your course {here}: {done or 'no file of it had to change'}.")
    for name, laid in sorted(aside.items()):
        say(f"You changed {name}, and so did the course: yours stays, the new one is {laid}")
    for name in sorted(changes.left):
        say(f"The course has {name} no more; you changed it, so it stays.")
    say("Next: course status")
