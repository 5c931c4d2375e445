"""One submission that proves something about an exercise: run like a learner's, compared with what must come out."""

from __future__ import annotations

import ast
import contextlib
import fnmatch
import gc
import io
import json
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from grader.author.mutants import mutants_of
from grader.course.folder import Folder
from grader.explain.verdict import FAIL, NOT_ATTEMPTED, PASS
from grader.progress.hints import needs_a_hint, read_hints
from grader.session.plugin import NAME

REJECTED_WITH, PASSES = "Rejected with:", "Passes:"
ROOM_TO_BOUND = 0.85  # a solution closer to its bound than this leaves other right kernels no room


@dataclass(frozen=True)
class Proof:
    """`finding` must hold the id of what rejects a mutant, `sentence` be part of what is said of it; " ... " in it
    stands for any text.

    `may_be_slow`: an odd kernel proves that right values are accepted, however long they take on a GPU.
    """

    kind: str  # stub, solution, accepted, mutant or cheat
    name: str  # where it stands
    exercise: Path  # exercises/NN_name
    submission: Path | str  # the file, or the text of one that is not there yet
    outcome: str
    sentence: str = ""
    finding: str = ""
    may_be_slow: bool = False


@dataclass
class Outcome:
    """`found`: pass, fail or the like, "" where there is no result; `message`: what a learner reads of it."""

    proof: Proof
    complaint: str  # "" when it came out as it must
    seconds: float = 0.0
    found: str = ""
    ids: tuple[str, ...] = ()  # of its failures, that of the diagnosis first
    message: str = ""


def proofs_of(folder: Folder) -> Iterator[Proof]:
    """Stub, solutions, accepted kernels, mutants and cheats of an exercise. Raises BadMutant."""

    def proof(kind: str, path: Path, outcome: str, **more) -> Proof:
        return Proof(kind, str(path.relative_to(folder.root)), folder.path, path, outcome, **more)

    yield proof("stub", folder.learner_file, NOT_ATTEMPTED)
    for path in sorted(folder.solution_file.parent.glob("*.py")):
        yield proof("solution", path, PASS)
    tests = folder.root / "tests"
    for path in sorted((tests / "accepted" / folder.id).glob("*.py")):
        yield proof("accepted", path, PASS, may_be_slow=True)
    for mutant in mutants_of(folder):
        name, submission = str(mutant.path.relative_to(folder.root)), mutant.path
        if mutant.path.suffix == ".toml":
            name, submission = f"{name}: {mutant.name}", mutant.text
        yield Proof("mutant", name, folder.path, submission, FAIL, mutant.sentence, mutant.finding)
    for path in sorted((tests / "cheats" / folder.id).glob("*.py")):
        if says_that_it_passes(path):
            yield proof("cheat", path, PASS)
        else:
            yield proof("cheat", path, FAIL, sentence=stated_sentence(path))


def stated_sentence(path: Path) -> str:
    """The sentence that the docstring of a cheat says it is rejected with; "" if it states none."""
    return " ".join(_docstring(path).partition(REJECTED_WITH)[2].split())


def says_that_it_passes(path: Path) -> bool:
    """Whether a cheat's docstring says why it may: it wins nothing, and its kernel does the work."""
    reason = _docstring(path).partition(PASSES)[2]
    return bool(reason.strip()) and REJECTED_WITH not in _docstring(path)


def _docstring(path: Path) -> str:
    return ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""


class UpToTheFinding:
    """Ends a run as soon as the submission is rejected as it has to be: what comes after proves nothing more."""

    def __init__(self, proof: Proof) -> None:
        self._proof, self._session = proof, None

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        self._session = session

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and self._proof.sentence and self._is_found():
            self._session.shouldfail = "the finding is there"  # shouldstop draws a traceback, which takes time

    def _is_found(self) -> bool:
        course = self._session.config.pluginmanager.get_plugin(NAME)
        diagnosis = next(iter(course.gradings.values())).diagnosis
        if diagnosis is None:
            return False
        said, verdict = " ".join(" ".join(diagnosis.shown.lines).split()), diagnosis.verdict
        return _fits(self._proof.sentence, said) and not _finding_complaint(self._proof, verdict.id)


