"""A refusal says which line of the promise it rests on, and how to take it back."""

from __future__ import annotations

import pytest

from grader.own.judgement import NOT_JUDGED, RIGHT, WRONG
from tests.own.test_own_kernels import DOUBLED, MEAN, MENDED, REFERENCE, ROWS, judged

OF_TORCH = (
    "s = x.sum()", "y = x @ x", "x = x.t().contiguous()", "x = x.half()", "a = x.max().item()", "if x[0, 0] > 0: pass",
    "a = torch.arange(5, device=x.device)", "x = x.clone()",
)  # fmt: skip


@pytest.mark.parametrize("line", [*OF_TORCH, "try:\n        s = x.sum()\n    except Exception: pass"])
def test_an_operation_of_torch_is_not_judged_or_wrong_as_the_promise_says(tmp_path, line):
    computes = MENDED.replace("    n = ", f"    {line}\n    n = ")
    found = judged(tmp_path, computes, REFERENCE, "M,M; M=1..9")
    number = 16 if line.startswith("try") else 15
    assert found.outcome == NOT_JUDGED and f"kernel.py:{number} computes with torch" in found.sentences[0]
    assert "as an argument" in found.next and f"Line {number}:" in found.sentences[1]
    found = judged(tmp_path, computes, REFERENCE, "M,M; M=1..9", promise={"only_kernels": True})
    assert found.outcome == WRONG and found.sentences[-1].startswith("It rests on only_kernels = true")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("torch.empty_like(x)", "torch.zeros_like(x)"),
        ("torch.empty_like(x)", "torch.zeros(x.shape, dtype=x.dtype, device=x.device)"),
        ("    n = ", "    x = x.contiguous().float()\n    n = "),
        ("return z", "torch.cuda.synchronize()\n    return z.reshape(x.shape)"),
    ],
)
def test_what_allocates_fills_or_changes_nothing_is_judged(tmp_path, old, new):
    found = judged(tmp_path, MENDED.replace(old, new), REFERENCE, "M,N; M=1..5 N=1..90", promise={"only_kernels": True})
    assert found.outcome == RIGHT, found.sentences


@pytest.mark.parametrize(
    ("kernel", "reference", "shapes", "promise", "said"),
    [
        (ROWS, MEAN, "M,N; M=1..20 N=1..90", {"any_strides": True}, "It rests on any_strides in the promise"),
        (DOUBLED, "def double_(x):\n    return x * 2\n", "N; N=1..90", {}, 'as in_place = ["x"]'),
        (DOUBLED + "    return x\n", "def double_(x):\n    return x * 2\n", "N; N=1..90", {}, 'as in_place = ["x"]'),
        (MENDED.replace("x > 0, x, x * slope", "x == x, tl.where(x > 0, x, x * slope), 0.0"), REFERENCE,
         "N; N=1..90", {"nan": True}, "It rests on nan = true in the promise"),
        (ROWS.replace("dtype=tl.float32", "dtype=tl.float16").replace(".to(tl.float32)", ".to(tl.float16)"), MEAN,
         "M,N; M=1..20 N=1..150", {}, "approximates = "),
        (ROWS.replace("(x.shape[0],)](", "(max(1, x.shape[0]),)]("), MEAN, "M,N; M=0..20 N=1..90", {},
         "It rests on tensors being empty"),
    ],
)  # fmt: skip
def test_a_refusal_says_what_it_rests_on(tmp_path, kernel, reference, shapes, promise, said):
    found = judged(tmp_path, kernel, reference, shapes, promise=promise)
    assert found.outcome == WRONG and any(said in one for one in found.sentences), found.sentences


def test_a_refusal_that_needs_no_promise_names_none(tmp_path):
    wrong = ROWS.replace("/ N)", "/ BLOCK)")
    found = judged(tmp_path, wrong, MEAN, "M,N; M=0..20 N=1..90", promise={"any_strides": True, "nan": True})
    assert found.outcome == WRONG and not any("rests on" in said for said in found.sentences), found.sentences


def test_a_copy_that_views_alone_need_is_told_with_the_promise_that_asks_for_views(tmp_path):
    copies = MENDED.replace("    n = ", "    x = x.contiguous()\n    n = ")
    found = judged(tmp_path, copies, REFERENCE, "M,N; M=1..5 N=1..90", promise={"any_strides": True})
    assert found.outcome == NOT_JUDGED and "take any_strides out of the promise" in found.next, found.sentences
