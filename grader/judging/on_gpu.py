"""Values and memory safety of a call on the GPU: its plan, replayed on inputs that the submission never saw.

The interpreter decides what is right. A GPU shows what it cannot: faults of the compiler, memory touched outside of
buffers, results that change from run to run, and calls that are too large to interpret.
"""

from __future__ import annotations

from grader.course.trial import Trial, short_dtype
from grader.course.wanted_results import Wanted, wanted_of
from grader.explain import gpu_findings
from grader.explain.causes import Cause
from grader.explain.verdict import NOT_RUN, PASS, SKIPPED, Verdict
from grader.gpu.answers import Replayed, Summary
from grader.gpu.plan import PackedPlan, Plan
from grader.gpu.pool.replay_process import ReplayEnded
from grader.judging.gpu_memory import SHARE_BESIDE_OTHERS, SHARE_OF_MEMORY, blame, bytes_needed
from grader.judging.orders_of_warps import compiler_race
from grader.judging.run import Run
from grader.numerics.arguments import Argument, exact, tensors_of, to_json
from grader.numerics.comparison import compare
from grader.numerics.data_sets import seed_for, seed_place
from grader.processes.faults import MachineFault
from grader.wire.messages import TensorSpec
from grader.wire.reply import spec_and_bytes, tensor_of


def complaint(run: Run, trial: Trial, packed: PackedPlan, inputs: list[Argument], atomics: bool) -> Verdict | None:
    """Returns what is wrong with a call on these inputs, in any configuration; None if nothing is.

    atomics: whether the call adds by atomics, so that repeats may differ by rounding. Raises GpuBusy, MachineFault.
    """
    specs, storages = [], b""
    for name, tensor in tensors_of(trial.arguments, inputs):
        spec, data = spec_and_bytes(name, tensor, len(storages))
        specs.append(spec)
        storages += data
    arguments = exact(inputs)
    expected = dict(zip(wanted_of(trial), trial.exercise.expected(arguments), strict=True))
    if (other := other_result(trial, packed)) is not None:
        return other
    if any(packed.plan.results[wanted.name].shape != list(ref.shape) for wanted, ref in expected.items()):
        return gpu_findings.another_result(trial.exercise.entry)
    for config in packed.plan.usable_configs:
        try:
            reply, data = run.gpu.check(packed, config, specs, storages, trial.exercise.written)
        except ReplayEnded as ended:
            return _short_of_memory(run, trial, packed) if ended.how == "no-room" else fault_of(ended)
        outputs = {spec.name: tensor_of(spec, data) for spec in _specs(reply, data)}
        compared = ((one, compare(outputs[one.name], ref, one.bound, arguments)) for one, ref in expected.items())
        wrong = (
            gpu_findings.wrong_values(one.name, comparison) for one, comparison in compared if not comparison.right
        )
        verdict = _seen_in_repeats(Replayed.from_json(reply), atomics) or next(wrong, None)
        if verdict is not None:
            return _more_direct(verdict, run, trial, inputs)
    return None


def _specs(reply: dict, data: bytes) -> list[TensorSpec]:
    return [TensorSpec.from_json(output, len(data)) for output in reply["outputs"]]


def large(run: Run, trial: Trial, packed: PackedPlan, atomics: bool) -> Verdict:
    """Returns the verdict on a call whose inputs are drawn on the GPU and whose result is compared there.

    atomics: as for `complaint`. Raises GpuBusy, MachineFault.
    """
    if (other := other_result(trial, packed)) is not None:
        return other
    needed, memory = bytes_needed(trial, packed), run.gpu.device.model.memory_bytes
    if needed > SHARE_OF_MEMORY * memory:
        too_large = Verdict(SKIPPED, NOT_RUN, note=f"needs {needed / 1e9:.0f} GB of GPU memory")
        return blame(trial, packed, memory) or too_large
    seeds = seeds_of(run, trial)
    worst = 0.0
    for config in packed.plan.usable_configs:
        try:
            alone = needed > SHARE_BESIDE_OTHERS * memory
            reply = run.gpu.draw(packed, config, run.folder, seeds, alone, **asked_of(trial))
        except ReplayEnded as ended:
            if ended.how == "no-room":
                short = Verdict(SKIPPED, NOT_RUN, note="the GPU has too little free memory")
                return blame(trial, packed, memory) or short
            return fault_of(ended)
        summaries = {name: Summary(**summary) for name, summary in reply["summaries"].items()}
        if any(summary.shape != packed.plan.results[name].shape for name, summary in summaries.items()):
            return gpu_findings.another_result(trial.exercise.entry)
        wrong = (gpu_findings.wrong_summary(name, summary) for name, summary in summaries.items() if summary.wrong)
        verdict = _seen_in_repeats(Replayed.from_json(reply), atomics) or next(wrong, None)
        if verdict is not None:
            return _more_direct(verdict, run, trial)
        worst = max(worst, *(summary.largest_error for summary in summaries.values()))
    return Verdict(PASS, figures={"largest_error": worst})


