"""course programs: what each program touches, in words, as a grid, as a picture."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from grader.course.folder import load_test_file
from grader.learn.program_accesses import in_words, touched
from grader.numerics.data_sets import Data
from grader.processes import triton_forkserver_client
from grader.wire.messages import LoggedAccess
from tests.conftest import folders_with_kernels, mutant


@pytest.mark.parametrize(
    ("elements", "shape", "words"),
    [
        ([0, 1, 2, 3], (10,), "x[0:4]"),
        ([8, 9, -1, -1], (10,), "x[8:10], 2 of 4 lanes touch nothing"),
        ([7], (10,), "x[7]"),
        ([-1], (10,), "nothing of x, 1 of 1 lane touches nothing"),
        ([1, 2, 6, 7], (3, 5), "x[0:2, 1:3]"),
        ([5, 10], (3, 5), "x[1:3, 0]"),
        ([0, 6, 12], (3, 5), "x[0, 0], x[1, 1], x[2, 2] (3 elements)"),
        ([0, 2, 4, 6, 8], (10,), "x[0], x[2], x[4], x[6], ... (5 elements)"),
        ([3, 3, 3, 3], (10,), "x[3]"),
    ],
)
def test_an_access_in_words(elements, shape, words):
    assert in_words(LoggedAccess("load", "x", elements=elements), shape) == words


def test_elements_that_no_argument_has_are_left_out():
    accesses = [LoggedAccess("load", "x", program=[0], elements=[0, 99]), LoggedAccess("load", "gone", elements=[0])]
    (only,) = touched(accesses, {"x": (2,)})
    assert only.programs == (((0,),), ())


def test_several_launches_stand_apart_with_the_memory_between_them():
    accesses = [
        LoggedAccess("load", "x", program=[1], launch=0, elements=[1]),
        LoggedAccess("store", "scratch sum", program=[1], launch=0, elements=[2, -1]),
        LoggedAccess("load", "scratch sum", program=[0], launch=1, elements=[0, 1, 2, 3]),
        LoggedAccess("store", "z", program=[0], launch=1, elements=[0]),
    ]
    found = touched(accesses, {"x": (2,), "z": (1,)})
    assert [(one.name, one.verb, one.programs) for one in found] == [
        ("launch 1, x", "loads", ((), ((1,),))),
        ("launch 1, scratch sum", "stores", ((), (), ((1,),), ())),
        ("launch 2, scratch sum", "loads", (((0,),),) * 4),
        ("launch 2, z", "stores", (((0,),),)),
    ]


def test_each_launch_of_a_call_is_named(course):
    course.write("14_split_softmax")
    out = course.here("programs", "14").out
    assert "10 fp32, BLOCK_N = 4; 3 launches\n\nlaunch 1: softmax_partial_kernel, grid (3,)\n\nprogram (0,)\n" in out
    assert "\n\nlaunch 2: softmax_combine_kernel, grid (1,)\n\nprogram (0,)\n" in out


@pytest.mark.parametrize("command", ["programs", "trace", "inspect"])
def test_an_exercise_without_a_kernel_has_nothing_to_show(course, command):
    done = course.here(command, "42")
    assert done.status == 1 and "42_measure_it has no kernel, so there is nothing to show. Next: pytest" in done.err
    assert len(done.err.splitlines()) == 1


def test_every_exercise_has_a_small_example():
    for folder in folders_with_kernels():
        example = load_test_file(folder).exercise.example
        assert example is not None
        assert max(max(data.shape) for data in example.data if isinstance(data, Data)) <= 16


def test_masked_lanes_loads_and_stores_of_a_right_kernel(course):
    course.write("01_masked_add")
    out = course.here("programs", "01").out
    assert "01_masked_add on a small example: 10 fp32, BLOCK_N = 4; grid (3,)" in out
    last = out.partition("program (2,)")[2].partition("\n\n")[0]
    assert [line.split(maxsplit=2)[2] for line in last.strip().splitlines()] == [
        "loads x[8:10], 2 of 4 lanes touch nothing",
        "loads y[8:10], 2 of 4 lanes touch nothing",
        "stores z[8:10], 2 of 4 lanes touch nothing",
    ]
    assert "z, by the program that stores each element\n  0 0 0 0 1 1 1 1 2 2\n" in out


def test_tiles_that_nobody_or_several_write(course):
    source = mutant("02_strided_blocks/floor_grid")
    course.file("02_strided_blocks").write_text(source)
    out = course.here("programs", "02").out
    assert "z, by the program that stores each element\n  0,0 0,0 0,0 0,0   .\n" in out
    course.file("01_masked_add").write_text(mutant("01_masked_add/no_pid"))
    out = course.here("programs", "01").out
    assert "z, by the program that stores each element (3x: 3 programs)\n  3x 3x 3x 3x  .  .  .  .  .  .\n" in out


def test_wrong_accesses_are_pointed_to(course):
    course.file("01_masked_add").write_text(mutant("01_masked_add/no_mask"))
    out = course.here("programs", "01").out
    assert "Some accesses are wrong and were left out: pytest exercises/01_masked_add says what is wrong." in out
    assert "stores z[8:10], 2 of 4 lanes are masked off or outside" in out


def test_the_steps_of_a_loop_stand_in_their_order(course):
    course.write("05_grouped_matmul")
    first = course.here("programs", "05").out.partition("program (0,)\n")[2].partition("\n\n")[0]
    assert [line.split(maxsplit=3)[3] for line in first.splitlines()] == [
        "a[0:2, 0:2]", "b[0:2, 0:2]", "a[0:2, 2], 2 of 4 lanes touch nothing", "b[2, 0:2], 2 of 4 lanes touch nothing",
        "c[0:2, 0:2]",
    ]  # fmt: skip


def test_the_picture_names_the_programs_of_each_element(course):
    course.write("04_transpose")
    done = course.here("programs", "04", "--svg", "programs.svg")
    assert "Picture: programs.svg" in done.out
    root = ET.parse(course.path / "programs.svg").getroot()
    svg = "{http://www.w3.org/2000/svg}"
    told = [group.find(f"{svg}title").text for group in root.iter(f"{svg}g")]
    assert len(told) == 30 and told[:5] == ["(0, 0)"] * 4 + ["(0, 1)"] and told[15:18] == ["(0, 0)", "(0, 0)", "(1, 0)"]


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
    done = course.here("programs", "01")
    assert done.status == 1 and sentence in done.err


def test_a_file_whose_kernel_names_what_it_may_not_is_not_run(course):
    course.write("01_masked_add", "    mask = ", "    open('notes.txt')\n    mask = ")
    assert "masked_add.py cannot be run." in course.here("programs", "01").err


def test_a_kernel_that_does_not_compile(course):
    course.write(
        "01_masked_add", "tl.store(z_ptr + offsets, x + y", "tl.store(z_ptr + offsets, x + tl.zeros((3, 5), tl.float32)"
    )
    out = course.here("programs", "01").out
    assert "It stopped in line 18: ValueError: Shape element 0 must be a power of 2\n" in out and "program (" not in out


def test_a_kernel_that_stops_shows_what_came_before(course):
    path = course.write("01_masked_add", "    tl.store(", "    tl.device_assert(x > 1000)\n    tl.store(")
    path.write_text(path.read_text().replace("num_warps=8)", "num_warps=8, debug=True)"))
    out = course.here("programs", "01").out
    assert "It stopped in line 18: the assertion does not hold\n" in out and "loads x[0:4]" in out


def test_a_kernel_that_does_not_end(course, monkeypatch):
    monkeypatch.setattr("grader.judging.run.RECORD_LIMIT", 1.0)
    course.write("01_masked_add", "    z = torch.empty_like(x)", "    while True: pass")
    done = course.here("programs", "01")
    assert done.status == 1 and "masked_add did not come to its end." in done.err


NO_ANSWER = "the process that imports torch and triton gives no answer"


@pytest.mark.parametrize("command", ["programs", "inspect"])
def test_a_machine_on_which_nothing_starts_is_told_in_one_sentence(course, monkeypatch, command):
    monkeypatch.setattr(triton_forkserver_client, "_shared", {})
    monkeypatch.setattr(triton_forkserver_client, "START_LIMIT", 0.001)  # seconds: importing Triton takes longer
    course.write("01_masked_add")
    done = course.here(command, "01")
    assert done.status == 1 and done.err == f"Error: {NO_ANSWER}. Next: course doctor\n"
