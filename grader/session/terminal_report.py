"""The report on the terminal: a line per test, one diagnosis, and in the last line the next action.

A learner reads one thing after a run, and does one thing next: so several failures give one diagnosis, and nothing
comes after the last line.
"""

from __future__ import annotations

import os
import re
import shutil
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

from grader.course.folder import Folder, all_folders
from grader.explain.causes import Cause
from grader.explain.fence_words import is_whole, told
from grader.explain.idle_options import idle_options
from grader.explain.medal_words import told_medal
from grader.explain.mend import is_mended
from grader.explain.printing_kernels import nothing_shown, printing_lines
from grader.explain.verdict import FAIL, INCOMPLETE, INCONCLUSIVE, NOT_ATTEMPTED, PASS, SKIPPED, Verdict
from grader.judging.uses import FOR_ALL, FOR_VALUES
from grader.progress import progress
from grader.progress.hints import level_for
from grader.progress.standing import ALL_PASSED, next_after, next_exercise
from grader.sentences import count_text
from grader.session.weighed import as_lines
from grader.wire.printable import one_line

if TYPE_CHECKING:
    from grader.session.grading import Grading, TestResult

LAST = "Next: this was the last exercise. course.md says where to go from here."
WIDEST = 120
MARKS = {PASS: ("pass", {"green": True}), FAIL: ("FAIL", {"red": True, "bold": True}), SKIPPED: ("-", {})}
NAME_WIDTH, NOTE_WIDTH = 50, 33
WITHOUT_DATA = ("file", "region", "error", "refused")  # kinds of a verdict that no data change
SHOWN_LATER = ("error", "memory")  # kinds of a verdict
MOST_PRINTED_LINES = 6
JOINT = re.compile(r"(?<=^Again with these data:)  | (?=Stuck\?)")  # where a line is broken that is too long
CODE_LINE = re.compile(r"Line \d+:  ")  # a sentence may begin with "Line" too


def begin(writer, grading: Grading) -> None:
    """Writes the header: the exercise, the file that is judged, and how. Writes nothing if the regions are empty."""
    if grading.run.not_attempted:
        return
    run = grading.run
    targets = f"{run.model.target} and {run.amd.target}" if run.amd else run.model.target
    how = f"carried out on the CPU, compiled for {targets}"
    how += f", run on an {run.replays.device.name}" if run.replays else "; no GPU"
    if not grading.has_kernels:
        how = "asked on simulated GPUs"
    elif run.amd:
        how += "; speed is judged on NVIDIA GPUs alone"
    writer.write_line("")
    for line in _wrapped(f"{_title(grading)}   {_path_text(run.submission.path)}   ({how})", _columns()):
        _line(writer, line, bold=True)


def test_line(writer, test: TestResult) -> None:
    verdict = test.shown
    if verdict.outcome == NOT_ATTEMPTED or verdict.kind == "file" or _waits(test):
        return
    width = min(NAME_WIDTH, max(0, _columns() - 8 - NOTE_WIDTH))
    _marked(writer, verdict.outcome, f"{test.title:<{width}}  {verdict.note}".rstrip())


def _waits(test: TestResult) -> bool:
    return test.shown.outcome == SKIPPED and test.shown.note.startswith((FOR_VALUES, FOR_ALL))


def _marked(writer, outcome: str, text: str) -> None:
    mark, markup = MARKS[outcome]
    writer.write(f"  {mark:<6}", **markup)
    for number, line in enumerate(_wrapped(text, _columns() - 8, 4)):
        _line(writer, f"{' ' * 8 if number else ''}{line}")


