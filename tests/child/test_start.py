"""What a nursery imports before it is ready: every second of it is a second that each run waits."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict

import pytest

from grader.gpu.models import MODELS
from tests.conftest import ROOT

PREPARE = """
import json, sys
from grader.child.nursery import _prepared
_prepared(json.loads(sys.argv[1]))
import torch
from grader.child.refusals import PoisonedAllocations, Refusals
device, ready = sys.argv[2], set(sys.modules)
with Refusals("").on():
    x = torch.empty(4, 5, device=device)
    torch.zeros_like(x).t().fill_(3)
    torch.full_like(x.t(), 2.0, dtype=torch.float16).t().reshape(-1)
    torch.full((3,), 2.0, device=device).view(3, 1)
    torch.empty_strided((3, 4), (4, 1), device=device)[1:].contiguous()
with PoisonedAllocations():
    torch.empty_like(torch.empty(3, device="cuda"))
print(json.dumps([sorted(ready), sorted(set(sys.modules) - ready)]))
"""


FIRST_KERNEL = """
import json, sys
from grader.child.nursery import _prepared
_prepared(None)
import torch, triton, triton.language as tl

@triton.jit
def kernel(x_ptr, N, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + lanes, mask=lanes < N, other=0.0)
    tl.store(x_ptr + lanes, tl.exp(x) / tl.sum(x, 0), mask=lanes < N)

ready = set(sys.modules)
kernel[(1,)](torch.ones(9, device="cuda"), 9, BLOCK=16)
print(json.dumps(sorted(set(sys.modules) - ready)))
"""


@pytest.mark.parametrize(("model", "device"), [(None, "cpu"), (MODELS["sm_90"], "meta")])
def test_a_child_imports_nothing_for_what_a_host_function_does(model, device):
    """Torch imports much at first use, on a GPU's machine for seconds: not what can be avoided, and nothing twice."""
    given = json.dumps(model and asdict(model))
    done = subprocess.run([sys.executable, "-c", PREPARE, given, device], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    ready, later = json.loads(done.stdout)
    assert later == []
    assert "torch" in ready and not {"torch._dynamo", "sympy"} & set(ready)


def test_a_child_imports_nothing_for_its_first_kernel_in_the_interpreter(tmp_path):
    """Triton 3.9 would import Gluon for the first argument of the first launch."""
    script = tmp_path / "script.py"  # Triton reads a kernel's source
    script.write_text(FIRST_KERNEL)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TRITON_INTERPRET": "1"}
    done = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == []
