"""The interpreter's shortcuts: all there in this release of Triton, and to the same result."""

from __future__ import annotations

import json
import subprocess
import sys

from tests.conftest import ROOT

TOLD = """
import json
import triton.language as tl
from grader.child.shortcuts import take_shortcuts

ELEMENTS = (tl.float32, tl.int1, tl.uint8, tl.pointer_type(tl.float16), tl.pointer_type(tl.float16, 3))
SHAPES = ([4], [4, 8], [8, 4], [1], [tl.constexpr(16)], [16.0], [True], [3], [], ["4"])

def told():
    found = []
    for element in ELEMENTS:
        for shape in 2 * SHAPES:
            try:
                block = tl.block_type(element, shape)
                tensor = tl.tensor("handle", block)
            except Exception as error:
                found.append(f"{type(error).__name__}: {error}")
            else:
                assert tensor.handle == "handle" and tensor.type is block
                found.append(str((block, [*block.shape], block.numel, block.scalar, *vars(tensor).values())))
        found.append(str([*vars(tl.tensor("handle", element)).values()]))
    return found

before = told()
taken = take_shortcuts()
print(json.dumps([taken, before, told()]))
"""


def test_types_and_tensors_are_as_without_them():
    done = subprocess.run([sys.executable, "-c", TOLD], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    taken, before, after = json.loads(done.stdout)
    assert taken == ["fast_device_calls", "known_types", "equal_shapes_stay"]
    assert after == before and any("Error" in one for one in before)
