"""The parent's end of the Triton fork server: started once per process, in the background, and asked for a child when
needed."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import signal
import socket
import subprocess
import threading
from dataclasses import asdict
from pathlib import Path

from grader.processes import bubblewrap, scratch
from grader.processes.environment import python_calling, trusted_path
from grader.processes.faults import MachineFault, ServerLeft
from grader.processes.readable import readable
from grader.processes.torch_forkserver_client import adopt_orphans, clean_environment, shared_torch_fork_server
from grader.wire.frames import JsonObject, is_hung_up
from grader.wire.messages import GpuModel

ANSWER_LIMIT = 120.0  # seconds for a sandbox to be emptied
START_LIMIT = 600.0  # seconds to import torch and triton; past it the machine is at fault, not the learner


class TritonForkServer:
    """A warm process that forks children. Starting it returns at once; the first child waits for its imports.

    Its children interpret; with a `model`, they record for that GPU. It is forked from this process's torch fork
    server, which has imported torch. A sandboxed Triton fork server is started without a torch fork server; it has one
    child at a time, and what a child leaves behind, processes and files, ends with the child.
    """

    def __init__(self, model: GpuModel | None = None, sandboxed: bool = False) -> None:
        self.sandboxed = sandboxed
        self.folder = str(scratch.new_folder())
        self.versions: dict[str, str] = {}  # until it is ready
        self._one_at_a_time = threading.Lock()  # a question and its answer
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._control.settimeout(START_LIMIT)
        self._errors, errors = os.pipe()
        os.set_blocking(self._errors, False)
        environment = clean_environment(self.folder)
        try:
            if sandboxed:
                adopt_orphans()
                self._process = _in_sandbox(self.folder, environment, model, theirs.fileno(), errors)
            else:
                self._torch_fork_server = shared_torch_fork_server()
                can_read = readable(trusted_path())
                self._torch_fork_server.fork(self.folder, environment, model, can_read, theirs.fileno(), errors)
        except OSError as error:
            raise MachineFault(f"the process that runs submissions did not start: {error}") from error
        finally:
            theirs.close()
            os.close(errors)

    @property
    def alive(self) -> bool:
        there = (
            self._process.poll() is None if self.sandboxed else True
        )  # bubblewrap is gone before the Triton fork server is
        return there and not is_hung_up(self._control.fileno())

    def child(self, folder: Path, requests: int, replies: int, output: int, task: str = "") -> tuple[int, int | None]:
        """Returns (the process number of a new child, its number in this process's /proc); the descriptors stay ours to
        close.

        `task`: as in ChildProcess. In a sandbox the first number is the sandbox's own, to be used by child_status and
        end_child alone; the second is None where Linux does not tell it. Raises ServerLeft where the Triton fork server
        is gone, and MachineFault where torch and Triton cannot be imported.
        """
        with self._one_at_a_time:
            self._wait_until_ready()
            folder = Path(self.folder, folder.name) if self.sandboxed else folder
            try:
                request = json.dumps({"folder": str(folder), "task": task}).encode()
                socket.send_fds(self._control, [request], [requests, replies, output])
                answer, pidfds, _, _ = socket.recv_fds(self._control, 4096, 1)
                pid = int(json.loads(answer)["pid"])
                return pid, _number_here(pidfds) if self.sandboxed else pid
            except (OSError, ValueError, KeyError) as error:
                raise ServerLeft(f"the process that runs submissions is gone: {type(error).__name__}") from None

    def child_status(self) -> int | None:
        """Returns how a sandboxed child ended, as os.waitstatus_to_exitcode tells it; None if it is still there."""
        return self._status_after({"status": True})

    def end_child(self) -> int | None:
        """Ends a sandboxed child and all that it left in the sandbox; the sandbox too, if it gives no answer."""
        return self._status_after({"end": True})

    def _status_after(self, request: JsonObject) -> int | None:
        try:
            self._control.settimeout(ANSWER_LIMIT)
            self._control.send(json.dumps(request).encode())
            status: int | None = json.loads(self._control.recv(4096))["status"]
            return status
        except (OSError, ValueError, KeyError):
            self._process.kill()
            self._process.wait()  # so that the next child gets a new sandbox
            return -signal.SIGKILL
        finally:
            self._control.settimeout(START_LIMIT)

    def _wait_until_ready(self) -> None:
        if self.versions:
            return
        try:
            ready = json.loads(self._control.recv(1 << 16))
        except (OSError, ValueError):
            self._control.shutdown(socket.SHUT_RDWR)  # it is not alive, even if it only hangs
            if words := self._last_line():
                raise MachineFault(f"torch and triton could not be imported: {words}") from None
            raise ServerLeft("the process that imports torch and triton gives no answer") from None
        self.versions = ready["versions"]
        if not self.sandboxed:
            self._torch_fork_server.forked.append(ready["pid"])

    def _last_line(self) -> str:
        """Returns the last line that the Triton fork server, or the torch fork server, wrote to stderr before it
        ended."""
        words = b""
        with contextlib.suppress(BlockingIOError):
            words = os.read(self._errors, 1 << 16)
        lines = words.decode("utf-8", "replace").strip().splitlines() or (
            [] if self.sandboxed else self._torch_fork_server.last_lines()
        )
        return "".join(lines[-1:])[:300]

    def end(self) -> None:
        self._control.close()  # the Triton fork server's signal to leave
        if self.sandboxed:
            self._process.kill()
            self._process.wait()
        os.close(self._errors)
        scratch.remove(Path(self.folder))


_starting = threading.Lock()
_shared: dict[tuple[GpuModel | None, int | None], TritonForkServer] = {}


def shared_triton_fork_server(model: GpuModel | None = None, sandbox: int | None = None) -> TritonForkServer:
    """Returns this process's Triton fork server for interpreting, or for recording for `model`, started if there is
    none.

    `sandbox`: the number of the sandbox that it is shut in, as each has room for one child; None for none.
    """
    kind = model, sandbox
    with _starting:
        if kind not in _shared or not _shared[kind].alive:
            _shared[kind] = TritonForkServer(model, sandboxed=sandbox is not None)
            atexit.register(_shared[kind].end)
        return _shared[kind]


def _number_here(pidfds: list[int]) -> int | None:
    """Returns a process's number in this process's /proc, by descriptors of it, and closes them."""
    number = None
    for descriptor in pidfds:
        with contextlib.suppress(OSError, ValueError):
            facts = dict(line.split(":") for line in Path(f"/proc/self/fdinfo/{descriptor}").read_text().splitlines())
            number = int(facts.get("Pid", 0))
        os.close(descriptor)
    return number if number and number > 0 else None


def _in_sandbox(
    folder: str, environment: dict[str, str], model: GpuModel | None, control: int, errors: int
) -> subprocess.Popen[bytes]:
    walls, path = bubblewrap.command(folder, trusted_path(), environment)
    arguments = control, model and asdict(model), [*readable(path), folder], True  # sandboxed
    python = python_calling("grader.forkservers.triton_forkserver", *arguments, path=path, collects=False)
    return subprocess.Popen(
        [*walls, *python],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors, pass_fds=[control], cwd=folder,
        env=environment, start_new_session=True,
    )  # fmt: skip
