"""Proves that right kernels are right where nothing is rounded, too: explanations of wrong ones rely on exact runs."""

from __future__ import annotations

from collections.abc import Collection
from types import ModuleType

import torch

from grader.course.folder import Folder, load_test_file
from grader.explain.no_exact_run import why_no_exact_run
from grader.judging.judge import Judge
from grader.judging.run import Run
from grader.judging.uses import CheckUse, uses_asked
from grader.numerics.arguments import exact
from grader.processes.interpreter_process import Interpreter
from grader.ttir.exact_text import NoExactRun

MOST = 1e-5  # of the largest value of a result: constants of fp32 need it, and a wrong formula is farther off


def of_solution(folder: Folder, interpreter: Interpreter) -> list[str]:
    """Returns a complaint for each call of the solution whose exact run is not there, or not right."""
    module = load_test_file(folder)
    run = Run(folder, str(folder.solution_file), trusted=True, interpreter=interpreter)
    try:
        return complaints(Judge(module.exercise, run), module)
    finally:
        run.end()


def complaints(judge: Judge, module: ModuleType, tests: Collection[str] | None = None) -> list[str]:
    """Returns a complaint for each stated call that a right kernel has no right exact run of, in one dtype each.

    `tests`: the names of those whose calls are looked at; None: of all."""
    found = []
    for number, use in enumerate(uses_asked(module, CheckUse)):
        if tests is not None and use.test not in tests:
            continue
        trials = use.trials(judge)
        trial = trials[number % len(trials)]
        inputs = judge.run.inputs(trial)
        try:
            ran = judge.run.exact(trial, inputs)
        except NoExactRun as why:
            found.append(f"{use.test} has no exact run: {why_no_exact_run(why).text}")
            continue
        for result, ref in zip(trial.exercise.results, trial.exercise.expected(exact(inputs))):
            error = _error(ran.outputs[result.name].double(), ref.double())
            if error > MOST and trial.bounds.get(result.name, trial.bound) != "unjudged":
                found.append(f"{use.test}: {error:.1e} of the largest {result.name} is wrong where nothing is rounded")
    return found


def _error(out: torch.Tensor, ref: torch.Tensor) -> float:
    """Returns the largest error as a share of the largest value; infinity where NaN or infinities differ."""
    finite = out.isfinite() & ref.isfinite()
    same = (out == ref) | (out.isnan() & ref.isnan())
    if bool((~same & ~finite).any()):
        return torch.inf
    largest = float(ref[finite].abs().max()) if bool(finite.any()) else 0.0
    return float((out - ref)[finite].abs().max()) / largest if largest else float(out[finite].any())
