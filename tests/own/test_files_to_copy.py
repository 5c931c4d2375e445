"""The workflow and the skill in docs/, which users copy: their commands are run here."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

from tests.conftest import ROOT
from tests.own.test_own_kernels import KERNEL, MEAN, MENDED, REFERENCE, ROWS

SHAPES = '\n\nSHAPES = "N; N=1..90"\n'


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs a command in bash, as the page has it: `course` is this course's."""
    course = folder / "bin" / "course"
    course.parent.mkdir(exist_ok=True)
    course.write_text(f"#!/bin/sh\nexec {sys.executable} -c 'from grader.cli import main; main()' \"$@\"\n")
    course.chmod(0o755)
    environment = {"PYTHONPATH": str(ROOT), "PATH": f"{course.parent}:{os.environ['PATH']}", "HOME": str(folder)}
    return subprocess.run(["bash", "-c", command], cwd=folder, env=environment, capture_output=True, text=True)


def test_the_workflow_judges_each_folder_and_fails_where_one_is_wrong(tmp_path):
    text = (ROOT / "docs" / "own_kernels_workflow.yml").read_text()
    command = textwrap.dedent(text.rpartition("run: |\n")[2])
    for name, kernel in (("leaky", KERNEL), ("mended", MENDED)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "kernel.py").write_text(kernel)
        (tmp_path / name / "ref.py").write_text(REFERENCE + SHAPES)
    subprocess.run("git init -q . && git add leaky mended", shell=True, cwd=tmp_path, check=True)
    done = run(command, tmp_path)
    assert done.returncode == 1 and "has no mask" in done.stdout and "Right: values" in done.stdout, done.stdout
    subprocess.run("git rm -rqf leaky", shell=True, cwd=tmp_path, check=True)
    assert run(command, tmp_path).returncode == 0


def test_the_command_of_the_skill_gives_the_fields_that_it_names(tmp_path):
    text = (ROOT / "docs" / "own_kernels_skill.md").read_text()
    (command,) = re.findall(r"```\n(course judge .*)\n```", text)
    (tmp_path / "kernel.py").write_text(ROWS.replace("/ N)", "/ BLOCK)"))
    (tmp_path / "ref.py").write_text(MEAN)
    done = run(command, tmp_path)
    found = json.loads(done.stdout)
    named = re.findall(r"^- `(\w+)`|\. `(\w+)`:", text, re.MULTILINE)
    assert done.returncode == 1 and {one or other for one, other in named} <= found.keys() and len(named) == 5
