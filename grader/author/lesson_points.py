"""The line of a lesson behind which "What is graded" is folded: the points by kind, made from the test file."""

from __future__ import annotations

import re
from collections import Counter

from grader.course.folder import Folder, load_test_file
from grader.judging.uses import USES

FOLDED = re.compile(r"^## What is graded\n\n<details><summary>(.*?)</summary>\n\n.+?\n\n</details>\n", re.M | re.S)
KINDS = {
    "right": "values and memory safety",
    "cost": "memory traffic and machine code",
    "speed": "what a GPU alone shows",
}


def line_of(folder: Folder) -> str:
    """Returns "17 points: 12 for values and memory safety, 3 for ...", in the order of KINDS."""
    points: Counter[str] = Counter()
    module = load_test_file(folder)
    kinds = KINDS if module.exercise.has_kernels else {"right": "measured times"}
    for name, test in vars(module).items():
        if name.startswith("test_"):
            (fixture,) = test.__code__.co_varnames[: test.__code__.co_argcount]
            stated = [mark.args[0] for mark in getattr(test, "pytestmark", []) if mark.name == "points"]
            points[USES[fixture].item] += stated[-1] if stated else 1
    of_kinds = ", ".join(f"{points[item]:g} for {name}" for item, name in kinds.items() if points[item])
    return f"{sum(points.values()):g} points: {of_kinds}"


def complaints(folder: Folder) -> list[str]:
    lesson, line = folder.lesson_file, line_of(folder)
    folded = FOLDED.search(lesson.read_text(encoding="utf-8")) if lesson.exists() else None
    if folded is None:
        return [
            f"{lesson.relative_to(folder.root)} does not fold what is graded behind <details><summary>{line}</summary>"
        ]
    if folded[1] != line:
        return [f"{lesson.relative_to(folder.root)} states '{folded[1]}', and there are {line}"]
    return []
