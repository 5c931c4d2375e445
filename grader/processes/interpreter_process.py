"""The parent's end of the process that interprets recorded calls: trusted, and replaced when a call has ended it."""

from __future__ import annotations

from grader.processes.child import ChildProcess
from grader.processes.faults import ChildEnded, MachineFault, fault_told
from grader.wire.frames import ProtocolError
from grader.wire.messages import InterpretRequest
from grader.wire.reply import Reply, read_reply

LONGER = 2.0  # seconds beyond a call's limit: the process keeps to the limit itself, and tells where it was


class Interpreter:
    """Interprets recorded calls, in a process that is started when first asked and again after it has ended.

    The process has the limits of a process that runs a submission, and reads no Python.
    """

    def __init__(self) -> None:
        self._process: ChildProcess | None = None

    def ask(self, request: InterpretRequest, blob: bytes) -> Reply:
        """Returns the reply to a recorded call on its inputs. Raises ChildEnded when the process runs out of time or of
        memory, and MachineFault when it fails in our own code.

        A call that does not end has a reply too, with its line. A second try, in a new process, is made where the first
        one had to be killed for its time: a machine that stood still for seconds, as a virtual machine may, has counted
        them as computed. It is also made where a process that has served other calls finds no memory: what those have
        left lies between what is free.
        """
        is_new = self._process is None
        try:
            reply = self._answer(request, blob)
            if is_new or reply.error is None or reply.error.type != "MemoryError":
                return reply
            self.end()
        except ChildEnded as ended:
            finds_no_memory = ended.how == "exit" and not is_new  # not even for the request, which it reads first
            if ended.how != "time" and not finds_no_memory:
                raise
        return self._answer(request, blob)

    def _answer(self, request: InterpretRequest, blob: bytes) -> Reply:
        try:
            self._process = self._process or ChildProcess()
            answer, answer_blob = self._process.ask(request.to_json(), blob, request.limit + LONGER)
            if (fault := fault_told(answer)) is not None:
                raise MachineFault(f"the interpreter failed in our own code: {fault}")
            return read_reply(answer, answer_blob)
        except ChildEnded:
            self.end()
            raise
        except ProtocolError as error:
            self.end()
            raise MachineFault(f"the interpreter gave an answer that cannot be read: {error}") from None

    def end(self) -> None:
        if self._process is not None:
            self._process.end()
            self._process = None
