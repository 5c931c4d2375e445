"""Of several explanations that fit what is wrong, the one that is told is the one that holds."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from grader import (
    amid,
    cancelling_rows,
    falling,
    indices,
    last,
    leading,
    made,
    normal,
    output,
    some_minus_infinity,
    special,
    uniform,
)
from grader.explain.verdict import FAIL, PASS, Verdict
from grader.judging.uses import CheckUse
from grader.numerics.layouts import transposed
from tests.conftest import ROOT, mutant

NAN = float("nan")


def test_a_special_value_in_a_strided_tensor_is_not_blamed_on_the_strides(bench):
    """Random numbers that round to -0.0 are rare, but there: one in 84 million in fp16."""
    judged = bench(mutant("02_strided_blocks/adds_zero"), "02_strided_blocks")
    assert judged.check(normal(64, 64), output(64, 64)).outcome == PASS
    verdict = judged.check(special(normal(37, 153)), output(37, 153).padded())
    assert verdict.outcome == FAIL and "special values are changed on the way" in verdict.lines[0]


def test_special_values_alone_make_a_guess(bench):
    """Only inf and NaN are expected, as in a product of few columns with inf and NaN strewn in: a simpler call may show
    what is wrong with ordinary numbers too."""
    x = leading(NAN, normal(64) * float("inf"))
    verdict = judged(bench, "01_masked_add", ("x + y, mask", "-x - y, mask"), x, normal(64))
    assert "special values are changed on the way" in verdict.lines[0] and verdict.kind == "guess"
    inverted = ("x + y, mask", "tl.where(x == float('inf'), -x, x + y), mask")
    verdict = judged(bench, "01_masked_add", inverted, leading(float("inf"), normal(64)), normal(64))
    assert "special values are changed on the way" in verdict.lines[0] and verdict.kind != "guess"


def test_nan_that_is_lost_in_the_last_column_is_not_taken_for_a_column_that_is_left_out(bench):
    """Of rows that all hold NaN or infinities no ordinary number tells whether their last column was added."""
    judged = bench(mutant("07_row_sum/nan_in_the_last_block_is_zero"), "07_row_sum")
    assert judged.check(normal(3, 129), BLOCK_N=128, dtypes=("float32",)).outcome == PASS
    verdict = judged.check(last(NAN, leading(float("inf"), normal(3, 129))), BLOCK_N=128, dtypes=("float32",))
    assert verdict.outcome == FAIL and "special values are changed on the way" in verdict.lines[0], verdict.lines


def of_backward(q, k):
    """Returns the arguments of 27 for one head, of these queries and keys."""
    (_, _, M, D), N = q.shape, k.shape[2]
    o = made(lambda q, k, v: torch.softmax(q @ k.mT * D**-0.5, dim=-1) @ v, normal(1, 1, M, D))
    lse = made(lambda q, k: torch.logsumexp(q @ k.mT * D**-0.5, dim=-1), normal(1, 1, M)).of("float32")
    return q, k, normal(1, 1, N, D), o, lse, normal(1, 1, M, D)


@pytest.mark.parametrize("moved, said", [("N", "No lane of the tl.store in line"), ("16", "The tl.store in line")])
def test_a_mask_is_missed_where_some_lane_is_inside(bench, moved, said):
    change = ("tl.store(z_ptr + offsets, x + y, mask=mask)", f"tl.store(z_ptr + {moved} + offsets, x + y)")
    verdict = judged(bench, "01_masked_add", change, normal(1024), normal(1024), BLOCK_N=1024)
    assert verdict.id == "oob-store" and verdict.lines[0].startswith(said)
    assert ("has no mask" in verdict.lines[0]) == (moved == "16")


def test_a_result_that_nobody_asked_for_is_not_called_right(bench):
    halved = ("p = tl.exp2(tl.dot(k, tl.trans(q))", "p = 0.3 * tl.exp2(tl.dot(k, tl.trans(q))")
    data, bound = of_backward(normal(1, 1, 33, 32), normal(1, 1, 77, 32)), {"dq": "unjudged", "dk": "unjudged"}
    verdict = judged(bench, "27_flash_backward", halved, *data, bound=bound, BLOCK_M=32, BLOCK_N=32)
    assert verdict.outcome == FAIL and "right, and" not in verdict.lines[0], verdict.lines


def test_no_line_is_told_of_a_kernel_that_did_not_make_the_result(bench):
    """Two launches have the grid of the one that makes dq."""
    judged = bench(mutant("27_flash_backward/padding_counted"), "27_flash_backward")
    q, k = normal(1, 1, 33, 32) * 0.8 + 8, normal(1, 1, 77, 32) * 0.8 - 8
    verdict = judged.check(*of_backward(q, k), BLOCK_M=32, BLOCK_N=32)
    assert verdict.id == "padding-counted" and verdict.line == 0, verdict.lines


def test_rows_that_are_all_but_one_value_0_are_not_taken_for_one_another(bench):
    """Where one probability is 1 and the others are lost, the row looks like any other of that kind."""
    judged = bench(mutant("03_softmax/half_exponentials"), "03_softmax")
    verdict = judged.check(normal(200, 4) * 60)
    assert verdict.outcome == FAIL and verdict.id != "misplaced-tile"


def test_a_program_whose_elements_should_all_be_equal_is_not_blamed_for_it(bench):
    """The first row is softmax of zeros; digits are lost in others."""
    judged = bench(mutant("03_softmax/half_exponentials"), "03_softmax")
    verdict = judged.check(normal(20, 70).then("whole rows", 0))
    assert verdict.outcome == FAIL and verdict.id == "low-precision"


def test_digits_that_bf16_loses_are_not_said_to_be_lost_in_fp16(bench):
    text = mutant("03_softmax/half_exponentials").replace("tl.float16", "tl.bfloat16")
    verdict = bench(text, "03_softmax").check(normal(20, 70), dtypes=("float32",))
    assert verdict.id == "low-precision" and "fp16" not in verdict.lines[0] and "bf16" in verdict.lines[1], (
        verdict.lines
    )


def test_zeros_do_not_tell_that_the_lanes_of_a_program_read_the_same(bench):
    change = ("tile, mask", "tl.where(tl.program_id(0) > 0, tile, 0), mask")
    verdict = judged(bench, "02_strided_blocks", change, normal(64, 200), output(64, 200))
    assert verdict.outcome == FAIL and "its lanes should differ" not in verdict.lines[0], verdict.lines


def test_a_store_that_the_compiler_leaves_out_is_not_said_to_be_missing_in_the_file(bench):
    verdict = judged(bench, "02_strided_blocks", ("rows < M", "rows < rows"), normal(64, 64), output(64, 64))
    assert "the compiler has left out every store of the kernel" in verdict.lines[0], verdict.lines


def test_a_mask_that_lets_no_lane_through_that_is_inside_is_not_the_first_to_blame(bench):
    change = ("tl.store(z_ptr + offsets", "tl.store(z_ptr + N + offsets")
    verdict = judged(bench, "01_masked_add", change, normal(5), normal(5))
    assert "No lane is inside: the address is computed wrongly" in verdict.lines[0], verdict.lines


def test_programs_that_the_exercise_asks_for_no_loop_are_not_told_that_they_come_to_one_tile(bench):
    text = (ROOT / "solutions/02_strided_blocks/accepted/persistent_grid.py").read_text()
    wrong = text.replace("z_ptr + rows * stride_zm", "z_ptr + rows * BLOCK_N")
    verdict = bench(wrong, "02_strided_blocks").check(normal(150, 200), output(150, 200))
    assert verdict.id == "double-write" and "come to the same one" not in verdict.lines[0], verdict.lines
    assert "stores meet " in verdict.lines[1], verdict.lines


def judged(bench, id: str, change: tuple[str, str], *data, **constants) -> Verdict:
    """Of the solution with one change; the first place counts."""
    text = (ROOT / "solutions" / id / f"{id[3:]}.py").read_text()
    assert change[0] in text
    return bench(text.replace(*change, 1), id).check(*data, **constants)


@pytest.mark.parametrize(
    ("x", "told"),
    [
        (normal(2), "z is 1 everywhere."),
        (leading(1.0, normal(2)), "z is wrong in 1 element of 2, "),
        (leading(1.0, normal(4)), "z is 1 everywhere."),
    ],
)
def test_two_elements_may_be_equal_by_chance_where_one_is_right(bench, x, told):
    """As 534.5 and 533.5 are after a rounding: then it does not say that a constant was stored."""
    change = ("x + y, mask", "tl.full((BLOCK_N,), 1.0, tl.float32), mask")
    verdict = judged(bench, "01_masked_add", change, x, normal(*x.shape) * 0)
    assert verdict.lines[0].startswith(told)


@pytest.mark.parametrize(
    ("x", "told"),
    [
        (leading(NAN, amid(NAN, normal(8))), "z is wrong in 2 elements of 8, "),
        (leading(NAN, normal(8)), "z is NaN everywhere."),
        (normal(8), "z is NaN everywhere."),
    ],
)
def test_nan_is_no_constant_where_most_elements_should_be_nan(bench, x, told):
    """As in a product with inf and NaN strewn in: then it does not say what went wrong in the few others."""
    change = ("x + y, mask", "tl.full((BLOCK_N,), float('nan'), tl.float32), mask")
    verdict = judged(bench, "01_masked_add", change, x, normal(8) * 0)
    assert verdict.lines[0].startswith(told)


def test_an_exponent_that_is_rounded_before_the_maximum_is_subtracted_is_told_as_such(bench):
    exp2 = "x = x.to(tl.float32) * 1.44269504\n    e = tl.exp2(x - tl.max(x, 0))"
    text = (ROOT / "solutions/03_softmax/softmax.py").read_text()
    begin, end = text.index("x = x.to(tl.float32)"), text.index("  # the largest exponent is 0")
    verdict = judged(bench, "03_softmax", (text[begin:end], exp2), normal(64, 200) * 1e2)
    assert verdict.id == "low-precision" and "Digits are lost on the way" in verdict.lines[0]
    assert "subtract the row's maximum before anything else is done to x" in verdict.lines[1]


def test_a_mistake_is_held_to_the_rounding_of_its_own_terms(bench):
    """Other positions have other products: of 32768 sums of two some are small and the mistake's products are not."""
    change = ("b * stride_pb + s * stride_ps", "b * S + s")
    tables = [normal(11, 32).of("float32")] * 2
    verdict = judged(bench, "11_rope", change, normal(4, 8, 16, 64), *tables, indices(4, 16, below=11).transposed())
    assert verdict.lines[0] == "The strides of positions are not used: it is read as if contiguous."


