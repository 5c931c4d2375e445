"""Counts what a learner reads: python -m tests.prose

Prints for each lesson the words before the first keystroke, those of the section `## Read on`, and how often the words
of the field stand in it.
"""

from __future__ import annotations

import re

from grader.course.folder import Folder, all_folders, all_lessons
from tests.conftest import ROOT

TASK = "## The task\n"
CODE = re.compile(r"^```.*?^```\n?", re.MULTILINE | re.DOTALL)
FOLDED = re.compile(r"<details>.*?</details>", re.DOTALL)
TABLE = re.compile(r"^\|.*\n?", re.MULTILINE)
PICTURE = re.compile(r"!\[[^\]]*\]\([^)]*\)")
ADDRESS = re.compile(r"\]\([^)]*\)")
WORD = re.compile(r"\w")
OF_THE_FIELD = (
    "bandwidth", "latency", "occupancy", "throughput", "iteration", "SM", "L1", "HBM", "GEMM", "memory-bound",
    "compute-bound", "arithmetic intensity", "prefetch", "software pipelining", "coalesced", "GQA", "PagedAttention",
)  # fmt: skip


def lessons() -> list[Folder]:
    """Returns the lessons to read and the exercises, by number."""
    return sorted(all_lessons(ROOT) + all_folders(ROOT), key=lambda folder: folder.id)


def read_first(text: str) -> str:
    """Returns what stands before the end of the task; the whole text where there is no task."""
    before, heading, after = text.partition(TASK)
    return before + after.partition("\n## ")[0] if heading else text


def words(text: str) -> int:
    """Counts the words of running text: code, tables, pictures and what is folded away are left out."""
    for left_out in (CODE, FOLDED, TABLE, PICTURE):
        text = left_out.sub("", text)
    return sum(bool(WORD.search(word)) for word in ADDRESS.sub("]", text).split())


def counts(text: str) -> dict[str, int]:
    """Returns how often each word of the field stands in a text, also in the plural and with a large letter."""
    found = {}
    for word in OF_THE_FIELD:
        case = 0 if word.isupper() else re.IGNORECASE
        apart = r"\s+".join(map(re.escape, word.split()))
        found[word] = len(re.findall(rf"\b{apart}(?:e?s)?\b", text, case))
    return found


def main() -> None:
    total = dict.fromkeys(OF_THE_FIELD, 0)
    print("words before the first keystroke, and words of the field")
    for folder in lessons():
        text = folder.lesson_file.read_text(encoding="utf-8")
        there = {word: count for word, count in counts(text).items() if count}
        for word, count in there.items():
            total[word] += count
        print(f"{folder.id:<24}{words(read_first(text)):>5}  {', '.join(f'{w} {n}' for w, n in there.items())}")
    print("\nin all: " + ", ".join(f"{word} {count}" for word, count in total.items()))


if __name__ == "__main__":
    main()