def end(writer, grading: Grading, alone: bool, why: bool, is_stopped: bool) -> None:
    """Writes the diagnosis, notes on the file and, if the exercise is alone in the session, the next action.

    `why`: also which explanations were weighed. `is_stopped`: by Ctrl-C.
    """
    if grading.outcome == NOT_ATTEMPTED:
        region = "region" if grading.run.regions == 1 else "regions"
        verb = "is" if grading.run.regions == 1 else "are"
        name = grading.run.submission.path.name
        text = f"{_title(grading)}   not attempted: the marked {region} of {name} {verb} empty."
        following = f"  {_next(grading)}" if alone else ""
        parts = [text + following] if len(text + following) <= _columns() else [text, following]
        for line in (one for part in filter(None, parts) for one in _wrapped(part, _columns())):
            _line(writer, line)
        return
    if waiting := [test.shown.note for test in grading.results if _waits(test)]:
        until = (FOR_VALUES if FOR_VALUES in waiting else FOR_ALL).removeprefix("waits")
        _marked(writer, SKIPPED, f"{count_text(len(waiting), 'test')} wait{'s' * (len(waiting) == 1)}{until}")
    writer.write_line("")
    if is_stopped:
        _paragraph(writer, f"Stopped by Ctrl-C: {len(grading.results)} of {grading.tests} tests were run.")
    if grading.fault:
        _paragraph(writer, f"Not judged: {grading.fault}.")
        _paragraph(writer, "This is not a mistake of yours.")
    elif (worst := grading.diagnosis) is not None:
        _diagnosis(writer, grading, worst)
    elif grading.outcome == INCOMPLETE:
        _incomplete(writer, grading)
    else:
        _passed(writer, grading)
    for line in as_lines(grading) if why and grading.outcome == FAIL else ():
        _line(writer, f"  {line}")
    _printed(writer, grading)
    if lines := printing_lines(grading.run.submission.tree):
        _paragraph(writer, nothing_shown(lines, _trace(grading)).text)
    if (said := idle_options(grading.run.submission.tree)) is not None:
        _paragraph(writer, said.text)
    if grading.run.fence and not is_whole(grading.run.fence):
        for said in told(grading.run.fence):
            _paragraph(writer, said.text)
    if grading.unkept:
        _paragraph(writer, f"Progress was not kept ({grading.unkept}). The verdict stands.")
    if alone:
        _paragraph(writer, _next(grading))


def summary(writer, gradings: list[Grading]) -> None:
    """Writes how many of several exercises had each outcome, and the next action for the first that needs work."""
    writer.write_line("")
    words = {PASS: "passed", FAIL: "failed", NOT_ATTEMPTED: "not attempted", INCOMPLETE: "not run completely"}
    counts = {outcome: sum(g.outcome == outcome for g in gradings) for outcome in words}
    shown = ", ".join(f"{count} {words[outcome]}" for outcome, count in counts.items() if count)
    _line(writer, f"{len(gradings)} exercises: {shown}.")
    open_ones = [grading for grading in gradings if grading.outcome != PASS]
    _line(writer, _next(open_ones[0] if open_ones else gradings[-1]))


def _diagnosis(writer, grading: Grading, worst: TestResult) -> None:
    for line in worst.shown.lines:
        _paragraph(writer, line)
    if worst.verdict.kind != "file" and not worst.hidden:
        _paragraph(writer, f"Seen in: {worst.title} ({worst.verdict.case or worst.verdict.note}).")
    _tiles(writer, worst.shown)
    failed = len(grading.failures)
    reached, possible = grading.points
    several = failed > 1 and worst.verdict.kind != "file"
    more = f" {failed} tests failed; one cause often explains several." if several else ""
    writer.write_line("")
    _paragraph(writer, f"{reached:g} of {possible:g} points.{more}")
    if grading.core_passed:
        following = _still_open(grading) if grading.own else grading.folder.next()
        go_on = f" You may go on, and come back later: course open {following.number}" if following else ""
        core = f"The core is passed, its {count_text(grading.core_tests, 'test')}{grading.in_dtype_of_core}"
        _paragraph(writer, f"{core}: what is wrong belongs to full.{go_on}")
    if worst.verdict.kind != "file" and not worst.hidden and grading.folder.hints_file.exists():
        _paragraph(writer, f"More of this failure:  course explain {worst.shown.id}")
    if worst.drawn or worst.verdict.kind not in WITHOUT_DATA:
        thorough = " --thorough" if grading.run.rounds > 1 else ""
        _paragraph(writer, f"Again with these data:  {_command(grading)} --seed {grading.run.seed}{thorough}")


