"""The hints of an exercise, hints/NN_name.md: three levels and the explanation, and which failures they speak of.

A passage (a paragraph or a list item) that helps with a kind of failure names it in a comment at its end, which no
reader of the rendered file sees: <!-- fits: oob-load oob-store -->. The names are the ids of verdicts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from grader.course.folder import Folder
from grader.progress import progress

SECTION = re.compile(r"^## (.+?)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
FOLDED = re.compile(r"<details><summary>(.*?)</summary>\n(.*)</details>", re.DOTALL)
FITS = re.compile(r"\s*<!-- fits: ([a-z0-9 \n-]+) -->")
PASSAGE = re.compile(r"\n\s*\n|\n(?=- )")

# Verdicts whose own words say what to change: about the file, the host function, or one line of the kernel.
SAYS_ITSELF = {
    "missing", "no-file", "unreadable", "too-long", "encoding", "syntax", "import", "exit", "memory", "load",
    "no-entry", "arity", "not-recordable", "host", "kernel", "time-limit", "endless", "grid", "crash", "process-exit",
    "garbled", "files-changed", "left-behind",
    "wrong-result-type", "no-launch", "torch-did-it", "python-and", "input-changed", "stateful", "uninitialised-read",
    "wrong-operand", "wrong-operation", "input-passed-through", "low-precision", "traffic", "race", "rounded-operands",
    "exp2", "logarithm", "constant", "unchanged", "wrong-values",
    "does-not-compile", "does-not-fit", "not-allowed", "foreign-kernel", "other-launches", "spills", "scalar-access",
    "not-pipelined", "no-tensor-cores", "scattered", "foreign-memory", "wrong-on-gpu", "gpu-fault", "gpu-hangs",
    "differs-compiled", "wrong-while-timed", "too-slow", "offset-overflow", "false-promise", "through-fp32",
    "empty-row",
}  # fmt: skip


@dataclass(frozen=True)
class Passage:
    text: str  # Markdown
    causes: frozenset[str]


@dataclass(frozen=True)
class Hint:
    level: int
    title: str
    passages: tuple[Passage, ...]

    def fits(self, cause: str) -> bool:
        return any(cause in passage.causes for passage in self.passages)


@dataclass(frozen=True)
class Hints:
    levels: tuple[Hint, ...]
    explanation: str  # Markdown

    def level_for(self, cause: str, opened: int) -> int:
        """The first hint not yet opened that speaks of a cause; else the last opened one that does; 0: none does."""
        fitting = [hint.level for hint in self.levels if hint.fits(cause)]
        return next((level for level in fitting if level > opened), fitting[-1] if fitting else 0)


def read_hints(folder: Folder) -> Hints:
    """Raises OSError where there is no such file."""
    sections = dict(SECTION.findall(folder.hints_file.read_text(encoding="utf-8")))
    levels = []
    for name, text in sections.items():
        if match := re.fullmatch(r"Hint (\d)", name):
            title, body = _unfolded(text)
            levels.append(Hint(int(match[1]), title, tuple(_passages(body))))
    return Hints(tuple(levels), FITS.sub("", _unfolded(sections.get("Explanation", ""))[1]))


def level_for(folder: Folder, cause: str) -> int:
    """Which hint to open next after a failure with this cause; 0 where no hint speaks of it."""
    try:
        return read_hints(folder).level_for(cause, progress.read(folder.root).of(folder.id).hints)
    except OSError:
        return 0


def _unfolded(text: str) -> tuple[str, str]:
    match = FOLDED.search(text)
    return (match[1], match[2].strip()) if match else ("", text.strip())


def _passages(body: str) -> list[Passage]:
    """Without the last line of the file's version, which says where the next hint lies."""
    passages = []
    for text in PASSAGE.split(body):
        causes = frozenset(" ".join(FITS.findall(text)).split())
        text = FITS.sub("", text).strip()
        if text and not text.startswith("Next: "):
            passages.append(Passage(text, causes))
    return passages
