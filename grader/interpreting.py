"""The parent's end of the process that interprets recorded calls: trusted, and replaced when a call has ended it."""

from __future__ import annotations

from grader.child_process import ChildEnded, ChildProcess
from grader.nursery import MachineFault
from grader.protocol import InterpretRequest, ProtocolError
from grader.reply import Reply, read_reply

LIMIT_AFTER_TIMEOUT = 3.0  # seconds: once a call ran out of time, the next ones get less, so that a run ends


class Interpreter:
    """One process at a time, started when first asked. It has the limits of a submission's, and reads no Python."""

    def __init__(self) -> None:
        self._process: ChildProcess | None = None
        self._timed_out = False

    def ask(self, request: InterpretRequest, blob: bytes, limit: float) -> Reply:
        """What a recorded call does with its inputs. Raises ChildEnded: out of time, or of memory."""
        limit = min(limit, LIMIT_AFTER_TIMEOUT) if self._timed_out else limit
        try:
            self._process = self._process or ChildProcess()
            answer, answer_blob = self._process.ask(request.to_json(), blob, limit)
            if answer["kind"] == "fault":
                last = str(answer.get("message", "")).strip().splitlines()[-1:]
                raise MachineFault(f"the interpreter failed in our own code: {''.join(last)[:200]}")
            return read_reply(answer, answer_blob)
        except ChildEnded as ended:
            self._timed_out |= ended.how == "time"
            self.end()
            raise
        except ProtocolError as error:
            self.end()
            raise MachineFault(f"the interpreter gave an answer that cannot be read: {error}") from None

    def end(self) -> None:
        if self._process is not None:
            self._process.end()
            self._process = None
