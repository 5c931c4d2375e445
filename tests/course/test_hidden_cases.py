"""Hidden cases are data; a learner reads their names, never their values. Mistakes in the file are sentences."""

from __future__ import annotations

import json

import pytest

from grader.course.folder import Folder
from grader.course.hidden_cases import read_cases
from grader.numerics.data_sets import slots
from tests.classroom.instructor import ROOT
from tests.conftest import mutant
from tests.typed_commands import Finished, run_pytest

FOLDER = Folder(ROOT / "exercises/03_softmax")
CASES = """
[[case]]
name = "a matrix that is narrow"
points = 2
dtypes = ["float16"]
arguments = [{ input = "normal", shape = [37, 3], layout = "transposed", times = 2, plus = -7 }]

[[case]]
name = "nothing but one column"
arguments = [{ input = "uniform", shape = [43, 1] }]
"""


def judged(tmp_path, submission, *options: str, cases: str = CASES):
    (tmp_path / "03_softmax.toml").write_text(cases)
    result = tmp_path / "result.json"
    arguments = [FOLDER.path, "--hidden", tmp_path, "--result", result, "--submission", submission, *options]
    return run_pytest(*arguments, cwd=ROOT), json.loads(result.read_text())


def test_a_solution_passes_them(tmp_path):
    done, result = judged(tmp_path, FOLDER.solution_file, "-k", "fills_the_block or narrow or nothing")
    assert done.status == 0, done.out
    hidden = [test for test in result["tests"] if test["hidden"]]
    assert [(test["name"], test["item"], test["points"]) for test in hidden] == [
        ("a matrix that is narrow", "hidden", 2),
        ("nothing but one column", "hidden", 1),
    ]


def test_a_failure_is_named_and_its_data_are_not_shown(tmp_path):
    (tmp_path / "softmax.py").write_text(mutant("03_softmax/pad_zero"))
    done, result = judged(tmp_path, tmp_path / "softmax.py")
    assert "FAIL  a matrix that is narrow\n" in done.out
    assert "37 x 3" not in done.out
    assert result["tiles"]["shape"] != [37, 3]


def test_no_step_leads_from_a_hidden_case_to_a_call_that_is_wrong(tmp_path):
    text = FOLDER.solution_file.read_text()
    (tmp_path / "softmax.py").write_text(
        text.replace("x - tl.max(x, 0)", "x - tl.max(x, 0) + 0.01 * cols")
    )  # right for 1 column
    cases = '[[case]]\nname = "a single column"\narguments = [{ input = "normal", shape = [12, 1] }]\n'
    done, result = judged(tmp_path, tmp_path / "softmax.py", "-k", "past_a_power or single", cases=cases)
    assert "12 x 1" not in done.out
    assert result["outcome"] == "fail" and result["tests"][-1]["outcome"] == "pass"


def test_where_only_a_hidden_case_fails_the_diagnosis_is_its_name(tmp_path):
    text = FOLDER.solution_file.read_text().replace(
        "    return z", "    return z if str(M) != '43' else torch.ones_like(z) / 3"
    )
    (tmp_path / "softmax.py").write_text(text)
    done, result = judged(tmp_path, tmp_path / "softmax.py", "-k", "fills_the_block or narrow or nothing")
    assert "A hidden case fails: nothing but one column. Its data are not shown." in done.out
    assert "43 x 1" not in done.out
    assert result["tiles"]["shape"] != [43, 1]
    assert result["outcome"] == "fail"


def test_slots_stay_below_a_number_too(tmp_path):
    argument = '{ input = "slots", shape = [20], below = 15, dtype = "int64" }'
    (tmp_path / "03_softmax.toml").write_text(f'[[case]]\nname = "a"\narguments = [{argument}]\n')
    (case,) = read_cases(tmp_path, FOLDER)
    assert case.data == (slots(20, below=15).of("int64"),)


def test_an_option_may_be_left_out(tmp_path):
    arguments = "[{ none = true }, { number = 2.5 }]"
    (tmp_path / "03_softmax.toml").write_text(f'[[case]]\nname = "a"\narguments = {arguments}\n')
    (case,) = read_cases(tmp_path, FOLDER)
    assert case.data == (None, 2.5)


@pytest.mark.parametrize(
    "text, sentence",
    [
        ("[[case]\n", "not a TOML file"),
        ('[[cases]]\nname = "x"\n', "'cases' is unknown here"),
        ("[[case]]\npoints = 1\n", "name is missing"),
        ('[[case]]\nname = "x"\n', "arguments must list"),
        ('[[case]]\nname = "x"\npoints = -1\narguments = []\n', "points must be a number above 0"),
        ('[[case]]\nname = "x"\ncode = "import os"\n', "'code' is unknown here"),
        ('[[case]]\nname = "x"\narguments = [{ input = "os" }]\n', "input 'os' is unknown"),
        ('[[case]]\nname = "x"\narguments = [{ input = "normal", shape = [0] }]\n', "shape must be a list"),
        ('[[case]]\nname = "x"\narguments = [{ input = "normal", shape = [9999, 9999] }]\n', "at most 4194304"),
        (
            '[[case]]\nname = "x"\narguments = [{ input = "normal", shape = [9, 9], layout = "y" }]\n',
            "layout 'y' is unknown",
        ),
        (
            '[[case]]\nname = "x"\narguments = [{ input = "normal", shape = [9], layout = "transposed" }]\n',
            "[9] is none",
        ),
        (
            '[[case]]\nname = "x"\nconstants = { block_n = 64 }\narguments = [{ input = "normal", shape = [9, 9] }]\n',
            "constants must be names in capitals with whole numbers",
        ),
    ],
)
def test_a_mistake_in_the_file_says_where_and_what(tmp_path, text, sentence):
    (tmp_path / "03_softmax.toml").write_text(text)
    with pytest.raises(pytest.UsageError) as raised:
        read_cases(tmp_path, FOLDER)
    assert sentence in str(raised.value)
    assert "03_softmax.toml" in str(raised.value)


def test_a_file_that_belongs_to_no_exercise_is_refused(tmp_path):
    (tmp_path / "3_softmax.toml").write_text("")
    with pytest.raises(pytest.UsageError, match="no exercise is called 3_softmax. Did you mean 03_softmax.toml?"):
        read_cases(tmp_path, FOLDER)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('arguments = [{ input = "normal", shape = [7] }]', "1 data sets are given, and masked_add takes 2 arguments"),
        (
            'arguments = [{ input = "normal", shape = [7] }, { input = "normal", shape = [8] }]',
            "hidden case 'two': masked_add has no result for x [7], y [8]: The size of tensor a (7) must match",
        ),
    ],
)
def test_a_case_that_does_not_fit_is_refused(tmp_path, text, sentence):
    """It would be every student's fault of the machine."""
    (tmp_path / "01_masked_add.toml").write_text(f'[[case]]\nname = "two"\n{text}\n')
    done = collected("--hidden", str(tmp_path))
    assert done.status == 4 and sentence in done.out + done.err, done.out + done.err


def test_a_folder_without_cases_is_refused(tmp_path):
    done = collected("--hidden", str(tmp_path))
    assert done.status == 4 and "no hidden cases are there, NN_name.toml each" in done.out + done.err


def collected(*options: str) -> Finished:
    return run_pytest("exercises/01_masked_add", "--collect-only", *options, cwd=ROOT)
