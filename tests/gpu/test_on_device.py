"""On a GPU: kernels whose faults the interpreter cannot see get their sentence, and what comes after is unharmed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from grader.gpu.device import Device, device_here
from tests.author.test_new_without_a_model import EXERCISES, HEAD, TESTS
from tests.compiler.launch_plans import Recording
from tests.conftest import ROOT
from tests.learn.conftest import Course
from tests.waiting import NEVER

HERE = device_here()
pytestmark = pytest.mark.skipif(not isinstance(HERE, Device), reason=f"needs a GPU: {HERE}")

ADD = (ROOT / "solutions/01_masked_add/masked_add.py").read_text()
STORE = "    tl.store(z_ptr + offsets, x + y, mask=mask)\n"
LARGE = "N > 100000"  # the interpreter never sees such a size

FAULTS = {
    "writes past the end": (
        STORE.replace("mask=mask", f"mask=mask | ((offsets < N + 3) & ({LARGE}))"), "bytes past the end of"
    ),
    "writes before the start": (
        STORE + f"    tl.store(z_ptr - 1 - tl.program_id(0) * 0, 0.0, mask={LARGE})\n", "bytes before the start of"
    ),
    "leaves elements unwritten": (
        STORE.replace("mask=mask", "mask=mask & ((offsets != 77) | (N <= 100000))"), "1 of them were never written"
    ),
    "touches memory of nobody": (
        STORE + f"    tl.store(z_ptr + (1 << 40), 0.0, mask={LARGE})\n", "memory that belongs to no tensor"
    ),
    "does not end": (
        STORE + f"    while {LARGE}:\n        N = tl.maximum(N, 200000)\n        tl.store(z_ptr, 1.0, mask=N < 0)\n",
        "does not end",
    ),
    "changes an input": (
        STORE + f"    tl.store(x_ptr + offsets, x + 1, mask=mask & ({LARGE}))\n", "changes x: inputs have to stay"
    ),
    "is wrong for large sizes": (
        STORE.replace("x + y", f"tl.where({LARGE}, x, x + y)"), "elements of z are wrong on the GPU; the first is z[0]"
    ),
}  # fmt: skip


def graded(*arguments: str | Path, result: Path) -> dict:
    command = [sys.executable, "-m", "pytest", *map(str, arguments), "--device", "cuda", "--result", str(result)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=NEVER)
    assert result.exists(), done.stdout + done.stderr
    return json.loads(result.read_text())


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_that_only_a_gpu_shows_is_named(name, tmp_path):
    replaced, sentence = FAULTS[name]
    assert STORE in ADD
    (tmp_path / "masked_add.py").write_text(ADD.replace(STORE, replaced))
    result = graded(
        "exercises/01_masked_add", "--submission", tmp_path / "masked_add.py", "-k", "full_block or only_a_gpu",
        result=tmp_path / "result.json",
    )  # fmt: skip
    assert result["outcome"] == "fail" and result["fault"] is None
    assert sentence in result["message"], result["message"]


def test_the_solutions_pass_with_everything_that_a_gpu_shows(tmp_path):
    found = graded("exercises", "--submission", "solutions", result=tmp_path / "result.json")
    for exercise in found["exercises"]:
        assert exercise["device"] == "cuda" and exercise["outcome"] == "pass", exercise["message"]
        assert all(test["outcome"] == "pass" for test in exercise["tests"]), exercise["exercise"]


def test_after_a_fault_the_next_exercise_is_judged(tmp_path):
    for id in ("01_masked_add", "03_softmax"):
        (tmp_path / id).mkdir()
        name = f"{id[3:]}.py"
        (tmp_path / id / name).write_text((ROOT / "solutions" / id / name).read_text())
    path = tmp_path / "01_masked_add" / "masked_add.py"
    path.write_text(ADD.replace(STORE, FAULTS["touches memory of nobody"][0]))
    exercises = ("exercises/01_masked_add", "exercises/03_softmax")
    first, second = graded(*exercises, "--submission", tmp_path, result=tmp_path / "result.json")["exercises"]
    assert first["outcome"] == "fail" and second["outcome"] == "pass"


def test_a_kernel_that_changes_its_inputs_only_where_it_is_timed_does_not_pass(tmp_path):
    """Zeros everywhere would be the sum of what is in x and y afterwards."""
    timed = "(N == (1 << 27))"
    zeros = STORE.replace("x + y", f"tl.where({timed}, 0.0, x + y)")
    zeros += "".join(f"    tl.store({name} + offsets, 0.0, mask=mask & {timed})\n" for name in ("x_ptr", "y_ptr"))
    (tmp_path / "masked_add.py").write_text(ADD.replace(STORE, zeros))
    result = graded(
        "exercises/01_masked_add", "--submission", tmp_path / "masked_add.py",
        "-k", "only_a_gpu or it_reaches_the_gate", result=tmp_path / "result.json",
    )  # fmt: skip
    assert [test["outcome"] for test in result["tests"]] == ["pass", "fail"], result["message"]
    assert "timed" in result["message"], result["message"]


@pytest.mark.parametrize("exercise", ["01_masked_add", "02_strided_blocks", "04_transpose"])
def test_the_version_that_a_gate_keeps_out_is_too_slow(exercise, tmp_path):
    if exercise == "01_masked_add" and HERE.model.name != "NVIDIA H200":
        pytest.skip("its gate was measured on an H200; on an H100 this version is fast enough")
    file = ROOT / "solutions" / exercise / "unwanted.py"
    result = graded(
        f"exercises/{exercise}", "--submission", file, "-k", "it_reaches_the_gate", result=tmp_path / "r.json"
    )
    assert [test["id"] for test in result["tests"]] == ["too-slow"], result["message"]
    assert "needed" in result["message"]


def test_a_slow_kernel_that_is_run_again_goes_on_with_its_samples(tmp_path):
    id = "01_masked_add"
    course = Course(tmp_path)
    slow = (ROOT / "solutions" / id / "unwanted.py").read_text()
    course.file(id).write_text(slow.replace("BLOCK_N = 128", "BLOCK_N = 32"))  # too small for any GPU
    printed = [course.pytest(f"exercises/{id}", "-k", "it_reaches_the_gate").out for _ in range(2)]
    assert all("FAIL  it reaches the gate" in out and "needed" in out for out in printed), printed
    (kept,) = json.loads(next(tmp_path.glob(".course/samples/*.json")).read_text()).values()
    assert len(kept) == 4


@pytest.mark.parametrize(
    "id, change, medal",
    [
        ("01_masked_add", ("num_warps=8", "num_warps=4"), 3),
        ("12_gather_rows", ("num_warps=2", "num_warps=8"), 1),  # 0.73 of the solution's speed
    ],
)
def test_a_pass_gets_the_medal_of_its_speed(id, change, medal, tmp_path):
    text = (ROOT / "solutions" / id / f"{id[3:]}.py").read_text()
    assert text.count(change[0]) == 1
    (tmp_path / f"{id[3:]}.py").write_text(text.replace(*change))
    result = graded(
        f"exercises/{id}", "--submission", tmp_path / f"{id[3:]}.py", "-k", "it_reaches_the_gate",
        result=tmp_path / "result.json",
    )  # fmt: skip
    (test,) = result["tests"]
    assert (test["outcome"], test["figures"]["medal"]) == ("pass", medal), test["message"]


HOST_DESCRIPTORS = """
    from triton.tools.tensor_descriptor import TensorDescriptor

    @triton.jit
    def double_kernel(x, z, BLOCK: tl.constexpr):
        at = [tl.program_id(0) * BLOCK, tl.program_id(1) * BLOCK]
        z.store(at, x.load(at) * 2 + 1)

    def double(x):
        z = torch.empty_like(x)
        double_kernel[(2, 2)](*[TensorDescriptor.from_tensor(t, [64, 64]) for t in (x, z)], BLOCK=64)
        return z
