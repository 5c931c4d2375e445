"""`course init`: the course as a folder of the learner's own."""

from __future__ import annotations

import errno
import os
import shlex
import shutil
from pathlib import Path

import click

from grader.course.folder import LAID_DOWN, all_folders
from grader.learn.learner_folder import digest, files_to_lay, installed_version, write_manifest

GIT = ".git"
OTHER_FOLDER = "name a folder in a place where you may write"
NEXT = {
    errno.ENOSPC: "make room, 5 MB are enough, and run it again",
    errno.EDQUOT: "make room, 5 MB are enough, and run it again",
    errno.ENOENT: "make the folder that it shall lie in, with mkdir -p, and run it again",
    errno.EACCES: OTHER_FOLDER, errno.EPERM: OTHER_FOLDER, errno.EROFS: OTHER_FOLDER,
}  # fmt: skip


@click.command(short_help="lays the course down as a folder of your own")
@click.argument("folder", type=click.Path(path_type=Path))
def init(folder: Path) -> None:
    """Lays the course down as a folder of your own: lessons, tests, hints and the files that you fill in.

    The folder must not exist yet, or be empty but for .git. course update brings newer versions into it.

    \b
    Example:  course init my-course
    """
    from grader.show.terminal import say, shown

    target = Path(os.path.abspath(folder))
    _refuse_taken(target)
    try:
        files = files_to_lay()
    except OSError as error:
        raise click.ClickException(
            f"This installation lacks a part of the course ({error.filename}: {error.strerror}). Nothing was laid "
            "down. Next: install it again"
        ) from None
    try:
        _lay(target, files)
    except OSError as error:
        following = NEXT.get(error.errno or 0, "mend that and run it again")
        raise click.ClickException(
            f"{target} could not be made: {error.strerror}. Nothing was laid down. Next: {following}"
        ) from None
    exercises = all_folders(target)
    say(f"The course lies in {shown(target)}: version {installed_version()}, {len(exercises)} exercises.")
    if repository := _repository_above(target):
        say(f"It lies inside of the repository {repository}: commit it there, or move it out before git init.")
    elif not (target / GIT).exists():
        say("It may become a repository: git init, and commit all of it.")
    go_there = "" if target == Path.cwd() else f"cd {shlex.quote(shown(target))} && "
    say(f"Next: {go_there}pytest {exercises[0].path.relative_to(target)}")


def _refuse_taken(target: Path) -> None:
    if (target / LAID_DOWN).exists():
        raise click.ClickException(
            f"{target} holds a course already. Next: cd {shlex.quote(str(target))} && course update"
        )
    if target.is_dir() and not os.access(target, os.R_OK):
        raise click.ClickException(f"{target} cannot be looked into. Nothing was laid down. Next: {OTHER_FOLDER}")
    if os.path.lexists(target) and not (target.is_dir() and all(entry.name == GIT for entry in target.iterdir())):
        what = "is not empty" if target.is_dir() else "is no folder"
        raise click.ClickException(
            f"{target} {what}. Nothing was laid down. Next: name a folder that does not exist yet, as in "
            f"course init {target.name}-2"
        )


def _lay(target: Path, files: dict[str, bytes]) -> None:
    """Writes the files into another folder of the same disk first: an exception on the way leaves nothing half done."""
    was_there = target.exists()
    unfinished = (target if was_there else target.parent) / f".{target.name}.{os.getpid()}"
    try:
        _write(unfinished, files)
        if was_there:
            for entry in list(unfinished.iterdir()):
                entry.rename(target / entry.name)
            unfinished.rmdir()
        else:
            unfinished.rename(target)
    except BaseException:
        moved = [path for path in target.iterdir() if path.name != GIT] if was_there else []
        for path in {*moved, unfinished}:
            shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)
        raise


def _write(folder: Path, files: dict[str, bytes]) -> None:
    folder.mkdir()
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    write_manifest(folder, {name: digest(content) for name, content in files.items()})


def _repository_above(target: Path) -> Path | None:
    return next((folder for folder in target.parents if (folder / GIT).exists()), None)
