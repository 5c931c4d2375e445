"""The process that judges one's own kernels, as the process that asks sees it: it imports torch once, and judges as
often as it is asked."""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import tempfile
import time
from typing import Any, BinaryIO, cast

from grader.own.judgement import NOT_JUDGED, Judgement
from grader.processes.environment import PATIENT, python_calling
from grader.processes.torch_forkserver_client import clean_environment
from grader.wire.printable import one_line

MOST_SECONDS = 900  # of real time, for one judgement
PIECE = 1 << 16


class WarmOwnJudge:
    """Judges in a process of its own, which is started at once, and again after it has ended.

    The process knows nothing of what asks when it forks the processes that run a stranger's file: what it has to know,
    as the environment, comes with each request.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._start()

    def ask(self, request: dict[str, Any]) -> Judgement:
        """Returns the judgement of a request of `judgement.judge`."""
        return Judgement(**self.answer(request))

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Returns the fields of the judgement, and those of the request's `tool`."""
        if self._process is None or self._process.poll() is not None:
            self._start()
        here = {"folder": os.getcwd(), "environment": dict(os.environ), "path": list(map(str, sys.path))}
        try:
            with contextlib.suppress(BrokenPipeError):  # it has ended, which its answer tells
                self._requests.write(json.dumps({"here": here, "request": request}).encode() + b"\n")
                self._requests.flush()
            answer = self._answer(time.monotonic() + MOST_SECONDS)
            return dict(json.loads(answer))
        except TimeoutError:
            said = f"The judgement has not come to its end after {MOST_SECONDS} s."
        except (ValueError, TypeError):
            said = self._ended()
        except BaseException:  # as KeyboardInterrupt: the answer that is still to come answers no later request
            self.end()
            raise
        self.end()
        return _of_no_process(request, said).to_json()

    def _start(self) -> None:
        self._errors: BinaryIO = tempfile.TemporaryFile()  # noqa: SIM115  as long as the process
        self._process = subprocess.Popen(
            python_calling("grader.own.own_server", collects=False), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=self._errors, cwd="/", env={**clean_environment(tempfile.gettempdir()), **PATIENT},
        )  # fmt: skip
        # Both are pipes, as asked for above.
        self._requests, self._answers = (cast(BinaryIO, pipe) for pipe in (self._process.stdin, self._process.stdout))

    def _answer(self, until: float) -> bytes:
        """Returns the next line that the process writes, b"" where it has ended. Raises TimeoutError."""
        answer = b""
        while not answer.endswith(b"\n"):
            if not select.select([self._answers], [], [], max(0.0, until - time.monotonic()))[0]:
                raise TimeoutError
            piece = os.read(self._answers.fileno(), PIECE)
            if not piece:
                return b""
            answer += piece
        return answer

    def _ended(self) -> str:
        status = self._process.wait() if self._process is not None else 0
        how = f"signal {-status}" if status < 0 else f"exit status {status}"
        self._errors.seek(0)
        last = self._errors.read().decode("utf-8", "replace").strip().splitlines()[-1:]
        told = one_line("".join(last))[:200]
        return f"The process that judges has ended ({how}){f': {told}' if told else ''}."

    def end(self) -> None:
        """Ends the process and all that it has started."""
        if self._process is None:
            return
        self._process.terminate()
        self._process.wait()
        with contextlib.suppress(BrokenPipeError):
            self._requests.close()
        self._answers.close()
        self._errors.close()
        self._process = None


def _of_no_process(request: dict[str, Any], said: str) -> Judgement:
    return Judgement(
        NOT_JUDGED, [said], "does the reference end by itself, and without killing its process? Else course doctor.",
        file=request["file"], reference=request["reference"],
    )  # fmt: skip
