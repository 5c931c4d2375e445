"""The messages of `course grade` about a class in nbgrader: what was graded, what was not, and what to do next."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from grader.classroom.judge_missing import Say
from grader.classroom.nbgrader.bridge import out_of_step
from grader.classroom.nbgrader.entry import Entry
from grader.explain.verdict import PASS
from grader.gpu.nvml import gpu_here


@dataclass
class Report:
    """The messages for the instructor that go with the scores, by kind.

    `graded`: the number of exercises that are graded, by assignment.
    """

    graded: Counter = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    out_of_step: list[str] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    overruled: list[str] = field(default_factory=list)


def report_of(entries: list[Entry], failed: set[tuple[str, str]]) -> Report:
    """Sorts the entries by what there is to say. `failed`: (student, assignment) pairs that nbgrader did not enter."""
    report = Report()
    same, groups = defaultdict(set), set()
    for entry in entries:
        who, result = f"{entry.student}, {entry.assignment}/{entry.name}", entry.result
        report.notes += [f"{who}: {note}" for note in entry.hand_in.notes]
        if (entry.student, entry.assignment) in failed:
            why = f"nbgrader autograde {entry.assignment} --student {entry.student} --force"
            report.faults.append(f"{who}: nbgrader could not enter it; {why} says why")
        elif entry.hand_in.problem:
            report.problems.append(f"{who}: {entry.hand_in.problem}")
        elif entry.fault:
            report.faults.append(f"{who}: {entry.fault}")
        elif difference := out_of_step(entry.released, entry.judged.items if entry.judged else {}):
            named = "" if entry.assignment == entry.exercise else f"--assignment {entry.assignment} "
            again = f"course notebooks --out . {named}{entry.exercise[:2]}"
            again += f", then nbgrader generate_assignment --force {entry.assignment}"
            report.out_of_step.append(f"{who}: {difference}. {again}")
        elif entry.open:
            report.waiting.append(f"{who}: {entry.open[0]}")
        else:
            report.graded[entry.assignment] += 1
        if entry.text and result and result.get("outcome") == PASS:
            same[entry.text.key].add(f"{entry.student} ({entry.name})")
            groups.add(frozenset(f"{student} ({entry.name})" for student in entry.together))
    alike = [who for who in same.values() if len(who) > 1 and who not in groups]
    report.notes += [f"The same text to the letter: {', '.join(sorted(who))}" for who in alike]
    return report


def tell(report: Report, page: Path, say: Say) -> int:
    """Says all messages and the next command. Returns the exit status of `course grade`."""
    for assignment, count in sorted(report.graded.items()):
        say(f"{assignment}: {count} graded.")
    _tell_list("To know", report.notes, say)
    _tell_list("Your points count, and the judge gives more by now", report.overruled, say)
    _tell_list("Waiting for a machine that can judge it (points open, neither 0 nor full)", report.waiting, say)
    _tell_list("Not graded, for the student to mend; the feedback tells them", report.problems, say)
    _tell_list("Not graded, since notebook and tests differ in points", report.out_of_step, say)
    _tell_list("Not graded, a fault here and not a student's", report.faults, say)
    say(f"The class on one page: {page}")
    if report.out_of_step:
        say("Next: the commands that are named above, then run the same command: it enters what is missing.")
    elif report.faults:
        say("Next: mend the fault (course doctor), then run the same command: it judges what is missing.")
    elif report.waiting and not gpu_here():
        say("Next: run the same command on a machine with a GPU. nbgrader export shows what is decided so far.")
    else:
        say("Next: nbgrader generate_feedback ASSIGNMENT, nbgrader export")
    return 1 if report.faults or report.out_of_step else 0


def _tell_list(title: str, lines: list[str], say: Say) -> None:
    if lines:
        say(f"{title}:")
    for line in lines:
        say(f"  {line}")
