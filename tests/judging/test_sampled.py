"""Calls too large for the interpreter: a sample of their programs finds what is wrong and blames no right kernel."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pytest

from grader import Exercise, indices, normal, output, slots, whole
from grader.course.cut import Cut
from grader.course.exercise import Result
from grader.course.folder import all_folders, load_test_file
from grader.explain.verdict import FAIL, NOT_RUN, PASS, SKIPPED, UNJUDGED
from grader.interpreter.buffers import PAGE, Buffer
from grader.interpreter.sampled import programs_of
from grader.interpreter.views import BufferView
from grader.judging import in_samples
from grader.judging.judge import Judge
from grader.judging.uses import CheckUse, CompiledUse, DrawnUse, OnGpuUse, ThroughputUse, uses_asked
from grader.numerics.data_sets import Data
from grader.numerics.drawn_pages import ENTRIES, entries_of
from grader.numerics.layouts import far_apart
from tests.conftest import ROOT, folders_with_kernels
from tests.slow import in_turn
from tests.typed_commands import run_pytest

LARGE = {
    "01_masked_add": (normal((1 << 29) + 1009), normal((1 << 29) + 1009)),
    "02_strided_blocks": (normal(24593, 24593).padded(), output(24593, 24593)),
    "03_softmax": (normal(262147, 2053),),
    "04_transpose": (normal(24593, 24593),),
    "05_grouped_matmul": (normal(65537, 64), normal(64, 16411)),
}
LONG_ROWS = (normal(4099, 12671),)
SEEDS = [1, 2, 3]


def with_seeds(cases: Iterable[tuple]) -> list[tuple]:
    """Returns each case with a seed behind it, whose turn it is; with every seed in `tox -- slow`."""
    return [(*case, seed) for place, case in enumerate(cases) for seed in in_turn(SEEDS, place)]


SMALL = {
    "03_softmax": (normal(9, 70),),
    "05_grouped_matmul": (normal(40, 70), normal(70, 30)),
}


def verdict_on(bench, path: str, data=None, seed: int = 1, change: tuple[str, str] = ("", ""), small: bool = False):
    """small: whether a small call is judged first."""
    file, id = ROOT / path, path.split("/")[1]
    source = file.read_text()
    assert change[0] in source
    judged = bench(source.replace(*change, 1), id, seed)
    if small:
        assert CheckUse.of("test_small", *SMALL[id]).verdict(judged.judge).outcome == PASS
    return OnGpuUse.of("test_large", *(data or LARGE[id]), dtypes=(judged.judge.exercise.dtypes[0],)).verdict(
        judged.judge
    )


SOLUTIONS = {
    "01": "solutions/01_masked_add/masked_add.py",
    "02": "solutions/02_strided_blocks/strided_blocks.py",
    "03": "solutions/03_softmax/softmax.py",
    "04": "solutions/04_transpose/transpose.py",
    "05": "solutions/05_grouped_matmul/grouped_matmul.py",
}


@pytest.mark.parametrize("path", SOLUTIONS.values())
def test_a_right_kernel_is_told_how_much_was_judged(bench, path):
    verdict = verdict_on(bench, path)
    assert (verdict.outcome, verdict.id) == (SKIPPED, NOT_RUN), verdict.lines
    assert verdict.note.startswith("a sample of 12 of ")
    assert verdict.note.endswith(" programs is right; values in full need a GPU")


@pytest.mark.parametrize(
    ("path", "judged"),
    [
        ("solutions/01_masked_add/accepted/assigned_zeros.py", "right"),
        ("solutions/02_strided_blocks/accepted/flat_index.py", "right"),
        ("solutions/03_softmax/accepted/several_rows.py", "right"),
        ("solutions/03_softmax/accepted/two_launches.py", "in bounds"),
        ("solutions/04_transpose/accepted/swapped_pointers.py", "right"),
        ("solutions/05_grouped_matmul/accepted/split_k.py", "in bounds"),
    ],
)
def test_right_kernels_of_other_kinds_are_blamed_for_nothing(bench, path, judged):
    verdict = verdict_on(bench, path, small=judged == "in bounds")
    assert (verdict.outcome, verdict.id) == (SKIPPED, NOT_RUN), verdict.lines
    assert f"{judged}; values in full need a GPU" in verdict.note


TWICE_IF_LARGE = """

