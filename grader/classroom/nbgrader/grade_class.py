"""`course grade`: reads the hand-ins, judges them side by side, fills the gradebook, and reports how it went.

Every step looks at what is there and does only what is missing, so a run may be killed anywhere and started again.
"""

from __future__ import annotations

import logging
import os
import shutil
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import click
import nbformat
from nbgrader.api import Grade, Gradebook
from nbgrader.apps.baseapp import NbGrader
from nbgrader.converters import Autograde, NbGraderException
from nbgrader.utils import parse_utc

from grader.classroom.class_report import write_report
from grader.classroom.handin import HandIn, filled, placeholder, read_hand_in, solution_text
from grader.classroom.intake import Others, take_in, take_in_groups
from grader.classroom.intake_notes import NOTES
from grader.classroom.judge_missing import How, Say, Students, check_isolation, judge_missing
from grader.classroom.names import Names, Person
from grader.classroom.nbgrader.bridge import fingerprint, hidden_cases, read_released, released_notebooks, without
from grader.classroom.nbgrader.class_messages import report_of, tell
from grader.classroom.nbgrader.entry import Entry
from grader.classroom.nbgrader.exports import overruled
from grader.classroom.nbgrader.gradebook_url import check_answers
from grader.classroom.nbgrader.nbgrader_types import CourseDirectory
from grader.classroom.nbgrader.one_at_a_time import alone_in
from grader.classroom.patience import patiently
from grader.classroom.result_store import Results, Text
from grader.classroom.rubric import RubricError, points_of
from grader.classroom.sent_files import files_in
from grader.classroom.student_work import StudentWork
from grader.course.folder import Folder, all_folders
from grader.explain.verdict import FAIL
from grader.files import write_whole


@dataclass(frozen=True)
class GradeArguments:
    """The arguments of `course grade`; empty `assignments` or `students` stand for all.

    `sources`: exports to take in first. `regrade`: the students whose texts are judged again. `db`: the URL of
    nbgrader's gradebook; "" for the gradebook that nbgrader_config.py names.
    """

    assignments: tuple[str, ...] = ()
    students: tuple[str, ...] = ()
    sources: tuple[Path, ...] = ()
    regrade: Students = Students()
    how: How = How()
    db: str = ""

    @property
    def is_part(self) -> bool:
        """True where the choice may leave out some of the class."""
        return bool(self.assignments or self.students)


def grade_class(choice: GradeArguments, say: Say) -> int:
    """Judges the class's hand-ins, fills the gradebook and writes the report page. Raises ClickException.

    Returns the exit status: 1 if faults, or points that differ between notebook and tests, prevented grades; else 0.
    """
    check_isolation(choice.how)
    app = _nbgrader(choice.db)
    check_answers(app.coursedir.db_url)
    with alone_in(Path(app.coursedir.root)):
        return _grade(app, choice, say)


def _grade(app: NbGrader, choice: GradeArguments, say: Say) -> int:
    coursedir, course = app.coursedir, Path(app.config.PutInVerdict.course)
    assignments = _assignments(coursedir, choice)
    _check_gradebook(coursedir, assignments)
    others = Others(_others(coursedir, assignments), {folder.name: folder.id for folder in all_folders(course)})
    ignored = [line for source in choice.sources for line in _take_in(source, coursedir, assignments, others, say)]
    take_in_groups(
        Path(coursedir.root, coursedir.submitted_directory), assignments, _roster(coursedir), Others(others.notebooks)
    )
    entries = patiently(lambda: _entries(coursedir, course, assignments, choice), say)
    if not entries:
        for line in _unknown_folders(coursedir):
            say(line)
        by = f" by {', '.join(choice.students)}" if choice.students else ""
        raise click.ClickException(
            f"Nothing was handed in for {', '.join(assignments)}{by}: there is no such folder in "
            f"{coursedir.submitted_directory}/. Next: nbgrader collect, or course grade --from EXPORT.zip"
        )
    results = Results(Path(coursedir.root, "results"))
    solutions = _solutions_with_hidden_cases(entries, results)
    judge_missing(entries, choice.regrade, results, choice.how, say, solutions)
    _check_solutions(solutions, results)
    for entry in entries:
        entry.result = None if entry.text is None else results.find(entry.text)
    _hold_places(coursedir, entries)
    failed = _into_gradebook(app, entries, say)
    everything = (
        _entries(coursedir, course, _assignments(coursedir, GradeArguments()), GradeArguments())
        if choice.is_part
        else []
    )
    graded = _class_of(coursedir, results, entries, everything)
    ignored += _unknown_folders(coursedir)
    page = write_report(graded, course, Path(coursedir.root, "report.html"), ignored)
    report = report_of(entries, failed)
    report.notes += _unknown_folders(coursedir)
    report.overruled += _overruled(coursedir)
    return tell(report, page, say)


