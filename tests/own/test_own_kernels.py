"""`course judge` and `grader.judge`: a kernel that belongs to no exercise, against a reference of its author's."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from types import ModuleType

import pytest

from grader.compiler.machine_code import MachineCode
from grader.own import own_server
from grader.own.judgement import NOT_JUDGED, RIGHT, SCHEMA, WRONG, Judgement, judge
from grader.own.own_process import judgement_of
from grader.own.warm_judge import WarmOwnJudge
from grader.places import IMPORTED_FROM
from grader.processes.bubblewrap import missing
from tests.conftest import ROOT

PAGE = (ROOT / "docs" / "own_kernels.md").read_text(encoding="utf-8")
KERNEL, REFERENCE = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)[:2]  # of the page's story: a load has no mask
MENDED = KERNEL.replace("tl.load(x_ptr + offs)", "tl.load(x_ptr + offs, mask=offs < n)")
ROWS = """
import torch
import triton
import triton.language as tl


@triton.jit
def mean_kernel(x_ptr, z_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    acc = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        acc += tl.load(x_ptr + row * N + cols, mask=cols < N, other=0.0).to(tl.float32)
    tl.store(z_ptr + row, tl.sum(acc, 0) / N)


def mean_rows(x):
    z = torch.empty(x.shape[0], dtype=x.dtype, device=x.device)
    mean_kernel[(x.shape[0],)](x, z, x.shape[1], BLOCK=64)
    return z
"""
MEAN = "def mean_rows(x):\n    return x.mean(dim=1)\n"
DOUBLED = """
import torch
import triton
import triton.language as tl


@triton.jit
def double_kernel(x_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n)
    tl.store(x_ptr + offs, x * 2, mask=offs < n)


def double_(x):
    double_kernel[(triton.cdiv(x.numel(), 64),)](x, x.numel(), BLOCK=64)
"""


def judged(
    tmp_path: Path, kernel: str | bytes, reference: str | bytes, shapes: str = "N; N=1..150", **more
) -> Judgement:
    """Judges in this process, which shares its fork servers."""
    file, against = tmp_path / "kernel.py", tmp_path / "ref.py"
    for path, text in ((file, kernel), (against, reference)):
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    request = {"file": str(file), "reference": str(against), "entry": "", "shapes": shapes, "dtypes": [],
               "promise": None, "target": "", "seed": 5}  # fmt: skip
    return judgement_of(request | more)


# ---- right and wrong -------------------------------------------------------------------------------------------------


def test_the_pages_kernel_is_told_as_the_page_tells_it(tmp_path):
    found = judged(tmp_path, KERNEL, REFERENCE, "M,N; M=1..5 N=1..90")
    assert found.outcome == WRONG and found.cause == "oob-load"
    assert all(f"  {said}\n" in PAGE for said in (*found.sentences[:1], *found.sentences[2:]))
    assert f"edit leaky.py:{found.line}, and judge it again." in PAGE


def test_the_mended_kernel_is_right_in_all_dtypes(tmp_path):
    found = judged(tmp_path, MENDED, REFERENCE, "M,N; M=0..5 N=1..90", dtypes=["fp32", "fp16", "bf16"])
    assert found.outcome == RIGHT, found.sentences
    assert (
        found.drawn["dtypes"] == ["fp32", "fp16", "bf16"] and found.drawn["calls"] > 40 and found.entry == "leaky_relu"
    )


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("/ N)", "/ BLOCK)", "wrong in every element"),
        (", other=0.0", "", "has a mask but no `other`"),
        ("row * N", "row * BLOCK", "With `N` in the place of `BLOCK`"),
        ("x.shape[0],)](", "x.shape[0] // 2 + 1,)](", "never written"),
    ],
)
def test_a_wrong_mean_of_rows_is_named(tmp_path, old, new, words):
    found = judged(tmp_path, ROWS.replace(old, new), MEAN, "M,N; M=1..20 N=1..150")
    assert found.outcome == WRONG and any(words in said for said in found.sentences), found.sentences
    assert found.call[0]["name"] == "x" and len(found.call[0]["shape"]) == 2


@pytest.mark.parametrize(
    ("least", "padding", "fill"),
    [("min", ", other=0.0", 'float("inf")'), ("min", "", 'float("inf")'), ("max", ", other=0.0", '-float("inf")')],
)
def test_padding_that_takes_part_is_told_with_what_does_for_all_numbers(tmp_path, least, padding, fill):
    """In the calls that go wrong 1, or 0, does for the minimum, too."""
    kernel = f"""{ROWS[: ROWS.index("    acc =")]}    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + cols, mask=cols < N{padding})
    tl.store(z_ptr + row, tl.{least}(x, 0))


