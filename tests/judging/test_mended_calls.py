"""The line of a mistake that nobody foresaw is that where one edit makes wrong calls right; without such a line none is
told."""

from __future__ import annotations

import pytest

from grader.author.direct_run import outcome
from grader.author.proof import Outcome, Proof, Way
from grader.course.folder import Folder
from grader.explain.verdict import FAIL
from grader.judging import mended_calls
from grader.session import grading
from tests.conftest import ROOT
from tests.typed_commands import freeze_what_is_here

HEAD = "import torch\nimport triton\nimport triton.language as tl\n"

COPY = """
@triton.jit
def copy_kernel(x_ptr, z_ptr, M, N, xm, xn, zm, zn, ROWS: tl.constexpr, COLS: tl.constexpr):
    top = tl.program_id(0) * ROWS
    left = tl.program_id(1) * COLS
    rows = top + tl.arange(0, ROWS)[:, None]
    cols = left + tl.arange(0, COLS)[None, :]
    inside = (rows < M) & (cols < N)
    from_here = rows * xm + cols * xn
    to_there = rows * zm + cols * zn
    x = tl.load(x_ptr + from_here, mask=inside)
    tl.store(z_ptr + to_there, x, mask=inside)


def strided_copy(x, z):
    M, N = x.shape
    grid = triton.cdiv(M, 16), triton.cdiv(N, 64)
    copy_kernel[grid](x, z, M, N, *x.stride(), *z.stride(), ROWS=16, COLS=64)
    return z
"""

SUM = """
@triton.jit
def sum_kernel(x_ptr, z_ptr, N, xm, xn, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    begin = x_ptr + row * xm
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(begin + cols * xn, mask=cols < N, other=0.0)
        total = total + x
    whole = tl.sum(total, 0)
    tl.store(z_ptr + row, whole)


def row_sum(x):
    z = torch.empty(x.shape[0], dtype=x.dtype, device=x.device)
    sum_kernel[(x.shape[0],)](x, z, x.shape[1], *x.stride(), BLOCK=256)
    return z
"""

# Each case states the change, a part of the line that the report has to tell, and the words for the edit.
OF_COPIES = {
    "a comparison": ("cols < N", "cols != N", "inside =", "`cols < N` in the place of `cols != N`"),
    "a value": (
        "mask=inside)\n    tl.store",
        "mask=rows < M)\n    tl.store",
        "x = tl.load",
        "`inside` in the place of `rows < M`",
    ),
    "a grid": (
        "triton.cdiv(N, 64)",
        "N // 64",
        "grid =",
        "`triton.cdiv(N, COLS)` programs along axis 1 of the grid",
    ),
    # The report names this one's line by itself.
    "a stride is left out": ("rows * xm + cols", "rows + cols", "from_here =", ""),
    "an operation": (
        "rows * zm + cols * zn",
        "rows * zm - cols * zn",
        "to_there =",
        "`(rows * zm) + cols` in the place of `(rows * zm) - cols`",
    ),
    "a sign": (
        "rows * xm + cols",
        "rows + xm + cols",
        "from_here =",
        "`rows * xm` in the place of `rows + xm`",
    ),
    "two names": ("(rows < M) & (cols < N)", "(rows < N) & (cols < M)", "inside =", "`N` and `M` exchanged"),
    "two blocks of a grid": (
        "triton.cdiv(M, 16), triton.cdiv(N, 64)",
        "triton.cdiv(M, 64), triton.cdiv(N, 16)",
        "grid =",
        "`triton.cdiv(M, ROWS)` programs along axis 0 of the grid",
    ),
    "a block's size": ("tl.program_id(1) * COLS", "tl.program_id(1) * ROWS", "left =", "`COLS` in the place of `ROWS`"),
    "an axis": ("left = tl.program_id(1)", "left = tl.program_id(2)", "left =", ""),  # and this one's
}
OF_SUMS = {
    "a number": ("range(0, N, BLOCK)", "range(1, N, BLOCK)", "for start", "`0` in the place of `1`"),
    "an operation more": ("total = total + x", "total = total + x * x", "total = total", "`x` in the place of `x * x`"),
    "a name for a number": ("mask=cols < N", "mask=cols < row", "x = tl.load", "`N` in the place of `row`"),
    "a reduction": (
        "tl.sum(total, 0)",
        "tl.max(total, 0)",
        "whole =",
        "`a + b` in the place of `tl.maximum(a, b)` where elements are combined",
    ),
}


