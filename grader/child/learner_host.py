"""Requests about a learner's file that every child answers: it imports the file, and calls it."""

from __future__ import annotations

import contextlib
import sys
import traceback
from abc import ABC, abstractmethod
from dataclasses import asdict

from grader.child.learner import LearnerFile
from grader.wire.frames import JsonObject
from grader.wire.messages import Failure


class LearnerHost(ABC):
    """Answers a parent's requests about one learner's file. The subclass says what a call of its entry does."""

    answer = ""  # the kind of a reply to a call
    request = ""  # the kind of a request for a call

    file: LearnerFile  # from the first "load" on, which comes before all other requests

    def __init__(self) -> None:
        self.output = sys.stdout

    def handle(self, header: JsonObject, blob: bytes) -> tuple[JsonObject, bytes]:
        try:
            handler = {"load": self.load, self.request: self.call}[header["kind"]]
            reply, reply_blob = handler(header, blob)
        except MemoryError:  # what the learner keeps leaves no room for an answer
            return {"kind": self.answer, "error": asdict(Failure("memory", "MemoryError"))}, b""
        except BaseException:  # a mistake of ours, or of the parent's; never the learner's
            return {"kind": "fault", "message": traceback.format_exc()[-4000:]}, b""
        with contextlib.suppress(Exception):  # what the learner printed, if their file left us an output
            self.output.flush()
        return reply, reply_blob

    def load(self, header: JsonObject, blob: bytes) -> tuple[JsonObject, bytes]:
        self.file = LearnerFile(header["filename"], blob)
        with self.watched_import():
            error = self.file.load()
        reply = {"kind": "loaded", "error": None if error is None else asdict(error)}
        return reply | {"constants": self.file.constants()}, b""

    @abstractmethod
    def watched_import(self) -> contextlib.AbstractContextManager[object]: ...

    @abstractmethod
    def call(self, header: JsonObject, blob: bytes) -> tuple[JsonObject, bytes]: ...