once = softmax


def softmax(x):
    return once(x) if x.shape[0] < 4000 or once(x) is None else once(x)
"""


SPLIT = "solutions/14_split_softmax/split_softmax.py"
FAR_APART = (replace(normal(8200), layout=far_apart((8200,), 0, 2**31 - 1)),)


def test_values_of_several_launches_are_compared_where_all_their_programs_ran(bench):
    right, wrong = (
        verdict_on(bench, SPLIT, FAR_APART),
        verdict_on(bench, SPLIT, FAR_APART, change=("(x - shift)", "(x)")),
    )
    assert (right.outcome, right.id) == (SKIPPED, NOT_RUN), right.lines
    assert wrong.outcome == FAIL and "that program" in wrong.lines[0], wrong.lines


def test_what_no_smaller_call_launches_is_left_open_where_its_values_cannot_be_told(bench):
    judge = bench((ROOT / SOLUTIONS["03"]).read_text() + TWICE_IF_LARGE, "03_softmax").judge
    assert CheckUse.of("test_small", *SMALL["03_softmax"]).verdict(judge).outcome == PASS
    verdict = OnGpuUse.of("test_large", *LARGE["03_softmax"], dtypes=("float32",)).verdict(judge)
    assert (verdict.outcome, verdict.id) == (SKIPPED, UNJUDGED), verdict.lines
    assert verdict.note == "needs a GPU: it launches softmax_kernel, then softmax_kernel, and no smaller call does"


def test_a_dtype_that_is_left_open_is_not_forgotten_for_the_next_one(bench):
    twice = TWICE_IF_LARGE.replace("x.shape[0] < 4000", "x.shape[0] < 4000 or x.dtype != torch.float32")
    judge = bench((ROOT / SOLUTIONS["03"]).read_text() + twice, "03_softmax").judge
    assert CheckUse.of("test_small", *SMALL["03_softmax"]).verdict(judge).outcome == PASS
    assert OnGpuUse.of("test_large", *LARGE["03_softmax"], dtypes=("float32", "float16")).verdict(judge).id == UNJUDGED


WRONG_FROM = ("    M, N = x.shape\n", "    M, N = x.shape\n    if M > 4000:\n        x = x[:1].expand(M, N)\n")


def test_the_values_of_calls_that_are_compiled_or_timed_are_judged_too(bench):
    source = (ROOT / SOLUTIONS["03"]).read_text().replace(*WRONG_FROM)
    judge = bench(source, "03_softmax").judge
    assert CheckUse.of("test_small", *SMALL["03_softmax"]).verdict(judge).outcome == PASS
    for verdict in (
        CompiledUse.of("test_code", normal(4096, 1024)).verdict(judge),
        ThroughputUse.of("test_speed", normal(32768, 4096), at_least=0.5).verdict(judge),
    ):
        assert verdict.outcome == FAIL and "z is wrong in" in verdict.lines[0]
    right = bench((ROOT / SOLUTIONS["03"]).read_text(), "03_softmax").judge
    assert CompiledUse.of("test_code", normal(4096, 1024)).verdict(right).outcome == PASS
    assert ThroughputUse.of("test_speed", normal(32768, 4096), at_least=0.5).verdict(right) is None


@pytest.mark.parametrize(
    "mask, count",
    [("offsets.to(tl.float32) < N", 960), ("offsets < N - 1", 1022), ("offsets < N // 1024 * 1024", 0)],
)
def test_the_end_of_a_vector_that_the_last_program_leaves_out_is_missed(bench, mask, count):
    data = (normal(2**31 - 1), normal(2**31 - 1))
    verdict = verdict_on(bench, SOLUTIONS["01"], data, change=("offsets < N", mask))
    assert verdict.outcome == FAIL and verdict.lines[0].startswith("The last program does not write the end of z")
    assert verdict.lines[1].endswith(f"leaves 1023 for program 2097151, which writes {count}.")


@pytest.mark.parametrize(
    "pid", ["tl.program_id(0)", "(tl.num_programs(0) - 1 - tl.program_id(0))", "(tl.program_id(0) ^ 1)"]
)
def test_programs_in_any_order_may_write_a_vector(bench, pid):
    data = (normal(2**31 - 1), normal(2**31 - 1))
    assert verdict_on(bench, SOLUTIONS["01"], data, change=("tl.program_id(0)", pid)).outcome == SKIPPED


def test_a_large_call_of_two_tests_is_sampled_once(bench, monkeypatch):
    judge = bench((ROOT / SOLUTIONS["03"]).read_text(), "03_softmax", 1).judge
    sampled, sample = [], judge.run.sample
    monkeypatch.setattr(judge.run, "sample", lambda *args: sampled.append(args[1]) or sample(*args))
    data, other = (normal(4096, 1024),), (normal(4096, 1025),)
    assert CompiledUse.of("test_code", *data).verdict(judge).outcome == PASS
    assert ThroughputUse.of("test_speed", *data, at_least=0.5).verdict(judge) is None and len(sampled) == 1
    assert ThroughputUse.of("test_speed", *other, at_least=0.5).verdict(judge) is None and len(sampled) == 2


def test_drawn_calls_go_up_to_what_the_lesson_promises(bench):
    (folder,) = [one for one in all_folders(ROOT) if one.id == "07_row_sum"]
    (use,), change = uses_asked(load_test_file(folder), DrawnUse), WRONG_FROM[1].replace("4000", "100_000")
    source = (ROOT / "solutions/07_row_sum/row_sum.py").read_text()
    assert WRONG_FROM[0] in source
    for text, outcome in ((source.replace(WRONG_FROM[0], change), FAIL), (source, PASS)):
        judge = bench(text, "07_row_sum").judge
        verdict = use.verdict(judge)
        assert verdict.outcome == outcome
        assert outcome == PASS or "z is wrong in" in verdict.lines[0]


@pytest.mark.parametrize(
    ("change", "reach", "words"),
    [
        (("", ""), 2**31 - 1, None),
        (("tl.dot(a, b, ", "tl.dot(a * 1.5, b, "), 2**31 - 1, "c is wrong in"),
        (("", ""), 2**33, "An offset leaves int32"),
    ],
)
def test_long_strides_are_blamed_only_where_an_offset_is_used(bench, change, reach, words):
    """Masked lanes leave int32 in all of these: rows past the end, where rows lie far apart."""
    a, b = normal(70, 64), normal(64, 50)
    data = (replace(a, layout=far_apart(a.shape, 0, reach)), b)
    verdict = verdict_on(bench, SOLUTIONS["05"], data, change=change)
    assert verdict.outcome == (FAIL if words else SKIPPED)
    assert words is None or words in verdict.lines[0]


def test_a_run_that_leaves_a_large_call_open_has_not_passed(tmp_path):
    path, result = tmp_path / "softmax.py", tmp_path / "result.json"
    path.write_text((ROOT / SOLUTIONS["03"]).read_text() + TWICE_IF_LARGE)
    ended = run_pytest("exercises/03_softmax", "--submission", path, "--seed", "5", "--result", result, cwd=ROOT)
    assert ended.status == 1 and json.loads(result.read_text())["outcome"] == "incomplete"
    assert "Right so far, and not passed" in ended.out and "Next: run it where there is a GPU" in ended.out
    assert "FAILED" not in ended.out


@pytest.mark.parametrize("path", ["05_grouped_matmul/accepted/lock", "04_transpose/accepted/persistent_grid"])
def test_programs_that_wait_or_do_nearly_everything_are_left_to_a_gpu(bench, path):
    verdict = verdict_on(bench, f"solutions/{path}.py")
    assert (verdict.outcome, verdict.note) == (SKIPPED, "needs a GPU: no sample of its programs can be interpreted")


def test_programs_may_come_in_any_order(bench):
    backwards = ("tl.program_id(0) * BLOCK_N", "(tl.num_programs(0) - 1 - tl.program_id(0)) * BLOCK_N")
    assert verdict_on(bench, SOLUTIONS["01"], change=backwards).outcome == SKIPPED


@pytest.mark.parametrize(
    ("number", "change", "words", "seed"),
    with_seeds([
        ("01", ("grid = (triton.cdiv(N, BLOCK_N),)", "grid = (min(triton.cdiv(N, BLOCK_N), 65535),)"),
         "z is not covered by a grid of 65535 programs"),
        ("01", ("offsets, x + y", "offsets, x + y + (tl.program_id(0) > 60000)"), "that program ("),
        ("01", ("offsets < N", "offsets < (N + 4095) // 1024 * 1024"), "lets lanes outside of"),
        ("02", ("grid = (triton.cdiv(N, BLOCK_N), triton.cdiv(M, BLOCK_M))",
                "grid = (triton.cdiv(N, BLOCK_N), min(triton.cdiv(M, BLOCK_M), 256))"), "z is not covered by a grid"),
        ("02", ("rows * stride_xm", "rows * (stride_xm - (tl.program_id(1) > 200) * 13)"), "z is wrong"),
        ("04", ("tl.store(z_ptrs", "tl.store(z_ptrs + (tl.program_id(0) > 100)"), "z"),
        ("05", ('precision="tf32x3")', 'precision="tf32x3") + (pid > 16000)'), "c is wrong in"),
    ]),
)  # fmt: skip
def test_a_mistake_that_only_large_calls_show_is_found_with_every_seed(bench, number, change, words, seed):
    verdict = verdict_on(bench, SOLUTIONS[number], seed=seed, change=change)
    assert verdict.outcome == FAIL and words in verdict.lines[0], verdict.lines


def test_programs_that_leave_out_what_the_grid_has_no_room_for_are_found(bench):
    """Each program has a whole tile, so that none may write less."""
    data = normal(64, 1 << 19), output(64, 1 << 19)
    verdict = verdict_on(bench, SOLUTIONS["02"], data, change=("cols < N)", "cols % 64 < 64 - cols // (N - 64))"))
    assert verdict.lines[0].startswith("Parts of z are never written: some of a grid of 8192 x 1 programs write less")
    assert verdict_on(bench, SOLUTIONS["02"], data).outcome == SKIPPED


def test_a_number_that_wraps_and_leads_a_descriptor_to_nothing_is_found(bench):
    """The corner of the last tile is negative then: a descriptor loads zeros there and stores nothing."""
    path, data = "solutions/23_descriptor_matmul/descriptor_matmul.py", (normal(65537, 64), normal(64, 16408))
    assert verdict_on(bench, path, data).outcome == SKIPPED
    wrapped = verdict_on(bench, path, data, change=("tl.program_id(0)", "tl.program_id(0).to(tl.int16)"))
    assert wrapped.id == "offset-overflow" and wrapped.lines[0].startswith("An offset leaves int16 in line 19")


PICK = """
import torch
import triton
import triton.language as tl