@pytest.fixture(autouse=True, scope="module")
def frozen() -> None:
    freeze_what_is_here()


@pytest.fixture
def counts() -> list[tuple[int, int]]:
    """How many calls the edit that is told makes right, and how many its line."""
    return []


@pytest.fixture
def told(monkeypatch, counts) -> list[str]:
    """The words for the edits that the judged run finds."""
    words: list[str] = []

    def mended(*given) -> mended_calls.Mended | None:
        if (found := mended_calls.mended(*given)) is not None:
            words.extend(found.edits)
            counts.append((found.by_edit, found.calls))
        return found

    monkeypatch.setattr(grading, "mended", mended)
    return words


def judged(tmp_path, exercise: str, text: str) -> Outcome:
    folder = Folder(next((ROOT / "exercises").glob(f"{exercise}_*")))
    path = tmp_path / f"{folder.name}.py"
    path.write_text(HEAD + text)
    found = outcome(Proof("mutant", "a mutant", folder.path, path, FAIL), path, Way(whole=True, seed=1))
    assert found.found == FAIL
    return found


def changed(text: str, *changes: tuple[str, str]) -> str:
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def line_of(text: str, part: str) -> int:
    (line,) = [number for number, one in enumerate((HEAD + text).splitlines(), 1) if part in one]
    return line


@pytest.mark.parametrize("name", OF_COPIES)
def test_the_line_of_a_mistake_in_a_copy(tmp_path, told, name):
    old, new, part, words = OF_COPIES[name]
    found = judged(tmp_path, "02", changed(COPY, (old, new)))
    assert told[:1] == ([words] if words else [])
    assert found.line == line_of(changed(COPY, (old, new)), part), found.message


@pytest.mark.parametrize("name", OF_SUMS)
def test_the_line_of_a_mistake_in_a_sum(tmp_path, told, name):
    old, new, part, words = OF_SUMS[name]
    found = judged(tmp_path, "07", changed(SUM, (old, new)))
    assert told[:1] == [words]
    assert found.line == line_of(changed(SUM, (old, new)), part), found.message


def test_no_line_that_the_course_gave_is_told(tmp_path, told):
    """With M and N exchanged in the launch, this kernel is right; the launch is not the learner's to change."""
    solution = (ROOT / "solutions/02_strided_blocks/strided_blocks.py").read_text()
    wrong = changed(solution, ("(rows < M) & (cols < N)", "(rows < N) & (cols < M)"))
    assert told == [] and "strided_copy_kernel[grid]" not in judged(tmp_path, "02", wrong).message


def test_a_product_with_a_stride_that_the_launch_gives_as_1_is_no_mistake_of_the_kernel(tmp_path, told):
    """The compiler has left the product out: another one in its place mends what the launch does wrong."""
    kernel = (ROOT / "solutions/13_online_softmax/accepted/two_launches.py").read_text()
    found = judged(tmp_path, "13", changed(kernel, ("z.stride(0), BLOCK_N", "greatest.stride(0), BLOCK_N")))
    assert told == [] and "With " not in found.message, found.message


def test_a_stride_of_another_axis_in_a_launch_is_no_mistake_of_the_kernel(tmp_path, told):
    """Without a stride the line of the store would be right, and the launch with a 1."""
    kernel = (ROOT / "solutions/03_softmax/accepted/persistent_rows.py").read_text()
    found = judged(tmp_path, "03", changed(kernel, ("z.stride(0), z.stride(1)", "z.stride(0), z.stride(0)")))
    assert told == [] and "With " not in found.message, found.message


