"""What explaining a failure imports: every second of it is a second that a learner waits for the first sentence."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.conftest import ROOT, mutant

GRADE = """
import json, sys
import pytest
import grader.session.session
status = pytest.main([*sys.argv[1:], "-q", "-p", "no:cacheprovider"])
print(json.dumps([int(status), sorted(sys.modules)]))
"""


@pytest.mark.parametrize("wrong", ["03_softmax/block_of_1024", "03_softmax/down_the_columns", "03_softmax/pad_zero"])
def test_a_sentence_takes_no_part_of_torch_that_is_slow_to_import(tmp_path, wrong):
    exercise = wrong.partition("/")[0]
    file = tmp_path / f"{exercise[3:]}.py"
    file.write_text(mutant(wrong), encoding="utf-8")
    command = [sys.executable, "-c", GRADE, str(ROOT / "exercises" / exercise), "--submission", str(file)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    status, modules = json.loads(done.stdout.splitlines()[-1])
    assert status == pytest.ExitCode.TESTS_FAILED, done.stdout
    assert not {"sympy", "torch._dynamo", "torch._inductor"} & set(modules)