def _nbgrader(db: str) -> NbGrader:
    """Returns nbgrader's application object, which reads its configuration as any nbgrader command does.

    Raises ClickException where nbgrader_config.py does not call `configure`.
    """
    app = NbGrader()
    app.log_level = logging.ERROR
    app.initialize([f"--db={db}"] if db else [])
    if "PutInVerdict" not in app.config:
        raise click.ClickException(
            "nbgrader_config.py does not call grader.classroom.nbgrader.bridge.configure. In a class that an older "
            "course made it calls grader.classroom.bridge: change this line of the file."
        )
    return app


def _assignments(coursedir: CourseDirectory, choice: GradeArguments) -> dict[str, list[str]]:
    """Returns the names of the exercises in each chosen assignment, by the assignment's name.

    Raises ClickException where no assignment is released, or a chosen assignment is not.
    """
    release = Path(coursedir.format_path(coursedir.release_directory, ".", "."))
    found = {path.name: released_notebooks(coursedir, path.name) for path in sorted(release.glob("*")) if path.is_dir()}
    released = {name: [path.stem for path in notebooks] for name, notebooks in found.items() if notebooks}
    if not released:
        raise click.ClickException(
            f"No assignment is released: {release} is empty. Next: nbgrader generate_assignment NAME"
        )
    chosen = [_one_of(released, name) for name in choice.assignments]
    return {name: released[name] for name in chosen or released}


def _check_gradebook(coursedir: CourseDirectory, assignments: Iterable[str]) -> None:
    """Raises ClickException where the gradebook has no such assignment: it is another than that of the release."""
    with Gradebook(coursedir.db_url, coursedir.course_id) as gradebook:
        known = {each.name for each in gradebook.assignments}
    missing = [name for name in assignments if name not in known]
    if missing:
        commands = " && ".join(f"nbgrader generate_assignment --force {name}" for name in missing)
        raise click.ClickException(
            f"The gradebook does not know {', '.join(missing)}, which release/ has. If gradebook.db was lost, put it "
            "back: points given by hand and the list of students are in it alone. To begin a new one, and grade all "
            f"anew: {commands}"
        )


def _one_of(released: dict[str, list[str]], wanted: str) -> str:
    """Returns the released assignment of this name or number. Raises ClickException where there is none."""
    number = f"{wanted.zfill(2)}_" if wanted.isdigit() else ""
    found = [name for name in released if name == wanted or (number and name.startswith(number))]
    if not found:
        raise click.ClickException(f"There is no assignment {wanted} in release/; there are {', '.join(released)}.")
    return found[0]


def _others(coursedir: CourseDirectory, assignments: dict[str, list[str]]) -> dict[str, list[str]]:
    """Returns the names of the class's other exercises, by assignment: not chosen, or not generated yet."""
    others = {
        name: names for name, names in _assignments(coursedir, GradeArguments()).items() if name not in assignments
    }
    for name, names in _not_generated(coursedir).items():
        others[name] = [*others.get(name, []), *names]
    return others


def _not_generated(coursedir: CourseDirectory) -> dict[str, list[str]]:
    """Returns the names of the exercises by assignment that source/ has and release/ does not have yet."""
    source = Path(coursedir.format_path(coursedir.source_directory, ".", "."))
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted(source.glob("*/*.ipynb")):
        if path.stem not in [released.stem for released in released_notebooks(coursedir, path.parent.name)]:
            found[path.parent.name].append(path.stem)
    return found


