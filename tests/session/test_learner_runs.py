"""pytest as a learner types it: every line that is printed, exit status, JSON, options."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from pathlib import Path

import pytest

from grader.course.folder import all_folders
from grader.session.judging_process import JudgingProcess
from tests.typed_commands import Finished, run_pytest, started
from tests.waiting import until

ROOT = Path(__file__).resolve().parents[2]
SOFTMAX = "solutions/03_softmax/softmax.py"


def run(*arguments: str | Path, cwd: Path = ROOT) -> Finished:
    return run_pytest(*arguments, cwd=cwd)


@pytest.fixture
def course(tmp_path) -> Path:
    """A copy of the course's exercises, with the stubs as they are in the repository."""
    for name in ("exercises", "solutions", "hints"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "course.md", tmp_path)
    return tmp_path


def write(course: Path, id: str, text: str) -> Path:
    path = course / "exercises" / id / f"{id[3:]}.py"
    path.write_text(text)
    return path


def test_threads_without_work_leave_the_cores_to_others():
    """libgomp reads its environment as torch is imported, and tells what it has read."""
    judge = JudgingProcess()
    # Linux has it a moment after the process has begun.
    begun_with = until(lambda: Path(f"/proc/{judge._process.pid}/environ").read_text()).split("\0")
    judge.end()
    environment = dict(entry.split("=", 1) for entry in begun_with if entry) | {"OMP_DISPLAY_ENV": "verbose"}
    assert "GOMP_SPINCOUNT = '0'" in started([sys.executable, "-c", "import torch"], ROOT, environment).err


def test_a_stub_is_not_attempted_in_one_line_without_colour(course):
    done = run("exercises/03_softmax", cwd=course)
    assert done.status == 1 and done.err == ""
    assert done.lines == [
        "03 softmax   not attempted: the marked region of softmax.py is empty.  "
        "Next: open exercises/03_softmax/README.md"
    ]


def test_a_right_kernel_passes_from_any_folder(course):
    write(course, "01_masked_add", (ROOT / "solutions/01_masked_add/masked_add.py").read_text())
    done = run(".", cwd=course / "exercises" / "01_masked_add")
    assert done.status == 0 and done.err == ""
    assert len([line for line in done.lines if line.startswith("  pass  ")]) >= 13
    assert "Passed, judged in" in done.out
    assert done.lines[-1] == "  Next: 02_strided_blocks. Open ../02_strided_blocks/README.md"


def test_a_wrong_kernel_is_diagnosed_and_the_seed_repeats_it(course):
    text = (ROOT / SOFTMAX).read_text().replace('other=-float("inf")', "other=0.0")
    path = write(course, "03_softmax", text)
    done = run("exercises/03_softmax", cwd=course)
    assert done.status == 1 and done.err == ""
    assert "past the end of each row take part in the sum" in done.out
    assert "First wrong element: z[" in done.out and "expected" in done.out
    assert re.search(r"^  -     \d tests wait for right values$", done.out, re.M) and done.out.count(" wait") == 1
    next_step = f"  Next: edit {path.relative_to(course)}:16 and run it again."
    next_step += " Stuck? course hint 03: hint 1 speaks of this"
    assert done.lines[-1] == next_step
    assert "  More of this failure:  course explain padding-counted" in done.lines
    assert max(map(len, done.lines)) <= 120
    seed = re.search(r"--seed (\d+)", done.out)[1]
    assert run("exercises/03_softmax", "--seed", seed, cwd=course).out == done.out


def test_no_line_is_wider_than_the_terminal_and_no_word_is_cut(course):
    text = (ROOT / SOFTMAX).read_text().replace('other=-float("inf")', "other=0.0")
    write(course, "03_softmax", text)
    wide, *narrow = (
        run_pytest("exercises/03_softmax", "--seed", "5", cwd=course, COLUMNS=str(one)) for one in (300, 60, 80)
    )
    for columns, done in zip((60, 80), narrow):
        assert max(map(len, done.lines)) <= columns or max(done.lines, key=len).split()[0] == "pytest"
        assert done.out.split() == wide.out.split()
        stub = run_pytest("exercises/04_transpose", cwd=course, COLUMNS=str(columns))
        assert max(map(len, stub.lines)) <= columns and stub.lines[-1].lstrip().startswith("Next: open exercises/04")


