"""Times one's own kernel on a GPU, in a process of its own: machine code of a stranger's runs in it, and nothing else
that matters.

The kernel, torch's own run of the reference, torch.compile's, and the anchor take turns in each round, by the rules of
measurement of gpu/inside/timing.py: on sets of buffers larger than the cache, with new inputs, each output verified.
"""

from __future__ import annotations

import functools
import inspect
import json
import os
import random
import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from grader.own.cannot_judge import CannotJudge, message_of

SAMPLES = 3
COMPILED = "torch.compile"


def main() -> None:
    """Reads a request as JSON from standard input, and writes what was measured: the fields of `Judgement.speed`."""
    request = json.load(sys.stdin)
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what the reference prints
    try:
        with tempfile.TemporaryDirectory() as scratch:
            found = timed(request, Path(scratch))
    except CannotJudge as why:
        found = {"why": why.said, "next": why.next}
    except Exception as error:
        found = {"why": f"The kernel was not timed: {message_of(error)}.", "next": "course doctor"}
    answers.write(json.dumps(found))
    answers.flush()
    os._exit(0)  # a GPU that a kernel has stopped keeps the interpreter from ending


def timed(request: dict[str, Any], scratch: Path) -> dict[str, Any]:
    """Returns the seconds of one call, by contender, and how fast the kernel is as a share of each. Raises
    CannotJudge."""
    from grader.gpu.device import Device, device_here

    device = device_here()
    if not isinstance(device, Device):
        raise CannotJudge(f"The kernel was not timed: {device}.", "judge it with --time on a machine with a GPU.")
    import torch

    from grader.course.trial import trial_of
    from grader.explain.verdict import Verdict
    from grader.gpu.lock import gpu_held
    from grader.judging.judge import Judge
    from grader.judging.run import Run
    from grader.numerics.arguments import without_values
    from grader.own.own_judge import folder_for
    from grader.own.own_process import asked
    from grader.own.timed_call import anchor_of, timed_data

    stated = asked(request, request["seed"])
    own = stated.exercises[0]
    data = timed_data(own, request["time"], request["seed"])
    trial = trial_of(own.exercise, "timed", data, own.dtype)
    small = trial_of(own.exercise, "small", timed_data(own, "", request["seed"]), own.dtype).inputs(request["seed"])
    anchor = anchor_of(own, stated.reference, small)
    run = Run(folder_for(stated.file, scratch), str(stated.file), request["seed"], device.model, stated.how.sandboxed)
    try:
        packed = Judge(own.exercise, run).launch_plan(trial)
        if isinstance(packed, Verdict):
            raise CannotJudge(f"The kernel was not timed: {packed.lines[0]}", "state other sizes with --time.")
        kernels = run.kernels(trial, without_values(trial.data, trial.dtype))
        in_tf32 = sorted({line for kernel in kernels for line in kernel.tf32_lines})
        torch.zeros(1, device="cuda")
        with gpu_held(device.uuid, alone=True):
            return _measured(own.exercise, stated.reference.function, trial, packed, anchor, device, in_tf32)
    finally:
        run.end()


def _measured(exercise, function, trial, packed, anchor, device, in_tf32) -> dict[str, Any]:
    import torch

    from grader.course.wanted_results import wanted_of
    from grader.gpu.answers import ANCHOR, KERNEL, TORCH
    from grader.gpu.inside.guarded_buffers import Buffers
    from grader.gpu.inside.launcher import Functions
    from grader.gpu.inside.measuring import SpeedRequest, anchor_chain, fastest, plan_chain, slots_for, torch_chain
    from grader.gpu.inside.timing import Flush, measure
    from grader.gpu.nvml import Clocks

    plan, functions = packed.plan, Functions(packed.plan)
    seconds: dict[str, list[float]] = {}
    left_out: dict[str, str] = {}
    for seed in range(SAMPLES):
        speed = SpeedRequest(
            exercise, {one.name: one.bound for one in wanted_of(trial)}, list(trial.data), trial.dtype,
            packed.arguments, anchor, seed=seed, l2_bytes=device.model.l2_bytes, uuid=device.uuid,
        )  # fmt: skip
        speed.config = fastest(plan, functions, speed) if plan.configs > 1 else 0
        slots = [Buffers(plan) for _ in range(slots_for(plan))]
        chains = {KERNEL: plan_chain(plan, functions, speed, slots), ANCHOR: anchor_chain(plan, speed, len(slots))}
        for name, make in ((TORCH, _plain), (COMPILED, _compiled)):
            if name in left_out:
                continue
            reference = make(function, exercise)
            chain = torch_chain(replace(speed, exercise=replace(exercise, reference=reference)), slots)
            try:
                chain.capture()
            except Exception as error:  # as a reference that waits for the GPU, or no C compiler for torch.compile
                left_out[name] = message_of(error)
                torch.cuda.synchronize()
                continue
            chains[name] = chain
        found = measure(chains, Flush(speed.l2_bytes), Clocks(speed.uuid), random.Random(seed))
        if found.wrong:
            raise wrong_while_timed(found.wrong, device.name, in_tf32)
        for name in chains:
            if (one := found.seconds(name)) == one:
                seconds.setdefault(name, []).append(one)
        torch.cuda.empty_cache()
    if KERNEL not in seconds or ANCHOR not in seconds:
        raise CannotJudge("The kernel was not timed: the GPU's clock did not stay alike.", "try it again.")
    medians = {anchor if name == ANCHOR else name: statistics.median(all_of) for name, all_of in seconds.items()}
    shares = {name: one / medians[KERNEL] for name, one in medians.items() if name != KERNEL}
    return {"gpu": device.name, "case": trial.label({}), "seconds": medians, "shares": shares, "left_out": left_out}


def wrong_while_timed(found: str, gpu: str, in_tf32: Sequence[int]) -> CannotJudge:
    """Returns what is told of a kernel that is right in the interpreter, and wrong while it is timed. `in_tf32`: the
    lines of its products that cut fp32 to tf32 in this call."""
    said = f"The kernel was not timed: on {gpu}, {found}."
    if in_tf32:
        return CannotJudge(
            f"{said} In this call the tl.dot in line {in_tf32[0]} cuts fp32 to tf32, 11 significant bits, as it does by"
            " default.",
            f'write input_precision="ieee" or "tf32x3" in line {in_tf32[0]}: both keep the digits; where they may be'
            " lost, state approximates in a file for --promise.",
        )
    return CannotJudge(
        said, "time another size; if it says so again, judge it with --thorough, and run it with racecheck."
    )


def _plain(function, exercise):
    """Returns the reference as its author wrote it, as an exercise calls it: its tensors alone are its results."""
    import torch

    @functools.wraps(function)
    def called(*arguments):
        found = function(*arguments)
        several = found if isinstance(found, tuple | list) else [found]
        return tuple(one for one in several if isinstance(one, torch.Tensor))

    called.__signature__ = inspect.signature(exercise.reference)  # type: ignore[attr-defined]
    return called


def _compiled(function, exercise):
    import torch

    torch._dynamo.reset()
    return _plain(torch.compile(function), exercise)


if __name__ == "__main__":
    main()
