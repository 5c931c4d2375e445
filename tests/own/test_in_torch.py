"""The lines of torch that a report ends with show the wrong element that it tells of."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from grader.course.drawn_calls import drawn_calls
from grader.course.exercise import Exercise
from grader.course.promise import StatedPromise, any_strides, into, upto
from grader.course.trial import trial_of
from grader.own.in_torch import MOST_LINES, _made
from grader.own.judgement import WRONG, Judgement
from grader.own.own_exercise import _promised
from grader.own.own_process import judgement_of
from grader.own.promise_file import OwnPromise
from grader.own.stated_shapes import StatedArgument
from tests.own.test_ordinary_kernels import KERNELS, reference_of
from tests.own.test_own_kernels import MEAN, ROWS, judged


def printed_by(found: Judgement, folder: Path) -> str:
    """Runs the lines on the CPU, where Triton's interpreter carries the kernel out."""
    lines = "\n".join(found.in_torch).replace('"cuda"', '"cpu"')
    environment = {"TRITON_INTERPRET": "1", "PATH": "/usr/bin:/bin", "HOME": str(folder)}
    done = subprocess.run([sys.executable, "-c", lines], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def is_shown(found: Judgement, folder: Path) -> bool:
    told = re.search(
        r"First wrong element: .* is (\S+), expected (\S+)\.$", " ".join(found.sentences).replace(". ", ".\n"), re.M
    )
    assert found.outcome == WRONG and told, found.sentences
    assert 0 < len(found.in_torch) <= MOST_LINES
    number = float(re.search(r"-?[\d.]+(?:e-?\d+)?|nan|inf", printed_by(found, folder).replace("tensor(", ""))[0])
    yours, expected = float(told[1]), float(told[2])
    return abs(number - yours) < 1e-3 * abs(yours) < abs(number - expected)


@pytest.mark.parametrize(
    ("name", "wrong"), [("layer_norm", "padding_in_the_variance"), ("cross_entropy", "logarithm_to_base_two")]
)
def test_the_lines_draw_the_same_numbers(tmp_path, name, wrong):
    """The kernels take a number among five arguments, and indices, whose smallest and largest are placed."""
    reference, text = reference_of(name), (KERNELS / f"{name}.py").read_text()
    (tmp_path / f"{name}.py").write_text(text.replace(*reference.WRONG[wrong]))
    found = judgement_of({
        "file": str(tmp_path / f"{name}.py"), "reference": str(KERNELS / f"{name}_ref.py"), "entry": "",
        "shapes": reference.SHAPES, "dtypes": [], "promise": None, "target": "", "seed": 7,
    })  # fmt: skip
    assert is_shown(found, tmp_path)


def test_the_lines_make_the_same_tensors():
    """A call may have each kind of values and each layout: the lines make the same numbers, at the same strides."""
    promise = OwnPromise(any_strides=True, nan=True)
    words = {"x": _promised("x", StatedArgument(("M", "N")), promise), "at": any_strides("M", values=(into("N"),))}
    stated = StatedPromise({"M": upto(6, block=4), "N": upto(9, block=4)}, words, ("float32",))
    exercise = Exercise("f", lambda x, at: x, "exact", 0)
    run = SimpleNamespace(folder=SimpleNamespace(id="00"), seed=5, inputs=lambda trial: trial.inputs(5, "00"))
    made = overlapping = 0
    for call in drawn_calls(stated, 5, "calls"):
        trial = trial_of(exercise, f"calls {call.number}", stated.data(call), "float32")
        for place, (recipe, given) in enumerate(zip(trial.data, run.inputs(trial))):
            text = _made(run, trial, place, recipe, given)
            overlapping += recipe.layout.overlaps
            assert (text is None) == recipe.layout.overlaps, recipe
            if text is None:
                continue
            seeded = lambda n: torch.Generator().manual_seed(n)  # noqa: E731
            again = eval(text.replace('"cuda"', '"cpu"'), {"torch": torch, "seeded": seeded})
            assert torch.equal(again.nan_to_num(7.5), given.nan_to_num(7.5)) and again.dtype == given.dtype, text
            assert given.numel() == 0 or again.stride() == given.stride(), (text, given.stride())
            made += 1
    assert made > 40 and overlapping < 10


def test_a_call_that_the_reference_states_lists_its_values(tmp_path):
    stated = MEAN + "def calls():\n    import torch\n    return [(torch.arange(12.0).reshape(3, 4) ** 2 - 5,)]\n"
    found = judged(tmp_path, ROWS.replace("/ N)", "/ BLOCK)"), stated, "")
    assert "-5.0, -4.0, -1.0" in " ".join(found.in_torch) and is_shown(found, tmp_path), found.in_torch