def test_the_seed_is_told_where_data_decide(course):
    right = (ROOT / "solutions/01_masked_add/masked_add.py").read_text()
    write(course, "01_masked_add", right.replace("x + y, mask", "x + nothing, mask"))
    assert "--seed" not in run("exercises/01_masked_add", cwd=course).out
    write(course, "01_masked_add", right.replace("x + y, mask", "x - y, mask"))
    assert "--seed" in run("exercises/01_masked_add", cwd=course).out


def test_a_partly_filled_stub_says_which_region_is_empty(course):
    stub = (ROOT / "exercises/01_masked_add/masked_add.py").read_text()
    write(
        course,
        "01_masked_add",
        stub.replace("    pass\n    masked", "    grid = (triton.cdiv(N, BLOCK_N),)\n    masked"),
    )
    done = run("exercises/01_masked_add", cwd=course)
    assert "The marked region in masked_add_kernel is still empty." in done.out
    line = stub[: stub.index("    pass\n")].count("\n") + 1
    assert done.lines[-1].startswith(f"  Next: edit exercises/01_masked_add/masked_add.py:{line} ")


def test_a_region_of_the_host_function_that_is_empty_is_told(course):
    """The launch asks for what the region was to define, and is not where to edit."""
    text = (ROOT / "solutions/01_masked_add/masked_add.py").read_text()
    begin, end = text.index("    ### BEGIN", text.index("# How many programs")), text.rindex("    ### END SOLUTION\n")
    write(course, "01_masked_add", text[:begin] + "    pass\n" + text[end:].removeprefix("    ### END SOLUTION\n"))
    done = run("exercises/01_masked_add", cwd=course)
    assert "The marked region in masked_add is still empty." in done.out
    line = text[:begin].count("\n") + 1
    assert done.lines[-1].startswith(f"  Next: edit exercises/01_masked_add/masked_add.py:{line} ")


def test_a_warning_of_another_plugin_does_not_stand_below_the_last_line(course):
    write(course, "01_masked_add", (ROOT / "exercises/01_masked_add/masked_add.py").read_text())
    warner = "import warnings\n\n\ndef pytest_runtest_setup():\n    warnings.warn('it gets old')\n"
    (course / "warner.py").write_text(warner)
    typed = [sys.executable, "-m", "pytest", "-p", "warner", "exercises/01_masked_add"]
    done = started(typed, course, {**os.environ, "PYTHONPATH": str(course)})
    assert "it gets old" not in done.out and "  Next: " in done.out.rstrip().splitlines()[-1]


def test_one_test_by_its_name_is_no_pass(course):
    """As the button of an editor asks for it."""
    write(course, "01_masked_add", (ROOT / "solutions/01_masked_add/masked_add.py").read_text())
    one = "exercises/01_masked_add/test_masked_add.py::test_one_full_block"
    done = run(one, "--result", "out.json", cwd=course)
    assert re.search(r"Right so far: 1 of \d\d tests were run\.", done.out) and "Passed" not in done.out
    assert json.loads((course / "out.json").read_text())["outcome"] == "incomplete"
    assert not (course / "progress.txt").exists()


def test_a_part_of_the_tests_is_no_pass(course):
    write(course, "03_softmax", (ROOT / SOFTMAX).read_text())
    done = run("exercises/03_softmax", "-k", "one_column", "--result", "out.json", cwd=course)
    assert done.status == 0 and len([line for line in done.lines if line.startswith("  pass  ")]) == 2
    assert re.search(r"Right so far: 2 of \d\d tests were run\.", done.out) and "Passed" not in done.out
    assert json.loads((course / "out.json").read_text())["outcome"] == "incomplete"
    run("exercises/03_softmax", "-k", "no_such_test", "--result", "out.json", cwd=course)
    assert json.loads((course / "out.json").read_text())["outcome"] == "incomplete"