def run(proof: Proof, whole: bool = False, seed: int | None = None) -> Outcome:
    """Grades the submission with the very command that a learner uses, in this process.

    `whole`: to the end, also where it was rejected before. `seed`: of the run, in place of one of its own.
    """
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()) as printed:
        file, submission = Path(folder) / "result.json", proof.submission
        if isinstance(submission, str):
            submission = Path(folder) / f"{proof.exercise.name[3:]}.py"
            submission.write_text(proof.submission, encoding="utf-8")
        arguments = [str(proof.exercise), "--submission", str(submission), "--result", str(file)]
        arguments += [] if seed is None else ["--seed", str(seed)]
        status = pytest.main(arguments, plugins=[] if whole else [UpToTheFinding(proof)])
        if not file.exists():
            return Outcome(proof, f"pytest gave no result: {printed.getvalue().strip()[-300:]}")
        result = json.loads(file.read_text())
    complaint, seconds = _complaint(proof, result, status), result["figures"]["seconds"]
    return Outcome(proof, complaint, seconds, result["outcome"], _ids(result), result["fault"] or result["message"])


def _ids(result: dict) -> tuple[str, ...]:
    others = {test["id"] for test in result["tests"] if test["outcome"] == FAIL} - {result["cause"]}
    return tuple(filter(None, (result["cause"], *sorted(others))))


def _complaint(proof: Proof, result: dict, status: int) -> str:
    again = f"again with --seed {result['seed']}"
    if result["fault"]:
        return f"not judged: {result['fault']}"
    if proof.may_be_slow and {test["id"] for test in result["tests"] if test["outcome"] == FAIL} == {"too-slow"}:
        return ""
    if result["outcome"] != proof.outcome:
        said = f": {result['message']}" if result["message"] else ""
        return f"{result['outcome']}, but {proof.outcome} was expected{said} ({again})"
    if (status == pytest.ExitCode.OK) != (proof.outcome == PASS):
        return f"pytest's exit status {int(status)} does not fit the outcome {proof.outcome}"
    if proof.outcome == FAIL:
        complaint = _sentence_complaint(proof, " ".join(result["message"].split()), again)
        return complaint or _finding_complaint(proof, result["cause"]) or _hint_complaint(proof, result["cause"])
    if proof.kind == "solution" and result["figures"].get("largest_error", 0) > ROOM_TO_BOUND:
        return f"the solution uses {result['figures']['largest_error']:.2f} of its bound; {ROOM_TO_BOUND} is the most"
    return ""


def _sentence_complaint(proof: Proof, message: str, again: str) -> str:
    if not proof.sentence:
        return f"its docstring has no line '{REJECTED_WITH} ...'"
    if _fits(proof.sentence, message):
        return ""
    return f"rejected with another sentence: {message} (expected: {proof.sentence}; {again})"


def _finding_complaint(proof: Proof, cause: str) -> str:
    if not proof.finding or cause in proof.finding.split():
        return ""
    return f"rejected by the finding {cause}, and {' or '.join(proof.finding.split())} was expected"


def _hint_complaint(proof: Proof, cause: str) -> str:
    if proof.kind != "mutant" or not needs_a_hint(cause) or read_hints(Folder(proof.exercise)).level_for(cause, 0):
        return ""
    return f"no hint speaks of its cause: mark a passage with <!-- fits: {cause} -->"


def _fits(sentences: str, message: str) -> bool:
    patterns = ("*" + "*".join(map(_literal, one.split(" ... "))) + "*" for one in sentences.split(" | "))
    return any(fnmatch.fnmatchcase(message, pattern) for pattern in patterns)


def _literal(text: str) -> str:
    return "".join(f"[{c}]" if c in "*?[" else c for c in text)


def prepare() -> None:
    """Done once in each worker: what pytest would otherwise import, and collect as garbage, for every submission."""
    import torch

    import grader.session.session  # noqa: F401

    torch.set_num_threads(1)
    os.environ["NO_COLOR"] = "1"
    gc.freeze()
