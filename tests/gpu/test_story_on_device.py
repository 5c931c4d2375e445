"""On a GPU: course story llama tells torch's tokens on the solutions, and prints its figures."""

from __future__ import annotations

import re

import pytest

from grader.gpu.device import Device, device_here
from tests.learn.conftest import course  # noqa: F401

HERE = device_here()
pytestmark = pytest.mark.skipif(not isinstance(HERE, Device), reason=f"needs a GPU: {HERE}")


def test_the_story_is_torchs_and_has_figures(course):  # noqa: F811
    done = course.here("story", "llama")
    print(done.out)
    assert done.status == 0, done.err
    assert "The same 24 tokens as torch in fp32, with the greedy choice." in done.out
    assert "it tells another story" not in done.out
    assert re.search(r"the kernels make [\d.]+ times as many tokens as torch\s+does one", done.out)
    assert done.out.count(" us, ") == 2 and "products and the rest" in done.out
    assert (course.path / "story_llama.svg").read_text().rstrip().endswith("</svg>")