{ROWS[ROWS.index("def mean_rows") :].replace("BLOCK=64", "BLOCK=triton.next_power_of_2(x.shape[1])")}"""
    reference = MEAN.replace("x.mean(dim=1)", f"x.a{least}(dim=1)")
    found = judged(tmp_path, kernel, reference, "M,N; M=1..20 N=1..150")
    assert any(f"{fill}` in " in said for said in found.sentences), found.sentences


def test_a_formula_that_rounding_hides_is_wrong(tmp_path):
    almost = ROWS.replace("/ N)", "/ (N + 0.0001))")
    found = judged(tmp_path, almost, MEAN, "M,N; M=1..20 N=1..150", dtypes=["bf16"])
    assert found.outcome == WRONG and found.sentences[0].startswith("Rounding hides it"), found.sentences
    stated = judged(tmp_path, almost, MEAN, "M,N; M=1..20 N=1..150", dtypes=["bf16"], promise={"approximates": 1e-3})
    assert stated.outcome == RIGHT, stated.sentences


def test_lost_digits_are_wrong_though_the_formula_is_right(tmp_path):
    half = ROWS.replace("dtype=tl.float32", "dtype=tl.float16").replace(".to(tl.float32)", ".to(tl.float16)")
    found = judged(tmp_path, half, MEAN, "M,N; M=1..20 N=1..150")
    assert found.outcome == WRONG and found.cause == "low-precision", found.sentences


# ---- promises and shapes ---------------------------------------------------------------------------------------------


def test_an_argument_changes_in_place_only_where_that_is_promised(tmp_path):
    reference = "def double_(x):\n    return x * 2\n"
    assert judged(tmp_path, DOUBLED, reference, promise={"in_place": ["x"]}).outcome == RIGHT
    assert judged(tmp_path, DOUBLED, reference).outcome == WRONG
    changing = judged(tmp_path, DOUBLED, "def double_(x):\n    return x.mul_(2)\n")
    assert changing.outcome == NOT_JUDGED and 'in_place = ["x"]' in changing.next


def test_a_strided_view_is_drawn_where_any_strides_are_promised(tmp_path):
    found = judged(tmp_path, ROWS, MEAN, "M,N; M=1..20 N=1..90", promise={"any_strides": True})
    assert found.outcome == WRONG and found.call, found.sentences


def test_a_kernel_that_takes_any_strides_is_right_in_tensors_that_reach_far(tmp_path):
    """Some calls reach over nearly 2**31 elements: their tensors have no values, and a sample of programs is judged."""
    strided = ROWS.replace("row * N + cols", "row.to(tl.int64) * sm + cols.to(tl.int64) * sn")
    strided = strided.replace("z_ptr, N,", "z_ptr, sm, sn, N,").replace("(x, z, ", "(x, z, *x.stride(), ")
    found = judged(tmp_path, strided, MEAN, "M,N; M=1..20 N=1..90", promise={"any_strides": True})
    assert found.outcome == RIGHT and found.drawn["layouts"] == "any strides", found.sentences


def test_a_result_may_have_any_strides_where_that_is_promised(tmp_path):
    turned = KERNEL.replace("return z", "return z.t()").replace("x_ptr + offs)", "x_ptr + offs, mask=offs < n)")
    reference = REFERENCE.replace("(x, slope)\n", "(x, slope).t()\n")
    refused = judged(tmp_path, turned, reference, "M,N; M=1..9 N=1..70")
    assert refused.cause == "wrong-result-type" and "strided_results = true" in refused.sentences[-1]
    found = judged(tmp_path, turned, reference, "M,N; M=1..9 N=1..70", promise={"strided_results": True})
    assert found.outcome == RIGHT, found.sentences
    wrong = turned.replace("x * slope", "x + slope")
    found = judged(tmp_path, wrong, reference, "M,N; M=1..9 N=1..70", promise={"strided_results": True})
    assert found.outcome == WRONG and found.cause == "wrong-values", found.sentences


def test_more_calls_are_drawn_and_the_sandbox_is_taken_where_that_is_asked(tmp_path):
    few = judged(tmp_path, MENDED, REFERENCE)
    many = judged(tmp_path, MENDED, REFERENCE, thorough=True)
    assert many.outcome == RIGHT and many.drawn["calls"] > 5 * few.drawn["calls"]
    strict = judged(tmp_path, MENDED, REFERENCE, isolation="strict")
    if missing():
        assert strict.outcome == NOT_JUDGED and missing() in strict.sentences[0] and "auto" in strict.next
    else:
        assert strict.outcome == RIGHT, strict.sentences


def test_calls_and_the_inputs_of_a_benchmark_state_shapes(tmp_path):
    stated = MEAN + "def calls():\n    import torch\n    return [(torch.ones(3, 70),), (torch.ones(1, 5),)]\n"
    found = judged(tmp_path, ROWS, stated, "")
    assert (found.outcome, found.drawn["calls"]) == (RIGHT, 2), found.sentences
    model = (
        "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        return x.mean(dim=1)\n"
        "def get_inputs():\n    return [torch.rand(16, 4096)]\n"
    )
    assert judged(tmp_path, ROWS, model, "").outcome == RIGHT


def test_a_folder_of_a_reference_and_a_kernel_is_an_exercise(tmp_path):
    folder = tmp_path / "double"
    folder.mkdir()
    request = {"file": str(folder), "reference": "", "entry": "", "shapes": "", "dtypes": [], "promise": None,
               "target": "", "seed": 5}  # fmt: skip
    assert "holds no ref.py" in judgement_of(request).sentences[0]
    (folder / "ref.py").write_text('def double_(x):\n    return x * 2\n\n\nSHAPES = "N; N=1..90"\n')
    assert "holds no file with a kernel" in judgement_of(request).sentences[0]
    (folder / "double.py").write_text(DOUBLED)
    (folder / "promise.toml").write_text('in_place = ["x"]\n')
    found = judgement_of(request)
    assert found.outcome == RIGHT and found.file == str(folder / "double.py"), found.sentences
    (folder / "another.py").write_text(DOUBLED)
    assert "holds several files besides ref.py, another.py, double.py" in judgement_of(request).sentences[0]
    lone = judgement_of(request | {"file": str(folder / "double.py")})
    assert lone.outcome == NOT_JUDGED and "Nothing says what the kernel has to compute" in lone.sentences[0]


# ---- what cannot be judged -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ("def leaky_relu(x, slope=0.01):\n    return x.nope()\n", "fails in line 2 with AttributeError"),
        ("def leaky_relu(x, slope=0.01):\n    return 1\n", "returns int: a tensor"),
        ("import torch\ndef leaky_relu(x, slope=0.01):\n    return torch.rand_like(x)\n", "gives other results"),
        ("def leaky_relu(x):\n    return x\ndef other(x):\n    return x\n", "defines several functions"),
        ("x = 1\n", "defines no function"),
        ("def leaky_relu(x, y, z):\n    return x\n", "takes (x, slope), and the reference takes (x, y, z)"),
        ("def leaky_relu(*x):\n    return x\n", "takes *x"),
        ("raise ValueError('no')\n", "cannot be imported in line 1: ValueError: no"),
        ("def leaky_relu(x\n", "is no Python in line 1"),
    ],
)
def test_a_reference_that_says_nothing_is_told_before_the_kernel_is_blamed(tmp_path, reference, said):
    found = judged(tmp_path, MENDED, reference)
    assert found.outcome == NOT_JUDGED and said in found.sentences[0] and found.next, found.sentences


@pytest.mark.parametrize(
    ("kernel", "said"),
    [
        (b"\xff\xfe", "UTF-8"),
        ("def f(x:\n", "Python"),
        ("def leaky_relu(x, slope):\n    return x\n", "holds no kernel"),
        (MENDED.partition("def leaky_relu")[0], "no function that launches it"),
        (MENDED + MENDED.partition("def leaky_relu")[2].join(["def other", ""]), "several functions that launch"),
        (MENDED.replace("    return z", "    return torch.relu(z)"), "torch.relu"),
        (MENDED.replace("x * slope)", "x * slope).to(tl.float8e4b15)"), "what is not judged here (line 10)"),
        ("while True: pass\n" + MENDED, "was stopped after 10 s"),
        ("open('/etc/passwd').read()\n" + MENDED, "Permission denied"),
        ("import os\nos._exit(3)\n" + MENDED, "exit status 3"),
    ],
)
def test_a_file_that_cannot_be_judged_is_told_in_a_sentence(tmp_path, kernel, said):
    reference = REFERENCE.replace("def leaky_relu", "def reference")
    found = judged(tmp_path, kernel, reference)
    assert found.outcome == NOT_JUDGED and said in " ".join(found.sentences) and found.next, found.sentences


@pytest.mark.parametrize(
    ("shapes", "said"),
    [
        ("", "Nothing says which shapes"),
        ("M,N M,N M,N", "states 3 arguments"),
        ("M-N", "states no argument"),
        ("N; K=1..5", "K is the size of no argument"),
        ("N; N=5..1", "is no range"),
        ("N:fp8", "is no dtype"),
        ("N; N=0", "N is 0 in each call"),
        ("N; N=1..2147483648", "is no range"),
        ("N; N=2147483647|2147483646", "has up to 2147483647 elements"),
        ("=1", "No argument is a tensor"),
    ],
)
def test_a_line_of_shapes_that_says_nothing_is_told_with_one_that_does(tmp_path, shapes, said):
    found = judged(tmp_path, MENDED, REFERENCE, shapes)
    assert found.outcome == NOT_JUDGED and said in found.sentences[0] and found.next, found.sentences


def test_a_promise_that_nobody_keeps_is_told(tmp_path):
    for promise, said in (
        ({"fast": True}, "says fast"),
        ({"out": ["q"]}, "q"),
        ({"approximates": 2}, "approximates = 2"),
    ):
        found = judged(tmp_path, MENDED, REFERENCE, promise=promise)
        assert found.outcome == NOT_JUDGED and said in found.sentences[0], found.sentences


# ---- the command and the library -------------------------------------------------------------------------------------


def test_the_command_prints_a_report_or_json_and_says_the_outcome_in_its_exit_status(tmp_path):
    (tmp_path / "leaky.py").write_text(KERNEL)
    (tmp_path / "ref.py").write_text(REFERENCE)
    command = [sys.executable, "-c", "from grader.cli import main; main()", "judge", "leaky.py"]
    command += ["--reference", "ref.py", "--shapes", "N; N=1..90"]
    environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 1 and done.stdout.splitlines()[-1] == "  Next: edit leaky.py:9, and judge it again."
    assert "Traceback" not in done.stdout + done.stderr
    done = subprocess.run([*command, "--json"], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 1 and json.loads(done.stdout)["outcome"] == WRONG


def test_the_library_survives_a_reference_that_ends_its_process(tmp_path):
    (tmp_path / "leaky.py").write_text(KERNEL)
    (tmp_path / "ref.py").write_text("import os\ndef f(x, slope=0.1):\n    os._exit(7)\n")
    found = judge(tmp_path / "leaky.py", tmp_path / "ref.py", shapes="N")
    assert found.outcome == NOT_JUDGED and "exit status 7" in found.sentences[0]


def test_a_warm_judge_judges_again_and_starts_anew_after_its_process_has_ended(tmp_path):
    """A reference's own modules are read anew in each judgement, and nothing that it does ends the asking process."""
    (tmp_path / "leaky.py").write_text(MENDED)
    (tmp_path / "slopes.py").write_text("SLOPE = 0.01\n")
    (tmp_path / "ref.py").write_text(
        REFERENCE.replace("import torch", "import torch, slopes").replace("slope)", "slopes.SLOPE)")
    )
    request = {"file": str(tmp_path / "leaky.py"), "reference": str(tmp_path / "ref.py"), "entry": "",
               "shapes": "N; N=1..90", "dtypes": [], "promise": None, "target": "", "seed": 5}  # fmt: skip
    warm = WarmOwnJudge()
    try:
        assert warm.ask(request).outcome == RIGHT
        (tmp_path / "slopes.py").write_text("SLOPE = 0.02 \n")
        found = warm.ask(request)
        assert found.outcome == WRONG and found.cause == "wrong-values", found.sentences
        (tmp_path / "slopes.py").write_text("import os; os._exit(3)  # another length\n")
        assert "exit status 3" in warm.ask(request).sentences[0]
        (tmp_path / "slopes.py").write_text("SLOPE = 0.01\n")
        assert warm.ask(request).outcome == RIGHT
    finally:
        warm.end()


