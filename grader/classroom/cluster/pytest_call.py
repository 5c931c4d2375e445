"""Judges a text in this process: calls pytest as a learner calls it."""

from __future__ import annotations

import contextlib
import gc
import io
import json
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grader.classroom.result_store import Text, faulty
from grader.gpu.device import driver_device, model_here
from grader.processes import bubblewrap
from grader.processes.bubblewrap import AUTO
from grader.processes.faults import MachineFault
from grader.processes.triton_forkserver_client import shared_triton_fork_server
from grader.wire.messages import Failure

if TYPE_CHECKING:
    import pytest


class _GivenUp:
    """A plugin of pytest for a text that a judge was given up on: each test fails with that, and nobody reads the text.

    `after`: what the judge has used up, as "600 s".
    """

    def __init__(self, after: str) -> None:
        self._failure = Failure("time-limit", message=after)

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        from grader.session.plugin import NAME

        grader: Any = session.config.pluginmanager.get_plugin(NAME)
        for grading in grader.gradings.values():
            grading.run.submission.failure = self._failure


def judge(text: Text, level: str = AUTO, given_up: str = "", mend: bool = False) -> dict:
    """Returns the judge's result for a text, with what pytest printed as "report"; a fault where pytest wrote no
    result.

    `level`: how the submission is isolated. `given_up`: after what another judge was given up on this text, which then
    is the result; "" for a text to be judged. `mend`: whether the line in which one change makes wrong calls right is
    looked for: a class is told what is wrong, and finds the line itself, unless its instructor wants otherwise.
    """
    import pytest

    name = f"{text.exercise.name}.py"
    with (
        tempfile.TemporaryDirectory(prefix="course-") as folder,
        contextlib.redirect_stdout(io.StringIO()) as printed,
        contextlib.redirect_stderr(printed),
    ):
        file, path = Path(folder, name), Path(folder, "result.json")
        file.write_text("" if given_up else text.text, encoding="utf-8", newline="")
        arguments = [str(text.exercise.path), "--submission", str(file), "--result", str(path), "--disable-warnings"]
        arguments += ["-p", "no:logging"]  # it would set two handlers up for each phase of a test
        arguments += [] if mend else ["--no-mend"]
        arguments += ["--isolation", level, *(["--hidden", str(text.hidden)] if text.hidden else [])]
        with contextlib.chdir(text.exercise.root):
            status = pytest.main(arguments, plugins=[_GivenUp(given_up)] if given_up else [])
            shown = (os.path.relpath(file), str(file))
        report = printed.getvalue().strip("\n")
        for place in shown:  # paths of a file that will be gone, and of the instructor's folders
            report = report.replace(place, name)
        if not path.exists():
            last = report.strip().splitlines()[-1:]
            return faulty(text.exercise.id, f"the judge gave no result (status {int(status)}): {''.join(last)[:300]}")
        return {**json.loads(path.read_text(encoding="utf-8")), "submission": name, "report": report}


def prepare(level: str, scratch: str) -> None:
    """Prepares a process that judges many texts: imports once what pytest would import, and keep as garbage, for each.

    The processes that children are forked from begin to import at the same time. All files that this process writes lie
    in `scratch`, which is removed however the process ends. `level`: how submissions are isolated.
    """
    tempfile.tempdir = scratch
    model, sandboxes = model_here(driver_device()), (bubblewrap.SUBMISSION, bubblewrap.FRONT_END)
    with contextlib.suppress(MachineFault):  # the first text reports it
        shared_triton_fork_server()
        for number in sandboxes if bubblewrap.wanted(level) else (None,):
            shared_triton_fork_server(model, number)
    import grader.session.session  # noqa: F401

    gc.freeze()
