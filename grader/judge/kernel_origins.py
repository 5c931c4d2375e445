"""Whose kernels: whether the text of a recorded kernel is what the front end makes of the file's own function.

A submission's child may have changed its compiler, or launched a kernel from elsewhere, and its plan does not show it.
So a second process, in which no code of the host function has run, compiles the file's kernels by the same recipes. It
does so in the background, while calls are interpreted, once for each text, and from the first right call on: a wrong
one is rejected whosever kernel it used.
"""

from __future__ import annotations

import re
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, replace

from grader.explain import foreign_kernels
from grader.explain.verdict import Verdict
from grader.processes.child import ChildProcess
from grader.processes.faults import ChildEnded, MachineFault
from grader.submission.text import Submission
from grader.wire.fields import checked, items
from grader.wire.frames import ProtocolError
from grader.wire.messages import GpuModel
from grader.wire.recorded_call import Kernel

LIMIT = 15.0  # seconds of a core for the text of one kernel


class Origins:
    """Compares the kernels of one submission: `begin` does not wait, `complaint` waits for those it is asked about."""

    def __init__(self, submission: Submission, filename: str, model: GpuModel, sandbox: int | None = None) -> None:
        self._submission, self._filename, self._model, self._sandbox = submission, filename, model, sandbox
        self._answers: dict[tuple[str, str], Future[Verdict | None]] = {}  # by text and recipe
        self._asking = threading.Lock()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="origins")
        self._child: ChildProcess | None = None
        self._folder = re.compile(rf'"[^"\n]*/{re.escape(filename)}"')

    def begin(self, kernels: list[Kernel]) -> None:
        for kernel in kernels:
            self._answer(kernel)

    def complaint(self, kernels: list[Kernel]) -> Verdict | None:
        """What is wrong with the first of these kernels that is not the file's own; None if all are."""
        answers = [self._answer(kernel) for kernel in kernels]
        found = next(filter(None, (answer.result() for answer in answers)), None)
        return found and replace(found, said=list(found.said))  # whoever gets it adds lines

    def _answer(self, kernel: Kernel) -> Future[Verdict | None]:
        key = kernel.source, repr(kernel.recipe)
        with self._asking:  # by the judge, and by the thread that records ahead
            if key not in self._answers:
                self._answers[key] = self._thread.submit(self._compare, kernel)
            return self._answers[key]

    def _compare(self, kernel: Kernel) -> Verdict | None:
        name = kernel.recipe.function
        try:
            texts, error = self._own_texts(kernel)
        except (ChildEnded, ProtocolError) as ended:
            self._end_child()
            return foreign_kernels.not_to_its_end(name, getattr(ended, "how", "garbled"))
        recorded = self._without_folder(kernel.source)
        if any(self._without_folder(text) == recorded for text in texts):
            return None
        if texts:
            return foreign_kernels.another_one(name)
        return foreign_kernels.not_alone(name, error) if error else foreign_kernels.not_in_file(name)

    def _own_texts(self, kernel: Kernel) -> tuple[list[str], str]:
        self._child = self._child or ChildProcess(self._model, self._sandbox)
        request = {"kind": "own", "filename": self._filename, "recipe": asdict(kernel.recipe)}
        answer, blob = self._child.ask(request, self._submission.source, LIMIT)
        if answer["kind"] == "fault":
            last = str(answer.get("message", "")).strip().splitlines()[-1:]
            raise MachineFault(f"the process that compiles kernels again failed: {''.join(last)[:200]}")
        texts, start = [], 0
        for size in items(answer, "sizes", lambda size: checked(size, "int", "size")):
            texts.append(blob[start : start + max(size, 0)].decode("utf-8", "replace"))
            start += max(size, 0)
        return texts, str(answer.get("message", ""))

    def _without_folder(self, text: str) -> str:
        return self._folder.sub(f'"{self._filename}"', text)

    def _end_child(self) -> None:
        if self._child is not None:
            self._child.end()
            self._child = None

    def end(self) -> None:
        self._thread.shutdown(cancel_futures=True)
        self._end_child()
