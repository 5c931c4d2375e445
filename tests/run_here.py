"""pytest and `course` as a learner types them, but in this process: torch is imported once, and its children forked.

A process of its own takes three seconds more. Tests that look at the start of a process, or at what a folder or an
environment does to it, start a real one.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import pytest
from click.testing import CliRunner

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
    out, err = io.StringIO(), io.StringIO()
    with as_typed_in(cwd, environment), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = pytest.main([*map(str, arguments), "-W", OF_OTHERS])
    return Finished(int(status), out.getvalue(), err.getvalue())


def run_course(*arguments: str, cwd: Path, answer: str = "", **environment: str) -> Finished:
    from grader.cli import main

    with as_typed_in(cwd, environment):
        done = CliRunner().invoke(main, arguments, input=answer, prog_name="course")
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return Finished(done.exit_code, done.stdout, done.stderr)


@contextlib.contextmanager
def as_typed_in(folder: Path, more: dict[str, str]) -> Iterator[None]:
    """The environment of a terminal without colours, which is left as it was; so are the path of imports and what
    pytest has imported: another copy of the course has tests of the same names."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(OF_TERMINALS)}
    path, modules = list(sys.path), set(sys.modules)
    with patch.dict(os.environ, {**kept, **more}, clear=True), contextlib.chdir(folder):
        try:
            yield
        finally:
            sys.path[:] = path
            for name in [name for name in sys.modules if name.startswith("exercises") and name not in modules]:
                del sys.modules[name]