def test_stopping_at_the_first_failure_still_diagnoses(course):
    write(course, "03_softmax", (ROOT / SOFTMAX).read_text().replace("mask=mask)", "mask=cols <= N)"))
    done = run("exercises/03_softmax", "-x", cwd=course)
    assert "lets lanes outside of z through" in done.out and "--seed" in done.out


def test_ctrl_c_ends_a_run_with_a_line_of_the_report(course, monkeypatch):
    from grader.session.session import Session

    settle, asked = Session.settle, []

    def interrupted(self, *arguments, **options):
        asked.append(arguments)
        if len(asked) % 3 == 0:
            raise KeyboardInterrupt
        settle(self, *arguments, **options)

    monkeypatch.setattr(Session, "settle", interrupted)
    solution = (ROOT / "solutions/01_masked_add/masked_add.py").read_text()
    for kernel in (solution, solution.replace("x + y, mask", "x - y, mask")):
        write(course, "01_masked_add", kernel)
        done = run("exercises/01_masked_add", cwd=course)
        assert done.status == pytest.ExitCode.INTERRUPTED
        assert re.search(r"^  Stopped by Ctrl-C: 2 of \d+ tests were run\.$", done.out, re.M)
        assert "!!!" not in done.out and "KeyboardInterrupt" not in done.out and done.lines[-1].startswith("  Next: ")


def test_naming_the_learners_file_grades_it(course):
    path = write(course, "04_transpose", (ROOT / "solutions/04_transpose/transpose.py").read_text())
    assert re.search(r"Right so far: 1 of \d\d tests", run(path, "-k", "one_row", cwd=course).out)


def test_several_exercises_end_with_a_summary(course):
    for folder in all_folders(course)[4:]:
        shutil.rmtree(folder.path)
    write(course, "04_transpose", (ROOT / "solutions/04_transpose/transpose.py").read_text())
    done = run("exercises", cwd=course)
    assert done.lines[-2:] == [
        "4 exercises: 1 passed, 3 not attempted.",
        "Next: open exercises/01_masked_add/README.md",
    ]


def test_the_result_is_complete_json_and_points_come_from_the_marker(course):
    path = course / "exercises/04_transpose/test_transpose.py"
    text = path.read_text().replace("def test_one_row", "@pytest.mark.points(2.5)\ndef test_one_row")
    path.write_text(text.replace("from grader", "import pytest\n\nfrom grader", 1))
    done = run("exercises/04_transpose", "--submission", "solutions", "--result", "out.json", "--seed", "5", cwd=course)
    assert done.status == 0
    result = json.loads((course / "out.json").read_text())
    assert result["exercise"] == "04_transpose" and result["outcome"] == "pass" and result["fault"] is None
    assert result["seed"] == 5 and result["device"] == "cpu" and result["points"] == result["possible"]
    assert result["possible"] == len([test for test in result["tests"] if test["outcome"] == "pass"]) + 1.5
    assert {"python", "torch", "triton", "numpy"} <= result["versions"].keys()
    assert {"name", "item", "hidden", "outcome", "points", "message"} <= result["tests"][0].keys()
    assert [path.name for path in course.iterdir() if "out" in path.name] == ["out.json"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--submission", "nowhere.py"], "--submission nowhere.py: there is no such file or folder."),
        (["--device", "cuda"], "--device cuda: no GPU. Next: course doctor"),
        (["--result", "no/such/folder/out.json"], "there is no folder"),
        (["--seed", "-3"], "--seed: a whole number from 0 to 2**63 - 1 was expected."),
    ],
)
def test_a_wrong_option_is_one_sentence(arguments, sentence):
    done = run("exercises/01_masked_add", *arguments)
    assert done.status == 4 and sentence in done.out + done.err and "Traceback" not in done.out + done.err


