"""An operator of torch is judged by what it registers, and the judge says of a fake what torch itself says of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from grader.author.mutants import mutant_of
from grader.course.folder import Folder, load_test_file
from grader.explain.causes import Cause
from grader.explain.verdict import FAIL, PASS, Verdict
from grader.judging.judge import Judge
from grader.judging.run import Run
from grader.judging.uses import OperatorUse
from grader.numerics.data_sets import normal
from tests.conftest import ROOT

FOLDER = Folder(ROOT / "exercises" / "36_torch_operator")
SOLUTION = FOLDER.solution_file.read_text(encoding="utf-8")
FORMULA = "    return swiglu_backward(dz, *ctx.saved_tensors)"
FAKES = ("fake_like_gate", "fake_of_one", "fake_in_fp32", "fake_is_flat", "fake_is_the_argument", "no_fake")

OF_TORCH = """
import importlib.util, json, sys
import torch

said = {}
for path in sys.argv[1:]:
    spec = importlib.util.spec_from_file_location("file", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["file"] = module
    spec.loader.exec_module(module)
    views = [torch.randn(70, 17, dtype=torch.float16).t() for _ in range(3)]
    checked = torch.library.opcheck(torch.ops.course.swiglu_backward, views, raise_exception=False)
    said[path] = checked["test_faketensor"] == "SUCCESS"
print(json.dumps(said))
"""


@pytest.fixture
def judged(tmp_path) -> Iterator[Callable[..., Verdict]]:
    runs: list[Run] = []

    def judged(text: str, name: str = "course::swiglu", gives: tuple[str, ...] = ()) -> Verdict:
        path = tmp_path / "torch_operator.py"
        path.write_text(text, encoding="utf-8")
        runs.append(Run(FOLDER, str(path), 1))
        views = normal(5, 6).transposed(), normal(5, 6).transposed(), normal(5, 6).padded()
        use = OperatorUse("test_it", views, name=name, gives=gives, constants={"BLOCK_N": 4})
        return use.verdict(Judge(load_test_file(FOLDER).exercise, runs[-1]))

    yield judged
    for run in runs:
        run.end()


def text_with(old: str, new: str) -> str:
    assert SOLUTION.count(old) == 1
    return SOLUTION.replace(old, new)


def test_the_solution_is_right(judged):
    assert judged(SOLUTION).outcome == PASS
    assert judged(SOLUTION, "course::swiglu_backward", ("dgate", "dup")).outcome == PASS


def test_the_judge_says_of_a_fake_what_torch_says_of_it(judged, tmp_path):
    texts = {"solution": SOLUTION} | {name: mutant_of(FOLDER, name).text for name in FAKES}
    paths = {str(tmp_path / f"{name}.py"): name for name in texts}
    for path, name in paths.items():
        (tmp_path / path).write_text(texts[name], encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", OF_TORCH, *paths], env={**os.environ, "TRITON_INTERPRET": "1"}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True,
    )  # fmt: skip
    by_torch = {paths[path]: right for path, right in json.loads(done.stdout).items()}
    gives = "course::swiglu_backward", ("dgate", "dup")
    by_us = {name: judged(text, *gives).outcome == PASS for name, text in texts.items()}
    assert by_us == by_torch == dict.fromkeys(texts, False) | {"solution": True}


def test_what_a_fake_gives_is_told_before_autograd_makes_it_fit(judged):
    verdict = judged(mutant_of(FOLDER, "fake_in_fp32").text)
    assert verdict.id == Cause.WRONG_FAKE
    assert verdict.lines[0] == "By the fake of course::swiglu dgate has dtype float32; it has fp16."


def test_a_formula_finds_itself_on_the_gpu(judged):
    checked = f"    assert dz.is_cuda and torch.empty(3, device='cuda').device == dz.device\n{FORMULA}"
    assert judged(text_with(FORMULA, checked)).outcome == PASS


def test_an_operator_is_called_by_names_too(judged):
    named = "    return swiglu_backward(dz=dz, gate=ctx.saved_tensors[0], up=ctx.saved_tensors[1])"
    assert judged(text_with(FORMULA, named)).outcome == PASS


def test_one_gradient_need_not_come_in_a_tuple(judged):
    verdict = judged(text_with(FORMULA, f"{FORMULA}[0]"))
    assert verdict.outcome == FAIL and "(expected 2, got 1)" in verdict.lines[0]


def test_a_number_gets_no_gradient(judged):
    text = SOLUTION.replace(
        "(gate: Tensor, up: Tensor) -> Tensor", "(gate: Tensor, up: Tensor, s: float = 1.0) -> Tensor"
    ).replace("save_for_backward(*inputs)", "save_for_backward(*inputs[:2])")
    assert "(expected 3, got 2)" in judged(text).lines[0]
    assert judged(text.replace(FORMULA, "    return *swiglu_backward(dz, *ctx.saved_tensors), None")).outcome == PASS


@pytest.mark.parametrize("returned", ["None", "(z, z)", "gate.shape"])
def test_what_is_no_tensor_is_told(judged, returned):
    verdict = judged(text_with("    return z\n", f"    return {returned}\n"))
    assert verdict.outcome == FAIL and verdict.id != Cause.FAULT


def test_a_kernel_that_triton_does_not_know_cannot_be_wrapped(judged):
    verdict = judged(text_with("wrap_triton(swiglu_kernel)", "wrap_triton(len)"))
    assert "wrap_triton only works on functions annotated with triton.jit" in verdict.lines[0]


def test_torch_itself_does_what_the_formula_computes_and_that_is_refused(judged):
    verdict = judged(mutant_of(FOLDER, "formula_in_torch").text)
    assert verdict.id == Cause.TORCH_DID_IT and "torch.sigmoid" in verdict.lines[0]


def test_a_file_that_cannot_be_imported_is_told_as_ever(judged):
    assert judged("import nothing_like_this\n" + SOLUTION).kind == "file"
