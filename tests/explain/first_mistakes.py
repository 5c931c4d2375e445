"""Judging what beginners write first: a solution with a few changes, and what the report says of it."""

from __future__ import annotations

import triton

from tests.conftest import ROOT

# What Triton takes, and how small a tile tl.dot multiplies, changed in 3.9.
RELEASE = tuple(map(int, triton.__version__.split(".")[:2]))
BEFORE_39 = RELEASE < (3, 9)
Changes = tuple[tuple[str, str], ...]  # an old text, which stands exactly once in the solution, and a new one
OF_OTHERS = ("Traceback", "triton._C", "constexpr[", "/tmp/", "libtriton")  # words that mean nothing to a beginner


def told(bench, id: str, changes: Changes, data: tuple, options: dict) -> tuple[str, str]:
    """The first sentence about these changes of a solution, and the line of the file that it sends to."""
    text = (ROOT / f"solutions/{id}/{id[3:]}.py").read_text(encoding="utf-8")
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    verdict = bench(text, id).check(*data, **options)
    assert verdict.outcome == "fail"
    assert len(verdict.lines) <= 8
    assert not [word for word in OF_OTHERS for line in verdict.lines if word in line], verdict.lines
    line = text.splitlines()[verdict.line - 1] if verdict.line else ""
    return verdict.lines[0], line.partition("  #")[0].strip()
