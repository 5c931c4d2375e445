"""The files of a judgement: those that are named, or those of a folder, which is an exercise without a line of ours."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from grader.own.cannot_judge import CannotJudge

REFERENCE, PROMISE = "ref.py", "promise.toml"
OF_TESTS = ("test_", "conftest")  # files of a folder that hold no kernel, by the beginning of their names


class StatedFiles(NamedTuple):
    file: Path
    reference: Path
    promise: dict[str, Any] | str | None  # a file, or its values by name


def stated_files(request: dict[str, Any]) -> StatedFiles:
    """Returns the files that a request names; of a folder its ref.py, its promise.toml and the one file that is left.
    Raises CannotJudge."""
    file, reference, promise = Path(request["file"]), request["reference"], request["promise"]
    if file.is_dir():
        found = Path(reference) if reference else file / REFERENCE
        if not found.exists():
            raise CannotJudge(
                f"The folder {file} holds no {REFERENCE}.",
                'write it: one function in torch that computes what the kernel has to, and SHAPES = "M,N".',
            )
        if promise is None and (file / PROMISE).exists():
            promise = str(file / PROMISE)
        return StatedFiles(_kernel_of(file, found), found, promise)
    if not reference:
        raise CannotJudge(
            "Nothing says what the kernel has to compute.", "add --reference ref.py, a file with one function in torch."
        )
    return StatedFiles(file, Path(reference), promise)


def _kernel_of(folder: Path, reference: Path) -> Path:
    """Returns the one file of a folder that is neither the reference nor a test. Raises CannotJudge."""
    names = sorted(
        path.name for path in folder.glob("*.py")
        if path.name != reference.name and not path.name.startswith(OF_TESTS)
    )  # fmt: skip
    if len(names) != 1:
        found = f"several files besides {reference.name}, {', '.join(names[:4])}" if names else "no file with a kernel"
        raise CannotJudge(f"The folder {folder} holds {found}.", "name the file, with --reference.")
    return folder / names[0]
