"""course story llama: the same tokens as torch on the solutions, and of a wrong kernel one sentence that names it."""

from __future__ import annotations

import io
import shutil
import sys
from contextlib import nullcontext
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from click import ClickException

from grader.learn.story import command, teller
from grader.learn.story.entries import entry_of
from grader.learn.story.messages import Speed, Step, StorySpeeds, as_header, read
from grader.learn.story.table import compared, steps_table, ways_table
from grader.show.story_svg import story_svg
from grader.wire.frames import ProtocolError
from tests.conftest import ROOT

STORY = ROOT / "stories" / "llama"
ROPE, SWIGLU, GATHER, LOSS = "11_rope", "08_swiglu", "12_gather_rows", "18_cross_entropy"
PASSED = "outcome=pass points=9/9 runs=1 started=2026-01-01T10:00:00Z last=2026-01-01T11:00:00Z "
PASSED += "core=2026-01-01T11:00:00Z level=full passed=2026-01-01T11:00:00Z"
NO_GPU = {"CUDA_VISIBLE_DEVICES": ""}


def told(course, *arguments: str):
    return course.here("story", "llama", *arguments, **NO_GPU)


def passed(course, id: str, old: str = "", new: str = "") -> Path:
    """The exercise counts as passed, and its file has been changed since."""
    with (course.path / "progress.txt").open("a") as progress:
        progress.write(f"{id}  {PASSED}\n")
    return course.write(id, old, new)


def complaint(course, *arguments: str) -> str:
    """Returns the sentence of a story that ends with an error; it has to leave all files as they are."""
    before = course.files()
    done = told(course, *arguments)
    assert done.status == 1 and course.files() == before, done.out
    return done.err.strip()


def test_solutions_tell_the_same_tokens_as_torch(untouched):
    done = told(untouched, "--tokens", "3")
    assert done.status == 0, done.err
    assert done.out.count("the solution's, as yours has not passed") == 9
    assert "to be fast . ...\nbegan shared its\n" in done.out
    assert "The same 3 tokens as torch in fp32, with the greedy choice." in done.out
    assert "The loss of the prompt: 5.065 by 18, 5.065 by torch." in done.out
    assert done.lines[-1] == "Next: course open 12, so that this kernel is yours, too"


def test_a_passed_kernel_is_the_learners(course):
    passed(course, GATHER, "BLOCK_N = 1024", "BLOCK_N = 32")
    done = told(course, "--tokens", "1")
    assert done.status == 0 and done.lines[0].split() == ["12", "gather_rows", "yours"], done.out + done.err
    assert done.lines[-1].startswith("Next: course open 10")


def test_a_wrong_kernel_is_named_with_the_first_token_that_differs(course):
    passed(course, GATHER)
    passed(course, ROPE, "e * c + a * n", "e * c - a * n")
    said = complaint(course, "--tokens", "4")
    assert said.startswith("Error: With your 11_rope the story becomes another one: token "), said
    assert "and torch's is " in said
    assert said.endswith("Your files and your progress are as they were. Next: pytest exercises/11_rope")


def test_a_kernel_whose_result_is_not_finite_is_named(course):
    passed(course, SWIGLU, "silu * up, mask=mask", "silu * up / 0.0, mask=mask")
    said = complaint(course, "--tokens", "1")
    assert "08_swiglu the story becomes another one: token 1 is none, as a logit is not finite, and torch's is" in said


def test_a_wrong_loss_is_told_though_no_token_differs(course):
    passed(course, LOSS, "tl.log(total) - x_target", "tl.log(total) - 2 * x_target")
    said = complaint(course, "--tokens", "1")
    assert "With your 18_cross_entropy the prompt's loss is " in said and "and torch's is 5.065." in said


def test_a_host_function_that_raises_is_named_with_its_line(course):
    path = passed(course, SWIGLU, "    M, N = gate.shape\n", "    M, N = gate.shape\n    raise ValueError('no')\n")
    line = path.read_text().splitlines().index("    raise ValueError('no')") + 1
    said = complaint(course, "--tokens", "1")
    assert f"With your 08_swiglu the story ends at the prompt: ValueError: no (line {line})." in said