def test_a_result_with_the_layout_of_a_view_names_what_gave_it_that(bench):
    change = ("torch.empty((M, N), dtype=x.dtype, device=x.device)", "torch.empty_like(x)")
    verdict = judged(bench, "03_softmax", change, normal(17, 33).transposed())
    assert verdict.lines[0] == "z has strides (1, 17); a contiguous tensor was expected."
    assert verdict.lines[1].startswith("torch.empty_like and its like keep the layout of a transposed tensor")
    assert verdict.lines[2] == f"Line {verdict.line}:  z = torch.empty_like(x)"


@pytest.mark.parametrize(("name", "case"), [("BLOCK_N", "1009 fp32, BLOCK_N = 512"), ("OWN", "1009 fp32")])
def test_a_case_names_block_sizes_that_took_effect_and_no_others(bench, name, case):
    text = (ROOT / "solutions/01_masked_add/masked_add.py").read_text().replace("x + y, mask", "x - y, mask")
    text = text.replace("BLOCK_N = 1024", f"{name} = 1024").replace("(N, BLOCK_N),)", f"(N, {name}),)")
    verdict = bench(text.replace("BLOCK_N=BLOCK_N", f"BLOCK_N={name}")).check(normal(1009), normal(1009), BLOCK_N=512)
    assert verdict.outcome == FAIL and verdict.case == case


