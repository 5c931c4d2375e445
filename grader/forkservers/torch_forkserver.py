"""A process that has imported torch, which takes longest, and forks the Triton fork servers, which go on from there.

Triton's mode, to interpret or to compile, is fixed when it is imported. Until then all Triton fork servers are alike.
"""

from __future__ import annotations

import json
import os
import socket
import tempfile

from grader.forkservers.own_state import CHANGED, own_state
from grader.forkservers.sibling import fork_sibling
from grader.wire.frames import is_hung_up


def main(control_fd: int) -> None:
    """Imports torch, and serves until the parent is gone."""
    control = socket.socket(fileno=control_fd)
    os.set_inheritable(control_fd, False)
    import torch  # noqa: F401

    serve(control)


def serve(control: socket.socket) -> None:
    """Forks a Triton fork server for each message {"folder", "environment", "model", "readable"}, until the parent is
    gone.

    Two descriptors come with a message: the Triton fork server's own control socket, and its stderr. A Triton fork
    server is a child of this process's parent, and so are the children that it forks. Exits with CHANGED where this
    process's state has changed.
    """
    began = own_state()
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, 1 << 16, 2)
        if not message:
            os._exit(0)
        if own_state() != began:
            os._exit(CHANGED)
        if not is_hung_up(descriptors[0]) and fork_sibling() == 0:
            control.close()
            _become_triton_fork_server(**json.loads(message), control_fd=descriptors[0], stderr_fd=descriptors[1])
        for descriptor in descriptors:
            os.close(descriptor)


def _become_triton_fork_server(
    folder: str, environment: dict, model: dict | None, readable: list[str], control_fd: int, stderr_fd: int
) -> None:
    try:
        os.setsid()
        os.dup2(stderr_fd, 2)
        os.close(stderr_fd)
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        tempfile.tempdir = None  # torch's import has cached the torch fork server's
        from grader.forkservers.triton_forkserver import main

        main(control_fd, model, readable, sandboxed=False)
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        os._exit(1)
