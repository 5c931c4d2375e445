"""Benchmarks can be started, with the code as it is."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys

import pytest

from tests.conftest import ROOT
from tests.waiting import NEVER

LOADED = """
import runpy, sys
sys.path[:0] = sys.argv[1:3]
for path in sys.argv[3:]:
    try:
        runpy.run_path(path, run_name="loaded")
    except ModuleNotFoundError as missing:  # what only a machine with a GPU has
        if missing.name.partition(".")[0] not in ("cuda", "pynvml"):
            raise
    print(path)
"""


def test_every_benchmark_loads():
    """What they take from the grader is there; what they measure takes too long for a test."""
    files = sorted(map(str, (ROOT / "benchmarks").glob("*.py")))
    command = [sys.executable, "-c", LOADED, str(ROOT), str(ROOT / "benchmarks"), *files]
    done = subprocess.run(command, capture_output=True, text=True, timeout=NEVER)
    assert len(files) > 5 and done.stdout.splitlines() == files, done.stderr


# ---- times.py: is it slower than what is kept? ----------------------------------------------------------------------

TIMES = runpy.run_path(str(ROOT / "benchmarks" / "times.py"))
Sample, ANCHOR = TIMES["Sample"], TIMES["ANCHOR"]
KEPT = {"stub": 2.0, "  solution": 4.0}


def test_what_is_at_most_ten_percent_slower_is_not_told():
    assert TIMES["compared"]({"stub": 2.2, "  solution": 1.0}, KEPT) == []


def test_what_is_slower_is_told_with_both_ratios():
    assert TIMES["compared"]({"stub": 2.1, "  solution": 5.0}, KEPT) == [
        "solution: 5.00 x anchor, and 4.00 are kept: 25% slower."
    ]


def test_a_command_without_a_figure_is_told():
    assert TIMES["compared"]({"stub": 2.0, "new": 1.0}, KEPT) == ["new: no figure is kept of it."]


def test_a_ratio_is_that_of_one_round_so_that_a_slow_round_is_no_slow_grader():
    """The machine gets slower from round to round; the command stays at three times its anchor but for once."""
    samples = {
        ANCHOR: [Sample(1.0, 9.0), Sample(2.0, 9.0), Sample(4.0, 9.0)],
        "stub": [Sample(3.0, 1.0), Sample(9.0, 1.0), Sample(12.0, 1.0)],
    }
    assert TIMES["ratios"](samples) == {"stub": 3.0}


def test_seconds_of_a_core_count_what_a_process_has_started():
    busy = "import time\nwhile time.process_time() < 0.1: pass"
    command = [sys.executable, "-c", f"import subprocess, sys; subprocess.run([sys.executable, '-c', {busy!r}])"]
    assert TIMES["sample"](command, 0).core > 0.1


def test_a_command_that_ends_otherwise_than_expected_is_no_sample():
    with pytest.raises(SystemExit, match="ended with 3, not 0"):
        TIMES["sample"]([sys.executable, "-c", "raise SystemExit(3)"], 0)


@pytest.mark.parametrize(("ratio", "status"), [(2.0, 0), (3.0, 1)])
def test_the_status_says_whether_something_is_slower(monkeypatch, tmp_path, ratio, status):
    kept = tmp_path / "times.json"
    kept.write_text(json.dumps({"stub": 2.0}))
    main = TIMES["main"]
    samples = {ANCHOR: [Sample(1.0, 1.0)], "stub": [Sample(ratio, 1.0)]}
    monkeypatch.setattr(sys, "argv", ["times.py"])
    monkeypatch.setitem(main.__globals__, "KEPT", kept)
    monkeypatch.setitem(main.__globals__, "measured", lambda rounds: samples)
    assert main() == status


def test_figures_of_every_command_are_kept():
    kept = json.loads(TIMES["KEPT"].read_text(encoding="utf-8"))
    assert set(kept) == set(TIMES["COMMANDS"]) - {ANCHOR} and all(ratio > 1 for ratio in kept.values())