@pytest.mark.parametrize(
    ("folder", "sentence"),
    [
        ("exercises/03_softmx", "No exercise is called '03_softmx'. Did you mean 03_softmax"),
        ("exercises/1_masked", "No exercise is called '1_masked'. Did you mean 01_masked_add"),
        ("exercises/3/softmax.py", "There is no folder exercises/3. Did you mean exercises/03_softmax?"),
        ("exercises/03_softmax/sof.py::test_one", "sof.py. Did you mean exercises/03_softmax/softmax.py?"),
        ("exercises/3", "There is no folder exercises/3. Did you mean exercises/03_softmax?"),
    ],
)
def test_a_folder_that_is_not_there_is_told_with_the_one_that_is_meant(folder, sentence):
    done = run(folder)
    assert done.status == 4 and sentence in done.out + done.err and "Traceback" not in done.out + done.err


def test_another_projects_exercises_are_left_to_pytest(tmp_path):
    (tmp_path / "exercises").mkdir()
    done = run("exercises/03_softmx", cwd=tmp_path)
    assert done.status == 4 and "file or directory not found: exercises/03_softmx" in done.out + done.err


def test_a_missing_file_of_the_learners_can_be_brought_back(course):
    (course / "exercises/03_softmax/softmax.py").unlink()
    done = run("exercises/03_softmax", cwd=course)
    assert "There is no file softmax.py" in done.out
    assert done.lines[-1] == "  Next: course reset 03 brings the empty exercise back."


def test_a_missing_file_in_a_folder_of_submissions(course):
    (course / "handed_in").mkdir()
    done = run("exercises/03_softmax", "--submission", "handed_in", cwd=course)
    assert done.status == 1
    assert "There is no file softmax.py" in done.out


def test_a_syntax_error_shows_the_line_once(course):
    write(course, "03_softmax", (ROOT / SOFTMAX).read_text().replace("mask = cols < N", "mask = cols <", 1))
    done = run("exercises/03_softmax", cwd=course)
    assert "of softmax.py is not valid Python: invalid syntax." in done.out
    assert "Line 14:  mask = cols <" in done.out
    assert done.lines[-1].startswith("  Next: edit exercises/03_softmax/softmax.py:14")
    assert "FAIL" not in done.out and "Traceback" not in done.out


def test_a_merge_that_was_not_finished_is_told_as_that(course):
    text = (ROOT / SOFTMAX).read_text()
    line = "    mask = cols < N\n"
    assert text.count(line) == 1
    write(
        course, "03_softmax", text.replace(line, f"<<<<<<< HEAD\n{line}=======\n    mask = N > cols\n>>>>>>> other\n")
    )
    done = run("exercises/03_softmax", cwd=course)
    assert "Line 14 of softmax.py is not valid Python: a merge has left both texts there: keep one" in done.out
    assert done.lines[-1].startswith("  Next: edit exercises/03_softmax/softmax.py:14")


def test_the_line_of_a_mend_is_where_to_edit(course):
    wrong = (ROOT / SOFTMAX).read_text().replace("mask=mask, other", "mask=cols <= N, other", 1)
    write(course, "03_softmax", wrong)
    done = run("exercises/03_softmax", cwd=course)
    line = next(number for number, text in enumerate(wrong.splitlines(), 1) if "cols <= N" in text)
    assert f" in line {line}, every wrong call that was tried comes out right, rounding aside." in done.out
    assert done.lines[-1].startswith(f"  Next: edit exercises/03_softmax/softmax.py:{line} and run it again.")
    assert "rounding aside" not in run("exercises/03_softmax", "--no-mend", cwd=course).out


def test_large_sizes_wait_for_the_tests_above_where_there_is_no_gpu_either(course):
    text = (ROOT / "solutions/01_masked_add/masked_add.py").read_text()
    write(course, "01_masked_add", text.replace("x + y, mask", "x - y, mask"))
    done = run("exercises/01_masked_add", "--device", "cpu", cwd=course)
    assert "a size that only a gpu gets through" not in done.out and done.out.count(" wait") == 1


def test_what_the_file_prints_is_shown_and_shortened(course):
    text = (ROOT / "solutions/01_masked_add/masked_add.py").read_text()
    write(course, "01_masked_add", text + "\nfor i in range(10000):\n    print('line', i, '\\x1b[31m')\n")
    done = run("exercises/01_masked_add", "-k", "one_full_block", cwd=course)
    assert done.status == 0
    shown = done.out.partition("Your file printed:")[2]
    assert "line 0" in shown and "line 7" not in shown and "\x1b" not in done.out
    assert "bytes in all; the rest is not shown." in shown


def test_lines_of_a_kernel_that_print_are_told_and_the_file_passes(course):
    text = (ROOT / "solutions/01_masked_add/masked_add.py").read_text()
    prints = 'print("x is", x)\n    tl.device_print("y", y)\n    tl.static_print("of", x.shape)\n    tl.store('
    write(course, "01_masked_add", text.replace("tl.store(", prints))
    done = run("exercises/01_masked_add", "-k", "one_full_block", cwd=course)
    said = " ".join(done.out.split())
    told = "Lines 18 and 19 print in a kernel: nothing of that is shown here. `course trace 01` shows"
    assert told in said and "FAIL" not in said and "of ['1024']" in said


def test_options_in_the_dictionary_of_a_configuration_are_told_without_effect(course):
    text = (ROOT / "solutions/19_matmul_epilogue/matmul_epilogue.py").read_text()
    given = '"GROUP_M": 8}, num_warps=warps, num_stages=4)'
    assert given in text
    inside = text.replace(given, '"GROUP_M": 8, "num_warps": warps, "num_stages": 4})')
    write(course, "19_matmul_epilogue", inside)
    done = run("exercises/19_matmul_epilogue", "-k", "one_tile", cwd=course)
    said = " ".join(done.out.split())
    line = next(n for n, one in enumerate(inside.splitlines(), 1) if '"num_warps"' in one)
    assert f"Line {line}: num_warps and num_stages in the dictionary of a triton.Config have no effect." in said
    assert "Pass them to triton.Config" in said and "FAIL" not in said


def test_a_long_sentence_that_begins_with_a_line_is_wrapped_and_not_cut(course):
    text = (ROOT / "solutions/01_masked_add/masked_add.py").read_text()
    write(course, "01_masked_add", text.replace("x + y, mask", "x + tl.nonsense(y), mask"))
    done = run("exercises/01_masked_add", cwd=course)
    said = " ".join(done.out.split())
    assert "Line 18: triton.language.nonsense is not allowed in a kernel" in said and " ... " not in said


@pytest.mark.parametrize("options", [[], ["-q"], ["-v"]], ids=lambda given: "".join(given))
def test_what_is_refused_is_told_once_and_all_of_it(course, options):
    text = (ROOT / "solutions/01_masked_add/masked_add.py").read_text()
    body = "x = torch.exp(x)\n    y = tl.nothing(y)\n    z = open(y)\n    tl.store("
    write(course, "01_masked_add", text.replace("tl.store(", body))
    done = run("exercises/01_masked_add", *options, cwd=course)
    for name in ("torch.exp", "triton.language.nothing", "open"):
        told = 2 if "-v" in options else 1  # pytest's own report is asked for as well
        assert done.out.count(f": {name} is not allowed in a kernel.") == told, done.out


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        ("pipe", "is a pipe, a device or a folder: an ordinary text file is graded."),
        ("link to a device", "is a pipe, a device or a folder: an ordinary text file is graded."),
        ("circle of links", "given.py: there is no such file or folder."),
    ],
)
def test_what_is_no_file_is_refused_at_once(tmp_path, kind, sentence):
    path = tmp_path / "given.py"
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero" if kind == "link to a device" else path)
    done = run("exercises/01_masked_add", "--submission", path)
    said = done.out + done.err
    assert done.status in (1, 4) and said.count(sentence) == 1 and "Traceback" not in said


def test_a_fault_of_the_grader_is_not_a_failure_of_the_learner(course):
    path = course / "exercises/04_transpose/test_transpose.py"
    path.write_text(path.read_text().replace("lambda x: x.t()", "lambda x: x.no_such_method()"))
    done = run("exercises/04_transpose", "--submission", "solutions", "--result", "out.json", cwd=course)
    assert done.status == 1 and "This is not a mistake of yours." in done.out
    assert "AttributeError" in json.loads((course / "out.json").read_text())["fault"]
