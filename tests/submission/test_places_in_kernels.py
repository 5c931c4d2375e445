"""Places that are read off a file's text, for explanations alone."""

from __future__ import annotations

import ast

import pytest

from grader.submission.text import kernel_facts, line_of_subtracted_sum


@pytest.mark.parametrize(
    ("body", "line"),
    [
        ("    mean = tl.sum(x, 0) / N\n    d = x - mean\n", 4),
        (
            "    total = tl.sum(x, 0)\n    last = N - 1\n    mean = total / N\n    var = tl.sum((x - mean) * d, 0)\n",
            6,
        ),
        ("    d = x - x.sum(0) / N\n", 3),
        ("    mean = tl.sum(x, 0) / N\n    d = N - 1\n", 0),
    ],
)
def test_the_line_that_subtracts_a_sum_is_found(body, line):
    tree = ast.parse(f"@triton.jit\ndef kernel(x, N):\n{body}")
    assert line_of_subtracted_sum(tree) == line


def test_strides_that_are_given_by_name_alone_are_strides():
    tree = ast.parse("@triton.jit\ndef kernel(x_ptr, *, stride_xm):\n    return tl.load(x_ptr)\n")
    assert kernel_facts(tree).ignores_strides
