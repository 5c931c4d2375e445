"""Every solution compiles for every GPU generation, or is skipped there with the reason."""

from __future__ import annotations

import pytest

from grader.course.folder import Folder, all_folders, load_test_file
from grader.course.stated_calls import COMPILED, asked
from grader.explain.compiled_code import Expectations
from grader.explain.verdict import PASS, SKIPPED
from grader.gpu.models import MODELS
from grader.judge.judge import Judge
from grader.judge.run import Run
from tests.conftest import ROOT

FOLDERS = {folder.id: folder for folder in all_folders(ROOT)}


@pytest.fixture
def judge():
    """judge(id, target): of the exercise's solution; its children are ended after the test."""
    runs: list[Run] = []

    def judge(id: str, target: str) -> Judge:
        folder: Folder = FOLDERS[id]
        runs.append(Run(folder, "solutions", seed=1, model=MODELS[target]))
        return Judge(load_test_file(folder).exercise, runs[-1])

    yield judge
    for run in runs:
        run.end()


@pytest.mark.parametrize("id", FOLDERS)
@pytest.mark.parametrize("target", MODELS)
def test_the_solution_compiles_for_each_generation(judge, id, target):
    one = judge(id, target)
    for call in asked(load_test_file(FOLDERS[id]), COMPILED):
        options = {name: value for name, value in call.options.items() if not name.isupper()}
        verdict = one.compiled(call.test, call.data, Expectations(**options), **call.constants)
        assert verdict.outcome in (PASS, SKIPPED), verdict.lines
        assert verdict.note.startswith(f"{target}: ")
        assert verdict.outcome == PASS or target == "sm_75" and options["tensor_cores"]
