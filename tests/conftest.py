"""Helpers of the grader's own tests: judging a source text."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import pytest

from tests.selection import Selection, selection_of

ROOT = Path(__file__).resolve().parent.parent


def exercise_of(id: str):
    """The Exercise object of exercises/ID."""
    path = ROOT / "exercises" / id / f"test_{id[3:]}.py"
    spec = importlib.util.spec_from_file_location(f"exercise_{id}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.exercise


def mutant(name: str) -> str:
    """The text of a mutant: of "03_softmax/pad_zero"."""
    from grader.author.mutants import mutant_of
    from grader.course.folder import Folder

    id, _, name = name.partition("/")
    return mutant_of(Folder(ROOT / "exercises" / id), name).text


# Files whose tests take longest. Begun last, one of them would keep one core at work and let the other wait.
BEGUN_FIRST = ("test_class.py", "test_watch.py", "test_folder.py", "test_cluster.py")


SELECTION = pytest.StashKey[Selection]()


def pytest_collection_modifyitems(items: list[pytest.Item], config: pytest.Config) -> None:
    order = {name: place for place, name in enumerate(BEGUN_FIRST)}
    items.sort(key=lambda item: order.get(item.path.name, len(order)))
    if SELECTION in config.stash:
        left_out = {item for item in items if config.stash[SELECTION].leaves_out(item.nodeid)}
        config.hook.pytest_deselected(items=list(left_out))
        items[:] = [item for item in items if item not in left_out]


def pytest_addoption(parser: pytest.Parser) -> None:
    said = "leave out tests that read nothing of what has changed since tests/reads.json was written"
    parser.addoption("--since-record", action="store_true", help=said)


def pytest_configure(config: pytest.Config) -> None:
    """Tests that run pytest as a learner does get what a terminal gets: where CI is set, pytest cuts no line short.

    Each process computes with one thread: several files are tested at a time, and threads that wait for one another
    took more time of the cores than the tests.
    """
    from grader.processes.environment import ONE_THREAD

    for name in ("CI", "BUILD_NUMBER"):
        os.environ.pop(name, None)
    os.environ.update(ONE_THREAD)
    if config.getoption("since_record", False):
        config.stash[SELECTION] = selection_of(ROOT)


def pytest_sessionstart(session: pytest.Session) -> None:
    terminal = session.config.pluginmanager.get_plugin("terminalreporter")
    if SELECTION in session.config.stash and terminal and not hasattr(session.config, "workerinput"):
        terminal.write_line(session.config.stash[SELECTION].told)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Returns True for a file to leave out, and None, as pytest wants it, where others may say."""
    path = collection_path.relative_to(ROOT).as_posix() if collection_path.is_relative_to(ROOT) else ""
    return (SELECTION in config.stash and config.stash[SELECTION].leaves_out_file(path)) or None


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """A run of some folders passes where nothing in them can see the change."""
    if SELECTION in session.config.stash and exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
        session.exitstatus = pytest.ExitCode.OK


class Bench:
    """One submission, given as text, and the judge that judges it."""

    def __init__(self, source: str | bytes, id: str, folder: Path, seed: int = 1) -> None:
        from grader.course.folder import Folder
        from grader.judge.judge import Judge
        from grader.judge.run import Run

        path = folder / f"{id[3:]}.py"
        path.write_bytes(source if isinstance(source, bytes) else source.encode())
        self.path = path
        self.run = Run(Folder(ROOT / "exercises" / id), str(path), seed)
        self.judge = Judge(exercise_of(id), self.run)

    def check(self, *data, **options):
        from grader.judge.uses import CheckUse

        return CheckUse.of("test_a_case", *data, **options).verdict(self.judge)


@pytest.fixture
def bench(tmp_path):
    """bench(source, id="01_masked_add"): a Bench; its child is ended after the test."""
    made: list[Bench] = []

    def bench(source: str | bytes, id: str = "01_masked_add", seed: int = 1) -> Bench:
        made.append(Bench(source, id, tmp_path, seed))
        return made[-1]

    yield bench
    for one in made:
        one.run.end()
