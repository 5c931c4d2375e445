"""The speed of the calls that an exercise's tests time: samples of several processes, until a sequential rule decides.

A measurement counts more than what a text predicts: a kernel that is fast passes, and the prediction is advice.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from grader.course.exercise import Exercise
from grader.course.resized import fitting
from grader.course.trial import Trial, trial_of
from grader.explain import speed
from grader.explain.causes import Cause
from grader.explain.compiled_code import NO_TENSOR_CORES
from grader.explain.speed import Elsewhere, MeasuredSpeeds
from grader.explain.verdict import INCONCLUSIVE, NOT_RUN, PASS, SKIPPED, Verdict
from grader.gpu.answers import ANCHOR, COPY, KERNEL, MATMUL, TORCH, Measurement
from grader.gpu.plan import PackedPlan
from grader.gpu.pool.replay_process import ReplayEnded
from grader.judging.gate_here import Gate, gate_here
from grader.judging.gpu_memory import blame
from grader.judging.medals import WrongWhileTimed, compared_with_solution, medal_after
from grader.judging.on_gpu import asked_of, fault_of, other_result
from grader.judging.run import Run
from grader.judging.speed_rule import FAST, MORE, SLOW, STAGES, Decision, decide_again, distance_of
from grader.judging.uses import ThroughputUse
from grader.numerics.data_sets import seed_for
from grader.wire.messages import GpuModel
from grader.wire.reply import DTYPES

MOST_USELESS = 3  # samples without enough valid rounds
TELLS_NOTHING = "as measured on this GPU, a kernel that nobody wants is as fast as the solution"
# Costs that a text predicts, and that cost time alone: a kernel with one of them may be fast all the same.
PREDICTED = (Cause.SCALAR_ACCESS, Cause.SPILLS, Cause.NOT_PIPELINED, Cause.SCATTERED)


@dataclass
class MeasuredSpeed:
    """Judges speed. launch_plan: returns the launch plan of a trial, or the verdict that says why there is none."""

    exercise: Exercise
    run: Run
    launch_plan: Callable[[Trial], PackedPlan | Verdict]
    timed: list[ThroughputUse] = field(default_factory=list)  # what the exercise's tests time

    def trial(self, use: ThroughputUse) -> Trial:
        """Returns the trial of a call to be timed, in the exercise's first dtype.

        The rows of its data are halved until the call can be timed in the GPU's memory.
        """
        dtype = self.exercise.dtypes[0]
        data = fitting(self.exercise, use.data, DTYPES[dtype], self.run.model.memory_bytes)
        return trial_of(self.exercise, use.test, data, dtype)

    def not_timed(self, use: ThroughputUse) -> Verdict | None:
        """Returns the skip of a test whose speed says nothing on this GPU; None where it is to be timed."""
        why = not_timed(self.run.model, use.anchor, use.since)
        return Verdict(SKIPPED, NOT_RUN, note=why) if why else None

    def verdict(self, use: ThroughputUse, trial: Trial, medals: bool = False) -> Verdict:
        """Returns the verdict on a call's speed, as a share of the anchor's. Raises GpuBusy.

        medals: whether a kernel that passes gets a medal.
        """
        gate = gate_here(self.run.folder, use.test, use.at_least, self.run.model.name)
        if gate is None:
            return Verdict(SKIPPED, NOT_RUN, note=TELLS_NOTHING)
        packed = self.launch_plan(trial)
        if isinstance(packed, Verdict):
            return packed
        return speed_verdict(self.run, trial, packed, use.anchor, gate, medals)

    def instead_of(self, predicted: Verdict, trial: Trial | None = None) -> Verdict:
        """Returns a pass with the prediction as advice if the GPU is fast, or the verdict as predicted.

        If noise hides the speed, returns that inconclusive verdict: nothing fails for noise.

        trial: the call that the prediction is about, if it is large enough to be timed; without it all calls that the
        tests time are measured. Raises GpuBusy.
        """
        if predicted.id not in PREDICTED or self.run.replays is None or not self.timed:
            return predicted
        for use in self.timed if trial is None else self.timed[:1]:
            measured = self.not_timed(use) or self.verdict(use, trial or self.trial(use))
            if measured.id == INCONCLUSIVE:
                return measured
            if measured.outcome != PASS:
                return predicted
        return Verdict(PASS, note=f"fast as measured; but {predicted.lines[0]}", figures=predicted.figures)


def not_timed(model: GpuModel, anchor: str, since: str) -> str:
    """Returns why this GPU's speed says nothing here, or "". since: the first target that is timed, or "" for all."""
    if anchor == MATMUL and not model.has_tensor_cores:  # the vendor's product uses them
        return f"{model.target}: {NO_TENSOR_CORES}"
    if since and model.arch < int(since.removeprefix("sm_")):
        return f"needs {since}, and this GPU is {model.target}"
    return ""


def speed_verdict(run: Run, trial: Trial, packed: PackedPlan, anchor: str, gate: Gate, medals: bool = False) -> Verdict:
    """Returns the verdict on a call's speed. medals: whether a kernel that passes is compared with the solution, too.

    A kernel that misses a gate which was measured on another GPU is compared in any case. Raises GpuBusy, MachineFault.
    """
    if (other := other_result(trial, packed)) is not None:
        return other
    try:
        return _measured(run, trial, packed, anchor, gate, medals)
    except WrongWhileTimed as wrong:
        return speed.wrong_while_timed(str(wrong))
    except ReplayEnded as ended:
        if ended.how == "no-room":
            blamed = blame(trial, packed, run.gpu.device.model.memory_bytes)
            return blamed or speed.no_room()
        return fault_of(ended)


