"""pytest and `course` as a learner types them: in this process, or in one of their own.

A process of its own imports torch anew, which takes three seconds. Tests that look at the start of a process, or at
what a folder or an environment does to it, start one; the others run here.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import io
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from unittest.mock import patch

import pytest
from click.testing import CliRunner

from tests.waiting import NEVER

OF_OTHERS = "ignore:It looks like `register_random`"  # what hypothesis says of trio where both are installed
OF_TERMINALS = ("PYTEST", "COLUMNS", "NO_COLOR", "FORCE_COLOR", "CI", "BUILD_NUMBER")  # how these names begin


@dataclass
class Finished:
    status: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.strip().splitlines()


def run_pytest(*arguments: str | Path, cwd: Path, **environment: str) -> Finished:
    freeze_what_is_here()
    out, err = io.StringIO(), io.StringIO()
    with (
        as_typed_in(cwd, environment),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        status = pytest.main([*map(str, arguments), "-W", OF_OTHERS])
    assert "Traceback" not in err.getvalue(), err.getvalue()
    return Finished(int(status), out.getvalue(), err.getvalue())


def freeze_what_is_here() -> None:
    """Lets no later search for garbage look at what is here now, but for a last one as the process ends.

    pytest searches several times as it ends. The run that these tests belong to holds eight thousand tests and what
    they have imported, and each run of pytest within it took two seconds.
    """
    gc.collect()
    gc.freeze()
    atexit.unregister(gc.unfreeze)
    atexit.register(gc.unfreeze)  # nanobind prints what is left at the end


def run_course(*arguments: str, cwd: Path, answer: str = "", **environment: str) -> Finished:
    from grader.cli import main

    with as_typed_in(cwd, environment):
        done = CliRunner().invoke(main, arguments, input=answer, prog_name="course")
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return Finished(done.exit_code, done.stdout, done.stderr)


def ended_here(arguments: list[str | Path], cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """In the place of `grader.learn.notebooks.cells.ended`, which starts a process: pytest or `course` in this one."""
    how, _, *given = map(str, arguments)
    done = {"-m": run_pytest, "-c": run_course}[how](*given, cwd=cwd or Path.cwd(), NO_COLOR="1", COLUMNS="100")
    return subprocess.CompletedProcess(arguments, done.status, done.out + done.err)


def start_pytest(*arguments: str | Path, cwd: Path, **environment: str) -> Finished:
    """As run_pytest, in a process of its own."""
    return started([sys.executable, "-m", "pytest", *map(str, arguments)], cwd, environment)


def started(command: list[str], cwd: Path, environment: dict[str, str], answer: str = "") -> Finished:
    done = subprocess.run(
        command, cwd=cwd, env=of_a_terminal(environment), input=answer.encode(), capture_output=True, timeout=NEVER
    )
    assert b"Traceback" not in done.stderr, done.stderr.decode()
    return Finished(done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace"))


def of_a_terminal(more: dict[str, str]) -> dict[str, str]:
    """Returns the environment of a terminal without colours."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(OF_TERMINALS)}
    return {**kept, "PYTHONWARNINGS": OF_OTHERS, **more}


@contextlib.contextmanager
def as_typed_in(folder: Path, more: dict[str, str]) -> Iterator[None]:
    """Leaves the environment as it was, the path of imports, and the tests of exercises that are imported: those of
    another copy of the course have the same names."""
    path, aside = list(sys.path), _take_out_tests_of_exercises()
    with patch.dict(os.environ, of_a_terminal(more), clear=True), contextlib.chdir(folder):
        try:
            yield
        finally:
            sys.path[:] = path
            _take_out_tests_of_exercises()
            sys.modules.update(aside)


def _take_out_tests_of_exercises() -> dict[str, ModuleType]:
    return {name: sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] == "exercises"}
