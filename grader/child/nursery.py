"""Where children come from: a process that has imported torch and triton and forks one child per request.

A fork starts with everything imported and nothing of any submission loaded, in milliseconds instead of a second and a
half. The nursery itself never sees a submission.
"""

from __future__ import annotations

import gc
import json
import os
import shutil
import socket
import tempfile
from collections.abc import Callable

from grader.child.host import Host, serve
from grader.protocol import GpuModel


def main(control_fd: int, model: dict | None) -> None:
    """Answers {"folder": PATH} with three descriptors (requests, replies, output) by {"pid": N}, until the end.

    Children interpret; with a GPU's `model` they compile for it.
    """
    control = socket.socket(fileno=control_fd)
    os.set_inheritable(control_fd, False)
    ready, new_host = _prepared(model)
    gc.freeze()  # what is imported stays, and stays shared between the children
    gc.enable()
    control.send(json.dumps(ready).encode())
    folders = [os.getcwd()]
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, 4096, 3)
        if not message:  # the parent is done, or was killed before it could clear up
            for folder in folders:
                shutil.rmtree(folder, ignore_errors=True)
            os._exit(0)
        folders.append(json.loads(message)["folder"])
        pid = _fork(new_host, control, folders[-1], *descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        control.send(json.dumps({"pid": pid}).encode())


def _prepared(model: dict | None) -> tuple[dict, Callable[[], Host]]:
    """What there is to say once everything is imported, and what makes a child's host. Triton is in one mode only."""
    if model is None:
        from grader.child.interpreting import InterpretingHost, prepare

        return prepare(), InterpretingHost
    from grader.child.compiling import CompilingHost, prepare

    ready, stand_in = prepare(GpuModel(**model))
    return ready, lambda: CompilingHost(stand_in)


def _fork(
    new_host: Callable[[], Host], control: socket.socket, folder: str, requests: int, replies: int, output: int
) -> int:
    """Forks twice, so that the child is handed to the parent, which can then wait for it and learn how it ended."""
    reading, writing = os.pipe()
    middle = os.fork()
    if middle == 0:
        pid = os.fork()
        if pid == 0:
            control.close()
            os.close(reading)
            os.close(writing)
            _become_child(new_host, folder, requests, replies, output)
        os.write(writing, str(pid).encode())
        os._exit(0)
    os.close(writing)
    os.waitpid(middle, 0)
    pid = int(os.read(reading, 20))
    os.close(reading)
    return pid


def _become_child(new_host: Callable[[], Host], folder: str, requests: int, replies: int, output: int) -> None:
    os.setsid()
    os.chdir(folder)
    for name in ("HOME", "TMPDIR", "TRITON_HOME"):
        os.environ[name] = folder
    tempfile.tempdir = None  # what the nursery's imports found lies outside of the child's folder
    nothing = os.open(os.devnull, os.O_RDONLY)
    for descriptor, target in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(descriptor, target)
    os.close(nothing)
    os.close(output)
    try:
        serve(new_host(), requests, replies)
    finally:
        os._exit(1)