def _measured(run: Run, trial: Trial, packed: PackedPlan, anchor: str, gate: Gate, medals: bool) -> Verdict:
    """Returns the verdict, from samples until the rule has decided. Raises WrongWhileTimed, ReplayEnded, GpuBusy."""
    measured = _what_is_measured(run, trial, anchor, gate.share)
    earlier = run.earlier.of(measured) if run.earlier else []
    samples: list[Measurement] = []
    useless = 0
    drawn = samples_of(run, trial, packed, anchor)
    for sample in drawn:
        if sample.wrong:
            raise WrongWhileTimed(sample.wrong)
        if math.isnan(sample.share):
            useless += 1
            if useless == MOST_USELESS:
                return speed.no_valid_rounds(sample.why_invalid)
            continue
        samples.append(sample)
        shares = [timed.share for timed in samples]
        decision = _decision(earlier, shares, gate.share)
        if decision.outcome != MORE:
            break
    if run.earlier:
        run.earlier.keep(measured, [] if decision.outcome == FAST else [*earlier, *shares][-STAGES[-1] :])
    speeds = _speed_of(samples, decision, trial.exercise, packed, anchor, gate.share)
    if run.gpu.device.is_impossible(**{"bytes_per_second" if anchor == COPY else "flops": speeds.rate}):
        return speed.impossible(speeds)

    def sampled(other: Run, of_other: PackedPlan) -> Iterator[Measurement]:
        return samples_of(other, trial, of_other, anchor)

    if decision.outcome == FAST:
        speeds.medal = medal_after(run, trial, shares, drawn, sampled) if medals else None
        return speed.fast_enough(speeds)
    if decision.outcome == SLOW and gate.of_solution:
        compared = compared_with_solution(run, trial, shares, drawn, sampled, gate.of_solution)
        if compared is None:
            return speed.not_compared(speeds, gate.measured_on)
        speeds.elsewhere = Elsewhere(gate.measured_on, gate.of_solution, *compared)
        if speeds.elsewhere.outcome == FAST:
            speeds.medal = speeds.elsewhere.medal if medals else None
            return speed.fast_enough(speeds)
        if speeds.elsewhere.outcome == MORE:
            return speed.too_close(speeds, speeds.elsewhere)
    if decision.outcome == SLOW:
        return speed.too_slow(speeds, packed.plan, samples[0].config, run.submission, run.model, run.filename)
    return speed.too_noisy(speeds)


def samples_of(run: Run, trial: Trial, packed: PackedPlan, anchor: str) -> Iterator[Measurement]:
    """Yields samples, each from another process. The first also finds an autotuned kernel's fastest configuration.

    If the anchor is a copy, the first also times torch. Raises ReplayEnded, GpuBusy.
    """
    shapes = ", ".join(f"{spec.shape} {spec.dtype}" for spec in packed.arguments)
    run.gpu.begin_call(f"{anchor} for {shapes}")
    config, number = 0, 0
    while True:
        reply = run.gpu.measure(
            packed, config, run.folder, **asked_of(trial), anchor=anchor,
            seed=seed_for(run.seed, run.folder.id, trial.name, "speed", number),
            choose=number == 0, with_torch=number == 0 and anchor == COPY,
        )  # fmt: skip
        sample = Measurement.from_json(reply)
        config, number = sample.config, number + 1
        yield sample


def _decision(earlier: list[float], shares: list[float], gate: float) -> Decision:
    return decide_again(*([distance_of(share, gate) for share in part] for part in (earlier, shares)))


def _what_is_measured(run: Run, trial: Trial, anchor: str, gate: float) -> str:
    """Returns the name under which samples are kept: it holds the call, the gate, the GPU and the versions."""
    versions = sorted(run.process.versions.items())
    return f"{trial.name}, {trial.data_label}: {gate} of {anchor} on {run.model.name} with {versions}"


def _speed_of(
    samples: list[Measurement], decision: Decision, exercise: Exercise, packed: PackedPlan, anchor: str, gate: float
) -> MeasuredSpeeds:
    work = samples[0].bytes if anchor == COPY else flops_of(exercise, packed)
    median = sorted(samples, key=lambda sample: sample.share)[len(samples) // 2]
    torch = samples[0].seconds(TORCH)
    return MeasuredSpeeds(
        anchor, gate, statistics.median(sample.share for sample in samples), work / median.seconds(KERNEL),
        work / median.seconds(ANCHOR), 0.0 if math.isnan(torch) else work / torch, len(samples), decision.spread,
        decision.samples - len(samples), gate * math.exp(-decision.distance),
    )  # fmt: skip


def flops_of(exercise: Exercise, packed: PackedPlan) -> int:
    """Returns the floating-point operations of a matrix product: a multiplication and an addition for each term."""
    M, K, N = exercise.as_product([spec.shape for spec in packed.arguments])
    return 2 * M * N * K
