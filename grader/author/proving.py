"""Makes proofs, one after the other, in a worker of `course check`.

What an exercise's mistakes give in a call is kept in the process that has carried them out: proofs of one exercise cost
least in one worker.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import tempfile
import threading
from pathlib import Path

from grader.author import direct_run, pytest_run
from grader.author.proof import Outcome, Proof, Way


def run_all(chosen: list[tuple[Proof, Way]]) -> list[Outcome]:
    return [run(proof, way) for proof, way in chosen]


def run(proof: Proof, way: Way) -> Outcome:
    with tempfile.TemporaryDirectory() as folder:
        submission = proof.submission
        if isinstance(submission, str):
            text, submission = submission, Path(folder) / f"{proof.exercise.name[3:]}.py"
            submission.write_text(text, encoding="utf-8")
        return (pytest_run if way.by_pytest else direct_run).outcome(proof, submission, way)


def prepare() -> None:
    """Prepares a worker: imports torch, and freezes its objects, in which pytest would look for garbage in each run.

    It ends when `course check` does, however that ends: it waits for work at a pipe that it holds open itself.
    """
    import torch

    threading.Thread(target=_end_with_the_parent, daemon=True).start()
    torch.set_num_threads(1)
    os.environ["NO_COLOR"] = "1"
    gc.freeze()


def _end_with_the_parent() -> None:
    if (parent := multiprocessing.parent_process()) is not None:
        parent.join()
        os._exit(1)
