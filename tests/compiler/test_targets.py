"""Every solution compiles for every GPU generation, or is skipped there with the reason.

Two generations of each are tried, the usual one and the one whose turn it is; all eight in `tox -- slow`.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from grader import normal
from grader.course.folder import Folder, all_folders, load_test_file
from grader.explain.verdict import PASS, SKIPPED
from grader.gpu.models import DEFAULT_TARGET, MODELS
from grader.judge.judge import Judge
from grader.judge.run import Run
from grader.judge.uses import CompiledUse, asked
from tests.conftest import ROOT
from tests.slow import in_turn

FOLDERS = {folder.id: folder for folder in all_folders(ROOT)}
OTHERS = [target for target in MODELS if target != DEFAULT_TARGET]
TRIED = [
    (folder.id, target)
    for place, folder in enumerate(FOLDERS.values())
    for target in (DEFAULT_TARGET, *in_turn(OTHERS, place))
]


@pytest.fixture
def judge():
    """judge(id, target, submission="solutions", **changes): its children are ended after the test.

    changes: of what the exercise states.
    """
    runs: list[Run] = []

    def judge(id: str, target: str, submission: str = "solutions", **changes) -> Judge:
        folder: Folder = FOLDERS[id]
        runs.append(Run(folder, submission, seed=1, model=MODELS[target]))
        return Judge(replace(load_test_file(folder).exercise, **changes), runs[-1])

    yield judge
    for run in runs:
        run.end()


@pytest.mark.parametrize("id, target", TRIED)
def test_the_solution_compiles_for_each_generation(judge, id, target):
    one = judge(id, target)
    for call in asked(load_test_file(FOLDERS[id]), CompiledUse):
        verdict = call.verdict(one)
        assert verdict.outcome in (PASS, SKIPPED), verdict.lines
        assert verdict.note.startswith(f"{target}: ")
        assert verdict.outcome == PASS or target == "sm_75" and call.tensor_cores


@pytest.mark.parametrize("precision", ["tf32x3", "ieee"])
@pytest.mark.parametrize("target", MODELS)
def test_tiles_of_fp32_fit_each_generation_and_spill_nothing(judge, target, precision, tmp_path):
    folder = FOLDERS["05_grouped_matmul"]
    text, changed = folder.solution_file.read_text(), tmp_path / "grouped_matmul.py"
    assert text.count("tf32x3") == 1
    changed.write_text(text.replace("tf32x3", precision))
    one = judge(folder.id, target, str(changed), dtypes=("float32",))
    verdict = CompiledUse.of("a test", *[normal(4096, 4096)] * 2).verdict(one)
    assert verdict.outcome == PASS and verdict.note.startswith(f"{target}: "), verdict.lines
