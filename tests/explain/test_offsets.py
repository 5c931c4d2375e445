"""Offsets that their type does not hold, and memory around an argument: named where they matter, and nowhere else."""

from __future__ import annotations

import pytest

from grader import normal, output
from grader.explain.verdict import FAIL, PASS
from tests.conftest import ROOT, mutant

ADD = """
import torch
import triton
import triton.language as tl


@triton.jit
def advance(offsets, by):
    return offsets + by


@triton.jit
def masked_add_kernel(x_ptr, y_ptr, z_ptr, N, BLOCK_N: tl.constexpr):
{body}
    mask = (offsets >= 0) & (offsets < N)
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(z_ptr + offsets, x + y, mask=mask)


def masked_add(x, y):
    z = torch.empty_like(x)
    N = x.numel()
    masked_add_kernel[(triton.cdiv(N, 64),)](x, y, z, N, BLOCK_N=64)
    return z
"""
FIRST_LINE = 14  # of the body
IN_ONE_STEP = "    offsets = tl.program_id(0).to(tl.{dtype}) * BLOCK_N + tl.arange(0, BLOCK_N).to(tl.{dtype})"
IN_A_LOOP = """    offsets = tl.arange(0, BLOCK_N).to(tl.int8)
    for _ in range(tl.program_id(0)):
        offsets = advance(offsets, BLOCK_N)"""
IN_A_WHILE = """    offsets = tl.arange(0, BLOCK_N).to(tl.int8)
    left = tl.program_id(0)
    while left > 0:
        offsets += BLOCK_N
        left -= 1"""
IN_A_BRANCH = """    offsets = (tl.program_id(0) * BLOCK_N).to(tl.int16)
    if N > 100:
        offsets = offsets.to(tl.int8).to(tl.int16)
    offsets = offsets + tl.arange(0, BLOCK_N)"""


@pytest.mark.parametrize(
    ("body", "dtype", "line"),
    [
        (IN_ONE_STEP.format(dtype="int8"), "int8", 0),
        (IN_A_LOOP, "int8", -5),
        (IN_A_WHILE, "int8", 3),
        (IN_A_BRANCH, "int8", 2),
    ],
)
def test_an_integer_that_wraps_on_its_way_to_an_address_is_named(bench, body, dtype, line):
    verdict = bench(ADD.format(body=body)).check(normal(1009), normal(1009))
    assert verdict.outcome == FAIL and verdict.id == "offset-overflow"
    assert verdict.lines[0].startswith(f"An offset leaves {dtype} in line {FIRST_LINE + line}: its largest number")
    assert verdict.lines[-1].startswith(f"Line {FIRST_LINE + line}:")


def test_a_float_that_rounds_a_whole_number_on_its_way_to_an_address_is_named(bench):
    body = "    offsets = (tl.program_id(0).to(tl.float16) * BLOCK_N + tl.arange(0, BLOCK_N)).to(tl.int32)"
    verdict = bench(ADD.format(body=body)).check(normal(4096), normal(4096))
    assert verdict.lines[0].startswith(f"An offset is rounded in line {FIRST_LINE}: fp16 holds every whole number")


def test_what_is_right_may_wrap_around(bench):
    """Offsets of lanes that are masked off, and numbers that lead nowhere."""
    body = """    offsets = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    tl.device_assert((offsets * 1103515245 + 12345) != 7)
    offsets = offsets.to(tl.int8).to(tl.int32) if N < 128 else offsets"""
    judged = bench(ADD.format(body=body))
    assert judged.check(normal(100), normal(100)).outcome == PASS
    assert judged.check(normal(1009), normal(1009)).outcome == PASS


ADD_WITH_FACTOR = """
import torch
import triton
import triton.language as tl


@triton.jit
def masked_add_kernel(x_ptr, y_ptr, z_ptr, N, BLOCK_N: tl.constexpr):
    lanes = tl.arange(0, BLOCK_N)
    mask = lanes < N
{body}
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(z_ptr + offsets, x * {factor} + y, mask=mask)


def masked_add(x, y):
    z = torch.empty_like(x)
    masked_add_kernel[(1,)](x, y, z, x.numel(), BLOCK_N=256)
    return z
"""
TRUNCATED = "    offsets = lanes.to(tl.int8)"
AS_A_COLUMN = """    columns = lanes[None, :].to(tl.int8)
    offsets = tl.reshape(tl.trans(tl.broadcast_to(columns + 0, (1, BLOCK_N))), (BLOCK_N,)).to(tl.int32)"""
