"""The hints of an exercise, hints/NN_name.md: three levels and the explanation, and which failures they speak of.

A passage (a paragraph or a list item) that helps with a kind of failure names it in a comment at its end, which no
reader of the rendered file sees: <!-- fits: oob-load oob-store -->. The names are the ids of verdicts. A row of figures
that stand in the exercise's ladder names their rungs in the same way, <!-- rungs: NAME -->; a test holds it to them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from grader.course.folder import Folder
from grader.course.mistakes import causes_that_hints_help_with
from grader.explain.causes import Cause
from grader.progress import progress

SECTION = re.compile(r"^## (.+?)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
FOLDED = re.compile(r"<details><summary>(.*?)</summary>\n(.*)</details>", re.DOTALL)
FITS = re.compile(r"\s*<!-- fits: ([a-z0-9 \n-]+) -->")
COMMENT = re.compile(r"\s*<!-- (?:fits|rungs): [^>]*? -->")
PASSAGE = re.compile(r"\n\s*\n|\n(?=- )")

LAST = 3  # the level that is nearly the line

# The sentences of all other causes say what to change in the file, the host function, or a line of the kernel.
NEEDS_A_HINT = {
    Cause.OOB_LOAD, Cause.OOB_STORE, Cause.WILD_POINTER, Cause.MISALIGNED,
    Cause.DOUBLE_WRITE, Cause.LANE_CONFLICT, Cause.NO_OTHER, Cause.NOT_ZEROED, Cause.UNWRITTEN, Cause.UPDATED_TWICE,
    Cause.TRANSPOSED_RESULT, Cause.STRIDE_IGNORED, Cause.STRIDES_SWAPPED, Cause.MISPLACED_TILE, Cause.NOT_TURNED,
    Cause.LOCAL_LOAD, Cause.CARRIED_OVER, Cause.TOO_MANY_PROGRAMS, Cause.TOO_FEW_PROGRAMS,
}  # fmt: skip


def needs_a_hint(cause: str, folder: Folder) -> bool:
    """Returns True if a learner needs more than the sentence of this cause.

    That is so for an exercise's own causes, too, unless its mistakes.toml says otherwise.
    """
    return cause in NEEDS_A_HINT or cause in causes_that_hints_help_with(folder)


@dataclass(frozen=True)
class HintPassage:
    text: str  # Markdown
    causes: frozenset[str]


@dataclass(frozen=True)
class Hint:
    level: int
    title: str
    passages: tuple[HintPassage, ...]

    def fits(self, cause: str) -> bool:
        return any(cause in passage.causes for passage in self.passages)


@dataclass(frozen=True)
class Hints:
    levels: tuple[Hint, ...]
    explanation: str  # Markdown

    def level_for(self, cause: str, opened: int) -> int:
        """Returns the first hint beyond `opened` that speaks of a cause, else the last that does; 0: none does."""
        fitting = [hint.level for hint in self.levels if hint.fits(cause)]
        return next((level for level in fitting if level > opened), fitting[-1] if fitting else 0)


def read_hints(folder: Folder) -> Hints:
    """Returns the hints of an exercise. Raises OSError if their file cannot be read."""
    sections = dict(SECTION.findall(folder.hints_file.read_text(encoding="utf-8")))
    levels = []
    for name, text in sections.items():
        if match := re.fullmatch(r"Hint (\d)", name):
            title, body = _unfolded(text)
            levels.append(Hint(int(match[1]), title, tuple(_passages(body))))
    return Hints(tuple(levels), COMMENT.sub("", _unfolded(sections.get("Explanation", ""))[1]))


def level_for(folder: Folder, cause: str) -> int:
    """Returns the hint to open next after a failure with this cause; 0 if no hint speaks of it, or none can be read."""
    try:
        return read_hints(folder).level_for(cause, progress.read(folder.root).of(folder.id).hints)
    except OSError:
        return 0


def _unfolded(text: str) -> tuple[str, str]:
    match = FOLDED.search(text)
    return (match[1], match[2].strip()) if match else ("", text.strip())


def _passages(body: str) -> list[HintPassage]:
    """Returns the passages of a hint, without the line "Next: ...", which only readers of the file need."""
    passages = []
    for text in PASSAGE.split(body):
        causes = frozenset(" ".join(FITS.findall(text)).split())
        text = FITS.sub("", text).strip()
        if text and not text.startswith("Next: "):
            passages.append(HintPassage(text, causes))
    return passages
