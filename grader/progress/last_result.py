"""Keeps the result of a run: as a line of progress, and as the exercise's last result, for hints and pictures."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

from grader.course.folder import Folder
from grader.explain.medal_words import better_medal
from grader.explain.verdict import FAIL, PASS
from grader.files import write_whole
from grader.progress import progress
from grader.progress.progress import Record, Throughput, better

UNITS = {"bytes_per_second": ("GB/s", 1e9), "flops": ("TFLOP/s", 1e12)}


def record_run(folder: Folder, result: dict) -> None:
    """Keeps the result of a run of the learner's own file, as --result writes it and with the edits that `course mend`
    tells, if the run passed or failed.

    Raises OSError.
    """
    if result["outcome"] not in (PASS, FAIL) or result["fault"]:
        return
    progress.state_folder(folder.root).joinpath("results").mkdir(exist_ok=True)
    with progress.changing(folder.root) as all_progress:
        _note(all_progress.of(folder.id), result, progress.now())
        write_whole(_result_file(folder), json.dumps({"when": progress.now().isoformat(), **result}) + "\n")


def _note(record: Record, result: dict, now: datetime) -> None:
    record.outcome = result["outcome"]
    record.points = f"{result['points']:g}/{result['possible']:g}"
    record.runs += 1
    record.started = record.started or now
    record.last = now
    record.cause = result["cause"]
    record.throughput = better(record.throughput, _throughput(result["tests"]))
    record.medal = better_medal(record.medal, result["medal"])
    record.level = "full" if result["outcome"] == PASS else "core" if result["core"] else ""
    if record.level:
        record.core = record.core or now
    if result["outcome"] == PASS:
        record.passed = record.passed or now


def _throughput(tests: list[dict]) -> Throughput | None:
    """Returns the speed in the first test of speed that passed or failed, as later tests may ask for another layout."""
    told = (test["figures"] for test in tests if test["outcome"] in (PASS, FAIL) and "share" in test["figures"])
    figures: dict = next(told, {})
    for name, (unit, size) in UNITS.items():
        if name in figures:
            return Throughput(round(100 * figures["share"], 1), round(figures[name] / size), unit)
    return None


def last_result(folder: Folder) -> dict | None:
    """Returns the result of the last complete run; None if there is none that can be read."""
    try:
        result = json.loads(_result_file(folder).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return result if isinstance(result, dict) and isinstance(result.get("tests"), list) else None


def _result_file(folder: Folder) -> Path:
    return folder.root / progress.STATE_FOLDER / "results" / f"{folder.id}.json"
