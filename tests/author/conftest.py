"""`course check` without a pool: a worker of it imports torch anew, which takes longer than the proofs of a test."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

import pytest


class AtOnce(Executor):
    """Carries out what it is given, in this process."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def submit(self, function: Callable, /, *arguments: Any, **named: Any) -> Future:
        done: Future = Future()
        done.set_result(function(*arguments, **named))
        return done


@pytest.fixture
def proven_here(monkeypatch) -> None:
    """Proofs are made in this process. That workers make them is tested with `course new`."""
    monkeypatch.setattr("grader.author.check.ProcessPoolExecutor", AtOnce)