HINTS = {
    "tl.multiple_of(offsets, 7)": "tl.multiple_of in line 18 promises what does not hold for program (0,)",
    "tl.max_constancy(offsets, 4)": "tl.max_constancy in line 18 promises what does not hold for program (0,)",
    "tl.assume(N > 5000)": "tl.assume in line 18 promises what does not hold for program (0,)",
    "tl.multiple_of(BLOCK_N, 16)": "line 18: a value here is a constant, as tl.constexpr arguments are",
}


@pytest.mark.parametrize("hint", HINTS)
def test_a_hint_that_does_not_hold_is_named_where_it_stands(bench, hint):
    verdict = judged(bench, "01_masked_add", ("tl.store(", f"{hint}\n    tl.store("), normal(100), normal(100))
    assert verdict.outcome == FAIL and HINTS[hint] in verdict.lines[0]
    assert verdict.lines[-1] == f"Line 18:  {hint}"


def test_what_is_nested_too_deeply_is_told_by_its_line(bench):
    line = f"if {'+'.join(['N'] * 330)} > 0:\n        x = x + 0\n    tl.store("
    verdict = judged(bench, "01_masked_add", ("tl.store(", line), normal(100), normal(100))
    assert verdict.lines[0].startswith("Line 18 of masked_add.py nests more than 100 levels deep")


