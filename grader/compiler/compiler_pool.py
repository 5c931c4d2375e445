"""Compiler processes for all runs of this process: each text is compiled once, by the first process that is free."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterable
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass
from queue import SimpleQueue

import torch

from grader.compiler.compiler_client import CompilerClient
from grader.compiler.result import LAID_OUT, CompilerResult, Failed
from grader.gpu.models import AmdModel
from grader.wire.messages import GpuModel

MOST_PROCESSES = 6  # half of torch's threads at most: a judge among many has one
MOST_KEPT = 256  # answers
PASSING = ("time", "died")  # failures that may not occur again


def processes_here() -> int:
    return min(MOST_PROCESSES, max(1, torch.get_num_threads() // 2))


@dataclass(frozen=True)
class CompilerQuestion:
    source: str
    options: str  # JSON
    model: GpuModel | AmdModel
    parts: tuple[str, ...]


class CompilerPool:
    """At most `most` compiler processes, which take questions in order. A question that finds none free starts one."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._asking: list[_AskingThread] = []
        self._waiting: SimpleQueue[tuple[CompilerQuestion, Future] | None] = SimpleQueue()
        self._open = 0  # questions without an answer
        self._kept: dict[CompilerQuestion, Future] = {}
        self._lock = threading.Lock()

    def compile(
        self, source: str, options: dict, model: GpuModel | AmdModel, parts: Iterable[str]
    ) -> Future[CompilerResult | Failed]:
        """Returns the future of CompilerClient.compile's answer, or of CompilerClient.laid_out's where `parts` is
        ("laid out",).

        For an AMD GPU it is that of CompilerClient.assembly.

        Equal questions share a future. A question is asked anew if its future was cancelled, raised an error, or holds
        a failure that may not occur again.
        """
        question = CompilerQuestion(source, json.dumps(options, sort_keys=True), model, tuple(sorted(parts)))
        with self._lock:
            kept = self._kept.get(question)
            if kept is None or kept.cancelled() or _is_passing(kept):
                if len(self._kept) >= MOST_KEPT:
                    del self._kept[next(iter(self._kept))]
                self._kept[question] = kept = Future()
                self._ask(question, kept)
            return kept

    def _ask(self, question: CompilerQuestion, future: Future) -> None:
        self._open += 1
        self._waiting.put((question, future))
        if len(self._asking) < min(self._open, self._most):
            self._asking.append(_AskingThread(self))

    def answer(self, compiler: CompilerClient, question: CompilerQuestion, future: Future) -> None:
        """Answers a question, in a thread of its compiler's; does nothing if the future was cancelled."""
        if future.set_running_or_notify_cancel():
            try:
                options = json.loads(question.options)
                if isinstance(question.model, AmdModel):
                    future.set_result(compiler.assembly(question.source, options, question.model))
                elif question.parts == (LAID_OUT,):
                    future.set_result(compiler.laid_out(question.source, options, question.model))
                else:
                    future.set_result(compiler.compile(question.source, options, question.model, question.parts))
            except BaseException as error:  # raised where the future is waited for
                future.set_exception(error)
        with self._lock:
            self._open -= 1

    def next(self) -> tuple[CompilerQuestion, Future] | None:
        return self._waiting.get()

    def end(self) -> None:
        """Ends all processes at once, even while they compile, and cancels open questions. May be called again."""
        with self._lock:
            ending, self._asking = self._asking, []
            waiting = [future for future in self._kept.values() if not future.done()]
            self._kept.clear()
        for future in waiting:
            with contextlib.suppress(InvalidStateError):
                future.cancel()
        for _ in ending:
            self._waiting.put(None)
        for asker in ending:
            asker.compiler.end()
        for asker in ending:
            asker.thread.join()


class _AskingThread:
    """A thread with a compiler process of its own, which it asks one question after the other."""

    def __init__(self, pool: CompilerPool) -> None:
        self.pool, self.compiler = pool, CompilerClient()
        self.thread = threading.Thread(target=self._work, daemon=True, name="compiler")
        self.thread.start()

    def _work(self) -> None:
        while (question := self.pool.next()) is not None:
            self.pool.answer(self.compiler, *question)


def _is_passing(future: Future) -> bool:
    if not future.done() or future.cancelled() or future.exception() is not None:
        return future.done()
    answer = future.result()
    return isinstance(answer, Failed) and answer.what in PASSING
