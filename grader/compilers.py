"""The children that compile one submission: one that answers when it is asked, and others that work ahead.

Compiling a kernel takes longer than interpreting a small call of it. Where every call of the tests is compiled as well,
for a GPU to replay, those of the tests to come are compiled on other cores meanwhile.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import Empty, SimpleQueue

import torch

from grader.child_process import ChildEnded
from grader.gpu.plan import read_plan
from grader.gpu.replayer import Recording
from grader.protocol import Failure, GpuModel, RecordRequest
from grader.runner import Runner

COMPILE_LIMIT = 60.0  # seconds for the kernels of one call
MOST_AHEAD = 6  # children that work ahead; half of torch's threads at most: a judge among many has one


def children_ahead() -> int:
    return min(MOST_AHEAD, max(1, torch.get_num_threads() // 2))


class Compilers:
    """`new_runner` gives a Runner that compiles the submission for `model`."""

    def __init__(self, new_runner: Callable[[], Runner], model: GpuModel) -> None:
        self._new_runner, self._model = new_runner, model
        self._asked = new_runner()
        self._ahead: list[Runner] = []
        self._threads: list[threading.Thread] = []
        self._waiting: SimpleQueue[tuple[RecordRequest, Future]] = SimpleQueue()
        self._futures: dict[str, Future] = {}
        self._if_right: set[str] = set()  # keys of what is asked for only if all values are right

    def recording(self, request: RecordRequest) -> Recording:
        """The launch plan of a call. Raises BadPlan, ChildEnded, MachineFault."""
        ahead = self._futures.get(_key(request))
        return ahead.result() if ahead else self._answer(self._asked, request)

    def hurry(self) -> None:
        """The submission's import has run out of time elsewhere."""
        for runner in self._runners:
            runner.hurry()

    def work_ahead(self, foreseen: list[tuple[RecordRequest, bool]]) -> None:
        """Answers these in the background, in this order. With each: whether it waits for all values to be right."""
        certain = {_key(request) for request, waits in foreseen if not waits}
        for request, _ in foreseen:
            if (key := _key(request)) not in self._futures:
                self._futures[key] = future = Future()
                self._waiting.put((request, future))
                if key not in certain:
                    self._if_right.add(key)
        for _ in range(children_ahead()):
            self._ahead.append(self._new_runner())
            self._threads.append(threading.Thread(target=self._work, args=[self._ahead[-1]], daemon=True))
            self._threads[-1].start()

    def values_are_wrong(self) -> None:
        """What waits for them to be right will not be asked for, and need not be begun."""
        for key in self._if_right & self._futures.keys():
            if self._futures[key].cancel():
                del self._futures[key]

    def _work(self, runner: Runner) -> None:
        while True:
            try:
                request, future = self._waiting.get_nowait()
            except Empty:
                return
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(self._answer(runner, request))
                except BaseException as error:  # whoever asks for it gets it
                    future.set_exception(error)

    def _answer(self, runner: Runner, request: RecordRequest) -> Recording:
        specs = request.arguments
        return runner.ask(
            request.to_json(), b"", COMPILE_LIMIT,
            lambda header, blob: Recording(read_plan(header, blob, specs, self._model), header, blob, specs),
        )  # fmt: skip

    @property
    def _runners(self) -> list[Runner]:
        return [self._asked, *self._ahead]

    @property
    def load_failure(self) -> Failure | None:
        return next((runner.load_failure for runner in self._runners if runner.load_failure is not None), None)

    @property
    def constexprs(self) -> list[str]:
        """The module's constants that its kernels see."""
        return next((runner.constexprs for runner in self._runners if runner.constexprs), [])

    @property
    def versions(self) -> dict[str, str]:
        return next((runner.versions for runner in self._runners if runner.versions), {})

    def ended_at_import(self, how: ChildEnded) -> bool:
        return any(how is runner.load_ended for runner in self._runners)

    def end(self) -> None:
        for future in self._futures.values():
            future.cancel()
        for runner in self._ahead:
            runner.kill()
        for thread in self._threads:
            thread.join()
        for runner in self._runners:
            runner.end()


def _key(request: RecordRequest) -> str:
    return json.dumps(request.to_json(), sort_keys=True)
