"""A file's printed text holds what its kernels print where they are compiled, and no warning of the compiler."""

from __future__ import annotations

import pytest

from grader import normal, output
from grader.explain.verdict import PASS
from tests.conftest import ROOT

SOLUTION = (ROOT / "solutions/02_strided_blocks/strided_blocks.py").read_text()
MASK, STORE = "(rows < M) & (cols < N)", "    tl.store("


def printed(bench, old: str, new: str) -> str:
    """By the solution with one change, which is right as well."""
    assert SOLUTION.count(old) == 1
    one = bench(SOLUTION.replace(old, new), "02_strided_blocks")
    verdict = one.check(normal(64, 190), output(64, 190), dtypes=("float32",))
    assert verdict.outcome == PASS, verdict.lines
    one.run.end()
    return one.run.printed


@pytest.mark.parametrize("mask", [MASK.replace("&", "and"), f"({MASK}) or (rows < 0)"])
def test_warnings_of_the_compiler_are_not_shown_as_printed_by_the_file(bench, mask):
    assert printed(bench, MASK, mask) == ""


def test_what_a_kernel_prints_where_it_is_compiled_is_shown(bench):
    shown = printed(bench, STORE, f'    tl.static_print("as wide as", BLOCK_N)\n{STORE}')
    assert shown.splitlines()[0].startswith("as wide as")
