"""course trace: what the variables of a kernel hold, on the example and in the call that failed."""

from __future__ import annotations

import json
import re
import shutil

import pexpect
import pytest

from tests.conftest import mutant
from tests.learn.conftest import COURSE, Course
from tests.waiting import NEVER

LOOPS = """
    offsets = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = offsets < N
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(
        y_ptr + offsets,
        mask=mask,
    )
    acc = tl.zeros((BLOCK_N,), dtype=tl.float32)
    for k in range(0, N):
        acc += k
    if N > 100:
        acc = acc * 2
    for u in tl.static_range(2):
        half = acc / 2
        acc = half + half
    tl.device_print("acc", acc)
    tl.store(z_ptr + offsets, x + y + acc - acc, mask=mask)
"""


def under(out: str, line: str) -> list[str]:
    """What stands below the first line of the source that holds this text, up to the next one."""
    after = out[out.index(line) :].splitlines()[1:]
    found = []
    for text in after:
        if re.match(r" *\d+[> ]  |$", text):
            break
        found.append(text.strip())
    return found


@pytest.fixture(scope="module")
def loops(tmp_path_factory) -> str:
    """A kernel with loops, in place of the solution's of 01; its last program as text."""
    course = Course(tmp_path_factory.mktemp("loops"))
    text = course.solution("01_masked_add")
    region = text[text.index("    ### BEGIN SOLUTION") : text.index("    ### END SOLUTION")]
    course.file("01_masked_add").write_text(text.replace(region, LOOPS, 1))
    return course.here("trace", "01", "--program", "2").out


def test_values_stand_below_their_lines_and_masked_lanes_are_marked(course):
    course.write("03_softmax")
    done = course.here("trace", "03", "--program", "1")
    assert done.err == "" and done.lines[0] == "03_softmax, a small example: 3 x 5 fp32"
    assert "softmax_kernel, program (1,) of a grid (3,)" in done.out
    assert under(done.out, "row = tl.program_id(0)") == ["row = 1  int32"]
    assert under(done.out, "cols = ") == ["cols = [0 1 2 3 4 5 6 7]  int32 [8]"]
    (x,) = under(done.out, "x = tl.load(")
    assert x.endswith("(-inf) (-inf) (-inf)]  fp32 [8], from x[1, 0:5], 3 of 8 lanes masked off")
    maximum, e = under(done.out, "e = tl.exp(")
    assert maximum.startswith("tl.max: ") and e.startswith("e = [") and e.endswith("0 0 0]  fp32 [8]")
    _, stored = under(done.out, "tl.store(")
    assert stored.startswith("z[1, 0:5] <- [") and "(v) a lane that is masked off" in done.out
    assert "masked off, in a load v is its other, or a descriptor's padding, in a store v is not stored" in done.out
    assert done.lines[-1] == "Next: course trace 03 --html trace.html"


def test_lanes_that_hold_nothing_show_no_number(loops):
    (x,) = under(loops, "x = tl.load(")
    assert re.fullmatch(r"x = \[\S+ \S+ \? \?\]  fp32 \[4\], from x\[8:10\], 2 of 4 lanes masked off", x)
    assert "? holds nothing: it comes of a masked lane without other" in loops
    (stored,) = under(loops, "tl.store(")
    assert stored.startswith("z[8:10] <- [") and stored.count("?") == 2


def test_a_statement_over_several_lines_is_one(loops):
    assert "y_ptr + offsets" in loops and under(loops, "    mask=mask,\n") == []
    assert under(loops, "      )\n")[0].startswith("y = [")


def test_loops_go_iteration_by_iteration_and_leave_the_middle_out(loops):
    notes = re.findall(r"for k in range\(0, N\):   # (.*)", loops)
    first, last = ([f"iteration {number} of 10" for number in numbers] for numbers in ((1, 2, 3), (8, 9, 10)))
    assert notes == [*first, "iterations 4 to 7 are left out", *last]
    assert under(loops, "# iteration 1 of 10") == ["k = 0  int32", "acc = [0 0 0 0]  fp32 [4]"]
    assert under(loops, "# iteration 2 of 10") == ["k = 1  int32", "acc = [0 0 0 0]  fp32 [4]"]
    assert under(loops, "# iteration 8 of 10") == ["k = 7  int32", "acc = [21 21 21 21]  fp32 [4]"]


def test_unrolled_loops_conditions_and_what_is_printed_stand_at_their_lines(loops):
    assert under(loops, "if N > 100:") == ["N > 100 = false  bool"] and "acc = acc * 2" not in loops
    assert loops.count("half = acc / 2") == 2 and "half = acc / 2   # time 2" in loops
    assert under(loops, "tl.device_print(") == ["printed acc: [45 45 45 45]  fp32 [4]"]


