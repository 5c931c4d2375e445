"""Right kernels that the compiler turns into wrong code: no interpreter sees the mistake, and a GPU only sometimes."""

from __future__ import annotations

from grader.course.trial import Trial
from grader.explain.compiled_code import overwritten
from grader.explain.verdict import Verdict
from grader.gpu.laid_out import read_laid_out
from grader.gpu.overwritten_tiles import RUNS_ON, overwritten_tile
from grader.judging.run import Run
from grader.numerics.arguments import Argument, without_values


def compiler_race(run: Run, trial: Trial, inputs: list[Argument] | None = None) -> Verdict | None:
    """Returns what is wrong with the machine code of a call, in any of its configurations; None if nothing is.

    inputs: as for `Run.launch_plan`. Raises ChildEnded, MachineFault.
    """
    call = run.recorded_call(trial, inputs or without_values(trial.data, trial.dtype)).call
    for kernel in call.kernels:
        if kernel.source and RUNS_ON.search(run.machine_code.ptx(kernel)):
            laid_out = read_laid_out(run.machine_code.laid_out(kernel), run.filename)
            tile = overwritten_tile(laid_out) if laid_out else None
            if tile is not None:
                return overwritten(run.submission, kernel.name, tile)
    return None