def _tiles(writer, verdict: Verdict) -> None:
    rows = verdict.tiles.text() if verdict.tiles else []
    if rows:
        _paragraph(writer, "The result, cut where the writing program changes: . right, X wrong, ? not written")
        for row in rows:
            _line(writer, f"    {row}")


def _incomplete(writer, grading: Grading) -> None:
    if (test := grading.unjudged) is not None:
        _paragraph(writer, f"Right so far, and not passed: {test.title} cannot be judged here ({test.verdict.note}).")
    else:
        _paragraph(writer, f"Right so far: {len(grading.results)} of {grading.tests} tests were run.")


def _passed(writer, grading: Grading) -> None:
    _paragraph(writer, f"Passed, judged in {grading.seconds:.1f} s: {_what_is_right(grading)}.")
    if grading.run.replays is None and (never := grading.run.lines.said) is not None:
        _paragraph(writer, never.text)
    if grading.medal:
        compared = [test.verdict.figures["of_solution"] for test in grading.results if "medal" in test.verdict.figures]
        _paragraph(writer, told_medal(grading.medal, min(compared)))
    file = grading.folder.solution_file
    if grading.run.submission.path != file and file.exists():
        solution = f"course solution {grading.folder.number}" if grading.own else _path_text(file)
        _paragraph(writer, f"Compare: {solution}")


def _what_is_right(grading: Grading) -> str:
    if not grading.has_kernels:
        return "all answers are right"
    if grading.run.replays is None:
        return "values, memory, traffic and machine code are right; speed needs a GPU and is not part of this run"
    if any(test.verdict.id == INCONCLUSIVE for test in grading.results):
        return "values, memory, traffic and machine code are right; the speed could not be told"
    return "values, memory, traffic, machine code and speed are right"


def _printed(writer, grading: Grading) -> None:
    run = grading.run
    if not run.printed.strip():
        return
    lines = [line.expandtabs(4)[: WIDEST - 4] for line in run.printed.splitlines()]
    writer.write_line("")
    _paragraph(writer, "Your file printed:")
    for line in lines[:MOST_PRINTED_LINES]:
        _line(writer, f"    {line}")
    if len(lines) > MOST_PRINTED_LINES or run.printed_bytes > len(run.printed):
        _paragraph(writer, f"... {run.printed_bytes:,} bytes in all; the rest is not shown.".replace(",", " "))


def _next(grading: Grading) -> str:
    folder = grading.folder
    if grading.outcome == NOT_ATTEMPTED:
        return f"Next: open {_path_text(folder.path / 'README.md')}"
    if grading.fault:
        return "Next: course doctor"
    if (failed := grading.diagnosis) is not None:
        worst = failed.shown
        path = _path_text(grading.run.submission.path)
        if worst.id == Cause.MISSING and grading.run.submission.path == folder.learner_file:
            return f"Next: course reset {folder.number} brings the empty exercise back."
        if not worst.line:
            return f"Next: edit {path} and run it again.{_hint(folder, failed)}"
        # The line of a bad access or of an exception is where a mistake shows, and not always where it was made.
        later = (worst.kind in SHOWN_LATER or worst.id == Cause.DOES_NOT_COMPILE) and not is_mended(worst)
        then = "or what leads to it." if later else "and run it again."
        return f"Next: edit {path}:{worst.line} {then}{_hint(folder, failed)}"
    if grading.unjudged is not None:
        return "Next: run it where there is a GPU, or let large calls launch what small ones do."
    if grading.outcome == INCOMPLETE:
        return f"Next: {_command(grading)} runs all tests."
    following = _following(grading)
    if following is None:
        return ALL_PASSED if _is_known(grading) else LAST
    ids = [exercise.id for exercise in all_folders(folder.root)]
    left_out = ", which is still open" if ids.index(following.id) < ids.index(folder.id) else ""
    return f"Next: {following.id}{left_out}. Open {_path_text(following.path / 'README.md')}"