def test_a_long_message_is_told_by_its_beginning_and_its_end(bench):
    line = f"tl.static_assert(BLOCK_N == 5, 'begins {'a' * 900} {'b' * 900} ends')\n    tl.store("
    verdict = judged(bench, "01_masked_add", ("tl.store(", line), normal(100), normal(100))
    assert "begins aaa" in verdict.lines[0] and verdict.lines[0].endswith("bbb ends.") and len(verdict.lines[0]) < 300


ROUTINE = [
    "assert x.is_cuda and y.is_cuda",
    "torch.cuda.synchronize()\n    torch.cuda.get_device_properties(torch.cuda.current_device())",
    "strides = torch.tensor(x.stride(), device=x.device)",
]


@pytest.mark.parametrize("line", ROUTINE)
def test_what_other_code_asks_of_a_gpu_is_no_mistake(bench, line):
    change = ("z = torch.empty_like(x)", f"{line}\n    z = torch.empty_like(x)")
    assert judged(bench, "01_masked_add", change, normal(100), normal(100)).outcome == PASS


@pytest.mark.parametrize("index", ["y", "[2, 0, 1]"])
def test_an_index_that_is_no_number_is_told_as_one_and_not_as_an_assignment(bench, index):
    change = ("z = torch.empty_like(x)", f"z = x[{index}]")
    verdict = judged(bench, "01_masked_add", change, normal(100), normal(100), dtypes=("float32",))
    assert verdict.id == "torch-did-it" and verdict.lines[2] == f"Line {verdict.line}:  z = x[{index}]"
    assert verdict.lines[0] == (
        f"Indexing a tensor with a tensor or a list in line {verdict.line} does work that your kernel has to do."
    )


def test_an_assignment_to_elements_is_told_as_one(bench):
    change = ("z = torch.empty_like(x)", "z = torch.empty_like(x)\n    z[:] = x")
    verdict = judged(bench, "01_masked_add", change, normal(100), normal(100))
    assert verdict.lines[0].startswith("The assignment to elements of a tensor in line"), verdict.lines


IN_KERNELS = [
    'tl.device_print("x", x)',
    'tl.device_assert(x == x, "x is a number")',
    "x = tl.sqrt(x.to(tl.float32) * 0) + x",
    "x = libdevice.exp(x.to(tl.float32) * 0) - 1 + x",
    "stride = N\n    stride = stride or 1\n    x = x + 0 * stride",
]


@pytest.mark.parametrize("line", IN_KERNELS)
def test_what_other_kernels_do_is_no_mistake(bench, line):
    text = (ROOT / "solutions/01_masked_add/masked_add.py").read_text()
    text = text.replace(
        "import triton.language as tl", "import triton.language as tl\nfrom triton.language.extra import libdevice"
    )
    assert bench(text.replace("tl.store(", f"{line}\n    tl.store(", 1)).check(normal(100), normal(100)).outcome == PASS


