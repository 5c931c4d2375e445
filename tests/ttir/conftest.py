"""The texts that the Triton at hand makes of the kernels beside this file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import NEVER

HERE = Path(__file__).resolve().parent


@pytest.fixture(scope="session")
def made(tmp_path_factory) -> dict:
    """What make_texts.py wrote: "triton", "texts", "again", "errors"."""
    paths = [os.environ["PYTHONPATH"]] if "PYTHONPATH" in os.environ else []
    environment = {
        **os.environ,
        "TRITON_CACHE_DIR": str(tmp_path_factory.mktemp("cache")),
        "PYTHONPATH": os.pathsep.join([*paths, str(HERE.parents[1])]),
    }
    command = [sys.executable, str(HERE / "make_texts.py")]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=NEVER)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


@pytest.fixture(scope="session")
def texts(made) -> dict[str, str]:
    return made["texts"]


@pytest.fixture(scope="session")
def line_of():
    """line_of("sum"): the number of the line of kernels.py that ends with `#: sum`."""
    lines = (HERE / "kernels.py").read_text().splitlines()
    return lambda name: next(n for n, line in enumerate(lines, 1) if line.endswith(f"#: {name}"))
