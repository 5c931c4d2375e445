"""Lesson 25: what exp2 saves, how many tiles of k and v are on the chip, and how many warps hold its accumulator."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from itertools import groupby
from typing import Any

import triton
import triton.language as tl

from grader.learn.code_levels import instructions
from grader.learn.disassembly import disassembled
from grader.wire.cubin import read_cubin
from tests.claims.attention_kernels import attention
from tests.claims.compiled import compiled
from tests.conftest import ROOT

LESSON = ROOT / "solutions" / "25_flash_attention"
SOLUTION = (LESSON / "flash_attention.py").read_text(encoding="utf-8")
RUNGS = tomllib.loads((LESSON / "ladder.toml").read_text(encoding="utf-8"))
TILES = dict(D=128, BLOCK_M=128, BLOCK_N=64)


@triton.jit
def exp_kernel(x_ptr, z_ptr, B: tl.constexpr):
    tl.store(z_ptr + tl.arange(0, B), tl.exp(tl.load(x_ptr + tl.arange(0, B))))


@triton.jit
def exp2_kernel(x_ptr, z_ptr, B: tl.constexpr):
    tl.store(z_ptr + tl.arange(0, B), tl.exp2(tl.load(x_ptr + tl.arange(0, B))))


def with_exp() -> str:
    """The rung below the solution, which differs in the base alone."""
    text = SOLUTION
    for old, new in RUNGS["loads_ahead"]["changes"]:
        text = text.replace(old, new)
    return text


def mnemonics(asm: dict[str, Any]) -> Counter[str]:
    """How often each kind of machine instruction stands in the code: FMUL, MUFU ..."""
    rows = instructions("sass", disassembled(asm["cubin"], asm["ptx"]), "")
    words = (row.text.split()[1:] for row in rows if not row.text.startswith(".L"))
    return Counter((row[1] if row[0].startswith("@") else row[0]).partition(".")[0] for row in words)


def test_exp_is_five_instructions_and_exp2_is_one():
    exp, exp2 = (mnemonics(compiled(kernel, "*fp32 *fp32", B=128)) for kernel in (exp_kernel, exp2_kernel))
    saved = exp - exp2
    assert exp2["MUFU"] == exp["MUFU"] == 1
    assert {name: saved[name] for name in ("FMUL", "FSETP")} == {"FMUL": 3, "FSETP": 1} and not exp2["FMUL"]


def test_exp2_alone_makes_0_of_results_below_the_normal_numbers():
    assert "ex2.approx.ftz.f32" in compiled(exp2_kernel, "*fp32 *fp32", B=128)["ptx"]
    assert "ex2.approx.f32" in compiled(exp_kernel, "*fp32 *fp32", B=128)["ptx"]


def test_base_2_saves_more_than_a_multiplication_for_each_score(tmp_path):
    """A thread has 32 scores and 2 factors in an iteration: 34 exponentials. The lesson's table has these numbers."""
    exp, exp2 = (mnemonics(attention(tmp_path, text, 8, **TILES)) for text in (with_exp(), SOLUTION))
    assert [(one["FMUL"], one["FSETP"]) for one in (exp, exp2)] == [(398, 42), (301, 8)]
    assert exp["MUFU"] == exp2["MUFU"]
    assert 120 < exp.total() - exp2.total() < 140


def test_three_tiles_of_k_and_of_v_are_on_the_chip(tmp_path):
    assert {"memdesc<3x128x64xf16", "memdesc<3x64x128xf16"} <= buffers(attention(tmp_path, SOLUTION, 8, **TILES))


def test_an_iteration_waits_once_for_p_v_of_a_tile_and_q_k_of_the_next(tmp_path):
    """The loop begins with q k, waits, makes the softmax, and starts p v; so one wait stands between these products."""
    for D in (64, 128):
        ptx = attention(tmp_path, SOLUTION, 8, **{**TILES, "D": D})["ptx"]
        words = re.findall(r"wgmma\.mma_async|wgmma\.wait_group\S*\s+0|ex2\.approx|cp\.async\.cg|bra\b", ptx)
        kinds = [word.split(".")[1][:4] if "." in word else word for word, _ in groupby(words)]
        begin = kinds.index("mma_")
        assert kinds[begin : begin + 6] == ["mma_", "wait", "appr", "mma_", "asyn", "bra"]


def test_at_64_two_programs_fit_on_a_multiprocessor(tmp_path):
    made = attention(tmp_path, SOLUTION, 8, **{**TILES, "D": 64})
    assert 2 * 8 * 32 * read_cubin(made["cubin"]).registers <= 65536
    assert {"memdesc<3x64x64xf16", "memdesc<128x64xf16"} == buffers(made)  # k and v, 24 KB each, and q: 16 KB


def test_with_4_warps_a_head_of_128_spills_and_with_8_it_does_not(tmp_path):
    spilled = {
        warps: read_cubin(attention(tmp_path, SOLUTION, warps, **TILES)["cubin"]).stack_bytes for warps in (4, 8)
    }
    assert spilled[8] == 0 < spilled[4]


def buffers(asm: dict[str, Any]) -> set[str]:
    rows = [row for row in asm["ttgir"].splitlines() if "local_alloc" in row and "memdesc<" in row]
    return {"memdesc<" + row.partition("memdesc<")[2].partition(",")[0] for row in rows}