CARRIED = """    offsets = lanes
    for _ in range(N // 50):
        offsets = offsets.to(tl.int8).to(tl.int32) + tl.where(mask, 0, 1)"""
IN_ONE_BRANCH = """    offsets = lanes
    if tl.program_id(0) < N:
        offsets = offsets.to(tl.int8).to(tl.int32)"""
CHOSEN = "    offsets = tl.where(lanes < 256, lanes.to(tl.int8).to(tl.int32), lanes)"
ADVANCED = """    offsets = lanes
    small = (N > 0).to(tl.int8) * 100
    step = (small + small).to(tl.int32) + 56
    for _ in range(N // 200):
        offsets += step"""
BODIES = (TRUNCATED, AS_A_COLUMN, CARRIED, IN_ONE_BRANCH, CHOSEN, ADVANCED)


@pytest.mark.parametrize("body", BODIES)
def test_offsets_that_only_masked_lanes_have_are_not_what_made_values_wrong(bench, body):
    verdict = bench(ADD_WITH_FACTOR.format(body=body, factor=0.5)).check(normal(100), normal(100))
    assert verdict.outcome == FAIL and verdict.id != "offset-overflow"
    assert not any("leaves int8" in line for line in verdict.lines)


@pytest.mark.parametrize("body", BODIES)
def test_offsets_that_an_access_uses_are_named_whatever_else_is_wrong(bench, body):
    verdict = bench(ADD_WITH_FACTOR.format(body=body, factor=0.5)).check(normal(200), normal(200))
    assert verdict.id == "offset-overflow" and "leaves int8" in verdict.lines[0]


def test_offsets_that_a_mask_is_made_of_are_named(bench):
    """The lanes are off because of them."""
    body = "    offsets = lanes\n    mask = (offsets.to(tl.int8) >= 0) & (offsets < N)"
    verdict = bench(ADD_WITH_FACTOR.format(body=body, factor=1.0)).check(normal(200), normal(200))
    assert verdict.id == "offset-overflow" and "leaves int8" in verdict.lines[0]


def test_a_view_made_in_python_gives_no_right_to_what_lies_between_an_arguments_elements(bench):
    source = (ROOT / "solutions/02_strided_blocks/strided_blocks.py").read_text()
    source = source.replace("    M, N = x.shape\n", "    M, N = x.shape\n    x = x.as_strided((M, N), (N, 1))\n", 1)
    verdict = bench(source, "02_strided_blocks").check(normal(37, 53).padded(), output(37, 53))
    assert verdict.id in ("oob-load", "stride-ignored")
    assert "x" in verdict.lines[0]


def test_configurations_past_the_sixteenth_are_interpreted_and_named(bench):
    source = mutant("01_masked_add/seventeenth_configuration")
    verdict = bench(source).check(normal(100), normal(100))
    assert verdict.outcome == FAIL
    assert verdict.lines[1].startswith("This is configuration 17 of 20 (BLOCK_N: 128, MORE: True, num_warps: 8, ")


def test_a_false_promise_has_the_name_that_the_kernel_calls_it_by(bench):
    source = mutant("05_grouped_matmul/false_hint_on_swapped_rows")
    small = dict(BLOCK_M=32, BLOCK_N=32, BLOCK_K=32, GROUP_M=2)
    verdict = bench(source, "05_grouped_matmul").check(normal(67, 33), normal(33, 71), **small)
    assert verdict.id == "false-promise" and "tl.max_contiguous in line" in verdict.lines[0]
    assert "do not follow each other by one" in verdict.lines[0]


HINTED = """    offsets = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    near = {loaded}
    z = tl.load(x_ptr + near) + tl.load(y_ptr + near)
    tl.store(z_ptr + {stored}, z, mask=offsets < N)
    offsets = offsets + N"""
HINT = "tl.max_contiguous({}, 64)"


