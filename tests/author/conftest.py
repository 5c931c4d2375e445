"""`course check` without a pool: a worker of it imports torch anew, which takes longer than the proofs of a test.

A worker also freezes what it has imported, since proofs run pytest; so does each file of these tests.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

import pytest

from tests.typed_commands import freeze_what_is_here


class AtOnce(Executor):
    """Carries out what it is given, in this process."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def submit(self, function: Callable, /, *arguments: Any, **named: Any) -> Future:
        done: Future = Future()
        done.set_result(function(*arguments, **named))
        return done


@pytest.fixture(autouse=True, scope="module")
def frozen() -> None:
    freeze_what_is_here()


@pytest.fixture
def proven_here(monkeypatch) -> None:
    """Proofs are made in this process. `tox` has workers make those of all exercises; test_proving.py looks at what
    goes to them and comes back."""
    monkeypatch.setattr("grader.author.check.ProcessPoolExecutor", AtOnce)
