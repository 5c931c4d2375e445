"""The resources of a call's kernels on an AMD GPU: told in a test's line, and asked for by no test."""

from __future__ import annotations

from grader.compiler.result import Failed
from grader.course.trial import Trial
from grader.explain.compiled_code import resources
from grader.explain.verdict import PASS, Verdict
from grader.gpu.amd import excess, facts_of
from grader.gpu.compiled_facts import Facts
from grader.gpu.models import AmdModel
from grader.judging.run import Run
from grader.numerics.arguments import without_values
from grader.wire.printable import one_line

MOST_SAID = 60  # characters of the compiler's message


def told_with(code: Verdict, run: Run, trial: Trial) -> Verdict:
    """Returns a verdict on machine code, with the resources on an AMD GPU in its note where the run asks for them."""
    if code.outcome == PASS and run.amd is not None:
        code.note += f"; {_resources_of(run, trial, run.amd)}"
    return code


def _resources_of(run: Run, trial: Trial, model: AmdModel) -> str:
    """Returns the resources of a call's kernels, or why there are none.

    The kernels' text is what Triton's front end makes for the NVIDIA GPU that is judged.
    """
    call = run.recorded_call(trial, without_values(trial.data, trial.dtype)).call
    launched = (dict.fromkeys(launch.kernel for launch in call.launches(config)) for config in call.usable_configs)
    numbers = next(filter(None, launched), None)
    if numbers is None:
        return f"{model.target}: not compiled: no configuration launches a kernel"
    facts: list[Facts] = []
    for number in numbers:
        answer = run.machine_code.assembly(call.kernels[number], model)
        if isinstance(answer, Failed):
            return f"{model.target}: not compiled: {one_line(answer.message)[:MOST_SAID]}"
        made = answer.kernel
        if needed := excess(model, made.warps, made.shared):
            return f"{model.target}: does not fit: it needs {needed}"
        facts.append(facts_of(made.name, made.warps, made.shared, model, made.texts, run.filename))
    return resources(facts, model.target)
