"""The parent's end of the nursery: started once per process, in the background, and asked for a child when needed."""

from __future__ import annotations

import atexit
import ctypes
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from grader.exercise import Folder
from grader.protocol import GpuModel

START_LIMIT = 120.0  # seconds to import torch and triton; past it the machine is at fault, not the learner
BOOT = (
    "import gc, sys, json; gc.disable(); sys.path[:] = json.loads(sys.argv[1]); "
    "from grader.child.nursery import main; main(int(sys.argv[2]), json.loads(sys.argv[3]))"
)
PR_SET_CHILD_SUBREAPER = 36


class MachineFault(Exception):
    """Something that is never the learner's fault: no child could be started."""


class Nursery:
    """A warm process that forks children. Starting it returns at once; the first child waits for its imports.

    Its children interpret; those of one with a `model` compile for that GPU.
    """

    def __init__(self, model: GpuModel | None = None) -> None:
        self.folder = tempfile.mkdtemp(prefix="course-")
        self.versions: dict[str, str] | None = None
        self.missing: list[str] = []  # private names of Triton that this release lacks
        _adopt_orphans()
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._control.settimeout(START_LIMIT)
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-c", BOOT, json.dumps(_trusted_path()), str(theirs.fileno()), _json_of(model)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                pass_fds=(theirs.fileno(),),
                cwd=self.folder,
                env=_environment(self.folder, interpreted=model is None),
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
        """The process number of a new child, a child of this process; the descriptors stay ours to close."""
        self._wait_until_ready()
        try:
            request = json.dumps({"folder": str(folder)}).encode()
            socket.send_fds(self._control, [request], [requests, replies, output])
            return int(json.loads(self._control.recv(4096))["pid"])
        except (OSError, ValueError, KeyError) as error:
            raise MachineFault(f"the process that runs submissions is gone: {type(error).__name__}") from None

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


_shared: dict[GpuModel | None, Nursery] = {}


def shared_nursery(model: GpuModel | None = None) -> Nursery:
    """This process's nursery for interpreting, or for compiling for `model`, started if there is none."""
    if model not in _shared or not _shared[model].alive:
        _shared[model] = Nursery(model)
        atexit.register(_shared[model].end)
    return _shared[model]


def shared_nurseries() -> list[Nursery]:
    """Those that were started in this process."""
    return list(_shared.values())


def _json_of(model: GpuModel | None) -> str:
    return json.dumps(None if model is None else asdict(model))


def _trusted_path() -> list[str]:
    """This process's import path without the current folder and without any exercise's folder."""
    own = Path(__file__).resolve().parent.parent
    entries = [Path(entry).resolve() for entry in sys.path if entry]
    kept = [entry for entry in entries if Folder.containing(entry) is None and entry not in (Path.cwd(), own)]
    return [str(entry) for entry in (own, *kept)]


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
        **dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
    }


def _adopt_orphans() -> None:
    """Linux hands orphaned descendants to this process: the nursery's children, and what they leave behind."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
