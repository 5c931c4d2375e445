"""The points of a result, item by item. An item is nbgrader's unit: a locked cell with points."""

from __future__ import annotations

import math
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import click

from grader.course.folder import Folder
from grader.explain.medal_words import MEDALS
from grader.explain.verdict import FAIL, NOT_ATTEMPTED, NOT_RUN, PASS, SKIPPED, WAITED
from grader.places import IMPORTED_FROM

RIGHT, COST, SPEED, HIDDEN, OTHER = "right", "cost", "speed", "hidden", "other"
TITLES = {
    RIGHT: "values and memory safety",
    COST: "memory traffic and compiled code",
    SPEED: "throughput on a GPU",
    HIDDEN: "cases that are shown by name only",
    OTHER: "other tests",
}
MOST_MESSAGE = 2000  # characters of one test


def as_heading(title: str) -> str:
    """Returns a title with a capital at its beginning; str.capitalize would write gpu."""
    return f"{title[0].upper()}{title[1:]}"


class RubricError(click.ClickException):
    """Raised where the tests of an exercise cannot be listed; the message is pytest's."""


@dataclass
class Item:
    """An item of a judged submission. `open`: the reasons why its points are not decided, neither 0 nor full."""

    name: str
    reached: float = 0
    judged: float = 0  # the points that `reached` is out of
    possible: float = 0
    open: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)

    @property
    def score(self) -> float | None:
        return None if self.open else self.reached


def items_of(result: dict, without: Collection[str] = ()) -> dict[str, Item]:
    """Returns the items of a result by name, in the order of TITLES. A fault of the machine leaves all of them open.

    `without`: items that do not count in this class. Raises ValueError for points below 0, and for inf and nan.
    """
    items: dict[str, Item] = {}
    for test in counted(result, without):
        item = items.setdefault(test["item"], Item(test["item"]))
        points = float(test["points"])
        if not math.isfinite(points) or points < 0:
            raise ValueError(f"{result['exercise']}: {test['name']} has {points} points")
        item.possible += points
        item.lines.append(line_of(test))
        if result["fault"]:
            item.open.append(result["fault"])
        elif not is_decided(test):
            item.open.append(test["message"] or test["outcome"])
        else:
            item.judged += points
            item.reached += points if test["outcome"] == PASS else 0
    return {name: items[name] for name in TITLES if name in items}


def counted(result: dict, without: Collection[str] = ()) -> list[dict]:
    """Returns the tests of a result that count: all but the tests of the items in `without`."""
    return [test for test in result["tests"] if test["item"] not in without]


def is_decided(test: dict) -> bool:
    """Returns whether a test's points are final.

    A skip is final where the test waited for right values that never came.
    """
    decided = test["outcome"] in (PASS, FAIL, NOT_ATTEMPTED)
    return decided or (test["outcome"] == SKIPPED and test["id"] == WAITED)


def as_on_gpu(result: dict) -> dict:
    """Returns the result of a judge without a GPU as a judge with a GPU decides it, as far as that is known.

    Where values are wrong, tests wait for right values. The tests of speed would then wait on a GPU, too.
    """
    waits = next((test["message"] for test in result["tests"] if test["id"] == WAITED), None)
    if waits is None:
        return result
    waited = {"id": WAITED, "message": waits}
    return {
        **result,
        "tests": [
            {**test, **waited} if (test["item"], test["id"]) == (SPEED, NOT_RUN) else test for test in result["tests"]
        ],
    }


def title_of(test: dict) -> str:
    """Returns the property that a test shows, in words; a hidden case has the name that its author gave it."""
    return test["name"] if test["hidden"] else test["name"].removeprefix("test_").replace("_", " ")


def medals_of(results: Iterable[dict]) -> list[tuple[int, str]]:
    """Returns how often each medal was won, the best first; medals that nobody won are left out."""
    won = Counter(result.get("medal", "") for result in results)
    return [(won[name], name) for name in reversed(MEDALS) if won[name]]


def report_of(result: dict) -> str:
    """Returns the judge's report without its points: it counts what this machine could judge, and a class's page has
    the points of all tests that count there."""
    points = r"[\d.]+ of [\d.]+ points\."
    return re.sub(rf"(?m)(?<=^  ){points} |^  {points}$\n?", "", result["report"]).strip("\n")


def line_of(test: dict) -> str:
    """Returns the line that a learner reads about a test: outcome, name, points, and why it was skipped."""
    mark = {PASS: "pass", FAIL: "FAIL"}.get(test["outcome"], "-" if is_decided(test) else "not run")
    note = test["message"].partition("\n")[0][:MOST_MESSAGE] if test["outcome"] == SKIPPED else ""
    return f"{mark:<8}{title_of(test)}  ({test['points']:g}){': ' if note else ''}{note}"


def points_of(folders: list[Folder], hidden: Path | None = None) -> dict[str, dict[str, float]]:
    """Returns the points of each exercise's items, by its id: the sums over its test file and the hidden cases.

    pytest lists the tests in another process. Raises RubricError where it cannot.
    """
    command = [sys.executable, "-m", "pytest", *(str(folder.path) for folder in folders)]
    command += ["--collect-only", "-p", "grader.classroom.listing", *(["--hidden", str(hidden)] if hidden else [])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(IMPORTED_FROM), os.environ.get("PYTHONPATH", "")])}
    root = folders[0].root
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, timeout=300)
    points: dict[str, dict[str, float]] = {folder.id: {} for folder in folders}
    for line in done.stdout.splitlines():
        if line.startswith("item\t"):
            _, exercise, name, worth = line.split("\t")
            points[exercise][name] = points[exercise].get(name, 0) + float(worth)
    if done.returncode or not all(points.values()):
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise RubricError(said[0].removeprefix("ERROR: ") if said else "pytest found no test")
    return {id: {name: items[name] for name in TITLES if name in items} for id, items in points.items()}
