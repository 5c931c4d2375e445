"""A child of root's is no root."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.child.fenced import loaded

STARTED = "import subprocess\nstarted = subprocess.Popen(['sleep', '3600'])\nprint(started.pid, flush=True)"


@pytest.fixture
def status() -> list[str]:
    """What Linux tells of a child, and of a program that it has started."""
    with loaded(STARTED) as child:
        pids = child._pid, int(Path(f"/proc/{child._pid}/task/{child._pid}/children").read_text())
        return [Path(f"/proc/{pid}/status").read_text() for pid in pids]


def test_it_has_no_capability_and_gets_none_by_starting_a_program(status):
    for text in status:
        held = {name: int(value, 16) for name, value in re.findall(r"Cap(Inh|Prm|Eff|Amb):\s+(\w+)", text)}
        assert held == dict(Inh=0, Prm=0, Eff=0, Amb=0)
        assert re.search(r"NoNewPrivs:\s+1\n", text) and re.search(r"Seccomp:\s+2\n", text)
