"""The page about a class: where it stands, its commonest mistakes, and the hand-ins that a person has to look at."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from grader.classroom.rubric import medals_of, title_of
from grader.classroom.similarity import Pair, copies, is_short, near_identical
from grader.classroom.student_work import MISSING, NOT_GRADED, Judged, StudentWork
from grader.course.folder import Folder
from grader.course.regions import stub_text
from grader.explain.verdict import FAIL, NOT_ATTEMPTED, PASS
from grader.files import write_whole
from grader.show.html_page import rendered

TEMPLATE = Path(__file__).with_name("templates") / "class_report.html"
MOST_CAUSES, MOST_PAIRS, MOST_BARS = 8, 40, 25
OF_THE_SYSTEM = re.compile(r"\b(?:subprocess|pty|ctypes|os\.\w+)\b|^[ \t]*(?:from|import)\b[^#\n]*\bos\b", re.MULTILINE)


@dataclass
class SharedMistake:
    """A mistake, and the students who made it.

    `sentence`: the judge's first sentence to one of these students, which stands for all of them.
    """

    id: str
    sentence: str
    students: list[str]


@dataclass
class Bar:
    """A bar of the distribution of points: how many students reached `first` to `last` points.

    `height`: in percent of the highest bar.
    """

    first: float
    last: float
    count: int
    height: float

    @property
    def label(self) -> str:
        return f"{self.first:g}" if self.first == self.last else f"{self.first:g} to {self.last:g}"


@dataclass
class Section:
    """All that the page says about an exercise."""

    id: str
    states: dict[str, list[str]]  # the students by state, a name in STATES
    bars: list[Bar] = field(default_factory=list)
    possible: float = 0
    open: float = 0  # the most points that are not decided for any student
    mean: float = 0
    medals: str = ""  # "3 gold, 1 bronze"; "" where no GPU gave any
    causes: list[SharedMistake] = field(default_factory=list)
    other_causes: int = 0
    hard_tests: list[tuple[str, int, int]] = field(default_factory=list)  # name, number of failures, number judged
    is_compared: bool = False  # whether it was looked for texts that are alike
    is_short: bool = False  # whether the kernel is so short that right ones look alike
    same: list[list[str]] = field(default_factory=list)  # students who share a text
    pairs: list[Pair] = field(default_factory=list)
    copied: list[str] = field(default_factory=list)  # students who hand in a kernel of the course to the letter
    renamed: list[str] = field(default_factory=list)  # the same, but for names, comments and layout

    @property
    def title(self) -> str:
        return self.id.replace("_", " ", 1)

    @property
    def total(self) -> int:
        return sum(map(len, self.states.values()))


PASSED, CORE_PASSED, PARTLY_RIGHT = "passed", "core passed", "partly right"
NOTHING_RIGHT, EMPTY = "nothing right", "not attempted"
STATES = (PASSED, CORE_PASSED, PARTLY_RIGHT, NOTHING_RIGHT, EMPTY, NOT_GRADED, MISSING)


def write_report(graded: list[StudentWork], course: Path, path: Path, ignored: Sequence[str] = ()) -> Path:
    """Writes the page. `ignored`: what was sent and is nobody's hand-in, each with the reason."""
    exercises = sorted({one.exercise for one in graded})
    sections = [_section(Folder(course / "exercises" / id), [one for one in graded if one.exercise == id])
                for id in exercises]  # fmt: skip
    page = rendered(
        TEMPLATE,
        sections=sections,
        students=len({one.student for one in graded}),
        submissions=sum(not one.hand_in.absent for one in graded),
        faults=[one for one in graded if one.fault],
        waiting=[one for one in graded if one.open and not one.fault],
        problems=[one for one in graded if one.hand_in.problem and not one.hand_in.absent],
        ignored=ignored,
        starting=[one for one in graded if one.text and OF_THE_SYSTEM.search(one.text.text)],
        noted=[one for one in graded if one.hand_in.notes],
        rows=_rows(graded, exercises),
        exercises=exercises,
        states=STATES,
        when=datetime.now(UTC),
    )
    write_whole(path, page)
    return path


@dataclass
class Cell:
    """A student's work on an exercise, for the table. `points`: "17", "11 + 4 open", "" where nothing is judged."""

    points: str
    state: str
    note: str


def _rows(graded: list[StudentWork], exercises: list[str]) -> list[tuple[str, list[Cell | None], str]]:
    """Returns a row per student: the id, a cell per exercise, None where there is none, and the sum of points."""
    works: dict[str, dict[str, StudentWork]] = defaultdict(dict)
    for one in graded:
        works[one.student][one.exercise] = one
    sums = {student: [one.judged.points for one in by.values() if one.judged] for student, by in works.items()}
    return [
        (student, [_cell(by.get(id)) for id in exercises], f"{sum(sums[student]):g}" if sums[student] else "")
        for student, by in sorted(works.items())
    ]


def _cell(one: StudentWork | None) -> Cell | None:
    if one is None:
        return None
    points = f"{one.judged.points:g}" if one.judged else ""
    open_points = f" + {one.judged.open_points:g} open" if one.judged and one.open else ""
    return Cell(points + open_points, _state(one), one.note)