def _following(grading: Grading) -> Folder | None:
    """Returns the exercise after a passed exercise; where progress is known, the next exercise that it leaves open."""
    if not _is_known(grading):
        return grading.folder.next()
    return next_after(grading.folder, progress.read(grading.folder.root))


def _is_known(grading: Grading) -> bool:
    """Returns True where progress tells what is open: the file is the learner's, and progress has it as passed."""
    if not grading.own:
        return False
    try:
        return bool(progress.read(grading.folder.root).of(grading.folder.id).passed)
    except OSError:
        return False


def _still_open(grading: Grading) -> Folder | None:
    """Returns the exercise to do next by the learner's progress; None for another file, or if it cannot be read."""
    if grading.run.submission.path != grading.folder.learner_file:
        return None
    try:
        return next_exercise(grading.folder.root, progress.read(grading.folder.root))
    except OSError:
        return None


def _hint(folder: Folder, worst: TestResult) -> str:
    """Returns " Stuck? course hint 03: hint 1 speaks of this", without the end if no hint does; "" without hints."""
    if not folder.hints_file.exists():
        return ""
    level = level_for(folder, worst.verdict.id)
    about = f": hint {level} speaks of this" if level else ""
    return f" Stuck? course hint {folder.number}{about}"


def _title(grading: Grading) -> str:
    return f"{grading.folder.number} {grading.folder.name}"


def _command(grading: Grading) -> str:
    return f"pytest {_path_text(grading.folder.path)}{_submission_option(grading)}"


def _trace(grading: Grading) -> str:
    return f"course trace {grading.folder.number}{_submission_option(grading)}"


def _submission_option(grading: Grading) -> str:
    """Returns the option that names the submission, after a blank; "" for the learner's own file."""
    submission = grading.run.submission.path
    return "" if submission == grading.folder.learner_file else f" --submission {_path_text(submission)}"


def _path_text(path: Path) -> str:
    """Returns a path as text, relative to the current folder where that is shorter."""
    relative = os.path.relpath(path)
    return relative if len(relative) < len(str(path)) else str(path)


def _line(writer, text: str, **markup: bool) -> None:
    """Writes one line, with unprintable characters replaced: paths, names and printed texts may hold anything."""
    writer.write_line(one_line(text), **markup)


def _paragraph(writer, text: str) -> None:
    if CODE_LINE.match(text) and len(text) > WIDEST - 2:
        text = text.partition("  # ")[0]  # a comment's end says less than the code
    if CODE_LINE.match(text) and len(text) > WIDEST - 2:
        text = f"{text[: WIDEST // 2]} ... {text[8 - WIDEST // 2 :]}"
    lines, indent = [text], 2 * bool(CODE_LINE.match(text))
    if len(text) > _columns() - 2 and (joint := JOINT.search(text)):
        lines = [text[: joint.start()], text[joint.end() :]]
    for line in (one for part in lines for one in _wrapped(part, _columns() - 2, indent)):
        _line(writer, f"  {line}")


def _columns() -> int:
    return min(WIDEST, shutil.get_terminal_size((WIDEST, 24)).columns)


def _wrapped(text: str, width: int, indent: int = 0) -> list[str]:
    """Returns the lines of a text, broken between words. `indent`: of all lines but the first."""
    if text.startswith("pytest "):
        return [text]
    following = " " * indent
    lines = textwrap.wrap(text, width, subsequent_indent=following, break_long_words=False, break_on_hyphens=False)
    return lines or [""]
