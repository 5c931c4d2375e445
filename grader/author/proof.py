"""A submission that proves something about an exercise: the expected outcome, and the complaint about another."""

from __future__ import annotations

import ast
import fnmatch
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from grader.author.mutants import mutants_of
from grader.course.folder import Folder
from grader.explain.verdict import FAIL, NOT_ATTEMPTED, PASS, Verdict
from grader.progress.hints import needs_a_hint, read_hints

REJECTED_WITH, PASSES = "Rejected with:", "Passes:"
ROOM_TO_BOUND = 0.85  # a solution closer to its bound than this leaves other right kernels no room


@dataclass(frozen=True)
class Proof:
    """A submission and its expected outcome. `finding`: the ids that may reject a mutant. `sentence`: a part of the
    message about a rejected submission, in the notation of grader/author/mutants.py.

    `may_be_slow`: an odd kernel proves that right values are accepted, however long it takes on a GPU. `by_operator`:
    an operator made the mutant.
    """

    kind: str  # stub, solution, accepted, mutant or cheat
    name: str  # its file, and the mutant's name if the file states several
    exercise: Path  # exercises/NN_name
    submission: Path | str  # the file, or the text of a file that is not written yet
    outcome: str
    sentence: str = ""
    finding: str = ""
    may_be_slow: bool = False
    by_operator: bool = False


@dataclass(frozen=True)
class Way:
    """The way in which a submission is judged. `whole`: to the end, also after it is rejected.

    `seed`: of the run; None: the run draws its own. `by_pytest`: with the command that a learner uses. `all_drawn`:
    judges an accepted kernel in all drawn calls. `half`: the text that draws the half of the tests that it is asked;
    "": it is asked all. `first_tests`: the tests to ask before all others, and alone if they reject a mutant as
    expected. `finds_first_tests`: looks for tests that could be the first tests.
    """

    whole: bool = False
    seed: int | None = None
    by_pytest: bool = False
    all_drawn: bool = False
    half: str = ""
    first_tests: tuple[str, ...] = ()
    finds_first_tests: bool = False


@dataclass
class Outcome:
    """The outcome of a proof. `found`: the run's outcome, "" without a result. `message`: the message for a learner."""

    proof: Proof
    complaint: str  # "" if the outcome is as expected
    seconds: float = 0.0
    found: str = ""
    ids: tuple[str, ...] = ()  # of its failures, the id of the diagnosis first
    message: str = ""
    kind: str = ""  # of the diagnosis: one of DIRECTNESS
    line: int = 0  # that the diagnosis tells
    first_tests: tuple[str, ...] = ()  # tests that alone reject a mutant as expected, where they were looked for


def proofs_of(folder: Folder) -> Iterator[Proof]:
    """Yields a proof for the stub and for each solution, accepted kernel, mutant and cheat. Raises BadMutant."""

    def proof(kind: str, path: Path, outcome: str, **more) -> Proof:
        return Proof(kind, str(path.relative_to(folder.root)), folder.path, path, outcome, **more)

    yield proof("stub", folder.learner_file, NOT_ATTEMPTED)
    for path in folder.solution_files:
        yield proof("solution", path, PASS)
    for path in sorted(folder.accepted_folder.glob("*.py")):
        yield proof("accepted", path, PASS, may_be_slow=True)
    for mutant in mutants_of(folder):
        name, changed = str(mutant.path.relative_to(folder.root)), mutant.path.suffix == ".toml"
        submission, name = (mutant.text, f"{name}: {mutant.name}") if changed else (mutant.path, name)
        sentence, finding, made = mutant.sentence, mutant.finding, mutant.by_operator
        yield Proof("mutant", name, folder.path, submission, FAIL, sentence, finding, by_operator=made)
    for path in sorted((folder.root / "tests" / "cheats" / folder.id).glob("*.py")):
        if says_that_it_passes(path):
            yield proof("cheat", path, PASS)
        else:
            yield proof("cheat", path, FAIL, sentence=stated_sentence(path))


def stated_sentence(path: Path) -> str:
    """Returns the sentence that rejects a cheat, as its docstring states it; "" if the docstring states none."""
    return " ".join(_docstring(path).partition(REJECTED_WITH)[2].split())


def says_that_it_passes(path: Path) -> bool:
    """Returns True if a cheat's docstring says why it may pass: it wins nothing, and its kernel does the work."""
    reason = _docstring(path).partition(PASSES)[2]
    return bool(reason.strip()) and REJECTED_WITH not in _docstring(path)


def _docstring(path: Path) -> str:
    return ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""


def outcome_of(proof: Proof, result: dict) -> Outcome:
    """Returns the outcome of a proof, from the result of its run in the form of the file of `--result`."""
    told = result["fault"] or result["message"]
    return Outcome(
        proof, _complaint(proof, result), result["figures"]["seconds"], result["outcome"], _ids(result), told
    )


def is_found(proof: Proof, diagnosis: Verdict) -> bool:
    """Returns True if a run has rejected the submission as expected: later tests prove nothing more."""
    said = " ".join(" ".join(diagnosis.lines).split())
    return bool(proof.sentence) and _fits(proof.sentence, said) and not _finding_complaint(proof, diagnosis.id)


def _ids(result: dict) -> tuple[str, ...]:
    others = {test["id"] for test in result["tests"] if test["outcome"] == FAIL} - {result["cause"]}
    return tuple(filter(None, (result["cause"], *sorted(others))))


def _complaint(proof: Proof, result: dict) -> str:
    again = f"again with --seed {result['seed']}"
    if result["fault"]:
        return f"not judged: {result['fault']}"
    if proof.may_be_slow and {test["id"] for test in result["tests"] if test["outcome"] == FAIL} == {"too-slow"}:
        return ""
    if result["outcome"] != proof.outcome:
        said = f": {result['message']}" if result["message"] else ""
        return f"{result['outcome']}, but {proof.outcome} was expected{said} ({again})"
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
    folder = Folder(proof.exercise)
    if (
        proof.kind != "mutant"
        or proof.by_operator
        or not needs_a_hint(cause, folder)
        or read_hints(folder).level_for(cause, 0)
    ):
        return ""
    return f"no hint speaks of its cause: mark a passage with <!-- fits: {cause} -->"


def _fits(sentences: str, message: str) -> bool:
    patterns = ("*" + "*".join(map(_literal, one.split(" ... "))) + "*" for one in sentences.split(" | "))
    return any(fnmatch.fnmatchcase(message, pattern) for pattern in patterns)


def _literal(text: str) -> str:
    return "".join(f"[{c}]" if c in "*?[" else c for c in text)
