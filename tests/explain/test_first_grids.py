"""Beginners' grids and masks that do not fit: the sentence names what is to blame, and the line where it stands."""

from __future__ import annotations

import pytest

from grader import indices, normal, output, slots
from grader.judging.uses import TrafficUse
from tests.conftest import ROOT
from tests.explain.first_mistakes import told

IDS = ("01_masked_add", "02_strided_blocks", "04_transpose", "06_fused_outer", "07_row_sum", "12_gather_rows")
ADD, COPY, TURN, OUTER, SUM, GATHER = IDS

SUMS = (normal(1025), normal(1025)), dict(BLOCK_N=1024)
COPIES = (normal(101, 153), output(101, 153)), dict(BLOCK_M=64, BLOCK_N=64)
TURNS = (normal(33, 200),), {}
OUTERS = (normal(40), normal(300)), dict(BLOCK_M=32, BLOCK_N=128)
ROWS = (normal(12, 40),), dict(BLOCK_N=64)

ONE = "(triton.cdiv(N, BLOCK_N),)"
TWO = "(triton.cdiv(N, BLOCK_N), triton.cdiv(M, BLOCK_M))"
OF_TILE = "mask=(rows[:, None] < M) & (cols[None, :] < N)"
NO_PROGRAM = "The end of z is not covered by a grid of 1 program: has the last, partial block a program of its own?"
UP = "{} rounds down: triton.cdiv({}) rounds up."
PAST = "The mask of the {} in line {} lets lanes outside of {} through, past its last {}. If the mask limits"