def test_an_error_in_a_kernel_is_told_with_its_line(course):
    path = passed(course, SWIGLU, "silu = gate * s", "silu = gate * sigma")
    line = next(n for n, text in enumerate(path.read_text().splitlines(), 1) if "sigma" in text)
    said = complaint(course, "--tokens", "1")
    assert f"ends at the prompt: NameError: name 'sigma' is not defined (line {line})." in said


def test_a_result_of_another_shape_ends_the_story_and_names_its_kernel(course):
    passed(course, SWIGLU, "return z, dgate, dup", "return z[:, :5], dgate, dup")
    said = complaint(course, "--tokens", "1")
    assert "With your 08_swiglu the story ends at the prompt: RuntimeError: " in said


def test_a_file_that_cannot_be_imported_is_named(course):
    passed(course, SWIGLU, "import torch\n", "import torch\n1 / 0\n")
    assert "With your 08_swiglu the story ends at the prompt: ZeroDivisionError: " in complaint(course)


def test_a_kernel_that_ends_its_process_is_named(course):
    passed(course, GATHER, "    (K,), N =", "    __import__('os').kill(__import__('os').getpid(), 11)\n    (K,), N =")
    said = complaint(course)
    assert "With your 12_gather_rows the story ends at the prompt: its process was ended by SIGSEGV" in said


def test_a_kernel_that_never_ends_is_named(course, monkeypatch):
    monkeypatch.setattr(teller, "CALL_LIMIT", 5)
    passed(course, GATHER, "    (K,), N =", "    while True:\n        pass\n    (K,), N =")
    said = complaint(course)
    assert "With your 12_gather_rows the story ends at the prompt: it has not come to an end after 5 s." in said


def test_another_story_is_refused(untouched):
    done = untouched.here("story", "cow")
    assert done.status == 1 and done.err == "Error: There is no story 'cow'. Next: course story llama\n"


@pytest.mark.parametrize(("triton", "numpy", "fails"), [("3.6.0", "2.4.6", True), ("3.6.0", "2.3.5", False),
                                                       ("3.7.1", "2.4.6", False)])  # fmt: skip
def test_an_interpreter_that_fails_with_this_numpy_is_told(monkeypatch, triton, numpy, fails):
    monkeypatch.setattr(command.importlib.metadata, "version", {"triton": triton, "numpy": numpy}.get)
    refused = pytest.raises(ClickException, match='numpy 2.4.6. Next: pip install "numpy<2.4"')
    with refused if fails else nullcontext():
        command._refuse_an_interpreter_that_fails()


@pytest.fixture
def own_model(course) -> Path:
    shutil.copytree(STORY, course.path / "stories" / "llama", ignore=shutil.ignore_patterns("__pycache__"))
    return course.path / "stories" / "llama" / "llama.py"


def test_a_model_that_the_learner_has_changed_is_run_and_its_error_told(course, own_model):
    own_model.write_text(own_model.read_text().replace("M, H, HK, D = len(qkv),", "M, H, HK, D = nothing,"))
    said = complaint(course, "--tokens", "1")
    assert said.startswith("Error: The model in stories/llama/llama.py ends with an error: NameError: name 'nothing'")


def test_a_model_without_a_table_of_kernels_is_told(course, own_model):
    own_model.write_text("KERNELS = nobody()\n")
    assert "has no table KERNELS that can be read" in complaint(course)


# ---- the model -------------------------------------------------------------------------------------------------------


@pytest.fixture
def model(monkeypatch):
    """The story's own modules, as its process imports them."""
    monkeypatch.syspath_prepend(STORY)
    yield SimpleNamespace(llama=import_module("llama"), operators=import_module("operators"))
    for name in ("llama", "operators"):
        sys.modules.pop(name, None)


