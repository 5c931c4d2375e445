"""`course check`: the author's proof that the exercises are sound, in parallel on all cores."""

from __future__ import annotations

import ast
import contextlib
import re
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from grader.author import first_tests, proof, proving
from grader.author.choice import ProofChoice
from grader.author.mutants import BadMutant, mutants_of
from grader.course.folder import Folder, path_of
from grader.course.mistakes import causes_of
from grader.course.regions import marked_regions
from grader.explain.causes import Cause
from grader.progress.hints import FITS

MOST_STUB_LINES = 60
LEAST_MUTANTS, LEAST_ACCEPTED = 10, 4  # mutants of the operation itself: what any kernel can get wrong is no part of it
LEAST_WORDS = 700  # of a lesson that leaves no term unexplained
TITLES = ["Hint 1", "Hint 2", "Hint 3", "Explanation"]
ALL = ProofChoice()
EXERCISES_OF_A_WORKER = 4  # or more: then all proofs of an exercise are made by one worker
ANNOUNCED = re.compile(r"(?:about )?(\d+) lines?\.")


@dataclass(frozen=True)
class Checked:
    complaints: int
    outcomes: list[proof.Outcome]


def check(
    folders: list[Folder],
    workers: int,
    say: Callable[[str], None],
    begin: Callable[[int], Callable[[], None]],
    choice: ProofChoice = ALL,
) -> Checked:
    """Makes the chosen proofs of these exercises. Says a line for each exercise and for each complaint.

    `begin` takes the number of submissions, and returns the function that is called after each.
    """
    context = get_context("spawn")  # fork would copy threads and locks of torch
    with ProcessPoolExecutor(workers, mp_context=context, initializer=proving.prepare) as pool:
        read = {folder: pool.submit(_complaints_of_code, folder) for folder in folders}
        chosen: dict[Folder, list[tuple[proof.Proof, proof.Way]]] = {}
        unstated: dict[Folder, list[str]] = {}
        for folder in folders:
            first = first_tests.read(folder.root)
            try:
                proofs, unstated[folder] = list(proof.proofs_of(folder)), []
            except BadMutant as bad:
                proofs, unstated[folder] = [], [str(bad)]
            chosen[folder] = list(choice.ways(folder.id, proofs, first))
        one_done = begin(sum(map(len, chosen.values())))
        running: dict[Folder, list[Future]] = {}
        for folder, of_folder in chosen.items():
            at_once = len(of_folder) if len(folders) > EXERCISES_OF_A_WORKER * workers else 1
            parts = [of_folder[start : start + at_once] for start in range(0, len(of_folder), at_once)]
            running[folder] = [pool.submit(proving.run_all, part) for part in parts]
            for part, job in zip(parts, running[folder]):
                job.add_done_callback(partial(_all_done, one_done, len(part)))
        total, found = 0, []
        for folder, jobs in running.items():
            complaints = unstated[folder] + list(_static_complaints(folder)) + read[folder].result()
            outcomes = [outcome for job in jobs for outcome in job.result()]
            found += outcomes
            complaints += [f"{o.proof.name}: {o.complaint}" for o in outcomes if o.complaint]
            say(f"{folder.id}: {_summary(outcomes)}; {len(complaints) or 'no'} complaint{'s' * (len(complaints) != 1)}")
            for complaint in complaints:
                say(f"  {complaint}")
            total += len(complaints)
    return Checked(total, found)


def _all_done(one_done: Callable[[], None], proofs: int, job: Future) -> None:
    for _ in range(proofs):
        one_done()


def _complaints_of_code(folder: Folder) -> list[str]:
    """Returns the complaints that take torch to find. Called in a worker."""
    from grader.author import exact_proofs, gates, lesson_points, promised_calls, proven_answers
    from grader.author.accepted_constants import accepted_constants
    from grader.author.direct_run import interpreter

    texts = lesson_points.complaints(folder) + proven_answers.complaints(folder)
    exactly = exact_proofs.of_solution(folder, interpreter())
    return accepted_constants(folder) + gates.complaints(folder) + promised_calls.complaints(folder) + texts + exactly


def _summary(outcomes: list[proof.Outcome]) -> str:
    def fine(kind: str) -> str:
        chosen = [o for o in outcomes if o.proof.kind == kind]
        return f"{sum(not o.complaint for o in chosen)} of {len(chosen)}"

    return (
        f"stub not attempted {fine('stub')}, solution passes {fine('solution')}, "
        f"accepted {fine('accepted')}, mutants rejected with their sentence {fine('mutant')}, "
        f"cheats {fine('cheat')}"
    )


def _shown(path: Path, folder: Folder) -> str:
    return str(path.relative_to(folder.root))


def _static_complaints(folder: Folder) -> Iterator[str]:
    """Yields the complaints that follow from reading the files alone."""
    yield from _stub_complaints(folder)
    accepted = len(list(folder.accepted_folder.glob("*.py")))
    with contextlib.suppress(BadMutant):  # which is a complaint of its own
        mutants = sum(not mutant.by_operator for mutant in mutants_of(folder))
        for path, count, least in (
            (folder.accepted_folder, accepted, LEAST_ACCEPTED), (folder.mistakes_file, mutants, LEAST_MUTANTS),
        ):  # fmt: skip
            if count < least:
                yield f"{_shown(path, folder)} has {count} kernel{'s' * (count != 1)}; {least} are the least"
    yield from _hint_complaints(folder)
    yield from _lesson_complaints(folder)
    yield from _path_complaints(folder)


def _path_complaints(folder: Folder) -> Iterator[str]:
    """Yields the places outside of the exercise's own folders that do not have it: the path, and the roofline of 00."""
    if folder.id not in path_of(folder.root):
        yield f"course.md has no row of {folder.id}: the path through the course leaves it out"
    roofline = folder.root / "docs" / "roofline.py"
    timed = folder.solution_file.with_name("ladder.json").exists() and roofline.exists()
    if timed and f'"{folder.number}": ' not in roofline.read_text(encoding="utf-8"):
        yield f"docs/roofline.py: WORK lacks {folder.number}, whose speed is measured"


def _stub_complaints(folder: Folder) -> Iterator[str]:
    from grader.author.stubs import derived_stub

    stub, solution = folder.learner_file.read_text(encoding="utf-8"), folder.solution_file.read_text(encoding="utf-8")
    if stub != derived_stub(folder):
        yield f"{_shown(folder.learner_file, folder)} is not the stub of its solution: course stub {folder.number}"
    ast.parse(stub)
    if len(stub.splitlines()) > MOST_STUB_LINES:
        yield f"the stub has {len(stub.splitlines())} lines; {MOST_STUB_LINES} are the most"
    lines = solution.splitlines()
    for first, last in marked_regions(solution):
        announced = ANNOUNCED.search(lines[first - 2])
        written = sum(1 for line in lines[first : last - 1] if line.strip() and not line.strip().startswith("#"))
        if not announced:
            yield f"the comment above line {first} of the solution does not say how many lines are missing"
        elif not 0.5 * written <= int(announced[1]) <= 1.5 * written:
            yield f"the solution announces {announced[1]} lines above line {first} and has {written}"


def _hint_complaints(folder: Folder) -> Iterator[str]:
    text_with_causes = folder.hints_file.read_text(encoding="utf-8") if folder.hints_file.exists() else ""
    text = FITS.sub("", text_with_causes)
    parts = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    titles = [part.splitlines()[0].strip() for part in parts]
    if titles != TITLES:
        yield f"hints/{folder.id}.md must hold Hint 1, Hint 2, Hint 3 and Explanation, and holds {titles}"
    for cause in sorted({*" ".join(FITS.findall(text_with_causes)).split()} - {*Cause} - causes_of(folder)):
        yield f"hints/{folder.id}.md speaks of the failure {cause}, which there is not"
    if titles == TITLES and not len(parts[0]) < len(parts[1]) < len(parts[2]):
        sizes = ", ".join(str(len(part)) for part in parts[:3])
        yield f"the hints of hints/{folder.id}.md do not grow: they have {sizes} characters, `fits` comments left out"


def _lesson_complaints(folder: Folder) -> Iterator[str]:
    lesson = folder.path / "README.md"
    text = lesson.read_text(encoding="utf-8") if lesson.exists() else ""
    if (words := len(text.split())) < LEAST_WORDS:
        yield f"{_shown(lesson, folder)} has {words} words; {LEAST_WORDS} are the least"
    signatures = re.findall(r"^def (\w+\([^)]*\)):", folder.solution_file.read_text(encoding="utf-8"), re.MULTILINE)
    entries = [s for s in signatures if not s.partition("(")[0].endswith("_kernel")]
    for signature in entries:
        if signature not in text:
            yield f"{_shown(lesson, folder)} does not state the signature {signature}"
    for target in re.findall(r"\]\(([^)#:]+)(?:#[\w-]+)?\)", re.sub(r"`[^`]*`", "", text)):
        if not (folder.path / target).exists():
            yield f"{_shown(lesson, folder)} links to {target}, which is not there"
