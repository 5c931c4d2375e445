"""The front end's texts: to the byte those of a context of their own, whatever texts were made before."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from pathlib import Path

import pytest
from triton._C.libtriton import ir
from triton.backends.compiler import GPUTarget
from triton.compiler.compiler import make_backend

from grader import front_end
from grader.course.folder import Folder, load_test_file
from grader.front_end.file_kernels import FileKernels
from grader.front_end.ttir_text import source_of
from grader.gpu.models import DEFAULT_MODEL
from grader.judging.judge import Judge
from grader.judging.run import Run
from grader.judging.uses import DrawnUse, uses_asked
from grader.numerics.arguments import without_values
from grader.wire.recorded_call import RecordedKernel
from tests.conftest import ROOT, folders_with_kernels
from tests.slow import SLOW, drawn

FOLDERS = {folder.id: folder for folder in folders_with_kernels()}
ACCEPTED = {id: {path.stem: path for path in (ROOT / "solutions" / id / "accepted").glob("*.py")} for id in FOLDERS}
SOLUTIONS = [(id, folder.solution_file) for id, folder in FOLDERS.items()]
OTHERS = [(id, path) for id, paths in ACCEPTED.items() for path in paths.values()]
FRONT_END = "".join(path.read_text() for path in sorted(Path(front_end.__file__).parent.glob("*.py")))
SUBMISSIONS = [*drawn(SOLUTIONS, 12, FRONT_END), *drawn(OTHERS, 6, FRONT_END)]
EVERY = 6 if SLOW else 12  # of the calls that the tests draw


def text_in_a_context_of_its_own(file: FileKernels, kernel: RecordedKernel, constants: dict[str, int]) -> str:
    recipe = json.loads(json.dumps(dataclasses.asdict(kernel.recipe))) | {"set": constants}
    target, context = GPUTarget("cuda", DEFAULT_MODEL.arch, 32), ir.context()
    backend = make_backend(target)
    ir.load_dialects(context)
    backend.load_dialects(context)
    options = backend.parse_options({name: value for name, value in recipe["options"].items() if value is not None})
    made = (backend.get_codegen_implementation(options), backend.get_module_map(), context)
    return source_of(file.source(recipe).make_ir(target, options, *made))


def kernels_of(folder: Folder, run: Run) -> list[tuple[RecordedKernel, dict[str, int]]]:
    """Of some of the drawn calls of the exercise's tests, all recorded in one child: with the constants they set."""
    judge = Judge(load_test_file(folder).exercise, run)
    drawn = [use.trials(judge) for use in uses_asked(load_test_file(folder), DrawnUse)]
    trials = [trial for trials in drawn for trial in trials[::EVERY]]
    calls = [run.recorded_call(trial, without_values(trial.data, trial.dtype)).call for trial in trials]
    assert not any(call.error for call in calls)
    made = [(kernel, trial.constants) for trial, call in zip(trials, calls) for kernel in call.kernels]
    return list({kernel.source: (kernel, constants) for kernel, constants in made}.values())


@pytest.mark.parametrize("id, path", SUBMISSIONS, ids=[f"{id}-{path.stem}" for id, path in SUBMISSIONS])
def test_a_text_does_not_depend_on_those_before_it(id, path):
    run = Run(FOLDERS[id], str(path), seed=1)
    try:
        kernels = kernels_of(FOLDERS[id], run)
        with contextlib.chdir(run.front_end._child.folder):
            file = FileKernels(run.filename, run.submission.source)
        assert kernels
        for kernel, constants in kernels:
            assert kernel.source == text_in_a_context_of_its_own(file, kernel, constants)
    finally:
        run.end()
