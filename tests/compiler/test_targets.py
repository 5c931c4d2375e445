"""Every solution compiles for every GPU generation, or is skipped there with the reason.

Of each solution one call is compiled for one generation, those whose turn it is; all calls for all eight in
`tox -- slow`. That each passes all of its tests on the usual generation is proven by `course check`.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from grader import normal
from grader.course.folder import Folder, load_test_file
from grader.explain.verdict import PASS, SKIPPED
from grader.gpu.models import MODELS
from grader.judging.judge import Judge
from grader.judging.run import Run
from grader.judging.uses import CompiledUse, uses_asked
from tests.conftest import folders_with_kernels
from tests.slow import in_turn

FOLDERS = {folder.id: folder for folder in folders_with_kernels()}
TARGETS = list(MODELS)
# Those that ask for tensor cores come first, so that each generation gets one: there the generations differ most.
IN_ORDER = sorted(FOLDERS, key=lambda id: "tensor_cores" not in FOLDERS[id].test_file.read_text(encoding="utf-8"))
TRIED = [(place, id, target) for place, id in enumerate(IN_ORDER) for target in in_turn(TARGETS, place + 1)]
PRECISIONS = ["tf32x3", "ieee"]
TILES = [(target, precision) for place, target in enumerate(TARGETS) for precision in in_turn(PRECISIONS, place)]


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


@pytest.mark.parametrize("place, id, target", TRIED)
def test_the_solution_compiles_for_each_generation(judge, place, id, target):
    one = judge(id, target)
    for call in in_turn(uses_asked(load_test_file(FOLDERS[id]), CompiledUse), place):
        verdict = call.verdict(one)
        assert verdict.outcome in (PASS, SKIPPED), verdict.lines
        assert verdict.note.startswith(f"{target}: ")
        assert verdict.outcome == PASS or target == "sm_75" and call.tensor_cores


@pytest.mark.parametrize("target, precision", TILES)
def test_tiles_of_fp32_fit_each_generation_and_spill_nothing(judge, target, precision, tmp_path):
    folder = FOLDERS["05_grouped_matmul"]
    text, changed = folder.solution_file.read_text(), tmp_path / "grouped_matmul.py"
    assert text.count("tf32x3") == 1
    changed.write_text(text.replace("tf32x3", precision))
    one = judge(folder.id, target, str(changed), dtypes=("float32",))
    verdict = CompiledUse.of("a test", *[normal(4096, 4096)] * 2).verdict(one)
    assert verdict.outcome == PASS and verdict.note.startswith(f"{target}: "), verdict.lines