def _take_in(
    source: Path, coursedir: CourseDirectory, assignments: dict[str, list[str]], others: Others, say: Say
) -> list[str]:
    """Takes in a platform's export; returns the files that were not taken, and the clashes."""
    roster = _roster(coursedir)
    intake = take_in(source, Path(coursedir.root, coursedir.submitted_directory), assignments, roster, others)
    taken, students = _several(intake.taken, "file"), _several(len(intake.students), "student")
    say(f"{source}: {taken} of {students} taken, {intake.unchanged} known already.")
    for each in intake.around:
        say(f"  {each}/ was taken for a folder around students' folders.")
    if intake.unknown and roster:
        names = ", ".join(sorted(intake.unknown))
        say(f"  Not in the roster, kept under the name that the export gives: {names}")
    for line in intake.ignored[:20]:
        say(f"  Ignored: {line}")
    ids = others.course
    elsewhere = [
        f"{ids[name]} is no exercise of this class: {_several(count, 'file')} of it count for nothing; next, if it is "
        f"to be one: course notebooks --out . {ids[name][:2]}, nbgrader generate_assignment {ids[name]}, then course "
        f"grade --from {source} again"
        for name, count in sorted(intake.elsewhere.items())
    ]
    for line in (*intake.clashes, *elsewhere):
        say(f"  {line}")
    return [*intake.ignored, *intake.clashes, *elsewhere]


def _roster(coursedir: CourseDirectory) -> list[Person]:
    with Gradebook(coursedir.db_url, coursedir.course_id) as gradebook:
        return [
            Person(s.id, s.first_name or "", s.last_name or "", s.email or "", str(s.lms_user_id or ""))
            for s in gradebook.students
        ]


def _entries(
    coursedir: CourseDirectory, course: Path, assignments: dict[str, list[str]], choice: GradeArguments
) -> list[Entry]:
    submitted = Path(coursedir.root, coursedir.submitted_directory)
    students = sorted(path.name for path in submitted.glob("*") if path.is_dir() and "+" not in path.name)
    for student in (*choice.students, *choice.regrade.names):
        if student not in students:
            raise click.ClickException(f"{submitted} has no folder of a student {student!r}.")
    entries = []
    for assignment, names in assignments.items():
        released = {name: read_released(coursedir, assignment, name) for name in names}
        for student in choice.students or students:
            folder = submitted / student / assignment
            if folder.is_dir():
                entries += _entries_of(
                    folder, student, assignment, released, course, hidden_cases(Path(coursedir.root))
                )
    return entries


def _entries_of(folder: Path, student: str, assignment: str, released: dict, course: Path, hidden: Path | None):
    made = []
    for name, notebook in released.items():
        hand_in = read_hand_in(folder, name, solution_text(notebook), tuple(released))
        exercise = Folder(course / "exercises" / notebook.metadata["course"]["exercise"])
        entry = Entry(student=student, exercise=exercise.id, hand_in=hand_in, assignment=assignment, released=notebook,
                      without=without(notebook), together=hand_in.together)  # fmt: skip
        if hand_in.text is not None:
            entry.text = Text(exercise, solution_text(filled(notebook, hand_in.text)), hidden)
        made.append(entry)
    if any(entry.text is not None for entry in made):  # nbgrader gives a missing notebook 0
        made = [entry for entry in made if not entry.hand_in.absent]
    return made


def _solutions_with_hidden_cases(entries: list[Entry], results: Results) -> list[Text]:
    """Returns the solutions of the exercises that have hidden cases, which the solutions have to pass.

    A mistake in a file of hidden cases would hit every student, so it raises ClickException. The cases are listed only
    where a result is missing: listing takes seconds, and a text that has a result was judged with the same cases.
    """
    hidden = [entry.text for entry in entries if entry.text and entry.text.hidden]
    if not hidden:
        return []
    folder, exercises = hidden[0].hidden, sorted({text.exercise for text in hidden}, key=lambda exercise: exercise.id)
    if any(results.is_missing(text, gpu=False) for text in hidden):
        try:
            points_of(exercises, folder)
        except RubricError as error:
            raise click.ClickException(f"{error} Nothing was graded.") from None
    solutions = [Text(each, each.solution_file.read_text(encoding="utf-8"), folder) for each in exercises]
    return [text for text in solutions if text.hidden_file]