def test_all_operators_can_be_traced(model, monkeypatch):
    """As torch.compile does it: with fakes, and without a launch. The GPU that 19 asks about is told."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    gpu = SimpleNamespace(major=9, shared_memory_per_block_optin=232_448)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: gpu)
    parts = command._parts(ROOT, STORY)
    kernels = model.operators.operators(
        {name: entry_of(part.folder.solution_file, part.entry) for name, part in parts.items()}
    )
    with FakeTensorMode() as fakes, torch.no_grad():
        llama = model.llama.Llama(model.llama.SMALL, model.llama.weights(model.llama.SMALL, 1), kernels)
        token = torch.zeros(1, dtype=torch.long)
        assert llama.read(torch.zeros(14, dtype=torch.long)).shape == (14, len(model.llama.WORDS))
        logits = llama.step(token, token + 14)
        assert logits.shape == (1, len(model.llama.WORDS)) and logits.dtype == torch.float16
        assert kernels.cross_entropy(logits, token).dtype == torch.float32
        assert fakes is not None


def test_torch_compile_takes_a_token_whole(model):
    llama = model.llama
    told = []
    with torch.no_grad():
        weights = llama.weights(llama.SMALL, 15)
        for compiled in (False, True):
            one = llama.Llama(llama.SMALL, weights, llama.PLAIN)
            step = torch.compile(one.step, backend="eager", fullgraph=True) if compiled else one.step
            token = torch.zeros(1, dtype=torch.long)
            told.append([step(token, token + position).argmax().item() for position in range(3)])
    assert told[0] == told[1]


def test_decoding_gives_what_reading_gives(model):
    llama = model.llama
    with torch.no_grad():
        weights = llama.moved(llama.weights(llama.SMALL, 15), "cpu", torch.float32)
        words = torch.arange(20)
        at_once = llama.Llama(llama.SMALL, weights, llama.PLAIN).read(words)
        one = llama.Llama(llama.SMALL, weights, llama.PLAIN)
        one.read(words[:12])
        by_steps = torch.cat([one.step(words[n : n + 1], words[n : n + 1]) for n in range(12, 20)])
    assert torch.allclose(by_steps, at_once[12:], atol=1e-5)


# ---- speeds, as a GPU has them ---------------------------------------------------------------------------------------

SPEEDS = StorySpeeds(
    "NVIDIA H200",
    [Speed("torch", 600, 1500), Speed("torch.compile", 1200, 0, "no C compiler"), Speed("the kernels", 500, 2000)],
    [Step("gather_rows", 3000, 2500, 1510), Step("linear_leaky_relu", 90_000, 120_000, 1400)],
)


def test_a_message_is_read_as_it_was_sent():
    assert read(as_header(SPEEDS)) == SPEEDS
    for broken in ({"kind": "StorySpeeds"}, {"kind": "Verdict"}, {**as_header(SPEEDS), "ways": [{"name": 3}]}):
        with pytest.raises(ProtocolError):
            read(broken)


def test_tables_of_speeds_fit_80_columns():
    from rich.console import Console

    console = Console(width=80, record=True, file=io.StringIO())
    console.print(ways_table(SPEEDS))
    console.print(steps_table(SPEEDS, {"gather_rows": "12", "linear_leaky_relu": "19"}))
    lines = console.export_text().splitlines()
    assert lines[1].split() == ["torch", "600", "1", "500"] and lines[2].split()[3:] == ["-", "no", "C", "compiler"]
    assert lines[-2].split()[:6] == ["19", "linear_leaky_relu", "90.0", "120.0", "1", "400"] and "24 % ██" in lines[-2]
    assert lines[-1].startswith("products and the rest") and "76 %" in lines[-1]
    assert compared(SPEEDS) == (
        "In a graph the kernels make 3.3 times as many tokens as torch does one by one, "
        "and 1.33 times as many as torch in a CUDA graph."
    )


def test_the_picture_has_a_bar_for_torch_and_one_for_the_kernel():
    text = story_svg("llama", SPEEDS.gpu, [(step.kernel, step.torch_ns, step.kernel_ns) for step in SPEEDS.steps])
    assert text.rstrip().endswith("</svg>") and ">120.0<" in text and ">90.0<" in text and ">gather_rows<" in text