def test_an_operation_less_tells_no_line_while_a_missing_one_was_not_looked_for(tmp_path, told):
    """Each tile's part lacks its factor; without the common maximum no factor is needed, and nobody meant that."""
    kernel = (ROOT / "solutions/25_flash_attention/accepted/parts_joined.py").read_text()
    found = judged(
        tmp_path, "25", changed(kernel, ("tl.dot(p.to(v.dtype), v) * right[:, None]", "tl.dot(p.to(v.dtype), v)"))
    )
    assert "With one operation less" not in found.message and "maximum(m, own)" not in found.message, found.message


def test_what_is_said_tells_the_line_and_not_the_edit(tmp_path, told):
    wrong = changed(SUM, ("total = total + x", "total = total + x * x"))
    found = judged(tmp_path, "07", wrong)
    line = line_of(wrong, "total = total")
    assert f" in line {line}, every wrong call that was tried comes out right, rounding aside." in found.message
    assert told and not any(words in found.message for words in told)
    assert found.message.splitlines()[-1].endswith("total = total + x * x")


@pytest.mark.parametrize(
    ("exercise", "changes"),
    [("02", (("(rows < M) & (cols < N)", "(rows < N) & (cols < M)"),)), ("02", (("(cols < N)", "(cols < M)"),))],
)
def test_a_call_that_lacks_the_edit_as_a_size_is_1_does_not_count_as_one_that_stays_wrong(tmp_path, exercise, changes):
    """The compiler has put the number in the place of the name: nothing is there to exchange."""
    found = judged(tmp_path, exercise, changed(COPY, *changes))
    assert "every wrong call that was tried comes out right" in found.message, found.message


E, OF_ROWS = "    e = tl.exp(x - tl.max(x, 0))", "e / tl.sum(e, 0)"


@pytest.mark.parametrize(
    ("id", "changes", "part"),
    [
        ("03_softmax", ((OF_ROWS, "e / (tl.sum(e, 0) + 1e-6)"),), "+ 1e-6"),
        ("03_softmax", ((E, f"{E}\n    s = tl.sum(e, 0)\n    s += 1e-6\n"), (OF_ROWS, "e / s")), "s += 1e-6"),
        ("13_online_softmax", (("/ total,", "/ (total + 1e-6),"),), "+ 1e-6"),
        ("09_layer_norm", (("mean = tl.sum(x, 0) / N", "mean = tl.sum(x, 0) / (N + 1e-6)"),), "(N + 1e-6)"),
    ],
)
def test_the_line_of_a_small_number_that_few_calls_show(tmp_path, id, changes, part):
    text = changed((ROOT / f"solutions/{id}/{id[3:]}.py").read_text(), *changes)
    found = judged(tmp_path, id[:2], text)
    assert found.line == line_of(text, part), found.message
    assert f"With one operation less in line {found.line}, every wrong call that was tried" in found.message


def test_rounding_is_not_set_aside_where_nothing_may_round(tmp_path):
    """A copy changes no bit."""
    found = judged(tmp_path, "02", changed(COPY, ("inside = (rows < M)", "inside = (rows < M - 1)")))
    assert "every wrong call that was tried comes out right." in found.message, found.message


def test_a_small_number_that_does_no_harm_is_not_told(tmp_path):
    changes = (
        (OF_ROWS, "z"),
        (E, f"{E}\n    z = e / (tl.sum(e, 0) + 1e-12)\n    z = z * tl.where(N == 1, 2.0, 1.0)\n"),
    )
    text = changed((ROOT / "solutions/03_softmax/softmax.py").read_text(), *changes)
    found = judged(tmp_path, "03", text)
    assert found.line != line_of(text, "1e-12"), found.message


def test_an_edit_is_counted_as_one_where_a_size_of_1_is_a_number_of_the_text(tmp_path, told, counts):
    old, new, *_ = OF_COPIES["a value"]
    judged(tmp_path, "02", changed(COPY, (old, new)))
    assert [by_edit == calls for by_edit, calls in counts] == [True]


def test_two_mistakes_have_no_line(tmp_path):
    found = judged(tmp_path, "07", changed(SUM, ("total + x", "total + x * x"), ("range(0, N", "range(1, N")))
    assert "With " not in found.message and found.line == 0


