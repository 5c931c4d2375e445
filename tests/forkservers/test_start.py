"""A Triton fork server is ready once its imports are done: every second of them is a second that each run waits."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict

from grader.gpu.models import MODELS
from tests.conftest import ROOT

PREPARE = """
import json, sys
from grader.forkservers.triton_forkserver import _prepared
_prepared(json.loads(sys.argv[1]))
import torch
from grader.child.torch_refusals import Refusals
ready = set(sys.modules)
for device in sys.argv[2:]:
    with Refusals("").on():
        x = torch.empty(4, 5, device=device)
        torch.zeros_like(x).t().fill_(3)
        torch.full_like(x.t(), 2.0, dtype=torch.float16).t().reshape(-1)
        torch.full((3,), 2.0, device=device).view(3, 1)
        torch.empty_strided((3, 4), (4, 1), device=device)[1:].contiguous()
print(json.dumps([sorted(ready), sorted(set(sys.modules) - ready)]))
"""


def test_a_child_imports_nothing_for_what_a_host_function_does():
    """Torch imports much at first use, on a GPU's machine for seconds: not what can be avoided, and nothing twice."""
    given = json.dumps(asdict(MODELS["sm_90"]))
    command = [sys.executable, "-c", PREPARE, given, "cuda", "cuda:0"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    ready, later = json.loads(done.stdout)
    assert later == []
    assert "torch" in ready and not {"torch._dynamo", "sympy"} & set(ready)
