"""What is known of a submission without running it: regions, syntax, where files lie."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from grader.course.folder import Folder
from grader.course.regions import empty_regions, given_lines, marked_regions
from grader.explain.failures import file_failure
from grader.submission.text import MOST_NODES, call_at, read_submission
from tests.conftest import exercise_of, folders_with_kernels, folders_with_speed

ROOT = Path(__file__).resolve().parents[2]
IDS = [folder.id for folder in folders_with_kernels()]
ADD = Folder(ROOT / "exercises" / "01_masked_add")


def solution_text() -> str:
    return ADD.solution_file.read_text(encoding="utf-8")


def test_the_exercises_are_found_in_order():
    assert IDS[:5] == ["01_masked_add", "02_strided_blocks", "04_transpose", "06_fused_outer", "03_softmax"]


def test_lines_are_given_where_a_whole_statement_stands_in_the_stub():
    text = solution_text()
    launch = next(number for number, line in enumerate(text.splitlines(), 1) if "[grid](" in line)
    given = given_lines(text, ast.parse(text), text)
    regions = {number for first, last in marked_regions(text) for number in range(first, last + 1)}
    assert launch in given and not given & regions
    other = text.replace("BLOCK_N=BLOCK_N", "BLOCK_N=2 * BLOCK_N")
    assert other != text and launch not in given_lines(text, ast.parse(other), other)


@pytest.mark.parametrize("id", IDS)
def test_a_solution_has_regions_and_no_empty_one(id):
    text = Folder(ROOT / "exercises" / id).solution_file.read_text(encoding="utf-8")
    empty, total = empty_regions(text, ast.parse(text))
    assert len(marked_regions(text)) >= 1 and total >= 1 and empty == []


@pytest.mark.parametrize("id", [folder.id for folder in folders_with_speed()])
def test_a_lesson_states_the_share_that_each_test_of_speed_demands(id):
    folder = Folder(ROOT / "exercises" / id)
    lesson = (folder.path / "README.md").read_text(encoding="utf-8")
    demanded = re.findall(r"at_least=(\d\.\d+)", folder.test_file.read_text(encoding="utf-8"))
    assert demanded and re.findall(r"at least\s(\d\.\d+) of", lesson) == demanded


def stub_text() -> str:
    from grader.author.stubs import stub_of

    return stub_of(solution_text())


CHANGES = {
    "nothing": (lambda text: text, ["masked_add_kernel", "masked_add"]),
    "comments and blank lines": (
        lambda text: text.replace("pass", "# what now?\n\n    pass"),
        ["masked_add_kernel", "masked_add"],
    ),
    "a docstring": (
        lambda text: text.replace("    pass", '    """Adds."""\n    pass', 1),
        ["masked_add_kernel", "masked_add"],
    ),
    "no pass": (
        lambda text: text.replace("    # YOUR CODE HERE\n    pass\n    masked", "    masked"),
        ["masked_add_kernel", "masked_add"],
    ),
    "the grid": (
        lambda text: text.replace("    pass\n    masked", "    grid = (1,)\n    masked"),
        ["masked_add_kernel"],
    ),
    "the kernel": (lambda text: text.replace("    pass\n\n", "    tl.store(z_ptr, 0.0)\n\n", 1), ["masked_add"]),
}


@pytest.mark.parametrize("name", CHANGES)
def test_which_regions_are_still_empty(name):
    change, expected = CHANGES[name]
    assert empty_regions(solution_text(), ast.parse(change(stub_text())))[0] == expected


def test_regions_that_hold_whole_functions_are_empty_until_the_first_is_written():
    from grader.author.stubs import stub_of

    solution = Folder(ROOT / "exercises" / "36_torch_operator").solution_file.read_text(encoding="utf-8")
    stub, all_three = stub_of(solution), ["swiglu", "swiglu_backward", "setup_context"]
    assert empty_regions(solution, ast.parse(stub)) == (all_three, 3)
    assert empty_regions(solution, ast.parse(stub.replace("pass\n", "# what now?\npass\n"))) == (all_three, 3)
    assert empty_regions(solution, ast.parse(stub.replace("pass\n", "def mine(gate, up):\n    pass\n", 1))) == ([], 3)


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"x = (", "syntax"),
        (b"\xff\xfe", "encoding"),
        (b"x" * (2 << 20), "too-long"),
        (b"a\0b", "syntax"),
        (b"x = " + b"-" * 100_000 + b"1", "nested"),
        (b"x = " + b"(" * 5000 + b")" * 5000, "syntax"),
    ],
)
def test_a_file_that_is_no_python_text(tmp_path, content, kind):
    path = tmp_path / "softmax.py"
    path.write_bytes(content)
    assert read_submission(path).failure.kind == kind


def test_a_file_has_so_many_nodes_and_no_more(tmp_path):
    """What walks a tree in the judge has no clock: the largest tree is small."""
    path = tmp_path / "softmax.py"
    path.write_text("pass\n" * (MOST_NODES - 1))  # and the module
    assert read_submission(path).failure is None
    path.write_text("pass\n" * MOST_NODES)
    submission = read_submission(path)
    assert submission.failure.kind == "too-many-nodes" and not submission.tree.body
    exercise = exercise_of("03_softmax")
    said = file_failure(submission.failure, submission, exercise).lines[0]
    assert said.startswith(f"softmax.py has more than {MOST_NODES} names, numbers, operators and statements")


def test_a_folder_in_place_of_the_file(tmp_path):
    assert read_submission(tmp_path).failure.kind == "no-file"


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_line_is_the_one_that_python_counts_and_steers_no_terminal(tmp_path, end):
    path = tmp_path / "softmax.py"
    path.write_bytes(f"x = 1  # \f \x85 \u2028{end}    y = '\x1b[31m\a'  # \u202e{end}".encode())
    submission = read_submission(path)
    assert submission.line(2) == "y = '?[31m?'  # ?" and submission.indented(2) == "    y = '?[31m?'  # ?"
    assert submission.line(1).startswith("x = 1  #") and submission.line(0) == submission.line(3) == ""


def test_a_byte_order_mark_does_no_harm(tmp_path):
    path = tmp_path / "softmax.py"
    path.write_bytes(b"\xef\xbb\xbfx = 1\n")
    assert read_submission(path).failure is None


def test_where_a_submission_is_looked_for(tmp_path):
    assert ADD.submission_file(None) == ADD.learner_file
    assert ADD.submission_file("solutions") == ADD.solution_file
    (tmp_path / "01_masked_add").mkdir()
    assert ADD.submission_file(str(tmp_path)) == tmp_path / "01_masked_add" / "masked_add.py"
    assert ADD.submission_file(str(tmp_path / "some.py")) == tmp_path / "some.py"


LOADS = """
@triton.jit
def kernel(x_ptr, y_ptr, z_ptr, mask):
    tl.store(z_ptr, tl.load(x_ptr, mask) + tl.load(y_ptr))
    z = tl.load(
        x_ptr,
        mask=mask,
    ).to(tl.float32)
"""


@pytest.mark.parametrize(
    ("code", "function", "found"),
    [
        ("x_ptr, mask)", "load", "tl.load(x_ptr, mask)"),
        ("y_ptr))", "load", "tl.load(y_ptr)"),
        ("y_ptr))", "store", "tl.store(z_ptr, tl.load(x_ptr, mask) + tl.load(y_ptr))"),
        ("mask=mask", "load", "tl.load(x_ptr, mask=mask)"),
        ("def kernel", "load", ""),
    ],
)
def test_the_call_around_a_place_is_found(code, function, found):
    lines = LOADS.splitlines()
    line = next(number for number, text in enumerate(lines, 1) if code in text)
    call = call_at(ast.parse(LOADS), line, lines[line - 1].index(code), function)
    assert (ast.unparse(call) if call is not None else "") == found