def test_a_name_that_nothing_uses_is_told(tmp_path):
    """The compiler leaves out what it is made of: no edit of the text brings it back."""
    found = judged(tmp_path, "07", changed(SUM, ("total + x", "total + 1.0")))
    line = line_of(changed(SUM, ("total + x", "total + 1.0")), "x = tl.load")
    assert f"Line {line} makes x, and no line uses it: is another name written where x is meant?" in found.message
    assert found.line == 0


def test_a_name_after_which_nothing_uses_another_is_found_in_the_file(tmp_path, told):
    text = changed(SUM, ("total + x", "total + row"))
    assert judged(tmp_path, "07", text).line == line_of(text, "total = total")
    assert told == ["`x` in the place of `row`"]


def test_a_number_in_the_place_of_a_tile_is_found_in_the_file(tmp_path, told):
    named = COPY.replace("xm", "stride_xm").replace("xn", "stride_xn")
    text = changed(named, ("cols * stride_xn", "stride_xm * stride_xn"))
    assert judged(tmp_path, "02", text).line == line_of(text, "from_here =")
    assert told == ["`cols` in the place of `stride_xm`"]


def test_a_reduction_without_its_axis_is_found_in_the_file(tmp_path, told):
    path = ROOT / "solutions/07_row_sum/accepted/tile_of_rows.py"
    text = changed(path.read_text(), ("tl.sum(partial, axis=1)", "tl.sum(partial)"))
    assert judged(tmp_path, "07", text).line == line_of(text, "tl.sum(partial)")
    assert told == ["`partial, 1` in the place of `partial`"]


def test_while_edits_of_the_file_are_left_no_line_is_told(tmp_path, monkeypatch):
    """An edit that was not tried may be in another line, and then no line is the only one."""
    path = ROOT / "solutions/07_row_sum/accepted/tile_of_rows.py"
    text = changed(path.read_text(), ("tl.sum(partial, axis=1)", "tl.sum(partial)"))
    monkeypatch.setattr(mended_calls, "COMPILED", mended_calls.WORK)
    assert judged(tmp_path, "07", text).line == 0


def test_lost_digits_are_no_mistake_of_the_formula(tmp_path):
    """Nothing is rounded in an exact run: what is right there has nothing to mend."""
    lossy = changed(SUM, ("tl.zeros((BLOCK,), tl.float32)", "tl.zeros((BLOCK,), tl.float16)"),
                    ("total + x", "total + x.to(tl.float16)"))  # fmt: skip
    assert "With " not in judged(tmp_path, "07", lossy).message


def test_without_time_no_line_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(mended_calls._Search, "_mends", lambda *_, **asked: (_ for _ in ()).throw(mended_calls._NoTime))
    old, new, *_ = OF_SUMS["a reduction"]
    assert "With " not in judged(tmp_path, "07", changed(SUM, (old, new))).message


def test_another_number_in_the_place_of_a_maximum_is_no_mend(tmp_path, told):
    """It would do in exact arithmetic: the sums of all blocks were measured against that number, and exp would need a
    range that fp32 does not have."""
    solution = (ROOT / "solutions/14_split_softmax/split_softmax.py").read_text()
    found = judged(tmp_path, "14", changed(solution, ("tl.sum(sums * tl.exp(maxima - largest), 0)", "tl.sum(sums, 0)")))
    assert told == [] and found.line == 0, found.message
    assert found.message.startswith(
        "The blocks' sums are added as they are, but each belongs to its own block's maximum"
    )


@pytest.mark.parametrize("begun", ["tl.full((BLOCK,), 1.0, tl.float32)", "tl.zeros((BLOCK,), tl.float32) + 1.0"])
def test_what_a_variable_is_before_a_loop_is_not_told_in_the_loop_s_line(tmp_path, told, begun):
    """The loop begins with it, and the line of `for` holds nothing of it."""
    found = judged(tmp_path, "07", changed(SUM, ("tl.zeros((BLOCK,), tl.float32)", begun)))
    assert "for start" not in found.message
