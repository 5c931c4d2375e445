"""The same exercise as a learner, an instructor and a student of a class meet it: pytest, hidden cases, a notebook."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

from grader.course.hidden_cases import read_cases
from grader.course.trial import trial_of
from grader.wire.reply import DTYPES
from tests.any_exercise.conftest import FOLDER
from tests.any_exercise.test_any_exercise import SOLUTION, changed
from tests.conftest import ROOT
from tests.typed_commands import run_pytest

X = '{ input = "normal", shape = [2, 3, 7, 5], stored_as = [0, 2, 1, 3] }'
STATE = '{ input = "normal", shape = [41], dtype = "float32", times = 2 }'
INDEX = '{ input = "indices", shape = [41], below = 6 }'
CASES = f"""
[[case]]
name = "heads in another order"
points = 2
arguments = [{X}, {STATE}, {INDEX}, {{ number = 0.5 }}, {{ number = true }}]

[[case]]
name = "one number of a whole"
dtypes = ["float16"]
bound = {{ z = "bits" }}
arguments = [
  {{ input = "normal", shape = [1, 1, 9, 9] }}, {STATE.replace("41", "1")},
  {{ input = "lengths", shape = [1], below = 1 }}, {{ number = 4 }}, {{ number = false }},
]
"""


def judged(tmp_path: Path, submission: Path, *options: str) -> tuple[str, dict]:
    result = tmp_path / "result.json"
    done = run_pytest(FOLDER.path, "--result", result, *options, "--submission", submission, cwd=tmp_path)
    return done.out, json.loads(result.read_text())


@pytest.fixture(scope="module")
def hidden(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("hidden")
    (folder / "90_pick_peaks.toml").write_text(CASES)
    return folder


@pytest.fixture(scope="module")
def solution_judged(tmp_path_factory, hidden) -> tuple[str, dict]:
    folder = tmp_path_factory.mktemp("judged")
    return judged(folder, FOLDER.solution_file, "--hidden", str(hidden), "--device", "cpu")


def test_the_solution_passes_all_that_needs_no_gpu_and_hidden_cases(solution_judged):
    said, result = solution_judged
    assert result["outcome"] == "pass", said
    outcomes = {test["name"]: test["outcome"] for test in result["tests"]}
    assert outcomes["heads in another order"] == outcomes["one number of a whole"] == "pass"
    assert [name for name, outcome in outcomes.items() if outcome == "skipped"] == [
        "test_a_size_that_only_a_gpu_gets_through", "test_it_reaches_the_gate"
    ]  # fmt: skip
    assert result["figures"]["largest_error"] == 0


def test_the_untouched_file_is_not_attempted(tmp_path):
    _, result = judged(tmp_path, FOLDER.learner_file)
    assert result["outcome"] == "not attempted"


def test_a_hidden_case_fails_by_its_name_alone(tmp_path, hidden):
    path = tmp_path / "pick_peaks.py"
    # A comparison of numbers would be read from the text, and a call be drawn toward it.
    path.write_text(SOLUTION.replace("    return z, counts\n", "    return z, (counts if str(K) != '41' else state)\n"))
    said, result = judged(tmp_path, path, "--hidden", str(hidden), "-k", "few_picks or order or whole")
    assert [test["outcome"] for test in result["tests"]] == ["pass", "fail", "pass"]
    assert "A hidden case fails: heads in another order. Its data are not shown." in said
    assert "stored as" not in said and "below 6" not in said and result["outcome"] == "fail"


def test_what_a_learner_reads_names_the_result_and_the_whole_call(tmp_path):
    path = tmp_path / "pick_peaks.py"
    path.write_text(changed(("tile > 0", "tile > 1")))
    said, result = judged(tmp_path, path)
    said = " ".join(said.split())
    assert "counts is wrong in every element, int32. First wrong element: counts[0, 0] of program (0,) is" in said
    assert "index 100 (int32, below 6), scale = 0.5, clamp = False fp32" in said
    assert result["cause"] == "wrong-values"


MISTAKES = {
    '{ number = "5" }': "number must be a finite number, true or false, not '5'",
    "{ number = 5, shape = [3] }": "'shape' is unknown here",
    '{ input = "indices", shape = [3] }': "indices need a whole number that they stay below",
    '{ input = "normal", shape = [3], below = 4 }': "'below' is unknown here",
    '{ input = "normal", shape = [3], dtype = "int3" }': "dtype 'int3' is unknown",
    '{ input = "normal", shape = [3, 4], stored_as = [0, 2] }': "stored_as must list the dimensions",
    '{ input = "normal", shape = [3, 4], stored_as = [1, 0], layout = "padded rows" }': "there is no layout with it",
    '{ input = "normal", shape = [1, 1, 1, 1, 1, 1] }': "at most",
}


@pytest.mark.parametrize("argument", MISTAKES)
def test_a_mistake_in_a_case_is_told(tmp_path, argument):
    (tmp_path / "90_pick_peaks.toml").write_text(f'[[case]]\nname = "x"\narguments = [{argument}]\n')
    with pytest.raises(pytest.UsageError) as raised:
        read_cases(tmp_path, FOLDER)
    assert MISTAKES[argument] in str(raised.value)


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ('z = "bits"', 'y = "bits"', "a bound is given for y, and pick_peaks has the results z, counts, state"),
        ('z = "bits"', 'z = "loose"', "bound 'loose' is unknown; there are bits, exact"),
        ("{ number = 0.5 }, ", "", "4 data sets are given, and pick_peaks takes 5 arguments"),
        (X, X.replace(", 5], stored_as = [0, 2, 1, 3]", "]"), "has no result for x [2, 3, 7]"),
    ],
)
def test_a_case_that_does_not_fit_is_refused(tmp_path, old, new, sentence):
    assert old in CASES
    (tmp_path / "90_pick_peaks.toml").write_text(CASES.replace(old, new, 1))
    done = run_pytest(FOLDER.path, "--collect-only", "--hidden", tmp_path, cwd=ROOT)
    assert done.status == 4 and sentence in done.out + done.err, done.out + done.err


def test_what_each_program_touches_is_traced_for_every_tensor(graded):
    one = graded(SOLUTION)
    exercise, example = one.module.exercise, one.module.exercise.example
    trial = trial_of(exercise, "example", example.data, "float32", None, example.constants)
    reply = one.run.call(trial, one.run.inputs(trial), fill="zero", log_accesses=True)
    touched = {(access.kind, access.argument) for access in reply.accesses}
    assert touched == {
        ("load", "x"), ("store", "scratch peaks"), ("store", "counts"), ("load", "index"), ("load", "scratch peaks"),
        ("store", "z"), ("load", "state"), ("store", "state"),
    }  # fmt: skip
    assert {name: (tuple(out.shape), out.dtype) for name, out in reply.outputs.items()} == {
        "z": ((5,), torch.float32), "counts": ((1, 2), torch.int32), "state": ((5,), DTYPES["float32"]),
    }  # fmt: skip


@pytest.mark.skipif(not all(map(find_spec, ("ipykernel", "nbgrader"))), reason="needs the extra classroom")
def test_a_notebook_judges_it_and_scores_its_items(tmp_path, monkeypatch, capsys, solution_judged):
    """Its cells run here; tests/classroom/test_notebook.py runs some in a kernel."""
    from grader.classroom import cells
    from grader.classroom.nbgrader.source_notebook import notebook_of
    from tests.classroom.instructor import points_without_speed

    said, result = solution_judged
    asked = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cells, "COURSE", FOLDER.root)
    monkeypatch.setattr(cells, "_results", {})
    monkeypatch.setattr(cells, "judged", lambda *given: asked.append(given) or {**result, "report": said})
    points = points_without_speed(FOLDER)[FOLDER.id]
    assert points == {"right": 5, "cost": 2}
    solution, check, *_, right, cost = notebook_of(FOLDER, points).cells[2:]
    magic, _, text = solution.source.partition("\n")
    (tmp_path / magic.removeprefix("%%writefile ")).write_text(text)
    exec(check.source, {})
    assert "pass  any call that the lesson promises" in capsys.readouterr().out
    for cell, score in ((right, 5.0), (cost, 2.0)):
        *before, last = cell.source.splitlines()
        exec("\n".join(before), names := {})
        assert eval(last, names) == score
    assert asked == [(FOLDER.id, [FOLDER.path, "--submission", tmp_path / "pick_peaks.py"])]
