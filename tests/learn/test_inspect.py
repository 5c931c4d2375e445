"""course inspect: each level of code beside the learner's lines, resources, the launch."""

from __future__ import annotations

import pytest

from grader.learn.code_levels import LEVELS, READING, Instruction, instructions
from tests.conftest import ROOT, mutant

LOAD = {"ttir": "tt.load", "ttgir": "tt.load", "llir": "ld.global", "ptx": "ld.global.v4", "sass": "LDG.E.128"}
STORE = {"ttir": "tt.store", "ttgir": "tt.store", "llir": "st.global", "ptx": "st.global.v4", "sass": "STG.E.128"}


@pytest.mark.parametrize("level", LEVELS)
def test_loads_and_stores_stand_beside_their_lines(course, level):
    course.write("03_softmax")
    lines = course.file("03_softmax").read_text().splitlines()
    out = course.here("inspect", "03", "--ir", level).out
    for word, call in ((LOAD[level], "tl.load("), (STORE[level], "tl.store(")):
        number = next(n for n, line in enumerate(lines, 1) if call in line)
        found = [line for line in out.splitlines() if word in line and " | " in line]
        assert found and all(line.split("|")[0].strip() == str(number) for line in found), found
        assert f"{number:>4}  {lines[number - 1].strip()}" in out
    assert READING[level][:30] in out and "\t" not in out


def test_what_a_kernel_uses(course):
    course.write("05_grouped_matmul")
    out = course.here("inspect", "05").out
    assert "05_grouped_matmul, 4096 x 4096, compiled for sm_90 (NVIDIA H200)" in out
    assert "warps          8: 256 threads work on a program" in out and "none spilled" in out
    assert "shared memory  196608 of 232448 bytes per program" in out and "products       wgmma" in out
    assert out.strip().endswith("Next: course inspect 05 --ir ttir, or --meta for the launch")


def test_a_vector_that_many_threads_load_is_told_so(course):
    course.write("06_fused_outer")
    out = course.here("inspect", "06").out
    assert "8 loads of 4 bytes per thread; there are more threads than values: several load the same one\n" in out
    assert "1 load of 4 bytes per thread\n" in out and "8 stores of 16 bytes per thread\n" in out


def test_what_a_call_with_numbers_uses(course):
    course.write("09_layer_norm")
    out = course.here("inspect", "09").out
    assert "09_layer_norm, x 4096 x 8192, weight 8192, bias 8192, eps = 1e-05, compiled for sm_90" in out


def test_how_a_kernel_is_launched(course):
    course.write("01_masked_add")
    out = course.here("inspect", "01", "--meta").out
    words = [line.split() for line in out.partition("Launch of masked_add_kernel in line")[2].splitlines()]
    assert ["grid", "1024", "x", "1", "x", "1", "programs"] in words
    assert ["x_ptr", "pointer", "x", "+", "0"] in words and ["N", "i32", "1048576"] in words


def test_a_program_of_two_blocks_says_what_each_of_them_uses(course):
    path = ROOT / "solutions/23_descriptor_matmul/accepted/clusters.py"
    out = course.here("inspect", "23", "--submission", str(path), "--meta").out
    assert "warps          8 in each of 2 blocks: 512 threads work on a program" in out
    assert "of 232448 bytes per block\n" in out and "blocks per multiprocessor" in out
    assert ["a_desc", "tensormap", "a", "+", "0"] in [line.split() for line in out.splitlines()]


def test_another_gpu(course):
    course.write("01_masked_add")
    assert "compiled for sm_80 (NVIDIA A100)" in course.here("inspect", "01", "--target", "sm_80").out
    wrong = course.here("inspect", "01", "--target", "sm_1")
    assert wrong.status == 1 and "There is no target 'sm_1': it is one of sm_" in wrong.err


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("break_in_kernel", "It does not compile in line"),
        ("too_many_warps", "Next: pytest exercises/01_masked_add says what is wrong"),
        ("torch_adds", "It does not compile in line 30: the operator + is refused here"),
    ],
)
def test_what_does_not_compile_is_one_sentence(course, name, sentence):
    course.file("01_masked_add").write_text(mutant(f"01_masked_add/{name}"))
    done = course.here("inspect", "01")
    assert done.status == 1 and sentence in done.err


def test_an_empty_region_is_one_sentence(course):
    done = course.here("inspect", "01")
    assert done.status == 1 and "there is nothing to show. Next: course open 01" in done.err


# ---- reading debug information ------------------------------------------------------------------------------------


def test_inlined_library_code_belongs_to_the_line_that_calls_it():
    llvm = """\
define void @kernel() {
  %1 = add i32 1, 2, !dbg !5
  %2 = add i32 1, 2, !dbg !7
  ret void
}
!1 = !DIFile(filename: "mine.py", directory: "/x")
!2 = !DIFile(filename: "standard.py", directory: "/y")
!3 = distinct !DISubprogram(name: "kernel", scope: !1, file: !1, line: 1)
!4 = distinct !DILexicalBlockFile(scope: !3, file: !2, discriminator: 0)
!5 = !DILocation(line: 10, column: 1, scope: !3)
!6 = !DILocation(line: 20, column: 1, scope: !3)
!7 = !DILocation(line: 300, column: 1, scope: !4, inlinedAt: !6)
"""
    assert [i.line for i in instructions("llir", llvm, "mine.py")] == [0, 10, 20, 0, 0]


def test_ptx_ends_where_debug_sections_begin():
    ptx = '.file 1 "/x/mine.py"\n.loc 1 7 0\n  add.s32 %r1, %r2, 1;  // note\n$L__tmp3:\n.section .debug_info\n junk\n'
    assert instructions("ptx", ptx, "mine.py") == [Instruction(7, "  add.s32 %r1, %r2, 1;")]


def test_machine_code_of_other_files_keeps_the_last_line():
    sass = (
        '//## File "/x/mine.py", line 4\n        /*0000*/   MOV R1, R2 ;\n'
        '//## File "/y/standard.py", line 90\n        /*0010*/   EXIT ;\n.L_x_0:\n  .byte 1\n'
    )
    assert instructions("sass", sass, "mine.py") == [
        Instruction(4, "0000  MOV R1, R2"), Instruction(4, "0010  EXIT"), Instruction(0, ".L_x_0:")
    ]  # fmt: skip
