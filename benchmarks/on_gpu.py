"""The solutions on a GPU, side by side: python benchmarks/on_gpu.py [--only NN,NN] [--samples N] [--no-compile]

In one process and in turns, with the grader's own timing: the solution (and the one beyond it, where there is one),
torch, torch.compile, and where Triton has a tutorial on the operation our version of its approach (benchmarks/rivals).
Every timed output of a kernel is verified. Shares are of the anchor: a copy of the same bytes, or cuBLAS. Wants a GPU,
and a C compiler for torch.compile.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
from dataclasses import dataclass, replace
from pathlib import Path

import torch
import triton

from grader.course.folder import Folder, all_folders, load_test_file
from grader.course.trial import trial_of
from grader.course.wanted_results import wanted_of
from grader.gpu.answers import ANCHOR, TORCH
from grader.gpu.device import Device, device_here
from grader.gpu.inside.guarded_buffers import Buffers
from grader.gpu.inside.launcher import Functions
from grader.gpu.inside.measuring import (
    SpeedRequest,
    anchor_chain,
    fastest,
    least_bytes,
    plan_chain,
    slots_for,
    torch_chain,
)
from grader.gpu.inside.timing import Chain, Flush, measure
from grader.gpu.nvml import Clocks
from grader.gpu.plan import PackedPlan
from grader.judging.judge import Judge
from grader.judging.run import Run
from grader.judging.uses import ThroughputUse, uses_asked
from grader.numerics.arguments import DataOrNumber
from grader.numerics.data_sets import Data, normal

ROOT = Path(__file__).resolve().parent.parent
SOLUTION, BEYOND, TUTORIAL, COMPILED = "solution", "beyond", "tutorial", "torch.compile"
SAMPLES = 3


@dataclass(frozen=True)
class Case:
    exercise: str
    label: str
    data: tuple[DataOrNumber, ...]
    anchor: str = "copy"


def _square(n: int) -> tuple[Data, Data]:
    return normal(n, n), normal(n, n)


# Beside what the exercises' own tests time: other layouts and sizes.
MORE = [
    Case("03", "softmax, 4096 x 12672 fp32", (normal(4096, 12672),)),
    Case("04", "transpose, 8191 x 8193 fp32", (normal(8191, 8193),)),
    *(Case("05", f"matmul, {n} fp16", _square(n), "matmul") for n in (2048, 8192)),
    Case("22", "persistent matmul, 4096 fp16", _square(4096), "matmul"),
    Case("23", "descriptor matmul, 8192 fp16", _square(8192), "matmul"),
]


def cases(folder: Folder) -> list[Case]:
    """What the tests of an exercise time, then what is timed besides."""
    module = load_test_file(folder)
    stated = []
    for call in uses_asked(module, ThroughputUse):
        label = trial_of(module.exercise, call.test, call.data, module.exercise.dtypes[0]).data_label
        stated.append(Case(folder.number, f"{folder.id}, {label}", call.data, call.anchor))
    return stated + [case for case in MORE if case.exercise == folder.number]


def recorded(folder: Folder, path: Path, case: Case, device: Device) -> PackedPlan:
    run = Run(folder, str(path), model=device.model)
    try:
        exercise = load_test_file(folder).exercise
        packed = run.launch_plan(Judge(exercise, run).trial(case.label, case.data, exercise.dtypes[0]))
        if packed.plan.error is not None or packed.plan.refusals:
            raise SystemExit(f"{path}: {packed.plan.error or packed.plan.refusals}")
        return packed
    finally:
        run.end()


def compiled_chain(speed: SpeedRequest, slots: list[Buffers]) -> Chain:
    """The reference through torch.compile, with its slowest and best search."""
    torch._dynamo.reset()
    function = torch.compile(speed.exercise.reference, mode="max-autotune-no-cudagraphs")
    return torch_chain(replace(speed, exercise=replace(speed.exercise, reference=function)), slots)


def sampled(case: Case, folder: Folder, device: Device, seed: int, with_compile: bool) -> dict[str, float]:
    """Seconds of one call, by contender: the median of the valid rounds."""
    exercise = load_test_file(folder).exercise
    solution = recorded(folder, folder.solution_file, case, device)
    trial = trial_of(exercise, case.label, case.data, exercise.dtypes[0])
    speed = SpeedRequest(
        exercise, {one.name: one.bound for one in wanted_of(trial)}, list(case.data), trial.dtype,
        solution.arguments, case.anchor, seed=seed, l2_bytes=device.model.l2_bytes, uuid=device.uuid,
    )  # fmt: skip
    slots = [Buffers(solution.plan) for _ in range(slots_for(solution.plan))]
    chains = {
        SOLUTION: plan_chain(solution.plan, Functions(solution.plan), speed, slots),
        ANCHOR: anchor_chain(solution.plan, speed, len(slots)),
        TORCH: torch_chain(speed, slots),
    }
    rivals = {
        BEYOND: folder.solution_file.with_name("beyond.py"),
        TUTORIAL: ROOT / "benchmarks" / "rivals" / f"{folder.name}.py",
    }
    for name, path in rivals.items():
        if not path.exists():
            continue
        other = recorded(folder, path, case, device)
        functions = Functions(other.plan)
        speed.config = fastest(other.plan, functions, speed) if other.plan.configs > 1 else 0
        own = [Buffers(other.plan) for _ in slots]
        chains[name] = plan_chain(other.plan, functions, speed, own)
    if with_compile:
        chains[COMPILED] = compiled_chain(speed, slots)
    found = measure(chains, Flush(speed.l2_bytes), Clocks(speed.uuid), random.Random(seed))
    if found.wrong:
        raise SystemExit(f"{case.label}: {found.wrong}")
    rounds = found.valid or found.rounds
    return {name: statistics.median(one.seconds[name] for one in rounds) for name in chains}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--only", metavar="NN", help="the numbers of some exercises, with commas between")
    parser.add_argument("--samples", type=int, default=SAMPLES)
    parser.add_argument("--no-compile", action="store_true", help="leave torch.compile out")
    given = parser.parse_args()
    device = device_here()
    if not isinstance(device, Device):
        raise SystemExit(f"This benchmark wants a GPU: {device}.")
    torch.zeros(1, device="cuda")
    print(f"{device.name}, torch {torch.__version__}, Triton {triton.__version__}; median of {given.samples} samples")
    results, only = {}, (given.only or "").split(",")
    for folder in [folder for folder in all_folders(ROOT) if not given.only or folder.number in only]:
        for case in cases(folder):
            samples = []
            for seed in range(given.samples):
                samples.append(sampled(case, folder, device, seed, not given.no_compile and seed == 0))
                torch.cuda.empty_cache()
            results[case.label] = _told(case, folder, samples, device)
    if given.out:
        given.out.write_text(json.dumps({"gpu": device.name, "results": results}, indent=1) + "\n")


def _told(case: Case, folder: Folder, samples: list[dict[str, float]], device: Device) -> dict:
    shares = {name: [sample[ANCHOR] / sample[name] for sample in samples if name in sample] for name in samples[0]}
    plan = recorded(folder, folder.solution_file, case, device)
    if case.anchor == "copy":
        work, unit, scale = least_bytes(plan.plan, plan.arguments, load_test_file(folder).exercise), "GB/s", 1e9
    else:
        (M, K), (_, N) = (data.shape for data in case.data[:2])
        work, unit, scale = 2 * M * N * K, "TFLOP/s", 1e12
    seconds = {name: statistics.median(sample[name] for sample in samples if name in sample) for name in samples[0]}
    print(case.label)
    for name in sorted(shares, key=lambda name: -statistics.median(shares[name])):
        share = statistics.median(shares[name])
        spread = f"{min(shares[name]):.3f} to {max(shares[name]):.3f}"
        print(f"  {share:6.3f}  {work / seconds[name] / scale:8.0f} {unit}  {name:<14} {spread}", flush=True)
    return {name: {"shares": shares[name], "seconds": seconds[name], "rate": work / seconds[name]} for name in shares}


if __name__ == "__main__":
    main()
