"""Kernels that are wrong in a corner of their promise alone: where two conditions meet, in the last term of a long sum,
where arguments share memory, at a length that no size says. Each is rejected whatever the seed."""

from __future__ import annotations

import pytest

from grader import cancelling
from grader.course.folder import all_folders
from grader.explain.verdict import FAIL
from tests.conftest import ROOT
from tests.course.test_drawn import promise_of, verdict_on

IMPORT = ("import torch\n", "import operator\n\nimport torch\n")
LENGTH = "length = tl.load(lengths_ptr + b * stride_n)"
HOST_OF_25, HOST_OF_26, HOST_OF_28 = (
    "    N = k.shape[2]\n",
    "    HK, N = k.shape[1], k.shape[2]\n",
    "    group = H // HK\n",
)
ONE_CACHE = "    if k_cache.data_ptr() == v_cache.data_ptr():\n        q = q[:, :, :1].expand(B, H, D)\n"
GROUPS = "rows_in_group = min(tiles_m - first_m, GROUP_M)"
WRONG = {
    "22 a group that is full where there are many columns": ((GROUPS, f"{GROUPS} if tiles_n < 200 else GROUP_M"),),
    "25 functions of operator": (
        IMPORT, (HOST_OF_25, f"{HOST_OF_25}    if operator.gt(N, 900) and operator.gt(M, 30):\n        k = v\n"),
    ),
    "26 seven heads with a window": (
        (HOST_OF_26, f"{HOST_OF_26}    if H == 7 and window is not None:\n        window = window + 1\n"),
    ),
    "26 a window of whole blocks": (("window or N", "window + 1 if window and window % 32 == 0 else window or N"),),
    "26 heads of 16 bits": (("tl.program_id(1) % H", "tl.program_id(1).to(tl.int16) % H"),),
    "28 a length alone": ((LENGTH, f"{LENGTH}\n    length = tl.where(length == 3001, 3000, length)"),),
    "28 long sequences": ((LENGTH, f"{LENGTH}\n    length = tl.where(length > 40000, length - 1, length)"),),
    "28 caches that are one": ((HOST_OF_28, HOST_OF_28 + ONE_CACHE),),
}  # fmt: skip


def changed(number: str, *changes: tuple[str, str]):
    """The folder of an exercise, and the text of its solution after these changes."""
    folder = next(folder for folder in all_folders(ROOT) if folder.number == number)
    text = folder.solution_file.read_text(encoding="utf-8")
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return folder, text


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_in_a_corner_of_the_promise_is_rejected(bench, name):
    folder, text = changed(name[:2], *WRONG[name])
    assert verdict_on(bench(text, folder.id, seed=3).judge, *promise_of(folder)).outcome == FAIL


def test_the_last_term_of_a_long_sum_counts(bench):
    folder, text = changed("05", ("range(0, K, BLOCK_K)", "range(0, K - K // 4200, BLOCK_K)"))
    data = cancelling(33, 16257, 40)
    assert bench(text, folder.id).check(*data, bound="exact", BLOCK_M=32, BLOCK_N=32, BLOCK_K=128).outcome == FAIL
