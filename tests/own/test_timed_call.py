"""--time: which call is timed, with what it is compared, and what is said where there is no GPU."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from grader.gpu.device import Device, device_here
from grader.numerics.data_sets import Data
from grader.own.judgement import NOT_JUDGED, RIGHT
from grader.own.own_process import asked
from grader.own.own_speed import speed_words
from grader.own.timed_call import anchor_of, timed_data
from grader.own.timing_process import wrong_while_timed
from tests.own.test_own_kernels import MENDED, REFERENCE, judged

TWO = MENDED.replace("def leaky_relu(x, slope=0.01)", "def leaky_relu(x, y, slope=0.01)")
SPEED = {"gpu": "H200", "case": "4096 x 4096 fp32", "seconds": {"kernel": 3.312e-5, "copy": 3.2e-5, "torch": 0.002},
         "shares": {"copy": 0.966, "torch": 60.4}, "left_out": {"torch.compile": "no C compiler"}}  # fmt: skip


def asked_of(folder: Path, kernel: str, reference: str, shapes: str, **more: object):
    (folder / "kernel.py").write_text(kernel)
    (folder / "ref.py").write_text(reference)
    request = {"file": str(folder / "kernel.py"), "reference": str(folder / "ref.py"), "entry": "", "shapes": shapes,
               "dtypes": [], "promise": None, "target": "", "seed": 5} | more  # fmt: skip
    return asked(request, 5)


def test_the_call_has_the_sizes_that_are_stated_and_plain_values(tmp_path):
    stated = asked_of(tmp_path, MENDED, REFERENCE, "M,N:fp16; M=1..70 N=1..90", promise={"any_strides": True})
    x, slope = timed_data(stated.exercises[0], "M=40000", 5)
    assert isinstance(x, Data) and x.shape == (40000, 90) and x.dtype == "float16" and slope == 0.01
    assert x.steps == (("normal",),) and x.layout == x.in_plain_layout.layout


def test_each_argument_has_memory_of_its_own(tmp_path):
    """Drawn calls of square matrices have b in the memory of a: then c is a @ a, and a @ b was expected."""
    stated = asked_of(tmp_path, TWO, "def leaky_relu(x, y):\n    return x @ y\n", "M,K K,N; M=1..9 K=1..9 N=1..9")
    for seed in range(12):
        assert not any(one.part_of or one.same_as for one in timed_data(stated.exercises[0], "M=64 K=64 N=64", seed))


def test_of_stated_calls_the_largest_is_timed(tmp_path):
    calls = "def calls():\n    import torch\n    return [(torch.ones(3),), (torch.ones(70),), (torch.ones(5),)]\n"
    stated = asked_of(tmp_path, MENDED, REFERENCE + calls, "")
    assert timed_data(stated.exercises[0], "largest", 5)[0].shape == (70,)


@pytest.mark.parametrize(
    ("text", "shapes", "anchor"),
    [("x @ y", "M,K K,N", "matmul"), ("x @ y + 1", "M,K K,N", "copy"), ("x + y", "M,N M,N", "copy")],
)
def test_a_product_is_compared_with_cublas_and_all_else_with_a_copy(tmp_path, text, shapes, anchor):
    stated = asked_of(tmp_path, TWO, f"def leaky_relu(x, y):\n    return {text}\n", f"{shapes}; M=1..9 N=1..9")
    rows = 7 if "K" in shapes else 5
    small = torch.randn(5, 7), torch.randn(rows, 7)
    assert anchor_of(stated.exercises[0], stated.reference, small) == anchor


@pytest.mark.parametrize(("line", "said"), [("K=5", "K is the size of no argument"), ("N=x", "'N=x' states no size"),
                                            ("N=0", "'N=0' states no size")])  # fmt: skip
def test_a_line_that_states_no_call_is_told(tmp_path, line, said):
    found = judged(tmp_path, MENDED, REFERENCE, time=line)
    assert found.outcome == NOT_JUDGED and said in found.sentences[0] and found.next


@pytest.mark.skipif(isinstance(device_here(), Device), reason="there is a GPU")
def test_without_a_gpu_the_kernel_is_judged_and_not_timed(tmp_path):
    found = judged(tmp_path, MENDED, REFERENCE, time="N=1000000")
    assert found.outcome == RIGHT and "not timed: no GPU" in found.speed["why"] and found.speed["next"]
    assert "no GPU" in speed_words(found.speed)[0]


def test_a_product_that_cuts_to_tf32_at_the_timed_size_alone_is_told(tmp_path):
    """What an output is off by says the replay; why it may be says the kernel's text of that call."""
    by_default, other = (wrong_while_timed("an output is wrong", "H200", lines) for lines in ([29], []))
    assert "the tl.dot in line 29 cuts fp32 to tf32" in by_default.said and "ieee" in by_default.next
    assert "tf32" not in other.said and "--thorough" in other.next


def test_shares_are_said_in_a_line_and_what_is_left_out_in_another():
    first, second = speed_words(SPEED)
    assert "33.1 us; 0.97 of the speed of a copy of as many bytes, 60.40 of the speed of torch." in first
    assert second == "torch.compile was not timed: no C compiler."