ROUNDED = ("e = tl.exp(x - tl.max(x, 0))", "e = tl.exp(x - tl.max(x, 0)).to(tl.float16)")


def test_exact_values_stand_below_those_that_differ(course, tmp_path):
    course.file("03_softmax").write_text(course.solution("03_softmax").replace(*ROUNDED))
    done = course.here("trace", "03", "--exact")
    assert "exactly" not in course.here("trace", "03").out
    assert len(under(done.out, "x = tl.load(")) == 1
    _, e, exactly = under(done.out, "e = tl.exp(")
    assert e.endswith("fp16 [8]") and exactly.startswith("exactly = [") and exactly.endswith("fp64 [8]")
    page = tmp_path / "trace.html"
    course.here("trace", "03", "--exact", "--html", str(page))
    assert "exactly" in page.read_text()


def test_where_there_is_no_exact_run_it_says_why(course):
    bits = ROUNDED[0], "e = tl.exp(x - tl.max(x, 0)).to(tl.int32, bitcast=True).to(tl.float32, bitcast=True)"
    course.file("03_softmax").write_text(course.solution("03_softmax").replace(*bits))
    done = course.here("trace", "03", "--exact")
    assert "There is no exact run: the kernel reads the bits of a float in line 18, or the address" in done.out


@pytest.fixture(scope="module")
def failed_once(tmp_path_factory) -> Course:
    course = Course(tmp_path_factory.mktemp("failed"))
    course.file("01_masked_add").write_text(mutant("01_masked_add/no_mask"))
    course.pytest("exercises/01_masked_add")
    return course


@pytest.fixture
def failed(failed_once, tmp_path) -> Course:
    """A copy of a course in which 01 has failed: it has no mask."""
    shutil.copytree(failed_once.path, tmp_path / "failed")
    return Course(tmp_path / "failed", made=True)


def test_after_a_failed_run_it_opens_at_the_call_the_program_and_the_line(failed):
    course = failed
    out = course.here("trace", "01").out
    assert out.startswith("01_masked_add, the call that failed in 'the last block has one element': 1025 fp32\n")
    assert "program (1,) of a grid (2,)" in out and "17>     tl.store(" in out
    assert under(out, "17>") == [
        "z[1024] <- " + under(out, "17>")[0].split()[2] + "  fp32 [1024], 1023 of 1024 lanes out of bounds, "
        "1023 of 1024 lanes hold nothing"
    ]  # fmt: skip
    assert out.endswith("Next: pytest exercises/01_masked_add says what is wrong\n")
    assert "program (0,)" in course.here("trace", "01", "--program", "0").out
    assert "a small example: 10 fp32" in course.here("trace", "01", "--example").out
    course.write("01_masked_add")  # mended since
    assert "a small example: 10 fp32" in course.here("trace", "01").out


def test_where_no_line_is_known_it_opens_at_the_store_of_the_first_wrong_element(course):
    """The third of three launches writes z; the page and the screen open there, and not at the first."""
    course.file("14_split_softmax").write_text(mutant("14_split_softmax/no_rescale"))
    course.pytest("exercises/14_split_softmax")
    trace = course.here("trace", "14").out
    (marked,) = (line for line in trace.splitlines() if re.match(r" *\d+>", line))
    told = trace.splitlines()[trace.splitlines().index(marked) :]
    assert any(re.fullmatch(r" +z\[\d+\] of program \(0,\) is \S+, expected \S+\.", line) for line in told[:5])
    assert "tl.store(z_ptr" in marked and trace.index("softmax_scale_kernel, program (0,)") < trace.index(marked)
    course.here("trace", "14", "--html", "trace.html")
    page = (course.path / "trace.html").read_text()
    begin = int(re.search(r"const begin = (\d+);", page)[1])
    programs = json.loads(re.search(r'id="data">(.*)</script>', page)[1])
    assert begin == 2 and programs[begin]["name"] == "softmax_scale_kernel, program (0,)"
    first = programs[begin]["stops"][programs[begin]["first"]]
    assert f"{first['line']}>" in marked


def test_what_no_program_has_written_is_said(course):
    course.file("01_masked_add").write_text(mutant("01_masked_add/floor_grid"))
    course.pytest("exercises/01_masked_add")
    assert re.search(r"^01_masked_add, .*, where no program has written z\[\d+\]: \d+ ", course.here("trace", "01").out)


