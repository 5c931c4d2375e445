"""Files that are written whole: what a kill leaves behind, and who clears it up."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from grader.files import remove_unfinished, write_whole
from tests.waiting import NEVER

ROOT = Path(__file__).resolve().parent.parent
KILLED_WHILE_WRITING = """
import os, signal, sys
from pathlib import Path
from grader import files
os.fsync = lambda descriptor: os.kill(os.getpid(), signal.SIGKILL)
files.write_whole(Path(sys.argv[1]), "new")
"""


def test_a_kill_leaves_the_old_text_and_what_is_cleared_up(tmp_path):
    path = tmp_path / "results/one.json"
    path.parent.mkdir()
    write_whole(path, "old")
    subprocess.run([sys.executable, "-c", KILLED_WHILE_WRITING, str(path)], cwd=ROOT, timeout=NEVER)
    assert path.read_text() == "old" and len(list(path.parent.iterdir())) == 2
    remove_unfinished(tmp_path)
    assert [file.name for file in path.parent.iterdir()] == ["one.json"]


def test_what_others_are_writing_is_left_alone(tmp_path):
    here = os.uname().nodename
    others = {
        f".one.json.{here}.{os.getpid()}",
        ".one.json.another-machine.99999999",
        f".one.json.{here}.kept",
        ".hidden",
    }
    for name in others:
        (tmp_path / name).touch()
    remove_unfinished(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == others


def test_a_full_disk_names_the_file_and_keeps_the_old_text(tmp_path, monkeypatch):
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    path = tmp_path / "one.json"
    write_whole(path, "old")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError) as raised:
        write_whole(path, "new")
    assert raised.value.filename == str(path)
    assert path.read_text() == "old" and [file.name for file in tmp_path.iterdir()] == ["one.json"]
