"""What explaining a failure imports: every second of it is a second that a learner waits for the first sentence."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.conftest import ROOT, mutant

ID = "03_softmax"
GRADE = """
import json, sys
import pytest
import grader.session.session
exercise, *files = sys.argv[1:]
for file in files:
    status = pytest.main([exercise, "--submission", file, "-q", "-x", "-p", "no:cacheprovider"])
    print("\\n" + json.dumps([int(status), sorted(sys.modules)]), flush=True)
"""


def test_sentences_take_no_part_of_torch_that_is_slow_to_import(tmp_path):
    """Several are said in one process: what one of them imports is there after the others."""
    files = []
    for wrong in ("block_of_1024", "down_the_columns", "pad_zero"):
        files.append(tmp_path / wrong / f"{ID[3:]}.py")
        files[-1].parent.mkdir()
        files[-1].write_text(mutant(f"{ID}/{wrong}"), encoding="utf-8")
    command = [sys.executable, "-c", GRADE, str(ROOT / "exercises" / ID), *map(str, files)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    told = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    assert [status for status, _ in told] == [pytest.ExitCode.TESTS_FAILED] * len(files), done.stdout
    for file, (_, modules) in zip(files, told):
        assert "torch" in modules and not {"sympy", "torch._dynamo", "torch._inductor"} & set(modules), file