def test_after_a_failure_that_has_no_values_it_says_why_it_shows_the_example(course):
    course.file("23_descriptor_matmul").write_text(mutant("23_descriptor_matmul/rows_of_c_not_looked_at"))
    course.pytest("exercises/23_descriptor_matmul")
    out = course.here("trace", "23").out
    assert out.startswith(
        "23_descriptor_matmul, a small example, as the test that failed has no values to show: a 5 x 8"
    )


def test_a_drawn_call_that_failed_is_found_again(failed):
    course = failed
    path = course.path / ".course/results/01_masked_add.json"
    result = json.loads(path.read_text())
    drawn = [test for test in result["tests"] if "lesson promises" in test["name"].replace("_", " ")]
    others = [test for test in result["tests"] if test not in drawn]
    path.write_text(json.dumps(result | {"tests": [dict(test, outcome="pass") for test in others] + [
        dict(test, outcome="fail", id=result["cause"]) for test in drawn]}))  # fmt: skip
    assert drawn and "the call that failed in" in course.here("trace", "01").out


@pytest.mark.parametrize("damage", ["[]", '{"tests": [1]}', '{"tests": [{"outcome": "fail"}], "seed": "x"}'])
def test_a_damaged_result_is_as_good_as_none(course, damage):
    course.write("01_masked_add")
    (course.path / ".course/results").mkdir(parents=True)
    (course.path / ".course/results/01_masked_add.json").write_text(damage)
    assert "a small example" in course.here("trace", "01").out


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "are empty: there is nothing to show. Next: course open 01"),
        ("def f(:", "masked_add.py cannot be run. Next: pytest exercises/01_masked_add says what is wrong"),
    ],
)
def test_what_cannot_be_shown_is_one_sentence(course, text, sentence):
    path = course.file("01_masked_add")
    path.write_text(text + path.read_text())
    done = course.here("trace", "01")
    assert done.status == 1 and sentence in done.err


def test_a_kernel_that_does_not_compile_is_refused_as_inspect_does(course):
    course.write("01_masked_add", "x + y, mask", "x + tl.zeros((3, 5), tl.float32), mask")
    said = "Error: It does not compile in line 18: Shape element 0 must be a power of 2. Next: pytest"
    for command in ("trace", "inspect"):
        done = course.here(command, "01")
        assert done.status == 1 and done.err.startswith(said)


def test_a_kernel_that_stops_shows_what_came_before(course):
    path = course.write("01_masked_add", "    tl.store(", "    tl.device_assert(x > 1000)\n    tl.store(")
    path.write_text(path.read_text().replace("num_warps=8)", "num_warps=8, debug=True)"))
    out = course.here("trace", "01").out
    assert under(out, "y = tl.load(")[0].startswith("y = [") and "tl.store(" not in out
    assert "It stopped in line 18: the assertion does not hold." in out


def test_after_an_assertion_that_failed_it_opens_at_the_program_that_shows_it(course):
    path = course.write("01_masked_add", "    tl.store(", "    tl.device_assert(offsets < 1024)\n    tl.store(")
    path.write_text(path.read_text().replace("num_warps=8)", "num_warps=8, debug=True)"))
    course.pytest("exercises/01_masked_add")
    assert "program (1,) of a grid" in course.here("trace", "01").out


def test_a_program_is_named_as_the_grid_has_it(course):
    course.write("04_transpose")
    assert "program (1, 0) of a grid" in course.here("trace", "04", "--program", "1,0").out
    assert (
        "The grid has no program (9, 0): this is one of its last." in course.here("trace", "04", "--program", "9,0").out
    )
    assert "has no program" not in course.here("trace", "04", "--program", "1").out
    done = course.here("trace", "04", "--program", "one")
    assert done.status == 2 and "'one' is no program: 1, or 1,0 in a grid of two axes." in done.err


def test_keys_go_through_lines_iterations_and_programs(course):
    course.write("05_grouped_matmul")
    environment = course.environment(TERM="xterm")
    screen = pexpect.spawn(COURSE, ["trace", "05"], cwd=str(course.path), env=environment, timeout=NEVER,
                           encoding="utf-8", dimensions=(40, 120))  # fmt: skip

    def until(text: str) -> str:
        screen.expect_exact(text)
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", screen.before)

    until("q quit")
    for _ in range(14):
        screen.send("n")
        until("q quit")
    screen.send("n")
    assert "iteration 1 of 2 of the loop in line 33" in until("q quit")
    screen.send("i")
    shown = until("q quit")
    assert "iteration 2 of 2" in shown and "start = 2" in shown and "  33>" in shown
    screen.send("p")
    assert "program (1,) of a grid (9,)" in until("q quit")
    screen.send("o")
    assert "program (0,) of a grid (9,)" in until("q quit")
    screen.send("q")
    screen.expect(pexpect.EOF)
    screen.close()
    assert screen.exitstatus == 0
