"""Lesson 28: how many rows a product may have, and what three stages copy ahead."""

from __future__ import annotations

from typing import Any

import pytest

from grader.wire.cubin import read_cubin
from tests.claims.compiled import RELEASE
from tests.claims.of_solutions import buffers, compiled_for_fp16, solution

SOLUTION = solution("28")
KINDS = {"scale": "fp32"} | dict.fromkeys(("m_ptr", "l_ptr", "acc_ptr"), "*fp32")
KINDS |= dict.fromkeys(("table_ptr", "lengths_ptr"), "*i32")
WHOLE_ROWS = {f"stride_{name}": 1 for name in ("qd", "kd", "vd", "tt", "n")}


def splits(rows: int = 16, keys: int = 64, stages: int = 3) -> dict[str, Any]:
    """The first launch's kernel for groups of up to four heads, D = 128, contiguous tensors."""
    constants = dict(GROUP=min(rows, 4), D=128, BLOCK_H=rows, BLOCK_N=keys, SPLITS=16) | WHOLE_ROWS
    return compiled_for_fp16(SOLUTION.paged_attention_partial_kernel, KINDS, stages=stages, **constants)


@pytest.mark.parametrize("rows", [1, 4, 8, 16])
def test_a_product_of_fewer_than_16_rows_compiles_to_as_many_instructions(rows):
    assert splits(rows)["ptx"].count("mma.sync") == 32


@pytest.mark.parametrize(("stages", "tables", "tiles"), [(2, 0, 1), (3, 1, 1), (4, 1, 1), (5, 2, 2)])
def test_the_table_is_a_stage_of_its_own_and_k_and_v_have_a_second_buffer_from_five_stages_on(stages, tables, tiles):
    entries, k, v = [f"{tables}x64xi32"] * 2 if tables else [], f"{tiles}x128x64xf16", f"{tiles}x64x128xf16"
    assert sorted(buffers(splits(stages=stages)["ttgir"])) == sorted([*entries, k, v])


def test_the_next_keys_are_copied_when_this_iteration_has_read_its_own():
    loop = splits()["ttgir"].partition("scf.for")[2]
    assert loop.rindex("tt.dot") < loop.index("async_copy_global_to_local")


@pytest.mark.parametrize(("keys", "programs"), [(64, 4), (128, 3 if RELEASE < (3, 8) else 2)])
def test_so_many_programs_find_registers_on_a_multiprocessor(keys, programs):
    registers = read_cubin(splits(keys=keys)["cubin"]).registers
    assert 65536 // (128 * -(-registers // 8) * 8) == programs
