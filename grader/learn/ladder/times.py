"""The speed of a ladder's kernels on a GPU: a sample of each, with the judge's own clock, checks and anchor.

A process that has measured a kernel goes on to the next, and every round times the anchor as well as the kernel: a
change of the GPU's clock between two kernels drops out of their shares.
"""

from __future__ import annotations

import secrets
import statistics
from typing import TYPE_CHECKING

import click

from grader.course.code_digest import digest_of_code
from grader.explain import gpu_findings
from grader.gpu.answers import ANCHOR, COPY, KERNEL, Measurement
from grader.gpu.lock import GpuBusy
from grader.gpu.plan import PackedPlan, least_bytes
from grader.gpu.pool.replay_process import ReplayEnded
from grader.judging.on_gpu import asked_of, other_result
from grader.judging.speed_samples import flops_of
from grader.learn.ladder.figures import NotTimed, Timed
from grader.learn.usable_submission import launch_plan, refuse_what_cannot_run
from grader.processes.faults import MachineFault
from grader.show.curves import UNITS

if TYPE_CHECKING:
    from grader.course.exercise import Exercise
    from grader.course.trial import Trial
    from grader.gpu.pool.replays import Replays
    from grader.judging.run import Run

BUDGET = 5.0  # seconds for the calls of a kernel: a single call of the slowest takes seconds
LIMIT = 20.0  # seconds for its process to prepare, and again to measure


def timed(run: Run, trial: Trial, replays: Replays, anchor: str) -> tuple[Timed | NotTimed, float | None]:
    """Times a kernel. Returns its figures and the anchor's rate, or the reason that it cannot be timed and None."""
    try:
        refuse_what_cannot_run(run)
        digest = digest_of_code(run.submission.path.read_text(encoding="utf-8"))
        packed = launch_plan(run, trial)
        if other_result(trial, packed) is not None:
            return NotTimed(f"{trial.exercise.entry} returns another result than it should"), None
        return _figures_of(_sample(run, trial, packed, replays, anchor), digest, trial.exercise, packed, anchor)
    except click.ClickException as error:
        return NotTimed(error.message.partition(" Next:")[0].rstrip(".")), None
    except ReplayEnded as ended:
        return NotTimed(_why(ended)), None
    except (GpuBusy, MachineFault, OSError) as error:
        return NotTimed(str(error).rstrip(".")), None


def _sample(run: Run, trial: Trial, packed: PackedPlan, replays: Replays, anchor: str) -> Measurement:
    shapes = ", ".join(f"{spec.shape} {spec.dtype}" for spec in packed.arguments)
    replays.begin_call(f"{anchor} for {shapes}")  # a new call for each rung: the same process may measure all of them
    reply = replays.measure(
        packed, 0, run.folder, **asked_of(trial), anchor=anchor, seed=secrets.randbits(62), choose=True,
        with_torch=False, budget=BUDGET, limit=LIMIT,
    )  # fmt: skip
    return Measurement.from_json(reply)


def _figures_of(
    sample: Measurement, digest: str, exercise: Exercise, packed: PackedPlan, anchor: str
) -> tuple[Timed | NotTimed, float | None]:
    rounds = sample.valid or sample.rounds
    if sample.wrong or not rounds:
        return NotTimed(sample.wrong or "no round was measured"), None
    seconds, of_anchor = (statistics.median(one.seconds[chain] for one in rounds) for chain in (KERNEL, ANCHOR))
    share = statistics.median(timed_round.seconds[ANCHOR] / timed_round.seconds[KERNEL] for timed_round in rounds)
    least = least_bytes(packed.plan, packed.arguments, exercise)
    work = least if anchor == COPY else flops_of(exercise, packed)
    scale = UNITS[anchor][1]
    notes = [] if sample.valid else [f"less certain: {sample.why_invalid}"]
    if packed.plan.configs > 1:
        notes.insert(0, f"chose {packed.plan.config_text(sample.config)}")
    return Timed(digest, seconds, work / seconds / scale, share, "; ".join(notes)), work / of_anchor / scale


def _why(ended: ReplayEnded) -> str:
    if ended.how == "no-room":
        return "the GPU has too little free memory"
    if ended.how == "time":
        return f"a call takes too long: {LIMIT:.0f} seconds were not enough"
    return gpu_findings.fault(ended).lines[0].rstrip(".") if ended.how == "failed" else ended.detail