def test_the_name_is_a_function_whatever_else_is_imported():
    script = (
        "import sys, types; from grader import judge\n"
        "first = judge('no.py', 'no.py'); assert 'torch' not in sys.modules\n"
        "import grader.judging.judge; from grader import judge; assert isinstance(judge, types.FunctionType)\n"
        "print(first.sentences[0])"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True)
    assert "cannot be read" in done.stdout, done.stderr


def test_the_page_lists_the_fields_of_the_schema():
    table = PAGE.partition("| field | what it holds |")[2]
    cells = [row.split("|")[1] for row in table.splitlines() if row.startswith("| `")]
    named = re.findall(r"`(\w+)`", " ".join(cells))
    assert sorted(named) == sorted(one.name for one in fields(Judgement))
    assert f"| `schema` | {SCHEMA}:" in table


def test_a_module_is_forgotten_that_lies_beside_the_course_in_a_folder_of_like_name(monkeypatch):
    module = ModuleType("slopes")
    module.__file__ = f"{IMPORTED_FROM}-mine/slopes.py"
    monkeypatch.setitem(sys.modules, "slopes", module)
    own_server._forget(sys.modules.keys() - {"slopes"})
    assert "slopes" not in sys.modules and "grader.places" in sys.modules


@pytest.mark.parametrize("seed", [1, 2])
def test_numbers_that_get_too_large_for_torch_too_are_no_mistake(tmp_path, seed):
    """Some calls have values 30 times as large: exp of these leaves fp32, whoever computes it."""
    kernel = ROWS.replace("acc += tl.load(", "acc += tl.exp(tl.load(").replace(
        "other=0.0).to(tl.float32)", 'other=-float("inf")).to(tl.float32))'
    )
    found = judged(
        tmp_path, kernel, "def mean_rows(x):\n    return x.exp().mean(dim=1)\n", "M,N; M=1..20 N=1..90", seed=seed
    )
    assert found.outcome == RIGHT, found.sentences