@pytest.mark.parametrize("near", ["offsets % N", "tl.where(offsets < N, offsets, 0)", "tl.minimum(offsets, N - 1)"])
def test_a_hint_that_is_false_where_nothing_is_stored_is_told_and_costs_nothing(bench, near):
    body = HINTED.format(loaded=HINT.format(near), stored=HINT.format("offsets"))
    verdict = bench(ADD.format(body=body)).check(normal(100), normal(100))
    assert verdict.outcome == PASS
    assert verdict.note.endswith(f"the hint in line {FIRST_LINE + 1} is false where nothing is stored")


def test_a_hint_that_leads_to_an_address_that_is_no_multiple_is_refused(bench):
    """Elements 71 to 127 wrap around to 0 to 56: the group of eight that begins at 72 begins at 1."""
    near = "tl.multiple_of(offsets % N, 64)"
    body = HINTED.format(loaded=HINT.format(near), stored="offsets")
    verdict = bench(ADD.format(body=body)).check(normal(71), normal(71))
    assert verdict.id == "false-promise" and "begin again in the middle of a run" in verdict.lines[0]
    assert "an address that is no multiple of their bytes" in verdict.lines[1]
    assert bench(ADD.format(body=body)).check(normal(96), normal(96)).outcome == PASS


WRAPPED = (
    ("    k = tl.arange(0, BLOCK_K)", """
    rows = tl.max_contiguous(tl.multiple_of(m % M, BLOCK_M), BLOCK_M)
    k = tl.arange(0, BLOCK_K)"""),
    ("a_ptr + m[:,", "a_ptr + rows[:,"),
    ("mask=(m[:, None] < M) & (start + k[None, :] < K)", "mask=start + k[None, :] < K"),
)  # fmt: skip
COLUMNS = {"side by side": normal(71, 33).transposed(), "80 apart": normal(71, 33).transposed(16)}


@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_rows_that_wrap_are_refused_where_columns_begin_at_multiples_alone(bench, columns, dtype):
    """For others the compiler makes no wide load: it does not know that the address of a column is a multiple."""
    text = (ROOT / "solutions/05_grouped_matmul/grouped_matmul.py").read_text(encoding="utf-8")
    for old, new in WRAPPED:
        assert text.count(old) == 1
        text = text.replace(old, new)
    small = dict(BLOCK_M=32, BLOCK_N=32, BLOCK_K=32, GROUP_M=2)
    verdict = bench(text, "05_grouped_matmul").check(COLUMNS[columns], normal(33, 45), dtypes=(dtype,), **small)
    if columns == "side by side":
        assert verdict.outcome == PASS and "is false where nothing is stored" in verdict.note
    else:
        assert verdict.id == "false-promise" and "begin again in the middle of a run" in verdict.lines[0]


def test_a_promise_about_addresses_counts_elements_in_runs_and_bytes_in_multiples(bench):
    near = "tl.max_contiguous(tl.multiple_of(x_ptr + {}, 16), 4)"
    body = HINTED.replace("tl.load(x_ptr + near)", "tl.load(near)").replace("tl.load(y_ptr + near)", "0.0")
    right = body.format(loaded=near.format("offsets % N"), stored="offsets")
    assert "false" not in bench(ADD.format(body=right)).check(normal(64), normal(64)).note
    swapped = body.format(loaded=near.format("(offsets ^ 1)"), stored="(offsets ^ 1)")
    assert bench(ADD.format(body=swapped)).check(normal(64), normal(64)).id == "false-promise"


CHANGED = {"loaded": "z[0] changes", "stored": "a GPU then reads and writes other places"}


@pytest.mark.parametrize("hinted", CHANGED)
def test_a_hint_that_changes_an_element_where_it_is_believed_is_refused(bench, hinted):
    """Pairs of neighbours change places when they are loaded, and when they are stored; the hint denies it once."""
    swapped = {"loaded": "(offsets ^ 1)", "stored": "(offsets ^ 1)"}
    body = HINTED.format(**swapped | {hinted: HINT.format("offsets ^ 1")})
    verdict = bench(ADD.format(body=body)).check(normal(128), normal(128))
    line = FIRST_LINE + (1 if hinted == "loaded" else 3)
    assert verdict.id == "false-promise" and verdict.lines[0].startswith(f"tl.max_contiguous in line {line} promises")
    assert CHANGED[hinted] in verdict.lines[1]
