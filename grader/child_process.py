"""The child as the parent sees it: started early, spoken to in frames under a time limit, ended without leftovers."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from grader import protocol

START_LIMIT = 120.0  # seconds to import torch and triton; past it the machine is at fault, not the learner
MOST_TEXT = 4000  # characters kept of what the learner's file prints
BOOT = (
    "import sys, json; sys.path[:] = json.loads(sys.argv[1]); "
    "from grader.child.host import main; main(int(sys.argv[2]), int(sys.argv[3]))"
)
PR_SET_CHILD_SUBREAPER = 36


@dataclass
class ChildEnded(Exception):
    """The child is gone. how: "exit" (status), "signal" (number), "time" (seconds), "garbled" (what was wrong)."""

    how: str
    detail: str


class MachineFault(Exception):
    """Something that is never the learner's fault: the child could not be started."""


class ChildProcess:
    """One child: load a file, call its entry any number of times."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="course-"))
        self.printed = ""
        self.printed_characters = 0
        self.versions: dict[str, str] | None = None
        self.loaded = False  # the submission has been imported
        _adopt_orphans()
        request_read, self._request = os.pipe()
        self._reply, reply_write = os.pipe()
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-c", BOOT, json.dumps(_trusted_path()), str(request_read), str(reply_write)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=(request_read, reply_write),
                cwd=self.folder,
                env=_environment(self.folder),
                start_new_session=True,
            )
        except OSError as error:
            raise MachineFault(f"the process that runs a submission did not start: {error}") from error
        finally:
            os.close(request_read)
            os.close(reply_write)
        os.set_blocking(self._request, False)
        os.set_blocking(self._reply, False)
        self._drain = threading.Thread(target=self._keep_printed, daemon=True)
        self._drain.start()

    def wait_until_ready(self) -> None:
        """Returns when torch and triton are imported; raises MachineFault if that fails."""
        if self.versions is not None:
            return
        try:
            header, _ = self._receive(time.monotonic() + START_LIMIT)
        except ChildEnded as ended:
            self._drain.join(1)
            last = self.printed.strip().splitlines()[-1:] or [ended.detail]
            raise MachineFault(f"the process that runs a submission did not come up: {last[0]}") from None
        self.versions = {str(name): str(version) for name, version in header.get("versions", {}).items()}

    def ask(self, header: dict, blob: bytes, limit: float) -> tuple[dict, bytes]:
        """Sends a frame and gives the answer; raises ChildEnded when none comes within `limit` seconds."""
        self.wait_until_ready()
        deadline = time.monotonic() + limit
        try:
            self._send(memoryview(protocol.pack(header, blob)), deadline)
            return self._receive(deadline)
        except ChildEnded as ended:
            if ended.how == "time":
                ended.detail = f"{limit:g}"
            self.end()
            raise

    def end(self) -> None:
        """Kills the child, everything it started, and its folder. May be called again."""
        if self._request < 0:
            return
        _kill_group(self._process.pid)
        self._process.wait()
        _kill_orphans_of(self.folder)
        self._drain.join(2)
        for descriptor in (self._request, self._reply):
            os.close(descriptor)
        self._request = self._reply = -1
        self._process.stdout.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _send(self, data: memoryview, deadline: float) -> None:
        while data:
            self._wait(select.POLLOUT, self._request, deadline)
            try:
                data = data[os.write(self._request, data) :]
            except BlockingIOError:
                continue
            except BrokenPipeError:
                raise self._how_it_ended() from None

    def _receive(self, deadline: float) -> tuple[dict, bytes]:
        try:
            lengths = protocol.unpack_lengths(self._read(protocol.LENGTHS.size, deadline))
            header = protocol.unpack_header(self._read(lengths[0], deadline))
            return header, self._read(lengths[1], deadline)
        except protocol.ProtocolError as error:
            raise ChildEnded("garbled", str(error)) from None

    def _read(self, count: int, deadline: float) -> bytes:
        parts, missing = [], count
        while missing:
            self._wait(select.POLLIN, self._reply, deadline)
            try:
                part = os.read(self._reply, min(missing, 1 << 20))
            except BlockingIOError:
                continue
            if not part:
                raise self._how_it_ended()
            parts.append(part)
            missing -= len(part)
        return b"".join(parts)

    def _wait(self, event: int, descriptor: int, deadline: float) -> None:
        poll = select.poll()
        poll.register(descriptor, event)
        if not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
            raise ChildEnded("time", "")

    def _how_it_ended(self) -> ChildEnded:
        try:
            status = self._process.wait(2)
        except subprocess.TimeoutExpired:
            return ChildEnded("garbled", "it closed its descriptors")
        if status < 0:
            return ChildEnded("signal", str(-status))
        return ChildEnded("exit", str(status))

    def _keep_printed(self) -> None:
        descriptor = self._process.stdout.fileno()
        kept = bytearray()
        while True:
            try:
                data = os.read(descriptor, 1 << 16)
            except OSError:
                return
            if not data:
                return
            self.printed_characters += len(data)
            if len(kept) < MOST_TEXT:
                kept += data[: MOST_TEXT - len(kept)]
                self.printed = kept.decode("utf-8", "replace")


def _trusted_path() -> list[str]:
    """This process's import path without the current folder and without any exercise's folder."""
    from grader.exercise import Folder

    here = Path.cwd()
    own = Path(__file__).resolve().parent.parent
    entries = [Path(entry) for entry in sys.path if entry]
    kept = [e for e in entries if Folder.containing(e) is None and (e.resolve() != here or e.resolve() == own)]
    return [str(own), *(str(entry) for entry in kept if entry.resolve() != own)]


def _environment(folder: Path) -> dict[str, str]:
    """Nothing of ours but the path: a submission learns no secret from its environment."""
    threads = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "LANG": "C.UTF-8",
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "TRITON_HOME": str(folder),
        "TRITON_INTERPRET": "1",
        "TRITON_DEFAULT_FP_FUSION": "1",
        "CUDA_VISIBLE_DEVICES": "",  # the child never touches a GPU
        "PYTHONDONTWRITEBYTECODE": "1",
        **({"LD_LIBRARY_PATH": os.environ["LD_LIBRARY_PATH"]} if "LD_LIBRARY_PATH" in os.environ else {}),
        **threads,
    }


def _adopt_orphans() -> None:
    """Linux hands orphans of the child to this process, so that those which left the group can be found."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _kill_group(group: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def _kill_orphans_of(folder: Path) -> None:
    """Ends processes that a submission left behind in a session of their own: orphans handed to this process.

    They are known by the HOME of their environment. One that changed its environment too is not found here; that takes
    a sandbox around the child.
    """
    for _ in range(20):
        orphans = [pid for pid in _children() if _has_home(pid, folder)]
        if not orphans:
            return
        for pid in orphans:
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)


def _children() -> list[int]:
    found = []
    for path in Path("/proc/self/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found += [int(pid) for pid in path.read_text().split()]
    return found


def _has_home(pid: int, folder: Path) -> bool:
    try:
        return f"HOME={folder}".encode() in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return False
