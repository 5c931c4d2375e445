"""Values and memory safety of a call on the GPU: its plan, replayed on inputs that the submission never saw."""

from __future__ import annotations

import torch

from grader.comparison import compare
from grader.exercise import Exercise
from grader.explain import on_gpu
from grader.gpu.answers import Replayed, Summary
from grader.gpu.plan import Recording
from grader.gpu.replayer import ReplayEnded
from grader.gpu_memory import SHARE_BESIDE_OTHERS, SHARE_OF_MEMORY, blame, bytes_needed
from grader.inputs import Data, seed_for
from grader.nursery import MachineFault
from grader.protocol import TensorSpec
from grader.reply import spec_and_bytes, tensor_of
from grader.run import Run, Trial, short_dtype
from grader.verdict import NOT_RUN, PASS, SKIPPED, Verdict

NOT_REPLAYED = "several results, numbers and indices are not judged on a GPU yet"


def can_be(exercise: Exercise, trial: Trial) -> bool:
    """Whether a call can be replayed: one result, which no other argument becomes, and tensors of the run's dtype."""
    tensors = all(isinstance(one, Data) and not one.dtype for one in trial.data)
    return tensors and len(exercise.results) == 1 and not exercise.updates and not exercise.returned[0].dtype


def complaint(
    run: Run, exercise: Exercise, trial: Trial, recording: Recording, inputs: list[torch.Tensor], atomics: bool
) -> Verdict | None:
    """What is wrong with a call on these inputs; None if nothing is. Raises GpuBusy."""
    specs, storages = [], b""
    for name, tensor in zip(exercise.arguments, inputs, strict=True):
        spec, data = spec_and_bytes(name, tensor, len(storages))
        specs.append(spec)
        storages += data
    exact = [tensor.double() for tensor in inputs]
    expected = exercise.reference(*exact)
    if (other := other_result(exercise, trial, recording)) is not None:
        return other
    if tuple(recording.plan.result.shape) != tuple(expected.shape):
        return on_gpu.another_result(exercise.entry)
    for config in recording.plan.usable_configs:
        try:
            reply, data = run.replays.check(recording, config, specs, storages, exercise.returns)
        except ReplayEnded as ended:
            return _short_of_memory(run, exercise, trial, recording) if ended.how == "no-room" else fault_of(ended)
        output = tensor_of(TensorSpec.from_json(reply["output"], len(data)), data)
        comparison = compare(output, expected, trial.bound, exact)
        wrong = None if comparison.right else on_gpu.wrong_values(exercise.returns, comparison)
        found = _beside(Replayed.from_json(reply), exercise, atomics) or wrong
        if found is not None:
            return found
    return None


def large(run: Run, exercise: Exercise, trial: Trial, recording: Recording, atomics: bool) -> Verdict:
    """A call whose inputs are drawn on the GPU and whose result is compared there. Raises GpuBusy."""
    if (other := other_result(exercise, trial, recording)) is not None:
        return other
    needed, memory = bytes_needed(trial, recording), run.replays.device.model.memory_bytes
    if needed > SHARE_OF_MEMORY * memory:
        too_large = Verdict(SKIPPED, NOT_RUN, note=f"needs {needed / 1e9:.0f} GB of GPU memory")
        return blame(exercise, trial, recording, memory) or too_large
    seeds = seeds_of(run, trial)
    data = [recipe.to_json() for recipe in trial.data]
    worst = 0.0
    for config in recording.plan.usable_configs:
        try:
            alone = needed > SHARE_BESIDE_OTHERS * memory
            reply = run.replays.draw(recording, config, run.folder, data, seeds, trial.bound, alone)
        except ReplayEnded as ended:
            if ended.how == "no-room":
                short = Verdict(SKIPPED, NOT_RUN, note="the GPU has too little free memory")
                return blame(exercise, trial, recording, memory) or short
            return fault_of(ended)
        summary = Summary(**reply["summary"])
        if summary.shape != recording.plan.result.shape:
            return on_gpu.another_result(exercise.entry)
        wrong = on_gpu.wrong_summary(exercise.returns, summary) if summary.wrong else None
        found = _beside(Replayed.from_json(reply), exercise, atomics) or wrong
        if found is not None:
            return found
        worst = max(worst, summary.largest_error)
    return Verdict(PASS, figures={"largest_error": worst})


def _short_of_memory(run: Run, exercise: Exercise, trial: Trial, recording: Recording) -> Verdict:
    """Of a call on a small tensor. Raises MachineFault if the submission cannot help it."""
    if (blamed := blame(exercise, trial, recording, run.replays.device.model.memory_bytes)) is None:
        raise MachineFault("the GPU has no memory left: another program uses it")
    return blamed


def other_result(exercise: Exercise, trial: Trial, recording: Recording) -> Verdict | None:
    """The interpreter has checked what the entry returns; for a compiler it might return something else.

    The shape is left to the comparison, where the reference's own is known.
    """
    result, dtype = recording.plan.result, str(trial.dtype).removeprefix("torch.")
    names = [recording.plan.buffers[result.buffer].name] if result else []
    right = result is not None and result.dtype == dtype
    own = result is not None and not recording.plan.buffers[result.buffer].argument
    if right and (names == [exercise.returns] if exercise.fills_argument else own):
        return None
    return on_gpu.another_result(exercise.entry)


def fault_of(ended: ReplayEnded) -> Verdict:
    """A fault of the kernel. Raises MachineFault where the process itself died, which no kernel can bring about."""
    if ended.how == "died":
        raise MachineFault(f"the process that owns the GPU ended: {ended.detail}")
    return on_gpu.fault(ended)


def seeds_of(run: Run, trial: Trial) -> list[int]:
    """One per argument: the inputs are the same for the same seed of the run."""
    dtype = short_dtype(trial.dtype)
    return [seed_for(run.seed, run.folder.id, trial.name, dtype, number) for number in range(len(trial.data))]


def _beside(found: Replayed, exercise: Exercise, atomics: bool) -> Verdict | None:
    """Sums by atomics may come in any order, and differ by rounding."""
    if found.overruns:
        return on_gpu.overrun(found.overruns[0])
    if found.changed:
        return on_gpu.input_written(found.changed[0])
    if found.differing and not atomics:
        return on_gpu.not_repeatable(exercise.returns, found.differing)
    return None
