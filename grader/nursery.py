"""The parent's end of the nursery: started once per process, in the background, and asked for a child when needed."""

from __future__ import annotations

import atexit
import ctypes
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from dataclasses import asdict
from pathlib import Path

from grader import sandbox
from grader.import_path import trusted_path
from grader.one_thread import ONE_THREAD
from grader.protocol import GpuModel

ANSWER_LIMIT = 10.0  # seconds for a sandbox to be emptied
START_LIMIT = 120.0  # seconds to import torch and triton; past it the machine is at fault, not the learner
BOOT = (
    "import gc, sys, json; gc.disable(); sys.path[:] = json.loads(sys.argv[1]); "
    "from grader.child.nursery import main; main(int(sys.argv[2]), *map(json.loads, sys.argv[3:]))"
)
PR_SET_CHILD_SUBREAPER = 36


class MachineFault(Exception):
    """Something that is never the learner's fault: no child could be started."""


class Nursery:
    """A warm process that forks children. Starting it returns at once; the first child waits for its imports.

    Its children interpret; those of one with a `model` compile for that GPU. A sandboxed one has one child at a time,
    and what a child leaves behind, processes and files, ends with it.
    """

    def __init__(self, model: GpuModel | None = None, sandboxed: bool = False) -> None:
        self.sandboxed = sandboxed
        self.folder = tempfile.mkdtemp(prefix="course-")
        self.versions: dict[str, str] | None = None
        self.missing: list[str] = []  # private names of Triton that this release lacks
        self._one_at_a_time = threading.Lock()  # a question and its answer
        _adopt_orphans()
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._control.settimeout(START_LIMIT)
        environment, path, walls = _environment(self.folder, interpreted=model is None), trusted_path(), []
        if sandboxed:
            walls, path = sandbox.command(self.folder, path, environment)
        given = [json.dumps(path), str(theirs.fileno()), _json_of(model), json.dumps(sandboxed)]
        try:
            self._process = subprocess.Popen(
                [*walls, sys.executable, "-I", "-c", BOOT, *given],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                pass_fds=(theirs.fileno(),),
                cwd=self.folder,
                env=environment,
                start_new_session=True,
            )
        except OSError as error:
            raise MachineFault(f"the process that runs submissions did not start: {error}") from error
        finally:
            theirs.close()

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def child(self, folder: Path, requests: int, replies: int, output: int) -> int:
        """The process number of a new child, a child of this process; the descriptors stay ours to close.

        In a sandbox the number is the sandbox's own: child_status and end_child are there for it.
        """
        with self._one_at_a_time:
            self._wait_until_ready()
            folder = Path(self.folder, folder.name) if self.sandboxed else folder
            try:
                request = json.dumps({"folder": str(folder)}).encode()
                socket.send_fds(self._control, [request], [requests, replies, output])
                return int(json.loads(self._control.recv(4096))["pid"])
            except (OSError, ValueError, KeyError) as error:
                raise MachineFault(f"the process that runs submissions is gone: {type(error).__name__}") from None

    def child_status(self, limit: float) -> int | None:
        """How a sandboxed child ended, as os.waitstatus_to_exitcode tells it; None if it is still there."""
        return self._told({"wait": limit}, limit + ANSWER_LIMIT)

    def end_child(self) -> int | None:
        """Ends a sandboxed child and all that it left in the sandbox; the sandbox too, if it gives no answer."""
        return self._told({"end": True}, ANSWER_LIMIT)

    def _told(self, request: dict, limit: float) -> int | None:
        try:
            self._control.settimeout(limit)
            self._control.send(json.dumps(request).encode())
            return json.loads(self._control.recv(4096))["status"]
        except (OSError, ValueError, KeyError):
            self._process.kill()
            self._process.wait()  # so that the next child gets a new sandbox
            return -signal.SIGKILL
        finally:
            self._control.settimeout(START_LIMIT)

    def _wait_until_ready(self) -> None:
        if self.versions is not None:
            return
        try:
            ready = json.loads(self._control.recv(1 << 16))
        except (OSError, ValueError):
            self._process.kill()
            said = self._process.stderr.read().decode("utf-8", "replace").strip().splitlines()[-1:]
            raise MachineFault(
                f"torch and triton could not be imported: {''.join(said)[:300] or 'no answer'}"
            ) from None
        self.versions, self.missing = ready["versions"], ready["missing"]
        if self.missing:
            lacking = ", ".join(self.missing)
            raise MachineFault(f"Triton {self.versions.get('triton')} lacks what the memory checker needs: {lacking}")

    def end(self) -> None:
        self._control.close()  # the nursery's signal to leave
        self._process.kill()
        self._process.wait()
        self._process.stderr.close()
        shutil.rmtree(self.folder, ignore_errors=True)


_starting = threading.Lock()
_shared: dict[tuple[GpuModel | None, bool], Nursery] = {}


def shared_nursery(model: GpuModel | None = None, sandboxed: bool = False) -> Nursery:
    """This process's nursery for interpreting, or for compiling for `model`, started if there is none."""
    kind = model, sandboxed
    with _starting:
        if kind not in _shared or not _shared[kind].alive:
            _shared[kind] = Nursery(model, sandboxed)
            atexit.register(_shared[kind].end)
        return _shared[kind]


def shared_nurseries() -> list[Nursery]:
    """Those that were started in this process."""
    return list(_shared.values())


def _json_of(model: GpuModel | None) -> str:
    return json.dumps(None if model is None else asdict(model))


def _environment(folder: str, interpreted: bool) -> dict[str, str]:
    """Nothing of ours but the paths: a submission learns no secret from its environment."""
    kept = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ}
    return {
        **kept,
        "LANG": "C.UTF-8",
        "HOME": folder,
        "TMPDIR": folder,
        "TRITON_HOME": folder,
        **({"TRITON_INTERPRET": "1"} if interpreted else {}),
        "TRITON_DEFAULT_FP_FUSION": "1",
        "CUDA_VISIBLE_DEVICES": "",  # the child never touches a GPU
        "PYTHONDONTWRITEBYTECODE": "1",
        **ONE_THREAD,
    }


def _adopt_orphans() -> None:
    """Linux hands orphaned descendants to this process: the nursery's children, and what they leave behind."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
