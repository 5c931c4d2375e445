"""Forks the children: a process that has imported torch and triton and forks one child per request.

A fork starts with everything imported and nothing of any submission loaded, in milliseconds instead of a second and a
half. The Triton fork server itself never sees a submission.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import gc
import json
import os
import resource
import shutil
import signal
import socket
import tempfile
import time
from collections.abc import Callable, Iterable

from grader.child.serving import Host, ready, serve
from grader.forkservers.own_state import CHANGED, own_state
from grader.forkservers.sibling import fork_sibling
from grader.wire.messages import FRONT_END, GpuModel

MOST_PROCESSES = 64  # in a sandbox, of an ordinary user; Linux does not count root's processes
START_OVER = 60.0  # seconds for a killed child to be gone
PR_SET_DUMPABLE = 4


def main(control_fd: int, model: dict | None, readable: list[str], sandboxed: bool) -> None:
    """Answers each {"folder", "task"} by {"pid": N}, until the parent is gone.

    Three descriptors come with a request: requests, replies and output of the child. With a GPU's `model`, children run
    a submission for it and record, or with the task FRONT_END make texts of its kernels; without a model they interpret
    recorded calls. They can read `readable` and their own folder. In a sandbox the Triton fork server also looks after
    its child, which nobody outside can do: {"status": true} and {"end": true} are answered by {"status": N}.
    """
    control = socket.socket(fileno=control_fd)
    os.set_inheritable(control_fd, False)
    folders = [os.getcwd()]
    try:
        _fork_on_request(control, model, readable, sandboxed, folders)
    finally:  # the parent has ended, or was killed before it could clear up, perhaps before we are ready
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)
    os._exit(0)


def _fork_on_request(
    control: socket.socket, model: dict | None, readable: list[str], sandboxed: bool, folders: list[str]
) -> None:
    """Serves until the parent is gone. Adds each folder that the parent names for a child to `folders`."""
    ready, new_host = _prepared(model)
    gc.freeze()  # what is imported stays, and stays shared between the children
    gc.enable()
    control.send(json.dumps({**ready, "pid": os.getpid()}).encode())
    become_child = functools.partial(_become_child, new_host, readable)
    if sandboxed:
        Warden(control, become_child).serve()
    began = own_state()
    forked: dict[int, int] = {}  # number -> pidfd of each child that the parent has not waited for
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, 4096, 3)
        forked = {pid: pidfd for pid, pidfd in forked.items() if _is_there(pidfd)}
        if not message:
            _kill_with_all_that_they_started(forked)
            return
        if own_state() != began:
            os._exit(CHANGED)
        request = json.loads(message)
        folders.append(request["folder"])
        pid = fork_sibling()
        if pid == 0:
            for pidfd in forked.values():
                os.close(pidfd)
            control.close()
            become_child(request["task"], folders[-1], *descriptors)
        with contextlib.suppress(OSError):  # before Linux 5.3
            forked[pid] = os.pidfd_open(pid)
        for descriptor in descriptors:
            os.close(descriptor)
        control.send(json.dumps({"pid": pid}).encode())


def _is_there(pidfd: int) -> bool:
    """Returns whether nobody has waited for the child, so that its number is its own; else closes the descriptor."""
    try:
        signal.pidfd_send_signal(pidfd, 0)
    except OSError:
        os.close(pidfd)
        return False
    return True


def _kill_with_all_that_they_started(children: Iterable[int]) -> None:
    """Kills the process group that each child leads, for a parent that was killed while it had children."""
    for pid in children:
        with contextlib.suppress(OSError):
            os.killpg(pid, signal.SIGKILL)


class Warden:
    """The only process of a sandbox besides its child, which can neither reach nor trace it."""

    def __init__(self, control: socket.socket, become_child: Callable) -> None:
        self.control, self.become_child = control, become_child
        self.scratch, self.pid = os.getcwd(), 0
        self.status: int | None = None
        self.began = own_state()

    def serve(self) -> None:
        """Answers requests until the parent is gone; there is one child at a time."""
        _set_dumpable(False)
        while True:
            message, descriptors, _, _ = socket.recv_fds(self.control, 4096, 3)
            if not message:
                os._exit(0)  # the sandbox ends with its first process, and the child with it
            request = json.loads(message)
            if "folder" in request:
                self._start(request["folder"], request["task"], *descriptors)
                self._tell_pid()
            else:
                answer = {"status": self._ended() if "end" in request else self._waited(0.0)}
                self.control.send(json.dumps(answer).encode())

    def _tell_pid(self) -> None:
        """Answers with the child's number, and a descriptor that gives the parent its number outside of the sandbox."""
        pidfds = []
        with contextlib.suppress(OSError):  # before Linux 5.3
            pidfds.append(os.pidfd_open(self.pid))
        socket.send_fds(self.control, [json.dumps({"pid": self.pid}).encode()], pidfds)
        for descriptor in pidfds:
            os.close(descriptor)

    def _start(self, folder: str, task: str, *descriptors: int) -> None:
        self._ended()
        if own_state() != self.began:
            os._exit(CHANGED)
        os.mkdir(folder)
        self.status, self.pid = None, os.fork()
        if self.pid == 0:
            self.control.close()
            _set_dumpable(True)
            resource.setrlimit(resource.RLIMIT_NPROC, (MOST_PROCESSES, MOST_PROCESSES))
            self.become_child(task, folder, *descriptors)
        for descriptor in descriptors:
            os.close(descriptor)

    def _waited(self, limit: float) -> int | None:
        deadline = time.monotonic() + limit
        while self.pid and self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
            elif time.monotonic() > deadline:
                break
            else:
                time.sleep(0.005)
        return self.status

    def _ended(self) -> int | None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(-1, signal.SIGKILL)  # every process of the sandbox but its first process and this process
        status = self._waited(START_OVER)
        for entry in os.listdir(self.scratch):
            shutil.rmtree(os.path.join(self.scratch, entry), ignore_errors=True)
        self.pid = 0
        return status


def _set_dumpable(value: bool) -> None:
    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, int(value), 0, 0, 0)


def _prepared(model: dict | None) -> tuple[dict, Callable[[str], Host]]:
    """Imports everything. Returns the message to the parent, and a function that makes a host for a child's task.

    A process has Triton in one mode only.
    """
    if model is None:
        from grader.interpreter.interpreter_host import InterpreterHost

        return ready({}), lambda task: InterpreterHost()
    from grader.child.recording_host import RecordingHost, prepare
    from grader.front_end.front_end_host import FrontEndHost

    message, stand_in = prepare(GpuModel(**model))
    return message, lambda task: FrontEndHost() if task == FRONT_END else RecordingHost(stand_in)


def _become_child(
    new_host: Callable[[str], Host],
    readable: list[str],
    task: str,
    folder: str,
    requests: int,
    replies: int,
    output: int,
) -> None:
    os.setsid()
    os.chdir(folder)
    for name in ("HOME", "TMPDIR", "TRITON_HOME"):
        os.environ[name] = folder
    tempfile.tempdir = None  # the folder cached by the Triton fork server's imports lies outside of the child's folder
    nothing = os.open(os.devnull, os.O_RDONLY)
    for descriptor, target in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(descriptor, target)
    os.close(nothing)
    os.close(output)
    try:
        serve(new_host(task), requests, replies, readable)
    finally:
        os._exit(1)
