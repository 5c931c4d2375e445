"""What is not judged, and why: bad input, and failures that say nothing of what a kernel computes. Exit status 2."""

from __future__ import annotations

import subprocess
import sys

import pytest

from grader.own.judgement import EXIT, NOT_JUDGED, WRONG
from tests.conftest import ROOT
from tests.own.test_own_kernels import KERNEL, MEAN, MENDED, REFERENCE, ROWS, judged

EXP = MENDED.replace("x * slope)", "tl.exp(x))")
OF_EXP = "import torch\ndef leaky_relu(x, slope=0.01):\n    return torch.where(x > 0, x, torch.exp(x))\n"


@pytest.mark.parametrize(
    ("shapes", "dtypes", "said", "next"),
    [
        (
            "N",
            ["fp16"],
            "kernel.py:10: the compiler refuses the kernel in fp16, and takes it in fp32.",
            "--dtypes fp32",
        ),
        ("N", ["fp32", "bf16"], "refuses the kernel in bf16, and takes it in fp32.", "or convert in kernel.py:10."),
        ("N:int32", [], "refuses the kernel where x is int32, and takes it in fp32.", "another dtype for x"),
        ("N:fp16", [], "refuses the kernel where x is fp16, and takes it in fp32.", "another dtype for x"),
    ],
)
def test_a_dtype_that_the_compiler_refuses_is_not_judged(tmp_path, shapes, dtypes, said, next):
    found = judged(tmp_path, EXP, OF_EXP, f"{shapes}; N=1..90", dtypes=dtypes)
    assert found.outcome == NOT_JUDGED and said in found.sentences[0] and next in found.next, found.sentences
    assert (found.cause, found.line, EXIT[found.outcome]) == ("does-not-compile", 10, 2) and not found.in_torch


def test_a_kernel_that_the_compiler_refuses_in_every_dtype_is_wrong(tmp_path):
    found = judged(tmp_path, MENDED.replace("x * slope)", "x & 3)"), REFERENCE, dtypes=["fp32", "fp16"])
    assert found.outcome == WRONG and found.cause == "does-not-compile", found.sentences


@pytest.mark.parametrize(
    ("old", "new", "said", "next"),
    [
        ("    n = ", "    assert x.numel() % 16 == 0\n    n = ", "kernel.py:15: leaky_relu itself", "N=16..512/16"),
        ("    n = ", "    if x.numel() % 16:\n        raise ValueError\n    n = ", "kernel.py:16: leaky_relu", "state"),
        ("    leaky_kernel[", "    for _ in range(70): leaky_kernel[", "more than 64 launches", "edit kernel.py:16"),
        (", mask=offs < n)\n    tl", ", mask=offs < n)\n    while tl.sum(x) != 0.5: x += 0.0\n    tl", "come to an end",
         "smaller shapes"),
        ("import torch\n", "import torch\nimport not_there\n", "cannot be imported", "edit kernel.py"),
    ],
)  # fmt: skip
def test_what_the_judge_or_the_function_itself_refuses_is_not_judged(tmp_path, old, new, said, next):
    found = judged(tmp_path, MENDED.replace(old, new), REFERENCE)
    assert found.outcome == NOT_JUDGED and said in found.sentences[0] and next in found.next, found.sentences


def test_an_error_that_the_function_does_not_raise_itself_is_wrong(tmp_path):
    found = judged(tmp_path, MENDED.replace("x.numel()", "x.shape[1]"), REFERENCE)
    assert found.outcome == WRONG and "IndexError" in found.sentences[0], found.sentences


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ("import random\ndef f(x):\n    return (x,) * random.randint(1, 90)\n", "gives other results"),
        ("def f(x):\n    return x @ x.reshape(3, -1)\n", "fails in line 2 with RuntimeError"),
        ("def f(x):\n    return x.to('meta')\n", "returns a tensor on meta"),
        ("def f(x):\n    return x.to_sparse()\n", "returns a sparse tensor"),
        ("import torch\ndef f(x):\n    return torch.complex(x, x)\n", "has dtype complex64"),
        ("while True: pass\n", "has not been imported after 1 s"),
        ("def f(x):\n    while True: pass\n", "has not come to its end after 1 s"),
        ("def f(x):\n    return x\ndef calls():\n    while True: pass\n", "calls() in ref.py has not come to its end"),
        ("def f(x):\n    return x\ndef calls():\n    return 1 / 0\n", "calls() in ref.py fails"),
        (b"\xff\xfe", "is no Python"),
    ],
)
def test_a_reference_that_cannot_be_used_is_told_in_a_sentence(tmp_path, monkeypatch, reference, said):
    monkeypatch.setattr("grader.own.own_reference.LIMIT", 1)
    monkeypatch.setattr("grader.own.own_exercise.LIMIT", 1)
    found = judged(tmp_path, ROWS, reference, "" if "calls" in str(reference) else "N; N=1..90")
    assert found.outcome == NOT_JUDGED and said in found.sentences[0] and found.next, found.sentences


def test_a_reference_of_another_shape_is_what_is_expected(tmp_path):
    """It is the user's statement: the kernel is wrong by it, and the report says what it rests on."""
    found = judged(tmp_path, ROWS, MEAN.replace("dim=1", "dim=0"), "M,N; M=1..20 N=1..90")
    assert found.outcome == WRONG and found.sentences[-1].startswith("What is expected is what the reference returns")


def test_a_failing_calls_lines_name_a_module_that_can_be_imported(tmp_path):
    (tmp_path / "class.py").write_text(KERNEL)
    (tmp_path / "ref.py").write_text(REFERENCE)
    command = [
        sys.executable,
        "-c",
        "from grader.cli import main; main()",
        "judge",
        "class.py",
        "--reference",
        "ref.py",
    ]
    command += ["--shapes", "N; N=1..90"]
    done = subprocess.run(
        command, cwd=tmp_path, env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}, capture_output=True, text=True
    )
    assert done.returncode == 1 and "from class import" not in done.stdout and "Seen in: x " in done.stdout