@triton.jit
def pick_kernel(x_ptr, index_ptr, z_ptr, N, BLOCK_N: tl.constexpr):
    i = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    index = tl.load(index_ptr + i, mask=i < N, other=0)
    tl.store(z_ptr + i, tl.load(x_ptr + index, mask=i < N), mask=i < N)

def pick(x, index):
    z = torch.empty(index.shape, dtype=x.dtype, device=x.device)
    pick_kernel[(triton.cdiv(index.numel(), 1024),)](x, index, z, index.numel(), BLOCK_N=1024)
    return z
"""


@pytest.mark.parametrize(
    ("change", "outcome", "words"),
    [
        (("", ""), SKIPPED, "a sample of 12 of 262145 programs is right"),
        (("x_ptr + index", "x_ptr + index // 2 * 2"), FAIL, "z is wrong in"),
        (("x_ptr + index", "x_ptr + index + 1"), FAIL, "leads outside of x"),
    ],
)
def test_indices_of_large_calls_are_drawn_too(bench, change, outcome, words):
    exercise = Exercise(
        entry="pick", reference=lambda x, index: x[index], bound="exact", minutes=1, cut="x[:], index[n] -> z[n]"
    )
    judge = Judge(exercise, bench(PICK.replace(*change), "01_masked_add").judge.run)
    N = (1 << 28) + 1
    verdict = OnGpuUse.of("test_large", normal(37), indices(N, below=37), dtypes=("float32",)).verdict(judge)
    assert verdict.outcome == outcome and words in " ".join([verdict.note, *verdict.lines]), verdict


def test_a_block_that_ends_before_its_row_is_found(bench):
    capped = ("triton.next_power_of_2(N)", "min(triton.next_power_of_2(N), 8192)")
    verdict = verdict_on(bench, SOLUTIONS["03"], LONG_ROWS, change=capped)
    assert verdict.lines[0] == "The end of each row of z is never written: the block ends before the row does."
    assert verdict.lines[1] == "Each program writes 8192 elements of z, together 33579008 of 51938429 at most."


# ---- rows that indices pick, and offsets past 2**31 ------------------------------------------------------------------

LARGE_TABLE = whole(40_000, 65_536), indices(1000, below=40_000, least=32_768)
LARGE_RESULT = whole(3, 4_000_037), indices(600, below=3)
AFTER_THE_PRODUCT = ("row * stride_tm", "(row.to(tl.int32) * stride_tm).to(tl.int64)")
ROW_OF_Z_IN_INT32 = ("tl.program_id(0).to(tl.int64)", "tl.program_id(0)")


def gathered(bench, data, seed: int = 1, change: tuple[str, str] = ("", "")):
    source = (ROOT / "solutions/12_gather_rows/gather_rows.py").read_text()
    assert change[0] in source
    return OnGpuUse.of("test_large", *data, dtypes=("int8",)).verdict(
        bench(source.replace(*change, 1), "12_gather_rows", seed).judge
    )


@pytest.mark.parametrize(("data", "seed"), with_seeds([(LARGE_TABLE,), (LARGE_RESULT,)]))
def test_a_right_gather_is_right(bench, data, seed):
    verdict = gathered(bench, data, seed)
    assert (verdict.outcome, verdict.id) == (SKIPPED, NOT_RUN), verdict.lines
    assert " programs is right; values in full need a GPU" in verdict.note


@pytest.mark.parametrize("index", [LARGE_TABLE[1].of("int64"), indices(1000, below=40_000)])
def test_indices_may_have_64_bits_and_be_any_of_the_table(bench, index):
    verdict = gathered(bench, (LARGE_TABLE[0].padded(), index))
    assert (verdict.outcome, verdict.id) == (SKIPPED, NOT_RUN), verdict.lines
    assert "is right" in verdict.note


@pytest.mark.parametrize(
    ("old", "new", "seed"),
    with_seeds([
        ("row * stride_tm", "(row - 1) * stride_tm"), ("index_ptr + k", "index_ptr + (k + 1) % K"),
        ("tl.load(index_ptr + k)", "tl.program_id(0)"), ("cols * stride_tn", "(cols ^ 1) * stride_tn"),
    ]),
)  # fmt: skip
def test_a_gather_of_other_rows_or_columns_is_named_with_every_seed(bench, old, new, seed):
    verdict = gathered(bench, LARGE_TABLE, seed, (old, new))
    assert verdict.outcome == FAIL and verdict.lines[0].startswith("z is wrong in 1"), verdict.lines
    assert verdict.lines[0].endswith(" writes, int8.") and "First wrong element: z[" in verdict.lines[1]


@pytest.mark.parametrize(
    ("data", "change", "seed"), with_seeds([(LARGE_TABLE, AFTER_THE_PRODUCT), (LARGE_RESULT, ROW_OF_Z_IN_INT32)])
)
def test_a_product_that_leaves_int32_is_named_with_every_seed(bench, data, change, seed):
    verdict = gathered(bench, data, seed, change)
    assert (verdict.outcome, verdict.id) == (FAIL, "offset-overflow"), verdict.lines
    assert verdict.lines[0].startswith("An offset leaves int32 in line 2"), verdict.lines
    assert "its largest number is 2**31 - 1 = 2147483647" in verdict.lines[0]


def paged(bench, path: str, where: Data, pages: int, seed: int):
    """A call that writes as many tokens as there are slots into caches of so many pages with 16 rows."""
    (count,), cache = where.shape, normal(pages, 16, 8, 128)
    judge = bench((ROOT / path).read_text(), "39_kv_cache_write", seed).judge
    return OnGpuUse.of("test_large", normal(count, 8, 128), normal(count, 8, 128), cache, cache, where).verdict(judge)


@pytest.mark.parametrize(
    ("path", "seed"),
    with_seeds([("solutions/39_kv_cache_write/kv_cache_write.py",),
                ("solutions/39_kv_cache_write/accepted/tiles_of_tokens.py",)]),
)  # fmt: skip
def test_no_two_slots_of_a_large_call_are_the_same(bench, path, seed):
    for where in (slots(70_001, below=80_000, nowhere=0.1), slots(3, below=140_000 * 16).every_second().of("int64")):
        verdict = paged(bench, path, where, 140_000, seed)
        assert (verdict.outcome, verdict.id) == (SKIPPED, NOT_RUN), verdict.lines
        assert "programs" in verdict.note and "in bounds; values in full need a GPU" in verdict.note


@pytest.mark.parametrize("change", [("(triton.cdiv(N, BLOCK_N),)", "(triton.cdiv(N, BLOCK_N) * (N < 2**20),)"),
                                    ("mask = offsets < N", "mask = (offsets < N) & (N < 2**20)")])  # fmt: skip
def test_a_large_call_in_which_nothing_is_stored_is_wrong(bench, change):
    verdict = verdict_on(bench, SOLUTIONS["01"], change=change)
    assert verdict.outcome == FAIL and "z is not covered" in verdict.lines[0]


def test_nothing_is_made_as_long_as_a_dimension_that_is_not_cut(bench, monkeypatch):
    made = []
    monkeypatch.setattr(in_samples, "_parts", lambda *asked: made.append(asked))
    solution = (ROOT / "solutions/39_kv_cache_write/kv_cache_write.py").read_text()
    cache, where = normal(2**31 - 1, 1, 1, 1), slots(2, below=2**31 - 1)
    call = OnGpuUse.of("test_large", normal(2, 1, 1), normal(2, 1, 1), cache, cache, where)
    assert "in bounds" in call.verdict(bench(solution, "39_kv_cache_write", 1).judge).note and not made


def test_too_many_slots_to_be_drawn_for_a_sample_are_left_to_a_gpu(bench):
    many = slots((1 << 20) + 1, below=140_000 * 16)
    assert paged(bench, "solutions/39_kv_cache_write/kv_cache_write.py", many, 140_000, 1).note == "needs a GPU"


# ---- several results, and numbers ------------------------------------------------------------------------------------

PEAKS = Exercise(
    entry="peaks",
    reference=lambda x, factor: (x * factor, x.argmax(dim=1)),
    returns=("z", Result("places", dtype="int32")),
    bound="exact",
    minutes=1,
    cut="x[m, :] -> z[m, :], places[m]",
)
PEAKS_SOURCE = """
import torch
import triton
import triton.language as tl


