"""Kernels as public repositories have them, 20 right ones and two mistakes in each: which are refused, and which not.

Nobody chose a limit of the judge by them. A usual run draws some; all of them run in `tox -- slow`.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from grader.own.judgement import RIGHT, WRONG
from grader.own.own_process import judgement_of
from tests import slow

KERNELS = Path(__file__).parent / "kernels"
NAMES = sorted(path.stem for path in KERNELS.glob("*.py") if not path.stem.endswith("_ref"))
SEED = 7


def reference_of(name: str) -> ModuleType:
    """Returns NAME_ref.py: the reference, its shapes, and what each wrong kernel changes in the right one."""
    spec = importlib.util.spec_from_file_location(f"{name}_ref", KERNELS / f"{name}_ref.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


CASES = [(name, wrong) for name in NAMES for wrong in ("", *reference_of(name).WRONG)]
TEXTS = "".join((KERNELS / f"{name}.py").read_text() for name in NAMES)


def test_there_are_sixty():
    assert len(NAMES) == 20 and len(CASES) == 60


@pytest.mark.parametrize(("name", "wrong"), slow.drawn(CASES, 6, TEXTS))
def test_a_right_kernel_is_right_and_a_wrong_one_wrong(tmp_path, name, wrong):
    reference, text = reference_of(name), (KERNELS / f"{name}.py").read_text()
    if wrong:
        old, new = reference.WRONG[wrong]
        assert text.count(old) == 1
        text = text.replace(old, new)
    (tmp_path / f"{name}.py").write_text(text)
    found = judgement_of({
        "file": str(tmp_path / f"{name}.py"), "reference": str(KERNELS / f"{name}_ref.py"), "entry": "",
        "shapes": reference.SHAPES, "dtypes": [], "promise": None, "target": "", "seed": SEED,
    })  # fmt: skip
    assert found.outcome == (WRONG if wrong else RIGHT), found.sentences
