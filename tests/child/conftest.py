"""A real child process at the other end of two pipes, spoken to as the grader does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import grader.protocol
from grader.protocol import LENGTHS, RunRequest, TensorSpec, pack, unpack_header, unpack_lengths

ROOT = Path(grader.protocol.__file__).parents[1]
START = (
    "import sys, json; sys.path[:] = json.loads(sys.argv[1]); from grader.child.host import main; "
    "main(int(sys.argv[2]), int(sys.argv[3]))"
)
PREAMBLE = """\
import torch
import triton
import triton.language as tl
"""


class Reply(SimpleNamespace):
    @property
    def finding(self) -> SimpleNamespace:
        """The one finding that there is."""
        (finding,) = self.findings
        return SimpleNamespace(**finding)


class Child:
    def __init__(self, folder: Path):
        request_read, self.requests = os.pipe()
        self.replies, reply_write = os.pipe()
        paths = [str(ROOT)] + [path for path in sys.path if path]
        settings = {name: "1" for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")}
        settings |= {"TRITON_INTERPRET": "1", "TRITON_DEFAULT_FP_FUSION": "1", "CUDA_VISIBLE_DEVICES": ""}
        settings |= {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "HOME": str(folder), "TMPDIR": str(folder)}
        self.output = open(folder.parent / f"{folder.name}.output", "wb+")  # noqa: SIM115
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-c", START, json.dumps(paths), str(request_read), str(reply_write)],
            cwd=folder, env=settings, stdin=subprocess.DEVNULL, stdout=self.output, stderr=self.output,
            pass_fds=(request_read, reply_write), start_new_session=True,
        )  # fmt: skip
        os.close(request_read)
        os.close(reply_write)
        self.ready, _ = self.receive()

    def send(self, header: dict, blob: bytes = b"") -> None:
        frame = pack(header, blob)
        while frame:
            frame = frame[os.write(self.requests, frame) :]

    def receive(self) -> tuple[dict, bytes]:
        header_bytes, blob_bytes = unpack_lengths(self._exactly(LENGTHS.size))
        return unpack_header(self._exactly(header_bytes)), self._exactly(blob_bytes)

    def _exactly(self, count: int) -> bytes:
        parts = b""
        while len(parts) < count:
            part = os.read(self.replies, count - len(parts))
            assert part, "the child is gone"
            parts += part
        return parts

    def load(self, source: str | bytes | Path, filename: str = "submission.py") -> Reply:
        if isinstance(source, Path):
            source, filename = source.read_bytes(), source.name
        elif isinstance(source, str):
            source = (PREAMBLE + textwrap.dedent(source)).encode()
        self.lines = source.decode(errors="replace").splitlines()
        self.send({"kind": "load", "filename": filename}, source)
        return Reply(**self.receive()[0])

    def line(self, text: str) -> int:
        """The number of the one line of the loaded file that holds this text."""
        (number,) = [i for i, line in enumerate(self.lines, 1) if text in line]
        return number

    def run(self, entry: str, _options: dict | None = None, **arguments: torch.Tensor) -> Reply:
        specs, blob = [], b""
        for name, tensor in arguments.items():
            data = whole_storage(tensor)
            dtype = str(tensor.dtype).removeprefix("torch.")
            place = (tensor.storage_offset(), len(blob), len(data))
            specs.append(TensorSpec(name, dtype, tuple(tensor.shape), tensor.stride(), *place))
            blob += data
        self.send(RunRequest(entry, specs, **(_options or {})).to_json(), blob)
        header, blob = self.receive()
        reply = Reply(**header)
        assert reply.kind == "ran", reply
        if reply.outputs:
            reply.output = read_tensor(reply.outputs[0], blob)
            where = reply.writers[0]
            data = np.frombuffer(blob, np.int32, where["size"] // 4, where["start"])
            reply.writer = data.reshape(reply.output.shape)
        return reply

    def printed(self) -> bytes:
        self.output.flush()
        return Path(self.output.name).read_bytes()

    def close(self) -> None:
        os.close(self.requests)
        self.process.wait(timeout=10)
        os.close(self.replies)
        self.output.close()


def whole_storage(tensor: torch.Tensor) -> bytes:
    storage = tensor.untyped_storage()
    whole = torch.empty(0, dtype=torch.uint8).set_(storage, 0, (storage.nbytes(),), (1,))
    return whole.numpy().tobytes()


def read_tensor(spec: dict, blob: bytes) -> torch.Tensor:
    spec = TensorSpec.from_json(spec, len(blob))
    data = bytearray(blob[spec.start : spec.start + spec.size] or b"\0")
    storage = torch.frombuffer(data, dtype=torch.uint8).untyped_storage()
    return torch.empty(0, dtype=getattr(torch, spec.dtype)).set_(storage, spec.offset, spec.shape, spec.strides)


@pytest.fixture(scope="module")
def child(tmp_path_factory):
    child = Child(tmp_path_factory.mktemp("child"))
    yield child
    child.close()


@pytest.fixture
def fresh_child(tmp_path):
    """For what a file may break for good."""
    folder = tmp_path / "child"
    folder.mkdir()
    child = Child(folder)
    yield child
    child.close()