def _short_of_memory(run: Run, trial: Trial, packed: PackedPlan) -> Verdict:
    """Returns the verdict on a small call that found no memory. Raises MachineFault if another program has it."""
    if (blamed := blame(trial, packed, run.gpu.device.model.memory_bytes)) is None:
        raise MachineFault("the GPU has no memory left: another program uses it")
    return blamed


def asked_of(trial: Trial) -> dict:
    """Returns what a replay process needs to draw the inputs of a call and to compare its results.

    It takes rounding models from the exercise itself: a bound "" stands for the exercise's.
    """
    return {
        "data": [to_json(stated) for stated in trial.data],
        "dtype": str(trial.dtype).removeprefix("torch."),
        "bounds": {result.name: result.bound if isinstance(result.bound, str) else "" for result in wanted_of(trial)},
    }


def other_result(trial: Trial, packed: PackedPlan) -> Verdict | None:
    """Returns the failure of an entry that returns other results for a large call than for small calls; else None.

    The shape is left to the comparison, which knows the reference's.
    """
    right = all(_is_there(wanted, packed.plan) for wanted in wanted_of(trial))
    return None if right else gpu_findings.another_result(trial.exercise.entry)


def _is_there(wanted: Wanted, plan: Plan) -> bool:
    """Returns whether the call gives this result: in its dtype, in its own memory or in the argument that it is."""
    view = plan.results.get(wanted.name)
    if view is None or view.dtype != str(wanted.dtype).removeprefix("torch."):
        return False
    buffer = plan.buffers[view.buffer]
    return buffer.argument == wanted.is_argument and (not wanted.is_argument or buffer.name == wanted.name)


def fault_of(ended: ReplayEnded) -> Verdict:
    """Returns the kernel's failure. Raises MachineFault if the process itself died, which no kernel can cause."""
    if ended.how == "died":
        raise MachineFault(f"the process that owns the GPU ended: {ended.detail}")
    return gpu_findings.fault(ended)


def seeds_of(run: Run, trial: Trial) -> list[int]:
    """Returns a seed for each argument: the inputs are the same for the same seed of the run."""
    dtype = short_dtype(trial.dtype)
    places = [seed_place(stated, place) for place, stated in enumerate(trial.data)]
    return [seed_for(run.seed, run.folder.id, trial.name, dtype, place) for place in places]


def _more_direct(verdict: Verdict, run: Run, trial: Trial, inputs: list[Argument] | None = None) -> Verdict:
    """Returns the compiler's mistake if it explains values that only a GPU gets wrong; else `verdict`."""
    if verdict.id not in (Cause.WRONG_ON_GPU, Cause.RACE):
        return verdict
    return compiler_race(run, trial, inputs) or verdict


def _seen_in_repeats(repeats: Replayed, atomics: bool) -> Verdict | None:
    """Returns what the repeats show apart from wrong values, or None. Sums by atomics may differ by rounding."""
    if repeats.overruns:
        return gpu_findings.overrun(repeats.overruns[0])
    if repeats.changed:
        return gpu_findings.input_written(repeats.changed[0])
    if repeats.differing and not atomics:
        return gpu_findings.not_repeatable(*next(iter(repeats.differing.items())))
    return None
