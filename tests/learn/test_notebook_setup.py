"""The first cell of a notebook for self-study: what it installs, what it leaves alone, and what it says instead."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from grader.learn import notebook_setup
from grader.learn.notebook_setup import CannotSetUp

pytest.importorskip("nbformat", reason="nbformat makes notebooks: see the extra classroom")

from grader.learn.notebooks.self_study import FIRST
from tests.conftest import ROOT

NO_GRADER = "import sys; sys.modules['grader'] = None\n"  # as on a machine where the course is not installed


def first_cell(folder: Path, source: str) -> str:
    """What the first cell prints on a machine without the course."""
    text = NO_GRADER + FIRST.replace("{source}", source)
    done = subprocess.run([sys.executable, "-c", text], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr == ""
    return done.stdout


def test_a_notebook_that_knows_no_origin_asks_for_the_wheel(tmp_path):
    assert first_cell(tmp_path, "").startswith(
        "This notebook does not say where the course comes from. Put its wheel, triton_course-....whl, next to\n"
    )


def test_a_wheel_next_to_the_notebook_is_taken(tmp_path):
    (tmp_path / "triton_course-0.1.0-py3-none-any.whl").write_text("no zip")
    said = first_cell(tmp_path, "")
    assert said.startswith(f"The course could not be installed from {tmp_path}/triton_course-0.1.0-py3-none-any.whl.")
    assert "pip said: ERROR" in said


def test_an_address_that_does_not_answer_is_a_sentence(tmp_path):
    said = first_cell(tmp_path, "http://127.0.0.1:9/triton_course-0.1.0-py3-none-any.whl")
    assert said.startswith("The course could not be installed from http://127.0.0.1:9/triton_course")
    assert said.endswith(
        "See that the address is right and that this machine has a network, and run this cell again.\n"
    )


def set_up_with(monkeypatch, folder: Path, *requirements: str) -> None:
    monkeypatch.setattr(notebook_setup, "_requirements", lambda: list(requirements))
    monkeypatch.chdir(folder)
    notebook_setup.set_up()


def test_torch_is_never_touched(monkeypatch, tmp_path, capsys):
    set_up_with(monkeypatch, tmp_path, "torch>=99", "click>=8.1")
    said = capsys.readouterr().out
    assert said.startswith(f"torch {version('torch')} is too old for the course, and this cell does not touch it: ")
    assert "torch>=99 is needed. Next: install that" in said
    assert list(tmp_path.iterdir()) == []


def test_it_begins_where_nothing_is_installed():
    names = ("click", "jinja2", "matplotlib", "ml_dtypes", "numpy", "pytest", "rich", "torch", "triton")
    text = (
        f"import sys; sys.modules.update(dict.fromkeys({names}))\n"
        "from grader.learn import notebook_setup\n"
        "notebook_setup._requirements = lambda: ['torch>=99']\n"
        "print(notebook_setup.set_up())"
    )
    done = subprocess.run([sys.executable, "-c", text], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.startswith("torch ") and done.stdout.endswith("\nFalse\n"), done.stderr


def test_what_cannot_be_fetched_is_a_sentence(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    set_up_with(monkeypatch, tmp_path, "no-package-of-this-name>=1")
    said = capsys.readouterr().out
    assert said.startswith("no-package-of-this-name could not be installed; torch is as it was. pip said: ERROR")


def test_a_folder_in_the_way_is_left_alone(monkeypatch, tmp_path, capsys):
    (tmp_path / "triton-course").mkdir()
    (tmp_path / "triton-course/mine").write_text("mine")
    set_up_with(monkeypatch, tmp_path)
    assert capsys.readouterr().out == (
        f"{tmp_path}/triton-course is there and holds no course. Next: rename it, and run this cell again\n"
    )


def test_only_what_is_missing_or_too_old_is_wanted():
    wanted = ["torch>=2.6", "numpy>=99", "gone>=1", 'triton>=3.6; platform_system == "BeOS"', 'also; extra == "gpu"']
    assert list(notebook_setup._lacking(wanted)) == [("numpy", "numpy>=99"), ("gone", "gone>=1")]
    assert ("also", "also") in list(notebook_setup._lacking(wanted, "gpu"))


def tells_what_is_judged(arguments: list, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """In the place of a process of the course; test_self_study.py has the real ones."""
    return subprocess.CompletedProcess(
        arguments, 0, "Judged here: values" if "grader.doctor.brief" in arguments else ""
    )


def test_without_what_talks_to_a_gpu_the_rest_is_judged(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    monkeypatch.setattr("grader.gpu.nvml.gpu_here", lambda: True)
    monkeypatch.setattr("grader.learn.notebooks.cells.ended", tells_what_is_judged)
    set_up_with(monkeypatch, tmp_path, 'no-package-of-this-name; extra == "gpu"')
    said = capsys.readouterr().out
    assert said.startswith("no-package-of-this-name could not be installed") and "Judged here: values" in said


def test_a_triton_that_torch_may_want_is_not_replaced(monkeypatch, tmp_path, capsys):
    set_up_with(monkeypatch, tmp_path, "triton>=99")
    assert capsys.readouterr().out.startswith(f"triton {version('triton')} is too old for the course, and this cell")


def test_on_another_system_than_linux_triton_is_not_to_be_had(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(notebook_setup, "_requirements", lambda: ["triton>=99"])
    with pytest.raises(CannotSetUp, match="Triton is published for Linux, and this is darwin"):
        notebook_setup._add_missing()