"""


def test_host_descriptors_that_are_taken_apart_for_an_a100_give_the_right_result():
    """Its machine code cannot run here, but the driver makes machine code for this GPU from the same PTX."""
    from grader.gpu.inside.checking import replayed
    from grader.gpu.inside.launcher import Functions

    x = torch.randn(100, 72, dtype=torch.float16, device="cuda")
    recording = Recording(HOST_DESCRIPTORS, "sm_80")
    plan = recording.plan("double", x=torch.empty_like(x, device="meta"))
    recording.runner.end()
    (kernel,) = plan.kernels
    assert ".target sm_80" in kernel.texts["ptx"]
    kernel.code = kernel.texts["ptx"].encode() + b"\0"

    def fill(buffers) -> None:
        buffers.data(0).copy_(x.view(torch.uint8).flatten())

    results, found = replayed(plan, Functions(plan), 0, fill, recording.specs, [])
    assert not (found.overruns or found.changed or found.differing)
    assert torch.equal(results["z"], x * 2 + 1)


@pytest.mark.parametrize("change", ["", "wrong"])
def test_the_bound_that_torchs_own_run_makes_holds_on_a_gpu(tmp_path, change):
    """A sum of 4096 terms in fp32: torch adds in another order than the kernel, and neither is exact."""
    course, own = Course(tmp_path), EXERCISES[0]
    course.here("new", "37_column_sum")
    tests = TESTS.format(name=own.name, reference=own.reference, call=own.call)
    tests += "\n\ndef test_a_call_for_a_gpu(on_gpu):\n    on_gpu(normal(4096, 4099))\n"
    (course.path / "exercises" / "37_column_sum" / "test_column_sum.py").write_text(tests)
    kernel = own.kernel.replace("range(0, M)", "range(0, tl.minimum(M, 4095))") if change else own.kernel
    course.save("37_column_sum", HEAD + kernel)
    command = [sys.executable, "-m", "pytest", "exercises/37_column_sum", "--device", "cuda"]
    done = subprocess.run(command, cwd=course.path, capture_output=True, text=True, timeout=NEVER)
    assert done.returncode == (1 if change else 0), done.stdout + done.stderr