def test_digits_that_are_lost_are_measured_by_what_torchs_run_loses(tmp_path):
    kernel = ROWS.replace("dtype=tl.float32", "dtype=tl.float16").replace(".to(tl.float32)", ".to(tl.float16)")
    found = judged(tmp_path, kernel, MEAN, "M,N; M=1..20 N=1..900")
    assert found.outcome == WRONG and "times the bound" in found.sentences[0], found.sentences


def test_what_is_stated_to_be_lost_is_no_mistake_any_more(tmp_path):
    """The report says twice the share that it has seen: bf16 loses up to 2**-9 of a value, and the largest has more."""
    kernel = MENDED.replace("x * slope)", "(x * slope).to(tl.bfloat16))")
    found = judged(tmp_path, kernel, REFERENCE)
    (share,) = re.findall(r"approximates = (\S+)", " ".join(found.sentences))
    assert found.outcome == WRONG and 1e-5 < float(share) <= 2**-8
    assert judged(tmp_path, kernel, REFERENCE, promise={"approximates": 2**-8}).outcome == RIGHT


def test_a_wrong_kernel_is_not_compiled(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(MachineCode, "_compiled", lambda *given: asked.append(given))
    found = judged(tmp_path, MENDED.replace("x * slope", "x + slope"), REFERENCE)
    assert found.outcome == WRONG and not asked


def test_numbers_that_the_kernel_draws_itself_are_told(tmp_path):
    kernel = MENDED.replace("x * slope)", "x * tl.rand(7, offs))")
    assert judged(tmp_path, MENDED, REFERENCE).notes == []
    assert "tl.rand draws other numbers than torch" in judged(tmp_path, kernel, REFERENCE).notes[0]
