"""Where the configurations, the key and the grid of an autotuned kernel are written."""

from __future__ import annotations

import ast

import pytest

from grader.submission.tuning_lines import (
    function_of_key,
    function_that_returns_nothing,
    line_of_config,
    line_of_configs,
    line_of_grid,
    line_of_key,
    name_of_pruning,
)
from tests.conftest import ROOT

DECORATED = """
@triton.autotune(
    configs=[
        triton.Config({}),
    ],
    key=["N"],
)
@triton.jit
def kernel(x_ptr, N):
    pass
"""
BY_NAMES = """
configs = [triton.Config({})]
key = ["N"]
configs = [triton.Config({"A": 1})]
@triton.autotune(configs, key)
@triton.jit
def kernel(x_ptr, N):
    pass
"""


def line(text: str, part: str) -> int:
    (number,) = [number for number, line in enumerate(text.splitlines(), 1) if part in line]
    return number


def test_the_lines_are_those_in_the_function_that_makes_list_and_key():
    text = (ROOT / "solutions/19_matmul_epilogue/matmul_epilogue.py").read_text()
    tree = ast.parse(text)
    assert line_of_configs(tree) == line(text, "configs = [") and line_of_key(tree) == line(text, "return configs, [")


def test_a_configuration_is_found_by_its_numbers():
    text = (ROOT / "solutions/19_matmul_epilogue/matmul_epilogue.py").read_text()
    tree = ast.parse(text)
    fixed = "BLOCK_K: 64, GROUP_M: 8, num_warps: {}, num_stages: 4"
    small = "BLOCK_M: 64, BLOCK_N: 64, " + fixed.format(4)
    assert line_of_config(tree, small) == line(text, "(64, 64, 64, 4)")
    assert line_of_config(tree, "BLOCK_M: 32, BLOCK_N: 32, " + fixed.format(2)) == 0
    assert (name_of_pruning(tree), function_of_key(tree)) == ("that_fit", "tuning")
    written = 'c = [\n triton.Config({"A": 1}, num_warps=4),\n triton.Config({"A": 2}, num_warps=4)]\n'
    assert line_of_config(ast.parse(written), "A: 2, num_warps: 4, num_stages: 3") == 0
    assert line_of_config(ast.parse(written), "A: 2, num_warps: 4") == 3


@pytest.mark.parametrize("text, configs, key", [(DECORATED, 3, 6), (BY_NAMES, 4, 3), ("", 0, 0)])
def test_they_are_found_in_the_decorator_and_in_names(text, configs, key):
    assert (line_of_configs(ast.parse(text)), line_of_key(ast.parse(text))) == (configs, key)


def test_a_part_of_a_list_is_found_where_it_is_taken():
    text = "def f():\n    c = [1, 2]\n    return c[:1], ['N']\nc, k = f()\n@triton.autotune(c, k)\ndef kernel(): pass"
    assert line_of_configs(ast.parse(text)) == 3


def test_what_is_made_elsewhere_has_no_line():
    tree = ast.parse("import other\n@triton.autotune(configs=other.configs(), key=other.KEY)\ndef kernel(): pass\n")
    assert line_of_configs(tree) == line_of_key(tree) == 0


def test_a_function_that_calls_itself_has_no_line():
    tree = ast.parse("def f():\n    return f()\n@triton.autotune(configs=f(), key=f())\ndef kernel(): pass\n")
    assert line_of_configs(tree) == 0


def test_a_grid_is_found_at_the_launch_and_in_a_name():
    launches = "    kernel[grid](x)\n    kernel[(2,)](x)\n    kernel[lambda m: m](x)"
    tree = ast.parse(f"def host(x):\n    grid = (1,)\n{launches}")
    assert [line_of_grid(tree, launch) for launch in (3, 4, 5, 9)] == [2, 4, 0, 0]


ASKED = """
def tuning():
    configs = [triton.Config({})]
    LAST
configs, key = tuning() or ([], [])
@triton.autotune(configs, key)
@triton.jit
def kernel(x_ptr, N):
    pass
"""
GIVES = ("return configs, []", "yield configs", "return None if configs else ([], [])")


@pytest.mark.parametrize("last", ["pass", "return"])
def test_a_function_that_returns_no_configurations_is_found(last):
    text = ASKED.replace("LAST", last)
    assert function_that_returns_nothing(ast.parse(text)).name == "tuning"
    alone = text.replace("configs, key = tuning() or ([], [])", "configs = tuning()").replace(
        "(configs, key)", "(configs)"
    )
    assert function_that_returns_nothing(ast.parse(alone)).name == "tuning"


@pytest.mark.parametrize("text", [*(ASKED.replace("LAST", last) for last in GIVES), 2 * ASKED, DECORATED, BY_NAMES, ""])
def test_other_files_have_none(text):
    assert function_that_returns_nothing(ast.parse(text)) is None
