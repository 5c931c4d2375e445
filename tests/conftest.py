"""Helpers of the grader's own tests: judging a source text."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from grader.processes.environment import ONE_THREAD

if TYPE_CHECKING:
    from grader.course.folder import Folder
    from grader.processes.interpreter_process import Interpreter

ROOT = Path(__file__).resolve().parent.parent


def exercise_of(id: str):
    """The Exercise object of exercises/ID."""
    path = ROOT / "exercises" / id / f"test_{id[3:]}.py"
    spec = importlib.util.spec_from_file_location(f"exercise_{id}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.exercise


def folders_with_kernels() -> list[Folder]:
    """The exercises in which a kernel is written, in the order of the path."""
    from grader.course.folder import all_folders

    return [folder for folder in all_folders(ROOT) if exercise_of(folder.id).has_kernels]


def folders_with_speed() -> list[Folder]:
    """The exercises whose speed is judged: they have a gate and a ladder."""
    from grader.course.folder import load_test_file
    from grader.judging.uses import ThroughputUse, uses_asked

    return [folder for folder in folders_with_kernels() if uses_asked(load_test_file(folder), ThroughputUse)]


def mutant(name: str) -> str:
    """The text of a mutant: of "03_softmax/pad_zero"."""
    from grader.author.mutants import mutant_of
    from grader.course.folder import Folder

    id, _, name = name.partition("/")
    return mutant_of(Folder(ROOT / "exercises" / id), name).text


# Files whose tests take longest. Begun last, one of them would keep one core at work and let the other wait.
BEGUN_FIRST = ("test_class.py", "test_watch.py", "test_folder.py", "test_cluster.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    order = {name: place for place, name in enumerate(BEGUN_FIRST)}
    items.sort(key=lambda item: order.get(item.path.name, len(order)))


# Each process computes with one thread: several files are tested at a time, and threads that wait for one another took
# more time of the cores than the tests. It is set before the conftest.py of any folder imports torch, which reads it.
os.environ.update(ONE_THREAD)


def pytest_configure(config: pytest.Config) -> None:
    """Tests that run pytest as a learner does get what a terminal gets: where CI is set, pytest cuts no line short."""
    for name in ("CI", "BUILD_NUMBER"):
        os.environ.pop(name, None)


class Bench:
    """One submission, given as text, and the judge that judges it."""

    def __init__(self, source: str | bytes, id: str, folder: Path, interpreter: Interpreter, seed: int = 1) -> None:
        from grader.course.folder import Folder
        from grader.judging.judge import Judge
        from grader.judging.run import Run

        path = folder / f"{id[3:]}.py"
        path.write_bytes(source if isinstance(source, bytes) else source.encode())
        self.path = path
        self.run = Run(Folder(ROOT / "exercises" / id), str(path), seed, interpreter=interpreter)
        self.judge = Judge(exercise_of(id), self.run)

    def check(self, *data, **options):
        from grader.judging.uses import CheckUse

        return CheckUse.of("test_a_case", *data, **options).verdict(self.judge)


@pytest.fixture(scope="session")
def interpreter() -> Iterator[Interpreter]:
    """The interpreter of all that is judged here: it keeps nothing from one call to the next."""
    from grader.processes.interpreter_process import Interpreter

    made = Interpreter()
    yield made
    made.end()


@pytest.fixture
def bench(tmp_path, interpreter):
    """bench(source, id="01_masked_add"): a Bench; its child is ended after the test."""
    made: list[Bench] = []

    def bench(source: str | bytes, id: str = "01_masked_add", seed: int = 1) -> Bench:
        made.append(Bench(source, id, tmp_path, interpreter, seed))
        return made[-1]

    yield bench
    for one in made:
        one.run.end()