def _check_solutions(solutions: list[Text], results: Results) -> None:
    """Raises ClickException where a solution fails a hidden case: the case then says nothing about a student."""
    for text in solutions:
        result = results.find(text)
        for test in result["tests"] if result else []:
            if test["hidden"] and test["outcome"] == FAIL:
                said = test["message"].partition("\n")[0]
                raise click.ClickException(
                    f"{text.hidden_file}: the solution itself does not pass the hidden case {test['name']!r}. {said} "
                    "Nothing was entered into the gradebook. Next: mend the case, then run the same command."
                )


def _hold_places(coursedir: CourseDirectory, entries: list[Entry]) -> None:
    """Writes a placeholder notebook for each hand-in that has none (a .py file, say): nbgrader looks for notebooks.

    A timestamp.txt that nbgrader cannot read is renamed.
    """
    for entry in entries:
        folder = Path(coursedir.root, coursedir.submitted_directory, entry.student, entry.assignment)
        path = folder / f"{entry.name}.ipynb"
        if not path.exists():
            write_whole(path, nbformat.writes(placeholder(entry.released)) + "\n")
        timestamp = folder / "timestamp.txt"
        if timestamp.exists() and not _is_time(timestamp):  # nbgrader would end the whole run there
            timestamp.replace(folder / "timestamp.txt.unreadable")


def _is_time(path: Path) -> bool:
    try:
        return bool(parse_utc(path.read_text()))
    except (ValueError, OverflowError, OSError):
        return False


class _Some(Autograde):
    """nbgrader's autograde for the students in `wanted` alone, whose verdicts have changed."""

    wanted: frozenset[str] = frozenset()

    def init_destination(self, assignment_id, student_id):
        return student_id in self.wanted and super().init_destination(assignment_id, student_id)


def _into_gradebook(app: NbGrader, entries: list[Entry], say: Say) -> set[tuple[str, str]]:
    """Runs nbgrader's autograde where a verdict is new; returns the (student, assignment) pairs for which it failed."""
    coursedir = app.coursedir
    stale = defaultdict(set)
    for entry in entries:
        if _is_stale(coursedir, entry):
            stale[entry.assignment].add(entry.student)
    app.config.PutInVerdict.judge_missing = False
    before = _late_penalties(coursedir)
    for assignment, students in stale.items():
        for student in students:  # nbgrader would keep a feedback page that tells the old score
            shutil.rmtree(coursedir.format_path(coursedir.feedback_directory, student, assignment), ignore_errors=True)
        coursedir.assignment_id, coursedir.student_id, coursedir.notebook_id = assignment, "*", "*"
        converter = _Some(coursedir=coursedir, parent=app)
        converter.wanted, converter.force = frozenset(students), True
        here = os.getcwd()
        try:
            converter.start()
        except NbGraderException:
            pass  # it is in the log, and what is still stale is reported
        finally:
            os.chdir(here)
    failed = {(e.student, e.assignment) for e in entries if _is_stale(coursedir, e)}
    tried = sum(map(len, stale.values()))
    entered = _several(tried - len(failed), "hand-in")
    say(f"{entered} entered into the gradebook, {_folders(entries) - tried} unchanged.")
    for (student, assignment), now in sorted(_late_penalties(coursedir).items()):
        was = before.get((student, assignment), now)
        if bool(was) != bool(now):  # nbgrader counts a penalty anew wherever it enters a hand-in
            say(f"{student}, {assignment}: the late penalty was {was:g} and is {now:g} by the due date of today.")
    return failed


def _late_penalties(coursedir: CourseDirectory) -> dict[tuple[str, str], float]:
    """Returns the late penalties in the gradebook, by student and assignment."""
    with Gradebook(coursedir.db_url, coursedir.course_id) as gradebook:
        entered = [one for each in gradebook.assignments for one in gradebook.assignment_submissions(each.name)]
        return {(one.student.id, one.assignment.name): one.late_submission_penalty or 0.0 for one in entered}


def _several(count: int, name: str) -> str:
    return f"{count} {name}{'s' * (count != 1)}"


def _folders(entries: list[Entry]) -> int:
    return len({(entry.student, entry.assignment) for entry in entries})


