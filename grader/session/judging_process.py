"""The judge process: it imports torch once, and runs pytest on exercises as often as it is asked.

pytest's own process and `course watch` ask it. Importing torch takes longer than most verdicts, and the processes that
run submissions need torch too, so all share one import: a fresh process that knows nothing of a run imports torch and
forks the torch fork server, from which all others are forked, and only then hears what to judge. Nothing that it learns
from then on, such as the environment and the seed, is in the memory of a process that runs a submission.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import io
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from queue import SimpleQueue

from grader.processes.environment import PATIENT, python_calling
from grader.processes.torch_forkserver_client import (
    ForkedProcess,
    TorchForkServer,
    clean_environment,
    share_torch_fork_server,
)

NOT_REWRITTEN = "ignore::pytest.PytestAssertRewriteWarning"  # of our own plugin, which may be imported already
INTERRUPTED, NOT_WRITTEN = 2, 1  # pytest.ExitCode.INTERRUPTED; as pytest's command where its output is closed
INTERRUPT = signal.SIGUSR1  # stands for SIGINT, which the judge ignores: `kill -INT` reaches only one process
PATIENCE = 60.0  # seconds until a judge that was told to leave is killed
MOST_THREADS = 1024
LENGTH = struct.Struct("<Q")  # the length of a request, which is sent ahead of it
STREAMS = ((0, "stdin", "r", -1), (1, "stdout", "w", -1), (2, "stderr", "w", 1))  # the last buffered by lines


class JudgeEnded(Exception):
    """The judge ended before it had told how its run ended; the message says how."""


class JudgingProcess:
    """The judge as the asking process sees it. Starting it returns at once."""

    def __init__(self) -> None:
        self._control, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                python_calling(__name__, theirs.fileno(), collects=False),
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/",
                env={**clean_environment(tempfile.gettempdir()), **PATIENT}, pass_fds=[theirs.fileno()],
            )  # fmt: skip
        self._answers = self._control.makefile("r", encoding="utf-8")
        atexit.register(self.end)

    def prepare(self) -> None:
        """Lets the judge import the modules that all runs need and start the fork servers. Returns at once."""
        self._tell(None)

    def begin(self, arguments: list[str], output: int = 1) -> None:
        """Lets the judge run pytest with these arguments and this process's streams. Returns at once.

        output: the descriptor that pytest's report goes to.
        """
        self._tell(arguments, output)

    def _tell(self, arguments: list[str] | None, output: int = 1) -> None:
        """Sends a request with this process's streams. If the judge is gone, `poll` and `wait` say so."""
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        request = json.dumps(_request(arguments)).encode()
        with contextlib.suppress(OSError):
            socket.send_fds(self._control, [LENGTH.pack(len(request))], (0, output, 2))
            self._control.sendall(request)

    def poll(self) -> int | None:
        """Returns pytest's exit status; None while the run goes on. Raises JudgeEnded."""
        return self.wait() if select.select([self._control], [], [], 0)[0] else None

    def wait(self) -> int:
        """Returns pytest's exit status at the end of the run. Raises JudgeEnded."""
        answer = {}
        with contextlib.suppress(OSError):
            if line := self._answers.readline():
                answer = json.loads(line)
        if "status" in answer:
            return answer["status"]
        if "error" in answer:
            raise JudgeEnded(f"the process that judges failed in our own code: {answer['error']}")
        status = self._process.wait()
        how = f"by {signal.Signals(-status).name}" if status < 0 else f"with status {status}"
        raise JudgeEnded(f"the process that judges was ended {how} before its verdict was whole")

    def run(self, arguments: list[str]) -> int:
        """Runs pytest with these arguments in the judge, ends the judge, and returns pytest's exit status.

        Ctrl-C ends the run as it ends pytest's. To be called in the main thread. Raises JudgeEnded.
        """
        interrupts: list[int] = []

        def interrupt(number: int, frame: object) -> None:
            interrupts.append(number)
            self._process.send_signal(INTERRUPT)

        before = _handle(signal.SIGINT, interrupt)
        try:
            self.begin(arguments)
            return self.wait()
        except JudgeEnded:
            if interrupts:  # the judge was interrupted before it judged
                return INTERRUPTED
            raise
        finally:
            self.end()  # before another Ctrl-C could end it half-way
            signal.signal(signal.SIGINT, before)

    def end(self) -> None:
        """Ends the judge and everything it started, at any time and at once."""
        atexit.unregister(self.end)
        with contextlib.suppress(OSError):
            self._control.shutdown(socket.SHUT_RDWR)
        self._process.terminate()
        try:
            self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._answers.close()
        self._control.close()


