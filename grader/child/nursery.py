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

from grader.child import host


def main(control_fd: int) -> None:
    """Answers {"folder": PATH} with three descriptors (requests, replies, output) by {"pid": N}, until the end."""
    control = socket.socket(fileno=control_fd)
    os.set_inheritable(control_fd, False)
    ready = host.prepare()
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
        pid = _fork(control, folders[-1], *descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        control.send(json.dumps({"pid": pid}).encode())


def _fork(control: socket.socket, folder: str, requests: int, replies: int, output: int) -> int:
    """Forks twice, so that the child is handed to the parent, which can then wait for it and learn how it ended."""
    reading, writing = os.pipe()
    middle = os.fork()
    if middle == 0:
        pid = os.fork()
        if pid == 0:
            control.close()
            os.close(reading)
            os.close(writing)
            _become_child(folder, requests, replies, output)
        os.write(writing, str(pid).encode())
        os._exit(0)
    os.close(writing)
    os.waitpid(middle, 0)
    pid = int(os.read(reading, 20))
    os.close(reading)
    return pid


def _become_child(folder: str, requests: int, replies: int, output: int) -> None:
    os.setsid()
    os.chdir(folder)
    for name in ("HOME", "TMPDIR", "TRITON_HOME"):
        os.environ[name] = folder
    nothing = os.open(os.devnull, os.O_RDONLY)
    for descriptor, target in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(descriptor, target)
    os.close(nothing)
    os.close(output)
    try:
        host.serve(requests, replies)
    finally:
        os._exit(1)