# The exercise, the change, the call, the first sentence, the line, and another sentence.
TOO_FEW = {
    "rounded down": (
        ADD, (ONE, "(N // BLOCK_N,)"), SUMS, NO_PROGRAM, "grid = (N // BLOCK_N,)",
        UP.format("N // BLOCK_N", "N, BLOCK_N"),
    ),
    "rounded down by int": (
        ADD, (ONE, "(int(N / BLOCK_N),)"), SUMS, NO_PROGRAM, "grid = (int(N / BLOCK_N),)",
        UP.format("int(N / BLOCK_N)", "N, BLOCK_N"),
    ),
    "too few, and not rounded": (ADD, (ONE, "(1,)"), SUMS, NO_PROGRAM, "grid = (1,)", ""),
    "the ceiling by hand, of one element less": (
        ADD, (ONE, "((N - 2 + BLOCK_N) // BLOCK_N,)"), SUMS, NO_PROGRAM, "grid = ((N - 2 + BLOCK_N) // BLOCK_N,)", "",
    ),
    "columns rounded down": (
        COPY, (TWO, "(N // BLOCK_N, triton.cdiv(M, BLOCK_M))"), COPIES, "The last columns of z are not covered by a gr",
        "grid = (N // BLOCK_N, triton.cdiv(M, BLOCK_M))", UP.format("N // BLOCK_N", "N, BLOCK_N"),
    ),
    "rows rounded down": (
        OUTER, (TWO, "(triton.cdiv(N, BLOCK_N), M // BLOCK_M)"), OUTERS, "The last rows of z are not covered by a grid",
        "grid = (triton.cdiv(N, BLOCK_N), M // BLOCK_M)", UP.format("M // BLOCK_M", "M, BLOCK_M"),
    ),
    "both rounded down": (
        COPY, (TWO, "(N // BLOCK_N, M // BLOCK_M)"), COPIES, "Parts of z are not covered by a grid of 2 programs",
        "grid = (N // BLOCK_N, M // BLOCK_M)", UP.format("N // BLOCK_N", "N, BLOCK_N"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TOO_FEW)
def test_a_grid_with_too_few_programs_is_told_by_its_line(bench, name):
    id, (old, new), (data, sizes), said, line, why = TOO_FEW[name]
    text = solution(id).replace(old, new)
    verdict = bench(text, id).check(*data, **sizes)
    assert verdict.lines[0].startswith(said)
    assert text.splitlines()[verdict.line - 1].partition("  #")[0].strip() == line
    assert verdict.lines[1:2] == [why] if why else not any("rounds down" in one for one in verdict.lines)


def test_the_grid_is_not_told_where_another_block_size_alone_is_wrong(bench):
    """The grid is made for the block sizes of the call, and the kernel uses one for both."""
    change = "tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)", "tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)"
    one = bench(solution(COPY).replace(*change), COPY)
    for rows in (64, 70, 101, 137):
        assert one.check(normal(rows, 153), output(rows, 153), dtypes=("float32",)).outcome == "pass"
    verdict = one.check(normal(137, 153), output(137, 153), BLOCK_M=32, BLOCK_N=128)
    assert "of them should?" in verdict.lines[0] and verdict.line == 0
    assert not any("grid" in line for line in verdict.lines)


@pytest.mark.parametrize(
    ("rows", "some"),
    [(indices(12, below=4), "of 12 programs write nothing"), (slots(12, below=12), "1 of 12 programs writes nothing")],
    ids=["several", "one"],
)
def test_a_condition_that_ends_programs_before_they_store_is_told_by_its_line(bench, rows, some):
    row = next(line for line in solution(GATHER).splitlines() if "row = tl.load" in line)
    change = (row, f"{row}\n    if row == 2:\n        return")
    said, line = told(bench, GATHER, (change,), (normal(12, 300), rows), {})
    assert some in said and "ends a program early" in said and line == "if row == 2:"


TOO_MANY = {
    "a program for each element": (
        ADD, (ONE, "(N,)"), ((normal(2048), normal(2048)), dict(BLOCK_N=1024)), dict(programs=64),
        "2048 programs are launched, and 2046 of them have nothing to do: 2 are enough.", "grid = (N,)",
    ),
    "one more than needed": (
        ADD, (ONE, "(N // BLOCK_N + 1,)"), ((normal(2048), normal(2048)), dict(BLOCK_N=1024)), dict(idle=0),
        "1 program of 3 has nothing to do: the grid is larger than needed.", "grid = (N // BLOCK_N + 1,)",
    ),
    "a program for each column": (
        COPY, (TWO, "(N, triton.cdiv(M, BLOCK_M))"), COPIES, dict(idle=0),
        "300 programs of 306 have nothing to do: the grid is larger than needed.",
        "grid = (N, triton.cdiv(M, BLOCK_M))",
    ),
    "a program for each element of a row": (
        GATHER, ("(K, triton.cdiv(N, BLOCK_N))", "(K, N)"), ((normal(100, 2048), indices(16, below=100)), {}),
        dict(reads={"table": 1, "index": 1024}, programs=256), "32768 programs are launched; 256 are more than enough",
        "grid = (K, N)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TOO_MANY)
def test_a_grid_with_too_many_programs_is_told_by_its_line(bench, name):
    id, (old, new), (data, sizes), limits, said, line = TOO_MANY[name]
    text = solution(id).replace(old, new)
    verdict = TrafficUse.of("test_a_case", *data, **limits, **sizes).verdict(bench(text, id).judge)
    assert verdict.lines[0].startswith(said)
    assert text.splitlines()[verdict.line - 1].partition("  #")[0].strip() == line


AT_22 = "The address in line 22 leads outside of z"
PAST_THE_END = {
    "a program for each column": (
        SUM, ("(M,)", "(N,)"), f"{AT_22}: the grid, made in line 32, has 40 programs, and z has 12",
        "grid = (N,)",
    ),
    "a program more than there are rows": (
        SUM, ("(M,)", "(M + 1,)"), f"{AT_22}: the grid, made in line 32, has 13 programs, and z has 12",
        "grid = (M + 1,)",
    ),
    "a program's number times the row's length": (
        SUM, ("z_ptr + row", "z_ptr + row * N"), f"{AT_22}. It is one address, no block",
        "tl.store(z_ptr + row * N, tl.sum(partial, 0))",
    ),
    "every second element": (
        SUM, ("z_ptr + row", "z_ptr + 2 * row"), f"{AT_22}. It is one address, no block",
        "tl.store(z_ptr + 2 * row, tl.sum(partial, 0))",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PAST_THE_END)
def test_programs_past_the_last_element_are_told_from_wrong_addresses(bench, name):
    id, change, said, line = PAST_THE_END[name]
    sentence, where = told(bench, id, (change,), *ROWS)
    assert sentence.startswith(said) and where == line


MASKS = {
    "limits exchanged": (
        COPY, ("(rows < M) & (cols < N)", "(rows < N) & (cols < M)"), COPIES, PAST.format("store", 19, "z", "row"),
    ),
    "limits exchanged in a load": (
        TURN, ("(m[:, None] < M) & (n[None, :] < N)", "(m[:, None] < N) & (n[None, :] < M)"), TURNS,
        PAST.format("load", 20, "x", "row"),
    ),
    "limits exchanged in a store": (
        OUTER, (OF_TILE, "mask=(rows[:, None] < N) & (cols[None, :] < M)"), OUTERS,
        PAST.format("store", 23, "z", "row"),
    ),
    "columns alone": (OUTER, (OF_TILE, "mask=cols[None, :] < N"), OUTERS, PAST.format("store", 23, "z", "row")),
    "rows alone": (COPY, ("(rows < M) & (cols < N)", "rows < M"), COPIES, PAST.format("store", 19, "z", "column")),
    "rows for columns": (SUM, ("mask=cols < N", "mask=row < M"), ROWS, PAST.format("load", 21, "x", "column")),
}  # fmt: skip


@pytest.mark.parametrize("name", MASKS)
def test_a_mask_that_forgets_an_axis_is_told_with_it(bench, name):
    id, change, (data, sizes), said = MASKS[name]
    sentence, _ = told(bench, id, (change,), data, sizes)
    assert sentence.startswith(said)


# A product whose tiles are found from one number, with one slip: the first program that writes nothing, of a's and of
# b's shape.
TILES = {
    "the last group is taken to be full": (
        (("min(tiles_m - first_m, GROUP_M)", "GROUP_M"),), ((67, 75), (75, 71)), "(7,)",
    ),
    "the number divided by how many rows of tiles there are": (
        (
            ("first_m + pid % programs_per_group % rows_in_group", "pid // tiles_m"),
            ("pid % programs_per_group // rows_in_group", "pid % tiles_m"),
        ),
        ((64, 64), (64, 96)), "(4,)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TILES)
def test_the_first_program_without_a_tile_is_told(bench, name):
    changes, (a, b), program = TILES[name]
    id, text = "05_grouped_matmul", solution("05_grouped_matmul")
    for old, new in changes:
        assert text.count(old) == 1
        text = text.replace(old, new)
    sizes = dict(BLOCK_M=32, BLOCK_N=32, BLOCK_K=32, GROUP_M=2)
    verdict = bench(text, id).check(normal(*a), normal(*b), dtypes=("float16",), **sizes)
    assert verdict.lines[0].endswith(" nothing to c: program numbers lead to the wrong places.")
    assert verdict.lines[1].startswith(f"Program {program} is the first of these: which tile do line 18 and the lines")


def solution(id: str) -> str:
    return (ROOT / f"solutions/{id}/{id[3:]}.py").read_text(encoding="utf-8")


ROWS_APART = [
    (
        (("z_ptr + row * stride_zm + cols * stride_zn", "z_ptr + row * BLOCK_N + cols"),),
        "store",
        "tl.store(z_ptr + row",
    ),
    ((("x_ptr + row * stride_xm + cols * stride_xn", "x_ptr + row * BLOCK_N + cols"),), "load", "x = tl.load(x_ptr"),
    (
        (
            ("    mask = cols < N\n", "    mask = cols < N\n    offsets = row * BLOCK_N + cols\n"),
            ("z_ptr + row * stride_zm + cols * stride_zn", "z_ptr + offsets"),
        ),
        "store",
        "offsets = row",
    ),
    ((("z_ptr + row * stride_zm + cols", "z_ptr + row * (stride_zm + 8) + cols"),), "store", "tl.store(z_ptr + row"),
]


@pytest.mark.parametrize(("changes", "function", "line"), ROWS_APART)
def test_an_offset_that_takes_other_lengths_for_rows_leads_amid_a_row(bench, changes, function, line):
    """The mask lets through what a row has: neither it nor a column is to blame."""
    text = solution("03_softmax")
    for old, new in changes:
        assert text.count(old) == 1
        text = text.replace(old, new)
    verdict = bench(text, "03_softmax").check(normal(100, 781), dtypes=("float32",))
    assert verdict.lines[0].startswith(f"The address of the {function} in line ")
    assert "is wrong, and not its mask, which lets through a lane for each of the 781 columns of " in verdict.lines[0]
    assert verdict.lines[0].endswith(", where no row begins.") and "[100, 0]" in verdict.lines[1]
    assert text.splitlines()[verdict.line - 1].strip().startswith(line)


def test_a_row_too_many_is_no_wrong_length_of_rows(bench):
    text = solution("03_softmax").replace("(M,)", "(M + 1,)")
    verdict = bench(text, "03_softmax").check(normal(12, 781), dtypes=("float32",))
    assert "and not its mask" not in verdict.lines[0]
