"""Files beside a submission that would change how it is graded, in a folder of the learner's own, with real pytest."""

from __future__ import annotations

import ast
import json
import os
import py_compile
import re
import shutil
import sys
from dataclasses import astuple
from pathlib import Path

import pytest

from tests.typed_commands import Finished, run_pytest, start_pytest

ROOT = Path(__file__).resolve().parents[2]
EXERCISE = "exercises/01_masked_add"
RIGHT = (ROOT / "solutions/01_masked_add/masked_add.py").read_text()
WRONG = RIGHT.replace("x + y, mask", "x - y, mask")


@pytest.fixture
def course(tmp_path) -> Path:
    """A copy of the course; its 01 is answered wrongly. RAN in a file's text names a file that must not appear."""
    return copied(tmp_path)


def copied(folder: Path) -> Path:
    for name in ("exercises", "solutions", "hints"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / EXERCISE / "masked_add.py").write_text(WRONG)
    return folder


def mark(course: Path) -> str:
    """Code that shows that it ran, and ends the process with success."""
    return f"import os\nopen({str(course / 'ran')!r}, 'a').write(__file__)\nos._exit(0)\n"


ONE_TEST = ("-k", "one_full_block or easy")  # enough to tell a wrong kernel


def grade(course: Path, *arguments: str, cwd: Path | None = None, typed=start_pytest, **environment: str) -> dict:
    """The result as JSON; pytest must fail, since the submission is wrong.

    `typed`: run_pytest where nothing of what lies beside could end the process that these tests run in.
    """
    result = course / "result.json"
    asked = (*(arguments or [EXERCISE]), *ONE_TEST, "--result", result)
    done = typed(*asked, cwd=cwd or course, **environment)
    assert not (course / "ran").exists(), (course / "ran").read_text() + done.out
    assert done.status != 0, done.out
    if not result.exists():
        return {"outcome": "refused", "message": done.out + done.err}
    return json.loads(result.read_text())


SHADOWS = ["conftest.py", "torch.py", "triton.py", "numpy.py", "pytest.py", "grader.py", "sitecustomize.py",
           "usercustomize.py", "test_masked_add_kernel.py", "json.py"]  # fmt: skip


@pytest.fixture(scope="module")
def crowded(tmp_path_factory) -> dict:
    """The result of one real run of a submission from elsewhere, with all that must not count in its environment, in
    its folder, in the exercise's folder and in the folder above."""
    course = copied(tmp_path_factory.mktemp("crowded"))
    handed_in = course / "handed_in" / "01_masked_add"
    handed_in.mkdir(parents=True)
    (handed_in / "masked_add.py").write_text(WRONG)
    for module in (handed_in / "masked_add.py", course / EXERCISE / "test_masked_add.py"):
        planted(course, module)
    for beside in (handed_in, course / EXERCISE, course / "exercises"):
        for name in SHADOWS:
            (beside / name).write_text(mark(course))
        for name in ("torch", "triton", "grader"):
            (beside / name).mkdir()
            (beside / name / "__init__.py").write_text(mark(course))
        (beside / "course.pth").write_text(f"import os; os._exit(0) #{mark(course)!r}\n")
    (course / EXERCISE / "test_easy.py").write_text(EASY)
    submission = "--submission", "handed_in/01_masked_add/masked_add.py"
    return grade(course, EXERCISE, *submission, TRITON_INTERPRET="0", TRITON_CACHE_DIR=str(course))


def test_modules_and_planted_bytecode_do_not_run_and_variables_change_no_verdict(crowded):
    """`grade` has seen that no module has run, neither the exercise's nor the submission's neighbours."""
    assert crowded["outcome"] == "fail" and crowded["cause"] == "wrong-operation"


def test_from_inside_the_folder_they_do_not_run_either(course):
    """Python puts the current folder first on the path of `python -m pytest`, before any of our code runs: what
    Python itself imports from there is the learner's own doing. What the grader imports is not."""
    folder = course / EXERCISE
    for name in ("conftest.py", "numpy.py", "torch.py", "triton.py", "usercustomize.py"):
        (folder / name).write_text(mark(course))
    for name in ("masked_add", "test_masked_add"):
        planted(course, folder / f"{name}.py")
    assert grade(course, ".", cwd=folder)["outcome"] == "fail"