@triton.jit
def peaks_kernel(x_ptr, z_ptr, places_ptr, factor, N, BLOCK_N: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK_N)
    x = tl.load(x_ptr + row * N + cols, mask=cols < N, other=-float("inf"))
    tl.store(z_ptr + row * N + cols, x * factor, mask=cols < N)
    tl.store(places_ptr + row, tl.argmax(x, 0))


def peaks(x, factor):
    M, N = x.shape
    z, places = torch.empty_like(x), torch.empty(M, dtype=torch.int32, device=x.device)
    peaks_kernel[(M,)](x, z, places, factor, N, BLOCK_N=triton.next_power_of_2(N))
    return z, places
"""


def peaks_of(bench, change: tuple[str, str] = ("", "")):
    assert change[0] in PEAKS_SOURCE
    run = bench(PEAKS_SOURCE.replace(*change, 1), "03_softmax").run
    return OnGpuUse.of("test_large", normal(3_000_001, 781), 4.0, dtypes=("float32",)).verdict(Judge(PEAKS, run))


def test_several_right_results_are_right(bench):
    verdict = peaks_of(bench)
    assert (verdict.outcome, verdict.id) == (SKIPPED, NOT_RUN), verdict.lines
    assert verdict.note == "a sample of 12 of 3000001 programs is right; values in full need a GPU"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("x * factor", "x * 2.0"), "z is wrong in 781 elements of 781 that program ("),
        (("tl.argmax(x, 0)", "tl.argmax(x, 0) + (row > 40)"), "places is wrong in 1 element of 1 that program ("),
        (("[(M,)]", "[(M // 2,)]"), "z is not covered by a grid of 1500000 programs"),
        (("places_ptr + row, ", "places_ptr + row // 2, "), "places is"),
        (("row * N + cols, x", "row.to(tl.int32) * N + cols, x"), "An offset leaves int32 in line 12"),
    ],
)
def test_the_result_that_is_wrong_is_named(bench, change, words):
    verdict = peaks_of(bench, change)
    assert verdict.outcome == FAIL and verdict.lines[0].startswith(words), verdict.lines


UNCUT = {
    "14_split_softmax": "each of its results is made of all of x",
    "39_kv_cache_write": "what a row of its results is made of, its slots alone tell",
}


@pytest.mark.parametrize("folder", folders_with_kernels(), ids=lambda folder: folder.id)
def test_an_exercise_with_large_calls_says_how_they_are_cut_and_how_large_they_may_be(folder):
    module = load_test_file(folder)
    if not (calls := uses_asked(module, OnGpuUse)):
        pytest.skip("no large calls")
    given = [pair for call in calls for pair in zip(module.exercise.arguments, call.data, strict=True)]
    tensors = {name for name, one in given if isinstance(one, Data)}
    assert set(Cut.of(module.exercise.cut).inputs) == (set() if folder.id in UNCUT else tensors)
    lesson = " ".join((folder.path / "README.md").read_text().split())
    assert "fewer than 2³¹ elements lie between the first and the last one" in lesson or "N < 2³¹" in lesson


def test_a_sample_has_the_first_program_the_last_one_and_the_corners():
    assert programs_of((3, 2, 1), 12, 1) == [0, 5, 1, 2, 3, 4]
    chosen = programs_of((1000, 50, 20), 12, 7)
    assert len(set(chosen)) == 12 and max(chosen) == 999_999
    assert {0, 999, 49_000, 49_999, 950_000, 950_999, 999_000, 999_999} < set(chosen)
    assert chosen != programs_of((1000, 50, 20), 12, 8)
    assert max(programs_of((1 << 20, 1 << 15, 1), 12, 1)) < 1 << 31


def test_a_sample_has_two_programs_the_largest_power_of_two_apart_along_each_long_axis():
    """It is a multiple of each smaller one: both are the same to a kernel that leaves out some bits."""
    for seed in range(20):
        chosen = programs_of((1 << 21, 3, 1), 10, seed)
        assert any(one + (1 << 20) in chosen for one in chosen)
        chosen = programs_of((300, 70_000, 1), 10, seed)
        assert any(one + 256 in chosen for one in chosen)
        assert any(one + 300 * (1 << 16) in chosen for one in chosen)
    assert len(programs_of((200, 1, 1), 10, 1)) == 10


def test_neighbours_and_elements_a_power_of_two_apart_have_values_of_their_own():
    for step in (1, 2, 1 << 10, 1 << 16, 12671):
        entries = entries_of(np.arange(4096, dtype=np.int64) * step)
        assert entries.min() >= 0 and entries.max() < ENTRIES
        assert np.unique(entries).size > 3500


def test_a_virtual_buffer_tells_what_was_written_and_takes_a_fill():
    size = 1 << 34
    buffer = Buffer("z", size, view=BufferView(0, (size // 4,), (1,), 4), initialised=False, virtual=True)
    buffer.write(buffer.view, np.array(7, np.uint32))
    far = np.array([4 * PAGE * 5, size - 4], np.int64)
    places = buffer.places(far)
    assert buffer.words(4)[places // 4].tolist() == [7, 7]
    buffer.shadow.last_writer = np.full(buffer.shadow.count, -1, np.int32)
    buffer.shadow.last_writer[places // 4] = [3, 9]
    offsets, programs = buffer.written(4)
    assert offsets.tolist() == far.tolist() and programs.tolist() == [3, 9]


def test_the_parts_of_a_cut():
    cut = Cut.of("a[m, :], b[:, n] -> c[m, n]")
    assert (cut.inputs, cut.results) == ({"a": ["m", ":"], "b": [":", "n"]}, {"c": ["m", "n"]})
