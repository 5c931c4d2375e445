"""A pytest run that has imported everything before it is asked for: `course watch` keeps one ready.

A run is a fresh process, as with a bare `pytest`, and goes through pytest.main: its verdict is the same. Only the
seconds that torch and triton take to import lie before the save instead of after it.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import signal
import subprocess
import sys

from grader.processes.environment import PATIENT

NOT_REWRITTEN = "ignore::pytest.PytestAssertRewriteWarning"  # of our own plugin, which is imported already
COMMAND = [sys.executable, "-P", "-m", "grader.learn.warm_run"]
PATIENCE = 60.0  # seconds until a run that was told to leave is killed


class WarmRun:
    """The watching side's end of one run: warming up since it was made, then told what to judge, once."""

    def __init__(self) -> None:
        # A process group of its own: Ctrl-C reaches the watch alone, which then ends the run in order.
        self._process = subprocess.Popen(COMMAND, stdin=subprocess.PIPE, process_group=0)

    def start(self, arguments: list[str]) -> None:
        """Begins the run; nothing happens if the process is gone, which `status` then tells."""
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(arguments).encode() + b"\n")
            self._process.stdin.close()

    @property
    def status(self) -> int | None:
        """pytest's exit status; None while it runs."""
        return self._process.poll()

    def end(self) -> None:
        """Ends the process and everything it started, at any time."""
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        if self._process.poll() is None:
            self._process.terminate()
        try:
            self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def main() -> int:
    """The process itself: prepares, reads one line with pytest's arguments, runs it. Leaves when nobody asks."""
    gc.disable()
    signal.signal(signal.SIGTERM, _leave)
    os.environ.update(PATIENT)
    import pytest

    from grader.gpu.device import device_here, model_here
    from grader.processes.faults import MachineFault
    from grader.processes.triton_forkserver_client import shared_nursery

    with contextlib.suppress(MachineFault, ImportError):  # the run tells
        for model in (None, model_here(device_here())):
            shared_nursery(model)
        import grader.session.session  # noqa: F401  imports torch
    gc.freeze()
    gc.enable()
    request = sys.stdin.readline()
    return pytest.main(["-W", NOT_REWRITTEN, *json.loads(request)]) if request else 0


def _leave(signum: int, frame) -> None:
    """At once and without a word, whatever runs."""
    if "grader.processes.child" in sys.modules:
        sys.modules["grader.processes.child"].abandon_children()
    os._exit(1)


if __name__ == "__main__":
    raise SystemExit(main())