SETTINGS = {
    "pytest.ini": "[pytest]\naddopts = --collect-only\npython_functions = nothing_*\n",
    "pyproject.toml": '[tool.pytest.ini_options]\naddopts = "--deselect test_masked_add.py"\n',
    "tox.ini": "[pytest]\naddopts = -x\n",
    "setup.cfg": "[tool:pytest]\naddopts = -x\n",
    ".pytest.ini": "[pytest]\naddopts = -x\n",
}


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("beside", [EXERCISE, "exercises"])
def test_settings_beside_it_are_refused(course, name, beside):
    (course / beside / name).write_text(SETTINGS[name])
    result = grade(course, typed=start_pytest if (beside, name) == (EXERCISE, "pytest.ini") else run_pytest)
    assert result["outcome"] == "refused"
    assert f"{name}: settings next to an exercise change how it is graded. Remove the file." in result["message"]


def test_settings_beside_a_submission_from_elsewhere(course):
    handed_in = course / "handed_in"
    handed_in.mkdir()
    (handed_in / "masked_add.py").write_text(WRONG)
    (handed_in / "pytest.ini").write_text(SETTINGS["pytest.ini"])
    result = grade(course, EXERCISE, "--submission", "handed_in", typed=run_pytest)
    assert result["outcome"] in ("fail", "refused")


def test_a_package_is_refused(course):
    for folder in (EXERCISE, "exercises"):
        path = course / folder / "__init__.py"
        path.write_text(mark(course))
        result = grade(course, typed=fork_pytest)
        assert result["outcome"] == "refused" and "an exercise is no package. Remove the file." in result["message"]
        path.unlink()


def fork_pytest(*arguments: str | Path, cwd: Path, **environment: str) -> Finished:
    """As run_pytest, in a fork of this process: what would end the process that it runs in ends the fork."""
    said = cwd / "said.json"
    if (pid := os.fork()) == 0:
        try:
            said.write_text(json.dumps(astuple(run_pytest(*arguments, cwd=cwd, **environment))))
        finally:
            os._exit(1)
    os.waitpid(pid, 0)
    return Finished(*json.loads(said.read_text())) if said.exists() else Finished(0, "the fork was ended", "")


def planted(course: Path, module: Path) -> None:
    """Bytecode for a source that is as it was: Python takes it without a look at the source's text."""
    evil = course / "evil.py"
    evil.write_text(mark(course))
    target = module.parent / "__pycache__" / f"{module.stem}.{sys.implementation.cache_tag}.pyc"
    for tagged in (
        target,
        target.with_name(f"{module.stem}.{sys.implementation.cache_tag}-pytest-{pytest.__version__}.pyc"),
    ):
        py_compile.compile(
            str(evil), cfile=str(tagged), invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH
        )
    evil.unlink()


EASY = "def test_easy():\n    pass\n"


def test_another_test_file_beside_it_earns_nothing(course, crowded):
    """The exercise's own test file decides; what else is called a test does not count."""
    (course / EXERCISE / "test_easy.py").write_text(EASY)
    for result in (crowded, grade(course, f"{EXERCISE}/test_easy.py::test_easy", typed=run_pytest)):
        assert result["outcome"] == "fail"
        assert [test["name"] for test in result["tests"]] == ["test_one_full_block"]


def test_a_link_in_place_of_the_file_is_only_a_file(course):
    secret = course / "secret.txt"
    secret.write_text("not Python (\n")
    path = course / EXERCISE / "masked_add.py"
    path.unlink()
    path.symlink_to(secret)
    assert "is not valid Python" in grade(course, typed=run_pytest)["message"]


def test_no_verdict_rests_on_an_assertion():
    """PYTHONOPTIMIZE would take those away."""
    paths = (*ROOT.glob("grader/**/*.py"), *ROOT.glob("exercises/*/test_*.py"))
    texts = {path: path.read_text() for path in paths}
    for path, text in texts.items():
        for node in ast.walk(ast.parse(text)) if re.search(r"\bassert\b|__debug__", text) else ():
            debug = isinstance(node, ast.Name) and node.id == "__debug__"
            assert not debug and not isinstance(node, ast.Assert), f"{path}:{node.lineno}"
