"""What a submission can read: Python and its own file, and nothing of the course, of others or of other processes."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from grader.processes import readable as places
from grader.processes.environment import trusted_path
from grader.processes.readable import readable
from tests.child.fenced import printed_by
from tests.conftest import ROOT

READ = """
import os
def seen(path):
    try:
        return str(os.listdir(path) if os.path.isdir(path) else open(path, "rb").read(1) and "read")
    except OSError as error:
        return type(error).__name__
"""


def seen(*paths: object) -> list[str]:
    """Returns what a submission sees at these places: "read", a list of names, or the exception that it gets."""
    return printed_by(f"{READ}\nfor path in {[str(path) for path in paths]!r}:\n    print(seen(path))").splitlines()


def test_no_solution_no_test_and_no_hidden_case(tmp_path):
    (hidden := tmp_path / "03_softmax.toml").write_text("hidden")
    (handed_in := tmp_path / "softmax.py").write_text("of another student")
    paths = ROOT / "solutions/03_softmax/softmax.py", ROOT / "exercises/03_softmax/test_softmax.py", ROOT, hidden
    assert seen(*paths, handed_in, tmp_path) == ["PermissionError"] * 6


def test_nothing_of_other_processes():
    """The command line of the judging process names the seed and the hidden cases, its environment may hold secrets."""
    names = ("cmdline", "environ", "status", "maps", "stat", "fd", "cwd")
    assert seen("/proc", *(f"/proc/{os.getpid()}/{name}" for name in names)) == ["PermissionError"] * 8


def test_nothing_of_this_user_and_of_this_machine():
    paths = [
        "/etc/passwd",
        "/tmp",
        "/dev/shm",
        "/dev",
        "/sys/kernel",
        Path.home(),
        "/",
        "/proc/self/net/tcp",
        "/proc/self/task",
    ]
    assert seen(*paths) == ["PermissionError"] * len(paths)


def test_its_own_file_and_python_are_read():
    import torch
    import triton

    own = "kernel.py", "/proc/self/status", "/dev/urandom", os.__file__, torch.__file__, triton.__file__
    assert seen(*own, ".") == ["read"] * 6 + ["['kernel.py']"]


def test_a_file_that_it_writes_is_not_run():
    text = "import os, shutil, subprocess\nshutil.copyfile('/bin/true', 'own')\nprint(os.path.getsize('own') > 0)\n"
    text += "print(oct(os.open('made', os.O_CREAT | os.O_WRONLY, 0o755)) and '')\n"
    text += "open('made', 'wb').write(open('/bin/true', 'rb').read())\nsubprocess.run([os.path.abspath('made')])"
    said = printed_by(text)
    assert said.startswith("True") and "PermissionError" in said


@pytest.mark.parametrize("kept", ["app", "src/app", "lib/python/site-packages/triton_course"])
def test_a_course_below_a_place_that_is_read_is_left_out(tmp_path, monkeypatch, kept):
    """As /usr/src/app in many a container, and what an installed package holds of the course."""
    others = "lib/python/site-packages/torch", "src/other"
    for name in (*others, f"{kept}/exercises", f"{kept}/solutions", f"{kept}/grader"):
        (tmp_path / name).mkdir(parents=True, exist_ok=True)
    (tmp_path / "link").symlink_to(tmp_path / kept)
    monkeypatch.setattr(places, "COURSE", tmp_path / kept)
    monkeypatch.setattr(places, "PACKAGE", tmp_path / kept / "grader")
    monkeypatch.setattr(places, "SYSTEM", (str(tmp_path),))
    found = [Path(path) for path in readable([]) if path.startswith(str(tmp_path))]
    assert tmp_path / kept / "grader" in found
    assert not any((tmp_path / kept / "solutions").is_relative_to(path.resolve()) for path in found)
    assert all(any((tmp_path / name).is_relative_to(path) for path in found) for name in others)


def test_a_folder_that_someone_put_on_the_import_path_is_not_read(tmp_path):
    assert str(tmp_path) not in readable([*trusted_path(), str(tmp_path)])
    assert sys.prefix in readable(trusted_path())
