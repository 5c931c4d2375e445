"""A process that has everything imported and judges one text after another.

`python -m grader.classroom.cluster.warm_judge` is its command. A request is a line of JSON, and so is
a result: nothing is pickled. The process never runs a submission; the child that pytest starts does, a fresh child for
each text. The process may still die (out of memory) or hang: it is then replaced, and the result of this text is a
fault of the machine. A process that computed all the time is no such fault: the text takes too long, which a new
process tells of each test without reading the text again. The process ends when its parent does, however the parent
ended, and takes its children along.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import IO, TextIO

from grader.classroom.result_store import Text, faulty
from grader.course.folder import Folder, found_here
from grader.gpu.device import use_device
from grader.gpu.pool.replays import use_pool
from grader.gpu.pool.shared_pool import PoolElsewhere
from grader.places import IMPORTED_FROM
from grader.processes import scratch
from grader.processes.descendants import seconds_of_a_core
from grader.processes.environment import ONE_THREAD

MOST_SECONDS = 600  # for one text; a text whose every call waits instead of computing takes half of them
MOST_TEXTS = 200  # then a fresh process, so that nothing can pile up
MOST_IDLE = 900  # seconds without a request; the command may have been killed on another machine
PATIENCE = 300  # seconds for the course's folder to come back


def request_of(text: Text, level: str, mend: bool = False) -> dict:
    """Returns what a machine that has the same course needs to judge a text."""
    hidden = text.hidden_file.read_text(encoding="utf-8") if text.hidden_file else None
    exercise = text.exercise
    return {
        "exercise": exercise.id, "course": str(exercise.root), "text": text.text, "hidden": hidden, "level": level,
        "key": text.key, "mend": mend,
    }  # fmt: skip


class _ComputedAllTheTime(Exception):
    """A text that keeps its judge busy for MOST_SECONDS."""


@dataclass(frozen=True)
class _Running:
    """A judge's process, the parent's ends of its pipes, and its temporary folder, which holds its log."""

    process: subprocess.Popen[str]
    requests: IO[str]
    results: IO[str]
    folder: Path

    def said(self) -> str:
        last = _log_in(self.folder).read_text(encoding="utf-8", errors="replace").strip().splitlines()[-1:]
        return f" ({last[0][:200]})" if last else ""


class WarmJudge:
    """The parent's end of the process. `level`: how submissions are isolated.

    `gpu`: the UUID of the only GPU to use; "" for all. `connected`: returns a connection with a pool of replay
    processes that other judges use, too; without it, the judge has its own pool. The process starts before there is a
    text.
    """

    def __init__(self, level: str, gpu: str = "", connected: Callable[[], socket.socket] | None = None) -> None:
        self.level, self.gpu, self._connected = level, gpu, connected
        self._running: _Running | None = None
        self._judged = 0
        self._start()

    def judge(self, request: dict) -> dict:
        """Returns the judge's result; a fault if the process does not start, dies, or does not end in time."""
        running = self._running
        if running is None or running.process.poll() is not None or self._judged == MOST_TEXTS:
            self.end()
            try:
                running = self._start()
            except OSError as error:
                return faulty(request["exercise"], f"no judge could be started: {error}")
        self._judged += 1
        try:
            result = self._answered(running, request)
        except _ComputedAllTheTime:
            return self.judge({**request, "given_up": f"{MOST_SECONDS} s"})
        if result.pop("unconnected", False):
            self.end()  # its pool is gone: the next process is connected anew
        return result

    def _answered(self, running: _Running, request: dict) -> dict:
        before, late = seconds_of_a_core(running.process.pid), []

        def end_late() -> None:
            late.append(seconds_of_a_core(running.process.pid) - before)
            self.end()

        clock = threading.Timer(MOST_SECONDS, end_late)
        clock.start()
        try:
            running.requests.write(f"{json.dumps(request)}\n")
            running.requests.flush()
            if answer := running.results.readline():
                return json.loads(answer)
            why = f"ended with status {running.process.wait(10)}{running.said()}"
        except (OSError, ValueError, subprocess.TimeoutExpired) as error:
            why = f"failed: {type(error).__name__}"
        finally:
            clock.cancel()
        if late:
            if late[0] >= MOST_SECONDS / 2 and "given_up" not in request:  # else it did not have a core, or needed none
                raise _ComputedAllTheTime
            why = f"did not end within {MOST_SECONDS} s"
        self.end()
        return faulty(request["exercise"], f"the judge's process {why}")

    def end(self) -> None:
        """Ends the process and all that it has started. May be called again, and from another thread."""
        running, self._running = self._running, None
        if running is None:
            return
        with contextlib.suppress(OSError):
            running.requests.close()  # its signal to leave
        try:
            running.process.wait(5)
        except subprocess.TimeoutExpired:
            running.process.kill()
            running.process.wait()
        _kill_those_in(running.folder)
        scratch.remove(running.folder)

    def _start(self) -> _Running:
        """Starts the process. Raises OSError where it cannot start."""
        with contextlib.ExitStack() as given:
            pool = [given.enter_context(self._connected()).fileno()] if self._connected else []
            folder = Path(tempfile.mkdtemp(prefix="course-"))  # removed by the last to leave
            try:
                process = self._process_in(folder, pool)
            except BaseException:
                scratch.remove(folder)
                raise
        self._judged = 0
        self._running = _Running(process, _piped(process.stdin), _piped(process.stdout), folder)
        return self._running

    def _process_in(self, folder: Path, pool: list[int]) -> subprocess.Popen[str]:
        """Starts the process, which works in `folder`.

        `pool`: the descriptor of a connection with a pool of replay processes; [] for a pool of the judge's own.
        """
        command = [sys.executable, "-P", "-m", "grader.classroom.cluster.warm_judge", self.level, str(folder)]
        with _log_in(folder).open("w") as log:
            return subprocess.Popen(
                [*command, *map(str, pool)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, encoding="utf-8",
                env=self._environment(), pass_fds=pool, start_new_session=True,  # Ctrl-C is for the command alone
            )  # fmt: skip

    def _environment(self) -> dict[str, str]:
        path = os.pathsep.join(filter(None, [str(IMPORTED_FROM), os.environ.get("PYTHONPATH", "")]))
        environment = {**os.environ, **ONE_THREAD, "PYTHONPATH": path, "NO_COLOR": "1", "COLUMNS": "100"}
        # Only our own plugin of pytest: any other costs each judge time, and might change its report.
        environment |= {
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "PYTEST_PLUGINS": "grader.session.plugin",
            "PYTEST_ADDOPTS": "",
        }
        if self.gpu:
            environment["CUDA_VISIBLE_DEVICES"] = self.gpu
        return environment


def _log_in(folder: Path) -> Path:
    return folder / "log"


def _piped(stream: IO[str] | None) -> IO[str]:
    """Returns a stream of Popen, which is None only where PIPE was not asked for."""
    if stream is None:
        raise ValueError("PIPE was not asked for")
    return stream


def _kill_those_in(folder: Path) -> None:
    """Kills the processes that work in a judge's temporary folder.

    A submission there would go on running after its judge was killed.
    """
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if os.readlink(path / "cwd").startswith(f"{folder}/"):
                os.kill(int(path.name), signal.SIGKILL)


# ---- inside of the process ------------------------------------------------------------------------------------------


def main() -> None:
    from grader.classroom.cluster.pytest_call import prepare

    # Copies of the descriptors: pytest puts others in the places of 0 and 1, and printed text is no result.
    asked, replies = os.fdopen(os.dup(0), encoding="utf-8"), os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    level, folder, *descriptors = sys.argv[1:]
    requests: SimpleQueue[str] = SimpleQueue()
    threading.Thread(target=_listen, args=[asked, requests, folder], daemon=True).start()
    pools = [_pool_at(int(descriptor)) for descriptor in descriptors]
    prepare(level, folder)
    while True:
        try:
            request = requests.get(timeout=MOST_IDLE)
        except Empty:
            _leave(folder)
        answer = {**_answer(json.loads(request)), "unconnected": any(pool.gone for pool in pools)}
        print(json.dumps(answer), file=replies, flush=True)


def _pool_at(descriptor: int) -> PoolElsewhere:
    """Returns the worker's pool, behind a connection that no child inherits; its GPU becomes this process's."""
    os.set_inheritable(descriptor, False)
    pool = PoolElsewhere(socket.socket(fileno=descriptor))
    use_pool(pool)
    use_device(pool.device())
    return pool


def _listen(asked: TextIO, requests: SimpleQueue[str], folder: str) -> None:
    for line in asked:
        requests.put(line)
    _leave(folder)  # the parent is done or gone; a submission that runs now must not run on


def _leave(folder: str) -> None:
    from grader.processes.child import abandon_children

    abandon_children()
    scratch.remove(Path(folder))
    os._exit(0)


def _answer(request: dict) -> dict:
    from grader.classroom.cluster.pytest_call import judge

    exercise, hidden = _exercise_of(request), None
    if exercise is None:
        return faulty(request["exercise"], f"{request['course']} has not been there for {PATIENCE} s")
    with tempfile.TemporaryDirectory() as folder:
        if request["hidden"] is not None:
            hidden = Path(folder)
            (hidden / f"{exercise.id}.toml").write_text(request["hidden"], encoding="utf-8")
        text = Text(exercise, request["text"], hidden)
        if text.key != request["key"]:
            where = f"{os.uname().nodename}:{exercise.root}"
            return faulty(exercise.id, f"course, torch or triton at {where} differ from those that the command sees")
        return judge(text, request["level"], request.get("given_up", ""), request["mend"])


def _exercise_of(request: dict) -> Folder | None:
    """Returns the exercise of the course that the request names, else of this machine's course.

    Waits while neither has it, as when a share is away; None after PATIENCE seconds.
    """
    named, deadline = Folder(Path(request["course"]) / "exercises" / request["exercise"]), time.monotonic() + PATIENCE
    while not (exercise := found_here(named)).test_file.exists():
        if time.monotonic() > deadline:
            return None
        time.sleep(1)
    return exercise


if __name__ == "__main__":
    main()