def _handle(number: int, handler: Callable) -> Callable | int | None:
    """Sets a handler, and returns the former handler. An ignored signal stays ignored, as SIGHUP below nohup."""
    before = signal.getsignal(number)
    return before if before is signal.SIG_IGN else signal.signal(number, handler)


def _request(arguments: list[str] | None) -> dict:
    """Returns the arguments and the state of this process that a run would meet here, as the judge takes it over."""
    if arguments is not None:
        arguments = [*(part for option in sys.warnoptions for part in ("-W", option)), *arguments]
    return {
        "arguments": arguments, "argv": sys.argv, "folder": os.getcwd(), "environment": dict(os.environ),
        "path": list(map(str, sys.path)), "streams": [_kind_of(getattr(sys, f"__{name}__")) for _, name, *_ in STREAMS],
        "bytecode": [sys.dont_write_bytecode, sys.pycache_prefix],
    }  # fmt: skip


def _kind_of(stream) -> dict:
    """Returns the arguments of `open` and of `reconfigure` that make a stream with the same encoding and buffering."""
    buffered = dict(line_buffering=stream.line_buffering, write_through=stream.write_through)
    return {"open": dict(encoding=stream.encoding, errors=stream.errors), "reconfigure": buffered}


# ---- inside of the judge --------------------------------------------------------------------------------------------


_is_judge = False
_interrupts: list[int] = []


def is_judge() -> bool:
    """Returns True in the process that judges."""
    return _is_judge


def main(control_fd: int) -> None:
    """Answers the requests of the asking process until that process is gone; then ends this process."""
    global _is_judge
    _is_judge = True
    control = socket.socket(fileno=control_fd)
    os.set_inheritable(control_fd, False)
    with contextlib.suppress(Exception):  # the run reports it
        import torch  # noqa: F401

        share_torch_fork_server(forked_torch_fork_server([control.fileno()]))
    _mind_signals()  # the torch fork server has none of these handlers; a signal before only ends this process
    requests: SimpleQueue[dict] = SimpleQueue()
    threading.Thread(target=_listen, args=[control, requests], daemon=True, name="asked").start()
    while True:
        request = requests.get()
        try:
            answer = _answer(request)
        except KeyboardInterrupt:
            answer = {"status": INTERRUPTED}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        if request["arguments"] is None and _interrupts:
            _leave()
        if request["arguments"] is not None:
            control.sendall(json.dumps(answer).encode() + b"\n")


def _answer(request: dict) -> dict:
    _take_over(request)
    if request["arguments"] is None:
        _prepare()
        return {}
    return {"status": _judge(request["arguments"])}


def _mind_signals() -> None:
    _handle(signal.SIGINT, lambda *_: None)  # no SIG_IGN: what is started from here would inherit it
    _handle(INTERRUPT, _interrupt)
    for number in (signal.SIGTERM, signal.SIGHUP):
        _handle(number, _leave)


def _interrupt(number: int, frame: object) -> None:
    """Notes the signal and raises KeyboardInterrupt, which gets lost in callbacks of Python, as imports make many."""
    _interrupts.append(number)
    raise KeyboardInterrupt


def _leave(*_) -> None:
    """Ends this process and all processes that it has started, at any time."""
    from grader.processes.child import abandon_children

    abandon_children()
    os._exit(0)


