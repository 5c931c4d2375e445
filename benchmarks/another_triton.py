"""Compares another release of Triton with the one here: what it compiles, and the tests that fail with it alone.

    python benchmarks/another_triton.py triton==3.8.0
    python benchmarks/another_triton.py path/to/triton-3.10.0-cp311-cp311-linux_x86_64.whl

Every solution is compiled for an A100, an H100 and a B200, as its tests of machine code ask, with fused multiplications
and additions and without (`enable_fp_fusion`, which later releases leave out where nobody asks for it). Then the
tests run that reach into Triton. Each difference is a line; without any the exit status is 0.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from grader.course.folder import Folder

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.parts import REACHES_INTO_TRITON  # noqa: E402

TARGETS = ("sm_80", "sm_90", "sm_100")
FACTS = "--facts"  # for the process that imports one of the two releases


class Unfused(ast.NodeTransformer):
    """Adds enable_fp_fusion=False to each launch kernel[grid](...)."""

    def visit_Call(self, node: ast.Call) -> ast.Call:
        self.generic_visit(node)
        if isinstance(node.func, ast.Subscript):
            node.keywords.append(ast.keyword("enable_fp_fusion", ast.Constant(False)))
        return node


def facts() -> dict[str, str]:
    """Returns what this process's Triton makes of every solution, by "05_grouped_matmul sm_90 fused: kernel, case"."""
    from grader.course.folder import all_folders

    found: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        for exercise in all_folders(ROOT):
            text = exercise.solution_file.read_text(encoding="utf-8")
            unfused = Path(folder, exercise.solution_file.name)
            unfused.write_text(ast.unparse(Unfused().visit(ast.parse(text))), encoding="utf-8")
            for target in TARGETS:
                for fusion, path in (("fused", exercise.solution_file), ("unfused", unfused)):
                    for name, told in compiled(exercise, path, target):
                        found[f"{exercise.id} {target} {fusion}: {name}"] = told
    return found


def compiled(exercise: Folder, path: Path, target: str) -> Iterator[tuple[str, str]]:
    """Yields a name and the facts of each kernel that the exercise's tests of machine code compile."""
    from grader.course.folder import load_test_file
    from grader.gpu.compiled_facts import facts_of
    from grader.gpu.models import MODELS
    from grader.judging.judge import Judge
    from grader.judging.run import Run
    from grader.judging.uses import CompiledUse, uses_asked

    file, run = load_test_file(exercise), Run(exercise, str(path), seed=1, model=MODELS[target])
    judge = Judge(file.exercise, run)
    try:
        for call in uses_asked(file, CompiledUse):
            trial = call.trials(judge)[0]
            plan = run.launch_plan(trial, ("ptx", "ttgir")).plan
            if plan.error is not None:
                yield call.test, f"not compiled: {plan.error.message[:200]}"
            for kernel in plan.kernels:
                one = facts_of(kernel, path.name)
                widths = sorted({f"{access.kind} {access.bytes}" for access in one.accesses})
                used = f"{one.registers} registers, {one.spilled_bytes} bytes spilled, {one.shared} bytes shared"
                moves = f"{', '.join(widths)} bytes, {one.async_copies} + {one.tma_copies} copies"
                yield f"{one.kernel}, {call.test}", f"{used}; {moves}; {one.tensor_cores or 'no tensor cores'}"
    finally:
        run.end()


def facts_with(triton: Path | None) -> dict[str, str]:
    done = subprocess.run([sys.executable, __file__, FACTS], env=environment(triton), stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise SystemExit("The solutions could not be compiled: see above.")
    return json.loads(done.stdout.splitlines()[-1])


def failures_with(triton: Path | None) -> set[str]:
    """Returns the names of the failed tests among those that tox runs on the oldest release."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-rfE", *REACHES_INTO_TRITON.split()],
        cwd=ROOT, env=environment(triton), stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    if done.returncode not in (0, 1):
        raise SystemExit(f"pytest ended with status {done.returncode}:\n{done.stdout[-2000:]}")
    return {line.split(" - ")[0] for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))}


def environment(triton: Path | None) -> dict[str, str]:
    return os.environ | {"PYTHONPATH": os.pathsep.join(map(str, filter(None, (triton, ROOT))))}


def main(wheel: str) -> int:
    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "install", "-q", "--no-compile", "--no-deps", "--target", folder, wheel]
        if subprocess.run(pip).returncode:
            print(f"pip does not install {wheel}: see above.")
            return 2
        here, there = facts_with(None), facts_with(Path(folder))
        moved = sorted(name for name in here.keys() | there.keys() if here.get(name) != there.get(name))
        for name in moved:
            print(f"{name}\n  here:  {here.get(name, 'nothing')}\n  there: {there.get(name, 'nothing')}")
        failed = sorted(failures_with(Path(folder)) - failures_with(None))
        print("\n".join(failed))
        print(
            f"{len(moved)} of {len(here)} kernels are compiled otherwise; {len(failed)} tests fail with {wheel} alone."
        )
        return 1 if moved or failed else 0


if __name__ == "__main__":
    if sys.argv[1:] == [FACTS]:
        sys.path.insert(0, str(ROOT))
        print(json.dumps(facts()))
    elif len(sys.argv) == 2:
        raise SystemExit(main(sys.argv[1]))
    else:
        raise SystemExit(__doc__)
