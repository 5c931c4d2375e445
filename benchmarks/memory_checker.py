"""What the memory checker costs: python benchmarks/memory_checker.py [--rounds 7]

Every case of every exercise is called with the solution in this process, bare and checked, in turn. Bare is Triton's
interpreter with the same repairs, so the ratio is the price of the checks alone: addresses, races, uninitialised
reads, poison, lane conflicts, traffic.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

os.environ["TRITON_INTERPRET"] = "1"  # before the first import of triton

import torch

from grader.author.constants import cases_of
from grader.child.call import Call
from grader.child.interpreting import prepare
from grader.child.learner import LearnerFile
from grader.exercise import Exercise, Folder, all_folders
from grader.inputs import generator_for
from grader.protocol import RunRequest
from grader.reply import DTYPES, spec_and_bytes

ROOT = Path(__file__).resolve().parent.parent


def request_of(exercise: Exercise, tensors: list[torch.Tensor]) -> tuple[RunRequest, bytes]:
    specs, blob = [], b""
    for name, tensor in zip(exercise.arguments, tensors):
        spec, data = spec_and_bytes(name, tensor, len(blob))
        specs.append(spec)
        blob += data
    return RunRequest(exercise.entry, specs, [exercise.returns], exercise.returns), blob


def best(call, rounds: int) -> float:
    """Seconds of the fastest of several calls: noise only ever adds."""
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return min(times)


def seconds(folder: Folder, rounds: int) -> tuple[float, float]:
    """(bare, checked), summed over the exercise's cases."""
    exercise, cases = cases_of(folder)
    file = LearnerFile(f"{folder.name}.py", folder.solution_file.read_bytes())
    assert file.load() is None
    entry, bare, checked = getattr(file.module, exercise.entry), 0.0, 0.0
    for case in cases:
        dtype = DTYPES[exercise.dtypes[0]]
        tensors = [data.tensor(dtype, generator_for(0, n)) for n, data in enumerate(case.data)]
        call = Call(file, *request_of(exercise, tensors))

        def run_checked(call=call):
            with call.watched():
                entry(*call.arguments.values())

        with file.with_constants(case.constants):
            bare += best(lambda tensors=tensors: entry(*tensors), rounds)
            checked += best(run_checked, rounds)
    return bare, checked


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    prepare()
    total_bare = total_checked = 0.0
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for exercise in all_folders(ROOT):
            bare, checked = seconds(exercise, rounds)
            total_bare, total_checked = total_bare + bare, total_checked + checked
            print(f"{exercise.id:<20}{1e3 * bare:8.1f} ms bare {1e3 * checked:8.1f} ms checked  {checked / bare:.2f} x")
        print(f"{'all':<20}{1e3 * total_bare:8.1f} ms bare {1e3 * total_checked:8.1f} ms checked  "
              f"{total_checked / total_bare:.2f} x")  # fmt: skip


if __name__ == "__main__":
    main()
