"""The process that judges one's own kernels, one after the other: it reads requests as lines of JSON, and writes each
judgement as a line.

It forks the torch fork server before it has read anything, as session/judging_process.py does, so that one import of
torch serves it and all processes that it starts, and none of these has a request in its memory.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import signal
import sys
import tempfile
from pathlib import Path
from typing import IO

from grader.processes.torch_forkserver_client import share_torch_fork_server
from grader.session.judging_process import forked_torch_fork_server


def main() -> None:
    """Answers requests until standard input ends. What a reference prints goes to standard error."""
    asked, answers = _own_streams()
    signal.signal(signal.SIGTERM, _leave)
    with contextlib.suppress(Exception):  # the first call reports it
        import torch  # noqa: F401

        share_torch_fork_server(forked_torch_fork_server([asked.fileno(), answers.fileno()]))
    _start_fork_servers()
    from grader.own.own_process import answer_of

    gc.freeze()  # what is imported stays, and is not searched for garbage
    gc.enable()
    for line in asked:
        read = json.loads(line)
        _take_over(**read["here"])
        known = set(sys.modules)
        answers.write(json.dumps(answer_of(read["request"])) + "\n")
        answers.flush()
        _forget(known)


def _own_streams() -> tuple[IO[str], IO[str]]:
    """Returns the streams of requests and answers, under numbers that nothing else writes to."""
    asked, answers = os.fdopen(os.dup(0), encoding="utf-8"), os.fdopen(os.dup(1), "w", encoding="utf-8")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return asked, answers


def _leave(*_: object) -> None:
    from grader.processes.child import abandon_children

    abandon_children()
    os._exit(0)


def _start_fork_servers() -> None:
    """Starts the processes that nearly all judgements need: they import while this process does."""
    from grader.gpu.models import DEFAULT_MODEL
    from grader.processes.faults import MachineFault
    from grader.processes.triton_forkserver_client import shared_triton_fork_server

    with contextlib.suppress(MachineFault):  # the first call reports it
        shared_triton_fork_server(None)
        shared_triton_fork_server(DEFAULT_MODEL)


def _take_over(folder: str, environment: dict[str, str], path: list[str]) -> None:
    """Gives this process what a reference would meet in the process that asks."""
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.path[:] = path
    tempfile.tempdir = None  # an import chose a folder by another environment


def _forget(known: set[str]) -> None:
    """Forgets what a reference has imported from the user's files: the next request reads them anew."""
    from grader.places import IMPORTED_FROM

    for name in sys.modules.keys() - known:
        file = Path(getattr(sys.modules[name], "__file__", None) or "/")
        ours = file.is_relative_to(IMPORTED_FROM) or file.is_relative_to(sys.base_prefix)
        if "site-packages" not in file.parts and not ours:
            del sys.modules[name]