def _section(folder: Folder, graded: list[StudentWork]) -> Section:
    students: dict[str, list[str]] = {state: [] for state in STATES}
    for one in graded:
        students[_state(one)].append(one.student)
    section = Section(folder.id, students)
    section.medals = ", ".join(
        f"{count} {name}" for count, name in medals_of(one.result for one in graded if one.result)
    )
    judged = [judged for one in graded if (judged := one.judged) and judged.tests]
    if judged:
        section.possible = max(one.possible for one in judged)
        section.open = max(one.open_points for one in judged)
        section.mean = sum(one.points for one in judged) / len(judged)
        section.bars = _bars([one.points for one in judged], section.possible)
        section.causes, section.other_causes = _causes(judged)
        section.hard_tests = _hard_tests(judged)
        _add_alike(section, folder, judged)
    return section


def _state(one: StudentWork) -> str:
    if one.hand_in.absent:
        return MISSING
    judged = one.judged
    if judged is None:
        return NOT_GRADED
    if judged.result["outcome"] == NOT_ATTEMPTED:
        return EMPTY
    if judged.result["outcome"] == PASS or judged.points == judged.possible:
        return PASSED
    if judged.result.get("core"):
        return CORE_PASSED
    return PARTLY_RIGHT if judged.points else NOTHING_RIGHT


def _bars(points: list[float], possible: float) -> list[Bar]:
    """Returns few enough bars to read, at most MOST_BARS and one more; the last bar stands for full points alone."""
    width = max(1, math.ceil(possible / MOST_BARS))
    counts = Counter(int(reached // width) for reached in points if reached < possible)
    full, most = sum(reached >= possible for reached in points), math.ceil(possible / width)
    bars = [Bar(n * width, min((n + 1) * width, possible) - 1, counts[n], 0) for n in range(most)]
    bars.append(Bar(possible, possible, full, 0))
    highest = max(bar.count for bar in bars) or 1
    for bar in bars:
        bar.height, bar.last = 100 * bar.count / highest, max(bar.first, bar.last)
    return bars


def _causes(judged: list[Judged]) -> tuple[list[SharedMistake], int]:
    """Returns the commonest causes of failure, at most MOST_CAUSES, and how many students failed for another cause."""
    groups: dict[str, list[Judged]] = defaultdict(list)
    for one in judged:
        if one.result["outcome"] == FAIL:
            groups[one.result["cause"]].append(one)
    ordered = sorted(groups.items(), key=lambda group: (-len(group[1]), group[0]))
    causes = [SharedMistake(id, _sentence(group), [one.student for one in group]) for id, group in ordered]
    return causes[:MOST_CAUSES], sum(len(cause.students) for cause in causes[MOST_CAUSES:])


def _sentence(group: list[Judged]) -> str:
    """Returns the first sentence that most students of the group got, as a student read it.

    Sentences that differ only in the numbers and names filled in count as the same.
    """
    names = Counter(_first_sentence(one) for one in group)
    commonest = max(sorted(names), key=names.__getitem__)
    texts = Counter(one.result["message"].partition("\n")[0] for one in group if _first_sentence(one) == commonest)
    return max(sorted(texts), key=texts.__getitem__)


def _first_sentence(one: Judged) -> str:
    """Returns the name of a message's first sentence; its text in results of earlier versions, which hold no names."""
    said = one.result.get("said")
    return said[0]["sentence"] if said else one.result["message"].partition("\n")[0]


def _hard_tests(judged: list[Judged]) -> list[tuple[str, int, int]]:
    tests = [test for one in judged for test in one.tests if test["outcome"] in (PASS, FAIL)]
    failed = Counter(title_of(test) for test in tests if test["outcome"] == FAIL)
    total = Counter(map(title_of, tests))
    return [(title, count, total[title]) for title, count in failed.most_common(8)]


def _add_alike(section: Section, folder: Folder, judged: list[Judged]) -> None:
    """Adds who handed in the same text, nearly the same, at most MOST_PAIRS pairs, or a kernel that the course has."""
    worked = [one for one in judged if one.result["outcome"] != NOT_ATTEMPTED]
    students: dict[str, list[str]] = defaultdict(list)
    for one in worked:
        students[one.text.key].append(one.student)
    together = {one.together for one in worked}
    section.same = [group for group in students.values() if len(group) > 1 and tuple(sorted(group)) not in together]
    solution = folder.solution_file.read_text(encoding="utf-8")
    works = {one.student: one.text.text for one in worked if students[one.text.key][0] == one.student}
    section.pairs = near_identical(works, stub_text(solution), solution)[:MOST_PAIRS]
    shipped = [
        solution,
        *(path.read_text(encoding="utf-8") for path in folder.solution_file.parent.glob("accepted/*.py")),
    ]
    everyone = {one.student: one.text.text for one in worked}
    section.copied, section.renamed = copies(everyone, stub_text(solution), shipped)
    section.is_compared, section.is_short = bool(worked), is_short(solution, stub_text(solution))
