"""Lesson 39: what a compiled kernel makes of -1 // 16, and how many bytes an access moves."""

from __future__ import annotations

import re
from typing import Any

from tests.claims.of_solutions import compiled_for_fp16, solution

SOLUTION = solution("39")


def write(**options: Any) -> dict[str, Any]:
    """The kernel for heads of 256 numbers and contiguous tensors."""
    whole_rows = {f"stride_{name}": 1 for name in ("kd", "vd", "kcd", "vcd", "s")}
    kernel, kinds = SOLUTION.kv_cache_write_kernel, {"slots_ptr": "*i32"}
    return compiled_for_fp16(kernel, kinds, BLOCK_H=8, BLOCK_D=256, **whole_rows, **options)


def test_page_and_row_are_rounded_towards_0_as_in_c():
    assert {"arith.divsi", "arith.remsi"} <= set(re.findall(r"arith\.\w+", write()["ttir"]))


def test_an_access_moves_16_bytes_at_most():
    for access in ("ld.global", "st.global"):
        widths = re.findall(rf"{access}(?:\.v(\d))?\.b32", write()["ptx"])
        assert max(int(width or 1) for width in widths) == 4
