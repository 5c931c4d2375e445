"""The zip for Gradescope: unpacked as Gradescope unpacks it, it judges an upload with what it holds, and no network."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from grader.classroom import gradescope
from grader.classroom.gradescope import grade_upload, write_zip
from grader.classroom.result_store import faulty
from grader.course.folder import Folder
from tests.classroom.instructor import ROOT, environment, solution
from tests.conftest import mutant
from tests.waiting import NEVER

ADD = Folder(ROOT / "exercises/01_masked_add")


@pytest.fixture(scope="module")
def container(tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("autograder")
    write_zip(ADD, place / "autograder.zip")
    with zipfile.ZipFile(place / "autograder.zip") as archive:
        modes = {entry.filename: entry.external_attr >> 16 for entry in archive.infolist()}
        archive.extractall(place / "source")
    assert all(modes[name] & 0o111 for name in ("setup.sh", "run_autograder"))
    (place / "submission").mkdir()
    return place


def test_an_upload_is_judged_by_what_the_zip_holds(container):
    for name in os.listdir(container / "submission"):
        (container / "submission" / name).unlink()
    wrong = mutant("01_masked_add/no_mask_on_loads")
    (container / "submission/Masked_Add (1).py").write_text(wrong)
    no_network = ["unshare", "--user", "--map-root-user", "--net"]
    can = shutil.which("unshare") and not subprocess.run([*no_network, "true"], capture_output=True).returncode
    run = (container / "source/run_autograder").read_text().splitlines()[-1]
    arguments = run.partition("/python ")[2].replace(" /autograder", f" {container}").split()
    done = subprocess.run(
        [*(no_network if can else []), sys.executable, *arguments], cwd=container, capture_output=True, text=True,
        env=environment() | {"PYTHONPATH": str(container / "source/course")}, timeout=NEVER,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads((container / "results/results.json").read_text())
    assert 0 < told["score"] < sum(test["max_score"] for test in told["tests"])
    assert any("has no mask" in test["output"] for test in told["tests"])


@pytest.mark.parametrize(
    ("files", "result", "told"),
    [
        ({}, None, {"output": "masked_add.ipynb or masked_add.py was expected", "score": 0}),
        (
            {"add.py": "x"},
            None,
            {"output": "masked_add.ipynb or masked_add.py was expected; there is add.py", "score": 0},
        ),
        ({"masked_add.py": solution(ADD.id)}, faulty(ADD.id, "no room"), {"output": "no room"}),
    ],
    ids=["nothing", "a wrong name", "a fault of the machine"],
)
def test_what_cannot_be_judged_says_why_and_a_fault_gets_no_score(tmp_path, monkeypatch, files, result, told):
    monkeypatch.setattr(gradescope, "judge", lambda text: result)
    (tmp_path / "submission").mkdir()
    for name, text in files.items():
        (tmp_path / "submission" / name).write_text(text)
    grade_upload(ADD, tmp_path)
    assert json.loads((tmp_path / "results/results.json").read_text()) == told
