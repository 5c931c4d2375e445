"""Of a file's kernels only places that look odd are edited, and right kernels have few of them."""

from __future__ import annotations

import ast

import pytest

from grader.submission.source_edits import MOST_EDITS, SourceEdit, source_edits
from tests.conftest import ROOT

TEXT = """
import triton
import triton.language as tl


@triton.jit
def sum_kernel(x_ptr, z_ptr, M, N, eps, stride_xm, stride_xn, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, N, BLOCK):
        x = tl.load(x_ptr + row * stride_xm + (start + cols) * stride_xn, mask=start + cols < N, other=0.0)
        total = total + x
    tile = cols[None, :] * total[:, None]
    tl.store(z_ptr + row, tl.sum(total, 0) + tl.max(tl.max(tile, 0), 0) * row * stride_xm * 0)


def row_sum(x, z):
    sum_kernel[(4,)](x, z, *x.shape, 1.0, *x.stride(), BLOCK=32)
"""


def edits(*changes: tuple[str, str]) -> list[SourceEdit]:
    text = TEXT
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return source_edits(ast.parse(text), text.encode())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("total + x", "total + row"), "`x` in the place of `row`"),
        (("total = total + x", "total = N * x"), "`total` in the place of `N`"),
        (("cols[None, :]", "row[None, :]"), "`total` in the place of `row`"),
        (("(start + cols) * stride_xn", "stride_xm * stride_xn"), "`cols` in the place of `stride_xm`"),
        (("row * stride_xm +", "row // stride_xm +"), "`*` in the place of `//`"),
        (("(start + cols) * stride_xn", "(start + cols) * stride_xm"), "`stride_xn` in the place of `stride_xm`"),
        (("cols < N", "cols < eps"), "`N` in the place of `eps`"),
        (("tl.max(tile, 0)", "tl.max(tile)"), "`tile, 1` in the place of `tile`"),
        (("* row * stride_xm * 0", "% row * stride_xm * 0"), "`+` in the place of `%`"),
    ],
)
def test_an_odd_place_is_edited(change, words):
    assert words in [edit.words for edit in edits(change)]


def test_an_edit_changes_its_place_alone():
    source = "é = 1\nx = é + rows\n".encode()
    edit = SourceEdit(2, len("x = é + ".encode()), "rows", "cols")
    assert edit.edited(source).decode() == "é = 1\nx = é + cols\n"


def test_each_edit_of_a_solution_is_python_and_there_are_few():
    counts = []
    for path in sorted((ROOT / "solutions").glob("*/*.py")):
        source = path.read_bytes()
        found = source_edits(ast.parse(source), source)
        counts.append(len(found))
        for edit in found:
            ast.parse(edit.edited(source))
    assert max(counts) <= MOST_EDITS and sum(counts) < 5 * len(counts)