def test_an_assertion_that_does_not_hold_is_told_with_its_program(bench):
    text = (
        (ROOT / "solutions/01_masked_add/masked_add.py").read_text().replace("@triton.jit", "@triton.jit(debug=True)")
    )
    text = text.replace("tl.store(", 'tl.device_assert(x > 1000, "x is small")\n    tl.store(')
    verdict = bench(text).check(normal(100), normal(100))
    line = "tl.device_assert in line 18 does not hold in program (0,): x is small."
    assert verdict.id == "assert" and verdict.lines[0] == line, verdict.lines


def test_functions_of_tl_may_have_names_of_their_own(bench):
    text = (ROOT / "solutions/01_masked_add/masked_add.py").read_text()
    text = text.replace(
        "import triton.language as tl", "import triton.language as tl\nfrom triton.language import load"
    )
    assert bench(text.replace("tl.load(", "load(")).check(normal(100), normal(100)).outcome == PASS


def test_a_stride_that_leads_between_elements_is_not_blamed_on_masked_lanes(bench):
    """What lanes out of bounds read changes with what masked ones hold."""
    source = mutant("04_transpose/column_major_has_no_holes")
    judged = bench(source, "04_transpose")
    assert judged.check(normal(32, 63)).outcome == PASS
    holes = replace(special(normal(32, 63)), layout=transposed(2, padding=3))
    verdict = judged.check(holes)
    assert verdict.outcome == FAIL and verdict.id != "no-other", verdict.lines


def test_sums_that_pass_fp16_on_the_way_are_told_from_other_infinities(bench):
    """The first 1300 terms of each sum add up to 83 000, all 2048 to 35 000."""
    source, small = mutant("05_grouped_matmul/rounds_from_1024_terms_on"), dict(BLOCK_M=16, BLOCK_N=16, BLOCK_K=64)
    data = uniform(20, 2048) * 16, made(falling_back, uniform(2048, 20) * 16)
    judge = bench(source, "05_grouped_matmul")
    assert judge.check(normal(20, 64), normal(64, 20), **small).outcome == PASS
    verdict = judge.check(*data, **small)
    assert verdict.id == "half-accumulator" and "none above 65504" in verdict.lines[0], verdict.lines
    doubled = source.replace(
        "acc = acc.to(tl.float16).to(tl.float32)", "acc = acc * 1.5"
    )  # infinite too, and never right
    assert bench(doubled, "05_grouped_matmul").check(*data, **small).id != "half-accumulator"


def falling_back(b):
    return torch.cat([b[:1300], -b[1300:]])


def test_one_element_that_lost_a_digit_is_not_taken_for_a_sum_without_its_last_term(bench):
    """Of long sums the last term is about as large as what a sum loses that is kept in fp16."""
    source = mutant("05_grouped_matmul/rounds_from_1024_terms_on")
    judge = bench(source, "05_grouped_matmul").judge
    for K in (1128, 1136, 1145):  # here both give the same element: the case's name, with the seed, makes the numbers
        verdict = CheckUse.of(f"t{K}", uniform(1, K), uniform(K, 1)).verdict(judge)
        assert verdict.outcome == FAIL and verdict.id == "low-precision", verdict.lines


def test_rows_that_lie_one_element_apart_are_told_as_a_row_stride_that_is_not_used(bench):
    change = ("b_ptr + k[:, None] * stride_bk", "b_ptr + k[:, None]")
    verdict = judged(bench, "05_grouped_matmul", change, uniform(7, 20), uniform(20, 80))
    assert verdict.lines[0] == "The row stride of b is not used."


@pytest.mark.parametrize("K", [2, 16, 64])
def test_one_element_without_its_last_term_is_told_as_such(bench, K):
    source = mutant("05_grouped_matmul/drop_last_term")
    assert bench(source, "05_grouped_matmul").check(uniform(1, K), uniform(K, 1)).id == "last-left-out"


