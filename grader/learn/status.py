"""`course status`: every exercise, how far it is, and what is next."""

from __future__ import annotations

import click

from grader.course.by_name import course_root
from grader.course.folder import all_folders, all_lessons
from grader.learn.learner_folder import version_note
from grader.progress import progress
from grader.progress.progress import Progress, Record
from grader.progress.standing import (
    BROKEN_AGAIN,
    CORE_BROKEN,
    CORE_PASSED,
    FAILING,
    NOT_STARTED,
    PASSED,
    next_line,
    read_progress,
    state,
)

STYLES = {
    PASSED: "green", CORE_PASSED: "yellow", FAILING: "red", CORE_BROKEN: "red", BROKEN_AGAIN: "red", NOT_STARTED: "dim",
}  # fmt: skip


@click.command(short_help="every exercise: state, points, throughput; what is next")
def status() -> None:
    """Every exercise: its state, points, best throughput, hints used and the time since its last run; what is next.

    The throughput is the best that a GPU has shown of your kernel, and its share of what that GPU can do. A pass is
    bronze; with 0.90 of the speed of the shipped solution it is silver, with 0.97 gold.

    \b
    Example:  course status
    """
    from rich.table import Table

    from grader.show.terminal import NARROW, ago, console

    root = course_root()
    done, out = read_progress(root), console()
    wide = out.width >= NARROW
    table = Table(box=None, pad_edge=False, header_style="bold")
    measured = any(record.throughput for record in done.records.values())
    columns = ["exercise", "state", "points"] + ["throughput"] * measured + ["hints", "last run"] * wide
    for column in columns:
        table.add_column(column, overflow="fold", no_wrap=column == "throughput" and wide)
    for folder in all_folders(root):
        record = done.of(folder.id)
        points = record.points.replace("/", " of ") if state(record) != NOT_STARTED else ""
        row = [folder.id, f"[{STYLES[state(record)]}]{state(record)}[/]", points]
        row += [_speed(record)] * measured
        table.add_row(*row, *([_hints(record), ago(record.last, progress.now())] if wide else []))
    out.print(table)
    out.print()
    for lesson in all_lessons(root):
        out.print(f"{lesson.id} is a lesson to read: course open {lesson.number}", markup=False)
    for note in _notes(done, {folder.id for folder in all_folders(root)}):
        out.print(note, markup=False)
    if note := version_note(root):
        out.print(note, markup=False, soft_wrap=True)
    out.print(next_line(root, done), markup=False, soft_wrap=True)


def _speed(record: Record) -> str:
    """Returns the best throughput and the best medal: "4 173 GB/s 98 %, gold"; "" for neither."""
    return ", ".join(filter(None, (record.throughput.text if record.throughput else "", record.medal)))


def _hints(record: Record) -> str:
    used = f"{record.hints} of 3" if record.hints else ""
    return f"{used}{', ' * bool(used)}solution seen" if record.gave_up else used


def _notes(done: Progress, known: set[str]) -> list[str]:
    passed = sum(1 for id, record in done.records.items() if id in known and record.passed)
    measured = any(record.throughput for id, record in done.records.items() if id in known)
    medal = any(record.medal for id, record in done.records.items() if id in known)
    best = f"your best, {'' if medal else 'and '}its share of what the GPU can do{', and the best medal' * medal}"
    throughput = best if measured else "not measured here, it needs a GPU"
    core = sum(1 for id, record in done.records.items() if id in known and record.core and not record.passed)
    also = f", and the core of {core} more" if core else ""
    broken = sum(1 for id, record in done.records.items() if id in known and state(record) == BROKEN_AGAIN)
    failing = f" ({broken} of them {'fails' if broken == 1 else 'fail'} now)" if broken else ""
    notes = [f"{passed} of {len(known)} passed{failing}{also}. Throughput: {throughput}."]
    foreign = sorted(id for id, record in done.records.items() if id not in known)
    if foreign:
        notes.append(
            f"{progress.NAME} also knows {', '.join(foreign)}, which this course does not have. They are kept."
        )
    strange = [f"{number}" for number, text in done.strange if not text.lstrip().startswith("#")]
    if strange:
        lines = f"line{'s' * (len(strange) > 1)} {', '.join(strange[:5])}{' ...' * (len(strange) > 5)}"
        notes.append(f"{progress.NAME}, {lines}: not understood, kept as it is.")
    return notes