def forked_torch_fork_server(ours: Sequence[int]) -> TorchForkServer:
    """Forks and returns a torch fork server, which has this process's torch and none of its sockets and pipes.

    ours: descriptors of this process that it must not have.
    """
    control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    errors, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            from grader.forkservers.torch_forkserver import serve

            os.setsid()
            os.dup2(writer, 2)
            for descriptor in (*ours, control.fileno(), writer, errors):
                os.close(descriptor)
            serve(theirs)
        finally:
            os._exit(1)
    theirs.close()
    os.close(writer)
    return TorchForkServer(ForkedProcess(pid), control, errors)


def _listen(control: socket.socket, requests: SimpleQueue[dict]) -> None:
    """Puts requests into the queue, and ends this process when the asking process is gone."""
    try:
        while request := _received(control):
            requests.put(request)
    finally:
        _leave()


def _received(control: socket.socket) -> dict | None:
    """Returns the next request, with the descriptors of its streams; None when the asking process is gone."""
    length, descriptors, _, _ = socket.recv_fds(control, LENGTH.size, len(STREAMS))
    request = b""
    while length and len(request) < LENGTH.unpack(length)[0]:
        if not (more := control.recv(LENGTH.unpack(length)[0] - len(request))):
            return None
        request += more
    return {**json.loads(request), "descriptors": descriptors} if length else None


def _take_over(request: dict) -> None:
    """Gives this process the streams, folder, environment, import path and arguments of the asking process."""
    for descriptor, (place, name, mode, buffering), kind in zip(request["descriptors"], STREAMS, request["streams"]):
        os.dup2(descriptor, place)
        os.close(descriptor)
        stream = open(place, mode, buffering, **kind["open"], closefd=False)  # noqa: SIM115  as long as this process
        if isinstance(stream, io.TextIOWrapper):  # always, for the modes of STREAMS
            stream.reconfigure(**kind["reconfigure"])
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update({**request["environment"], **PATIENT})
    sys.path[:], sys.argv[:] = request["path"], request["argv"]
    sys.dont_write_bytecode, sys.pycache_prefix = request["bytecode"]
    tempfile.tempdir = None  # torch's import chose a folder by another environment
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(_threads(os.environ.get("OMP_NUM_THREADS", "")))


def _threads(wanted: str) -> int:
    """Returns how many threads torch starts with where OMP_NUM_THREADS is `wanted`."""
    if wanted.isdecimal() and 1 <= int(wanted) <= MOST_THREADS:
        return int(wanted)
    return len(os.sched_getaffinity(0))


def _prepare() -> None:
    from grader.gpu.device import driver_device, model_here
    from grader.processes.faults import MachineFault
    from grader.processes.triton_forkserver_client import shared_triton_fork_server

    with contextlib.suppress(MachineFault, ImportError):  # the run reports it
        shared_triton_fork_server(None)
        shared_triton_fork_server(model_here(driver_device()))
        import grader.session.session  # noqa: F401


def _judge(arguments: list[str]) -> int:
    """Runs pytest with these arguments. Returns its exit status, or NOT_WRITTEN if the output was not written."""
    import pytest

    from grader.gpu.pool.replays import end_shared_replays

    if _interrupts:
        raise KeyboardInterrupt
    if not gc.isenabled():  # off since the start: what is imported stays, and is not searched for garbage
        gc.freeze()
        gc.enable()
    try:
        status = int(pytest.main(["-W", NOT_REWRITTEN, *arguments]))
    except BrokenPipeError:
        status = NOT_WRITTEN
    finally:
        end_shared_replays()  # the next run may be hours away
        for name in [name for name in sys.modules if name.partition(".")[0] == "exercises"]:
            del sys.modules[name]  # the next run reads the tests of exercises anew
    return status if _is_written() else NOT_WRITTEN


def _is_written() -> bool:
    """Returns False where the printed text could not be written, as to a closed pipe or a full disk."""
    try:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
    except OSError:
        return False
    return True
