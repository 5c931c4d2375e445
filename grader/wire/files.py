"""The frames of grader.wire.messages over files: what processes of our own say to each other about a GPU."""

from __future__ import annotations

from typing import BinaryIO

from grader.wire.messages import LENGTHS, pack, unpack_header, unpack_lengths


def send(file: BinaryIO, header: dict, blob: bytes = b"") -> None:
    file.write(pack(header, blob))
    file.flush()


def received(file: BinaryIO) -> tuple[dict, bytes]:
    """(header, blob) of the next frame. Raises EOFError where the other end is gone."""
    header_bytes, blob_bytes = unpack_lengths(_exactly(file, LENGTHS.size))
    return unpack_header(_exactly(file, header_bytes)), _exactly(file, blob_bytes)


def _exactly(file: BinaryIO, count: int) -> bytes:
    if len(data := file.read(count)) < count:
        raise EOFError
    return data
