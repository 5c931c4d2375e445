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
from dataclasses import dataclass
from pathlib import Path

import pytest

from grader.exercise import Folder
from grader.learn.hints import SAYS_ITSELF, read_hints
from grader.verdict import FAIL, NOT_ATTEMPTED, PASS

REJECTED_WITH, PASSES = "Rejected with:", "Passes:"
ROOM_TO_BOUND = 0.85  # a solution closer to its bound than this leaves other right kernels no room


@dataclass(frozen=True)
class Proof:
    """`sentence` must be part of the diagnosis of a mutant or cheat; " ... " in it stands for any text.

    `may_be_slow`: an odd kernel proves that right values are accepted, however long they take on a GPU.
    """

    exercise: Path  # exercises/NN_name
    submission: Path
    outcome: str
    sentence: str = ""
    may_be_slow: bool = False


@dataclass
class Outcome:
    proof: Proof
    complaint: str  # "" when it came out as it must
    seconds: float = 0.0


def proofs_of(folder) -> list[Proof]:
    """Stub, solution, accepted kernels, mutants and cheats of an exercise."""
    tests = folder.root / "tests"
    proofs = [
        Proof(folder.path, folder.learner_file, NOT_ATTEMPTED),
        *(Proof(folder.path, path, PASS) for path in sorted(folder.solution_file.parent.glob("*.py"))),
    ]
    for path in sorted((tests / "accepted" / folder.id).glob("*.py")):
        proofs.append(Proof(folder.path, path, PASS, may_be_slow=True))
    for kind in ("mutants", "cheats"):
        for path in sorted((tests / kind / folder.id).glob("*.py")):
            harmless = kind == "cheats" and says_that_it_passes(path)
            proof = (
                Proof(folder.path, path, PASS) if harmless else Proof(folder.path, path, FAIL, stated_sentence(path))
            )
            proofs.append(proof)
    return proofs


def stated_sentence(path: Path) -> str:
    """The sentence that the docstring of a mutant or cheat says it is rejected with; "" if it states none."""
    return " ".join(_docstring(path).partition(REJECTED_WITH)[2].split())


def says_that_it_passes(path: Path) -> bool:
    """Whether a cheat's docstring says why it may: it wins nothing, and its kernel does the work."""
    reason = _docstring(path).partition(PASSES)[2]
    return bool(reason.strip()) and REJECTED_WITH not in _docstring(path)


def _docstring(path: Path) -> str:
    return ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""


def run(proof: Proof) -> Outcome:
    """Grades the submission with the very command that a learner uses, in this process."""
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()) as printed:
        file = Path(folder) / "result.json"
        arguments = [str(proof.exercise), "--submission", str(proof.submission), "--result", str(file)]
        status = pytest.main(arguments)
        if not file.exists():
            return Outcome(proof, f"pytest gave no result: {printed.getvalue().strip()[-300:]}")
        result = json.loads(file.read_text())
    return Outcome(proof, _complaint(proof, result, status), result["figures"]["seconds"])


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
        return complaint or _hint_complaint(proof, result["cause"])
    if proof.submission.parent.parent.name == "solutions" and result["figures"].get("largest_error", 0) > ROOM_TO_BOUND:
        return f"the solution uses {result['figures']['largest_error']:.2f} of its bound; {ROOM_TO_BOUND} is the most"
    return ""


def _sentence_complaint(proof: Proof, message: str, again: str) -> str:
    if not proof.sentence:
        return f"its docstring has no line '{REJECTED_WITH} ...'"
    pattern = "*" + "*".join(_literal(part) for part in proof.sentence.split(" ... ")) + "*"
    if fnmatch.fnmatchcase(message, pattern):
        return ""
    return f"rejected with another sentence: {message} (expected: {proof.sentence}; {again})"


def _hint_complaint(proof: Proof, cause: str) -> str:
    honest = proof.submission.parent.parent.name == "mutants"  # no hint leads out of a cheat
    if not honest or cause in SAYS_ITSELF or read_hints(Folder(proof.exercise)).level_for(cause, 0):
        return ""
    return f"no hint speaks of its cause: mark a passage with <!-- fits: {cause} -->"


def _literal(text: str) -> str:
    return "".join(f"[{c}]" if c in "*?[" else c for c in text)


def prepare() -> None:
    """Done once in each worker: what pytest would otherwise import, and collect as garbage, for every submission."""
    import torch

    import grader.session  # noqa: F401

    torch.set_num_threads(1)
    os.environ["NO_COLOR"] = "1"
    gc.freeze()
