"""On a GPU: a notebook for self-study judges speed too, and draws it."""

from __future__ import annotations

import pytest

pytest.importorskip("nbclient", reason="nbclient runs notebooks: see the extra classroom")
pytest.importorskip("ipykernel", reason="ipykernel runs notebooks: see the extra classroom")

from grader.gpu.device import Device, device_here
from tests.conftest import mutant
from tests.learn.student import FIRST, Student

HERE = device_here()
pytestmark = pytest.mark.skipif(not isinstance(HERE, Device), reason=f"needs a GPU: {HERE}")
ADD = "01_masked_add"


def test_a_stub_a_wrong_and_a_right_answer(tmp_path):
    with Student(ADD, tmp_path, gpu=True) as student:
        first = student.reads(FIRST)
        print(first)
        assert HERE.name in first and "On the GPU: large sizes, bf16 and speed." in first
        student.reads("%%writefile")
        assert "not attempted: the marked regions of masked_add.py are empty." in student.reads("import check")
        wrong = student.checks(mutant(f"{ADD}/no_mask"))
        assert "has no mask: lanes past the end of z take part in it" in " ".join(wrong.split())
        right = student.checks(student.exercise.solution_file.read_text(encoding="utf-8"))
        print(wrong, right)
        assert "it reaches the gate" in right and "Passed, judged in" in right and "FAIL" not in right
        assert "**Why" in student.reads("import explanation")
        drawn = [output for output in student.run("import plot") if "image/png" in output.get("data", {})]
        assert len(drawn) == 1
