"""Lesson 01: the listing runs on a machine without a GPU and prints what the lesson shows, with the masks and without;
and how wide the widest access is.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest
import triton
import triton.language as tl

from tests.claims.compiled import compiled
from tests.conftest import ROOT

LESSON = (ROOT / "exercises" / "01_masked_add" / "README.md").read_text(encoding="utf-8")
(LISTING,) = re.findall(r"```python\n(import torch\n.*?)```", LESSON, re.DOTALL)
SHOWN = re.findall(r"```\n(tensor\(.*?\))\n```", LESSON, re.DOTALL)


@pytest.mark.parametrize(("removed", "place"), [("", 0), (", mask=mask", 1)], ids=["masked", "unmasked"])
def test_the_listing_prints_what_the_lesson_shows(tmp_path, removed, place):
    (tmp_path / "double.py").write_text(LISTING.replace(removed, ""), encoding="utf-8")
    environment = os.environ | {"TRITON_INTERPRET": "1"}
    done = subprocess.run([sys.executable, "double.py"], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert (done.stdout.strip(), done.returncode) == (SHOWN[place], 0), done.stderr


@triton.jit
def copy_kernel(x_ptr, z_ptr, N, B: tl.constexpr):
    offsets = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(z_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < N), mask=offsets < N)


@pytest.mark.parametrize("size", [1024, 2048, 4096])
def test_a_thread_moves_16_bytes_in_one_access_and_no_more(size):
    ptx = compiled(copy_kernel, "*fp32 *fp32 i32", aligned=True, num_warps=8, B=size)["ptx"]
    assert "ld.global.v4.b32" in ptx and "st.global.v4.b32" in ptx and ".v8" not in ptx