@pytest.mark.parametrize(("id", "columns"), [("03_softmax", 1), ("03_softmax", 255), ("13_online_softmax", 4095)])
def test_rows_of_nothing_but_minus_infinity_are_not_put_down_to_padding(bench, id, columns):
    """Padding that counts would make 0 of such a row as well; a guard makes nothing else wrong.

    A lane among 4096 adds less to the sums of other rows than fp16 rounds.
    """
    data = some_minus_infinity(40, columns)
    verdict = bench(mutant(f"{id}/guarded_sum"), id).check(data, dtypes=("float16",))
    assert verdict.outcome == FAIL and verdict.id == "empty-row", verdict.lines


def test_atomics_that_give_nan_are_not_blamed_on_memory_once_a_call_was_right(bench):
    """A sum on the way that is too large for fp16 is infinite, and NaN when the opposite is added."""
    judged = bench(mutant("07_row_sum/atomic_per_block"), "07_row_sum")
    assert judged.check(normal(12, 2048)).outcome == PASS
    verdict = judged.check(cancelling_rows(12, 5120), bound="exact")
    assert verdict.id == "half-accumulator" and "rounded to z's dtype after each block" in verdict.lines[0]
    fresh = bench(mutant("07_row_sum/atomics_from_leftovers"), "07_row_sum").check(normal(12, 2048))
    assert fresh.id == "not-zeroed"


def test_elements_that_lack_a_program_of_their_own_are_not_called_a_partial_block(bench):
    verdict = bench(mutant("07_row_sum/grid_too_small"), "07_row_sum").check(normal(12, 70))
    assert verdict.lines[0] == "The end of z is not covered by a grid of 11 programs, each of which writes one element."


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (("cols < N", "cols < N - 3"), "The end of each row (3 columns) of z is never written: a program"),
        (
            ("cdiv(N, BLOCK_N)", "cdiv(N - 63, BLOCK_N)"),
            "The last columns of z are not covered by a grid of 2 programs.",
        ),
    ],
)
def test_columns_that_a_mask_leaves_out_are_not_put_down_to_the_grid(bench, change, sentence):
    verdict = judged(bench, "02_strided_blocks", change, normal(64, 190), output(64, 190))
    assert verdict.id == "unwritten" and verdict.lines[0].startswith(sentence)


def test_a_block_pointer_that_leaves_an_axis_unchecked_is_told_of_its_boundary_check(bench):
    store = "tl.store(z_ptr + rows * stride_zm + cols * stride_zn, tile, mask=mask)"
    made = (
        "tl.make_block_ptr(z_ptr, (M, N), (stride_zm, stride_zn), (tl.program_id(1) * BLOCK_M, tl.program_id(0) * "
        "BLOCK_N), (BLOCK_M, BLOCK_N), (1, 0))"
    )
    change = (store, f"tl.store({made}, tile, boundary_check=(0,))")
    verdict = judged(bench, "02_strided_blocks", change, normal(101, 153), output(101, 153))
    assert (
        verdict.id == "oob-store" and "leaves z along an axis that its boundary_check does not name" in verdict.lines[0]
    )


@pytest.mark.parametrize(
    ("id", "change", "sizes", "sentence"),
    [
        ("01_masked_add", ("offsets < N", "offsets < N - 1"), [(1024,)] * 2, "The end of z is never written: the mask"),
        ("02_strided_blocks", ("rows < M", "rows < M - 1"), [(64, 64)] * 2, "The last row of z is never written: the"),
        ("01_masked_add", ("cdiv(N, BLOCK_N)", "cdiv(N, BLOCK_N) - 1"), [(1500,)] * 2, "The end of z is not covered"),
        ("02_strided_blocks", ("cdiv(M, BLOCK_M)", "cdiv(M, BLOCK_M) - 1"), [(80, 64)] * 2, "The last rows of z"),
        ("17_prefix_sum", ("[(M,)]", "[(M - 1,)]"), [(3, 70)], "The last rows of z"),
    ],
)  # fmt: skip
def test_an_end_within_a_block_is_not_put_down_to_the_grid(bench, id, change, sizes, sentence):
    makers = (normal, output if id == "02_strided_blocks" else normal)
    verdict = judged(bench, id, change, *(maker(*size) for maker, size in zip(makers, sizes)))
    assert verdict.id == "unwritten" and verdict.lines[0].startswith(sentence), verdict.lines


