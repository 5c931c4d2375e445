"""The learner's progress: a line of plain text per exercise in progress.txt, at the top of the course.

    03_softmax  outcome=fail points=5/17 runs=4 hints=1 started=2026-01-31T18:20:05Z last=2026-01-31T18:42:11Z

Lines may come from two machines or two branches. Several lines about an exercise are merged when they are read, so
two files can be joined line by line. Lines that are no records are kept as they are, and so are fields and exercises
that this version does not know.
"""

from __future__ import annotations

import contextlib
import fcntl
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

from grader.explain.medal_words import MEDALS, better_medal
from grader.files import write_whole

NAME = "progress.txt"
HEADER = "# Progress in this course, kept by pytest and `course`. Deleting it is safe; so is joining two of them."
STATE_FOLDER = ".course"  # for files that can be made again: last results, the lock
FIELD = re.compile(r"([a-z][a-z-]*)=(\S*)")
POINTS = re.compile(r"\d+(\.\d+)?/\d+(\.\d+)?")
PREDICTED = re.compile(r"[0-9]{1,4}/[1-9][0-9]{0,3}")
SPEED = re.compile(r"(\d+)(GB/s|TFLOP/s),(\d+\.\d)%")


@dataclass(frozen=True, order=True)
class Throughput:
    """A measured speed, as a percentage of the ceiling, by which it is compared, and as a rate on that GPU."""

    per_cent: float
    rate: int
    unit: str  # "GB/s" or "TFLOP/s"

    @staticmethod
    def read(text: str) -> Throughput:
        """Returns the throughput that progress.txt writes as "4173GB/s,97.8%". Raises ValueError."""
        match = SPEED.fullmatch(text)
        if match is None:
            raise ValueError(text)
        return Throughput(float(match[3]), int(match[1]), match[2])

    def __str__(self) -> str:
        return f"{self.rate}{self.unit},{self.per_cent:.1f}%"

    @property
    def text(self) -> str:
        """The throughput for a learner: "4 173 GB/s 98 %"."""
        return f"{self.rate:,} {self.unit} {self.per_cent:.0f} %".replace(",", " ")


@dataclass
class Record:
    """The state of an exercise, as far as it is known."""

    id: str
    outcome: str = ""  # of the last complete run
    points: str = ""  # of that run: "5/17"
    runs: int = 0
    hints: int = 0  # the highest level opened
    started: datetime | None = None
    last: datetime | None = None
    passed: datetime | None = None  # for the first time
    gave_up: datetime | None = None  # asked for the solution before passing
    cause: str = ""  # of the last failure: the id of its verdict
    throughput: Throughput | None = None  # the best share of the ceiling that a run has shown
    predicted: str = ""  # questions that the first try at them answered rightly: "3/4"
    core: datetime | None = None  # its core passed, for the first time
    level: str = ""  # of the last run: "core" where it passed the core, "full" where it passed all
    medal: str = ""  # the best that a run has won
    other: dict[str, str] = field(default_factory=dict)

    def merged(self, other: Record) -> Record:
        """Returns a record of both, in either order: the highest counts, the earliest dates, the best speed and medal,
        the lower prediction, and the rest from the later run."""
        one, two = sorted((self, other), key=lambda record: (record.last or LONG_AGO, repr(record)))
        return Record(
            self.id,
            two.outcome or one.outcome,
            two.points or one.points,
            max(one.runs, two.runs),
            max(one.hints, two.hints),
            _earliest(one.started, two.started),
            two.last,
            _earliest(one.passed, two.passed),
            _earliest(one.gave_up, two.gave_up),
            two.cause if two.last else one.cause,
            better(one.throughput, two.throughput),
            min(filter(None, (one.predicted, two.predicted)), key=_share_and_text, default=""),
            _earliest(one.core, two.core),
            two.level if two.last else one.level,
            better_medal(one.medal, two.medal),
            one.other | two.other,
        )

    def line(self) -> str:
        values = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in ("id", "other")}
        shown = {name.replace("_", "-"): _as_text(value) for name, value in values.items() if value}
        # A value that another version wrote stands next to a value of ours: neither version loses its own.
        return f"{self.id}  {' '.join(f'{name}={value}' for name, value in (*shown.items(), *self.other.items()))}"


LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass
class Progress:
    records: dict[str, Record] = field(default_factory=dict)
    strange: list[tuple[int, str]] = field(default_factory=list)  # (number, text) of lines that are no records

    def of(self, id: str) -> Record:
        """Returns the record of an exercise, which is made if there is none."""
        return self.records.setdefault(id, Record(id))

    def text(self) -> str:
        lines = [HEADER, *(text for _, text in self.strange)]
        return "\n".join([*lines, *(self.records[id].line() for id in sorted(self.records))]) + "\n"


def read(root: Path) -> Progress:
    """Returns the progress of the course at `root`, empty if there is no file. Raises OSError if it cannot be read."""
    try:
        text = (root / NAME).read_text(encoding="utf-8", errors="surrogateescape")
    except FileNotFoundError:
        return Progress()
    progress = Progress()
    for number, line in enumerate(text.splitlines(), 1):
        record = _record(line)
        if record is not None:
            known = progress.records.get(record.id)
            progress.records[record.id] = record.merged(known) if known else record
        elif line.strip() and line != HEADER:
            progress.strange.append((number, line))
    return progress


@contextlib.contextmanager
def changing(root: Path) -> Iterator[Progress]:
    """Yields the progress to change, and writes it if the block ends without an error; other processes wait until then.

    Raises OSError.
    """
    with (state_folder(root) / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        progress = read(root)
        yield progress
        write_whole(root / NAME, progress.text())


def state_folder(root: Path) -> Path:
    """Returns the folder for files that git ignores, and makes it if there is none. Raises OSError."""
    folder = root / STATE_FOLDER
    folder.mkdir(exist_ok=True)
    if not (folder / ".gitignore").exists():
        (folder / ".gitignore").write_text("*\n", encoding="utf-8")
    return folder


def now() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)


def _share_and_text(predicted: str) -> tuple[Fraction, str]:
    """Returns a key to order predictions by: by share, and by text where shares are equal, as of "3/4" and "6/8"."""
    return Fraction(predicted), predicted


def better(one: Throughput | None, two: Throughput | None) -> Throughput | None:
    return max((speed for speed in (one, two) if speed), default=None)


def _record(line: str) -> Record | None:
    """Returns the record that a line holds; None for a comment and for any other text."""
    id, _, rest = line.strip().partition(" ")
    if not re.fullmatch(r"\d\d_[a-z0-9_]+", id):
        return None
    parts = rest.split()
    if not all(FIELD.fullmatch(part) for part in parts):
        return None
    record = Record(id)
    for part in parts:
        name, _, value = part.partition("=")
        _set(record, name, value)
    return record


def _set(record: Record, name: str, value: str) -> None:
    """Sets a field of a record. A field that this version does not know, or cannot read, is kept as it is."""
    types = {f.name: str(f.type) for f in fields(Record) if f.name not in ("id", "other")}
    attribute = name.replace("-", "_")
    try:
        if attribute == "medal" and value not in MEDALS:
            raise ValueError(value)
        if attribute == "points" and not POINTS.fullmatch(value):
            raise ValueError(value)
        if attribute == "predicted" and not PREDICTED.fullmatch(value):
            raise ValueError(value)
        setattr(record, attribute, READERS[types[attribute]](value))
    except (KeyError, ValueError, OverflowError):
        record.other[name] = value


def _date(text: str) -> datetime:
    date = datetime.fromisoformat(text)
    return date.astimezone(UTC) if date.tzinfo else date.replace(tzinfo=UTC)


# Functions that read a field of each type.
READERS: dict[str, Callable[[str], object]] = {
    "int": int, "str": str, "datetime | None": _date, "Throughput | None": Throughput.read,
}  # fmt: skip


def _as_text(value: object) -> str:
    return value.strftime("%Y-%m-%dT%H:%M:%SZ") if isinstance(value, datetime) else str(value)


def _earliest(one: datetime | None, two: datetime | None) -> datetime | None:
    return min((date for date in (one, two) if date), default=None)
