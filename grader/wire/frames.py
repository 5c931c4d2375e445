"""Frames: two lengths, a header in JSON, and a blob of bytes."""

from __future__ import annotations

import json
import select
import struct
from typing import BinaryIO

LENGTHS = struct.Struct("<II")  # header bytes, blob bytes

MOST_HEADER_BYTES = 8 << 20

MOST_BLOB_BYTES = 1 << 30


class ProtocolError(Exception):
    """A frame that does not follow the rules; the message says how."""


def is_hung_up(descriptor: int) -> bool:
    """Whether nobody has the other end of this socket any more."""
    poll = select.poll()
    poll.register(descriptor, 0)
    return bool(poll.poll(0))


def pack(header: dict, blob: bytes = b"") -> bytes:
    text = json.dumps(header, allow_nan=False).encode()
    return LENGTHS.pack(len(text), len(blob)) + text + blob


def unpack_lengths(start: bytes) -> tuple[int, int]:
    """(header bytes, blob bytes) of a frame from its first 8 bytes."""
    header_bytes, blob_bytes = LENGTHS.unpack(start)
    if header_bytes > MOST_HEADER_BYTES or blob_bytes > MOST_BLOB_BYTES:
        raise ProtocolError(f"a frame of {header_bytes} + {blob_bytes} bytes is over the limit")
    return header_bytes, blob_bytes


def unpack_header(text: bytes) -> dict:
    try:
        header = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ProtocolError(f"a frame's header is not JSON: {type(error).__name__}") from None
    if not isinstance(header, dict) or not isinstance(header.get("kind"), str):
        raise ProtocolError("a frame's header is not an object with a kind")
    return header


# ---- over files, between processes of our own  -----------------------------------------------------------------------


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
