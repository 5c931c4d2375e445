"""Temporary folders are removed although a process that is about to leave still writes there."""

import os

from grader.processes import scratch


def test_a_folder_is_removed_though_a_file_is_made_in_it_meanwhile(tmp_path, monkeypatch):
    folder, remove_folder, late = tmp_path / "course-1", os.rmdir, []

    def removed_late(path, **where):
        if not late:
            late.append(folder / "log")
            late[0].write_text("the last line of a process that leaves")
        remove_folder(path, **where)

    folder.mkdir()
    monkeypatch.setattr(os, "rmdir", removed_late)
    scratch.remove(folder)
    assert late and not folder.exists()


def test_a_folder_that_cannot_be_removed_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(scratch, "LOOK", 0.0)
    monkeypatch.setattr(scratch.shutil, "rmtree", lambda folder, ignore_errors: None)
    scratch.remove(tmp_path)
    assert tmp_path.exists()