def _is_stale(coursedir: CourseDirectory, entry: Entry) -> bool:
    """Returns whether the autograded notebook is missing, half written or made from another verdict."""
    folder = coursedir.format_path(coursedir.autograded_directory, entry.student, entry.assignment)
    try:
        notebook = nbformat.read(Path(folder, f"{entry.name}.ipynb"), as_version=4)
        verdict = notebook.metadata["course"]["verdict"]
    except Exception:  # whatever a killed run may have left
        return True
    now = fingerprint(entry.released, entry.hand_in.problem, entry.hand_in.notes, entry.result)
    return verdict != now


def _class_of(
    coursedir: CourseDirectory, results: Results, now: list[Entry], everything: list[Entry]
) -> list[StudentWork]:
    """Returns everyone's work on the exercises that somebody handed in.

    It consists of the entries of this run (`now`), the rest of `everything` that has a result or nothing to judge, and
    an absent hand-in for each student who has none. The results of the rest are read and set.
    """
    chosen = {(one.student, one.exercise) for one in now}
    others = [one for one in everything if (one.student, one.exercise) not in chosen]
    for one in others:
        one.result = None if one.text is None else results.find(one.text)
    graded: list[StudentWork] = [*now, *(one for one in others if one.text is None or one.result)]
    known = {(one.student, one.exercise) for one in [*now, *others]}
    with Gradebook(coursedir.db_url, coursedir.course_id) as gradebook:
        students = {student for student, _ in known} | {student.id for student in gradebook.students}
    for exercise in sorted({one.exercise for one in graded}):
        missing = [student for student in sorted(students) if (student, exercise) not in known]
        graded += [StudentWork(student=who, exercise=exercise, hand_in=HandIn(absent=True)) for who in missing]
    return graded


def _overruled(coursedir: CourseDirectory) -> list[str]:
    """Returns a line for each item where a person's points are lower than the judge's are by now."""
    with Gradebook(coursedir.db_url, coursedir.course_id) as gradebook:
        lower = gradebook.db.query(Grade).filter(Grade.manual_score < Grade.auto_score).all()
        return sorted(f"{one.student.id}, {one.assignment.name}/{one.notebook.name}: {overruled(one)}" for one in lower)


def _unknown_folders(coursedir: CourseDirectory) -> list[str]:
    """Returns a note on what lies in submitted/ and is not graded: hand-ins for an assignment that is not generated
    yet, and each path that belongs to no assignment, so that a misspelt name is seen."""
    submitted = Path(coursedir.root, coursedir.submitted_directory)
    assignments, pending = _assignments(coursedir, GradeArguments()), _not_generated(coursedir)
    loose = [path for path in sorted(submitted.glob("*")) if path.is_file() and not path.name.startswith(".")]
    inner = [path for path in sorted(submitted.glob("*/*")) if path.is_dir()]
    shown = [path for path in (*loose, *inner) if path in loose or path.name not in {*assignments, *pending}]
    forgotten = [path for path in sorted(submitted.glob("*/*")) if path.is_file() and not path.name.startswith(".")
                 and not path.name.endswith(NOTES) and "+" not in path.parent.name]  # fmt: skip
    waiting = Counter(path.name for path in inner if _waits(path, assignments, pending))
    return [
        *(_wait(name, count, name in assignments, pending[name]) for name, count in sorted(waiting.items())),
        *(f"{path.relative_to(submitted.parent)} was not looked at: no released assignment is called so"
          for path in shown),
        *(f"{path.relative_to(submitted.parent)} was not looked at: it lies in no assignment's folder. Move it to "
          f"{path.parent.relative_to(submitted.parent)}/ASSIGNMENT/" for path in forgotten),
    ]  # fmt: skip


def _waits(folder: Path, assignments: dict[str, list[str]], pending: dict[str, list[str]]) -> bool:
    """Returns whether a hand-in's folder holds what is not graded until its assignment is generated, or again."""
    if folder.name not in pending:
        return False
    names = Names(pending[folder.name])
    return folder.name not in assignments or any(names.exercise_of(file.path.name) for file in files_in(folder))


def _wait(assignment: str, students: int, is_released: bool, names: list[str]) -> str:
    what = f"{', '.join(names)} of {assignment} is not generated" if is_released else f"{assignment} is no assignment"
    force = "--force " if is_released else ""
    return (
        f"{what} yet: what {_several(students, 'student')} handed in waits in submitted/; next: nbgrader "
        f"generate_assignment {force}{assignment}, then course grade"
    )