def test_a_number_that_is_one_in_a_call_is_said_to_be_a_constant(bench):
    source = (ROOT / "solutions/01_masked_add/masked_add.py").read_text().replace("< N ", "< N.to(tl.int64) ")
    one = bench(source)
    assert one.check(normal(2), normal(2)).outcome == PASS
    refused = one.check(normal(1), normal(1))
    assert refused.id == "does-not-compile" and "numbers that are 1 in a call: it has no .to" in refused.lines[0]


def test_small_results_that_become_0_are_not_taken_for_lost_digits(bench):
    change = ("z_ptr + offsets, x + y", "z_ptr + offsets, tl.where(tl.abs(x + y) < 0.25, 0.0, x + y)")
    verdict = judged(bench, "01_masked_add", change, normal(600), normal(600))
    assert verdict.id == "flushed" and "z is 0 wherever its size should be 0.2" in verdict.lines[0]


def test_a_tail_that_is_lost_is_no_small_number(bench):
    change = ("z_ptr + offsets, x + y", "z_ptr + offsets, tl.where(offsets < 500, x + y, 0.0)")
    verdict = judged(bench, "01_masked_add", change, falling(600), falling(600))
    assert verdict.id != "flushed"


def test_rows_of_several_dimensions_are_not_told_as_rows_of_a_matrix(bench):
    change = ("acc / total[:, None]", "acc / total[:, None] + tl.where(tl.program_id(1) == 5, rows * 0.1 + 1.0, 0.0)")
    data = normal(2, 3, 70, 16), normal(2, 3, 40, 16), normal(2, 3, 40, 16)
    verdict = judged(bench, "25_flash_attention", change, *data, BLOCK_M=64, BLOCK_N=32)
    assert "o is wrong in 1120 elements of 6720, fp16." in verdict.lines[0]
    assert verdict.lines[-1].startswith("First wrong element: o[1, 2, 0, 0] of program (0, 5) is ")


def test_a_loop_that_comes_to_its_store_has_an_iteration(bench):
    """The mask is false in every lane: no question about the loop is asked."""
    change = ("scanned + carry, mask=cols < N", "scanned + carry, mask=cols < carry * 0.0")
    text = (ROOT / "solutions/17_prefix_sum/accepted/own_combine_function.py").read_text()
    assert text.count(change[0]) == 1
    verdict = bench(text.replace(*change), "17_prefix_sum").check(normal(4, 4096))
    assert verdict.lines[0] == "Nothing was written to z: no store of a grid of 4 programs reaches it."


def test_parts_that_a_mask_leaves_out_are_not_put_down_to_the_grid_alone(bench):
    change = ("(rows < M) & (cols < N)", "(rows % 3 < 2) & (cols % 3 < 2) & (rows < M) & (cols < N)")
    verdict = judged(bench, "02_strided_blocks", change, normal(64, 64), output(64, 64))
    assert verdict.id == "unwritten" and "or do masks leave out too much?" in verdict.lines[0]


def test_one_tile_that_equals_another_does_not_tell_that_tiles_are_misplaced(bench):
    moved = "tl.where((tl.program_id(0) == 0) & (tl.program_id(1) == 0), 64, 0)"
    change = ("x_ptr + rows * stride_xm", f"x_ptr + {moved} * stride_xm + rows * stride_xm")
    last = ("tile, mask=mask", "tl.where(rows + cols < 128, tile, tile + 1), mask=mask")
    text = (ROOT / "solutions/02_strided_blocks/strided_blocks.py").read_text().replace(*change).replace(*last)
    verdict = bench(text, "02_strided_blocks").check(normal(256, 256), output(256, 256))
    assert "in the wrong place" not in verdict.lines[0]


def test_nan_everywhere_asks_for_the_factor_and_does_not_claim_that_it_is_turned(bench):
    change = ("tl.sum(tl.exp(x - shift), 0)", "tl.sum(tl.log(x - shift), 0)")
    verdict = judged(bench, "13_online_softmax", change, normal(4, 4096))
    assert verdict.lines[0].startswith("z is NaN everywhere. Before the first block") and verdict.lines[0].endswith("?")
