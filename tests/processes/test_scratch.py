"""Temporary folders are removed although a process that is about to leave still writes there."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from grader.processes import scratch


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """A folder with a file; nobody sleeps between two looks at it."""
    monkeypatch.setattr(scratch.time, "sleep", lambda seconds: None)
    (tmp_path / "course-1").mkdir()
    (tmp_path / "course-1" / "input").write_text("a file that is there from the beginning")
    return tmp_path / "course-1"


@pytest.fixture
def removals(monkeypatch) -> list[bool]:
    """Each attempt to remove everything adds an entry, which is true where it ignores errors."""
    attempts, remove_tree = [], scratch.shutil.rmtree

    def counted(path, ignore_errors=False):
        attempts.append(ignore_errors)
        remove_tree(path, ignore_errors)

    monkeypatch.setattr(scratch.shutil, "rmtree", counted)
    return attempts


def files_made_late(monkeypatch, folder: Path, most: int) -> None:
    """Makes another file whenever the emptied folder itself is about to be removed, `most` times."""
    remove_folder, made = os.rmdir, []

    def removed_late(path, **where):
        if len(made) < most:
            made.append(folder / f"log {len(made)}")
            made[-1].write_text("the last line of a process that leaves")
        remove_folder(path, **where)

    monkeypatch.setattr(os, "rmdir", removed_late)


def test_a_folder_is_removed_though_files_are_made_in_it_meanwhile(folder, removals, monkeypatch):
    files_made_late(monkeypatch, folder, most=3)
    scratch.remove(folder)
    assert not folder.exists() and removals == [False] * 4


def test_a_folder_that_is_never_left_alone_is_given_up(folder, removals, monkeypatch):
    files_made_late(monkeypatch, folder, most=scratch.MOST_LOOKS + 1)
    scratch.remove(folder)
    assert folder.exists() and removals == [False] * scratch.MOST_LOOKS


def test_nobody_waits_for_a_folder_that_was_closed(folder, removals, monkeypatch):
    """A submission may close a folder of its own, so that every run would end later."""
    open_folder = os.open

    def refused(path, *arguments, **where):
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied", str(path))
        return open_folder(path, *arguments, **where)

    (folder / "closed").mkdir()
    monkeypatch.setattr(os, "open", refused)
    scratch.remove(folder)
    assert [path.name for path in folder.iterdir()] == ["closed"] and removals == [False, True]


def test_a_folder_that_is_gone_already_is_no_error(folder, removals):
    for _ in range(2):
        scratch.remove(folder)
    assert not folder.exists() and removals == [False] * 2


def test_no_other_thread_makes_a_folder_in_a_process_that_leaves(monkeypatch, tmp_path):
    def is_free() -> bool:
        return scratch._making.acquire(blocking=False)

    seen = []
    with ThreadPoolExecutor(1) as other:
        monkeypatch.setattr(scratch.tempfile, "mkdtemp", lambda prefix: seen.append(other.submit(is_free).result()))
        monkeypatch.setattr(scratch, "Path", lambda made: tmp_path)
        scratch.remove(scratch.new_folder())
        scratch.make_no_more()
        seen.append(other.submit(is_free).result())
        scratch._making.release()
    assert seen == [False, False]
