"""Frames: two lengths, a header in JSON, and a blob of bytes."""

from __future__ import annotations

import json
import math
import select
import struct
from dataclasses import dataclass
from typing import Any, BinaryIO

JsonObject = dict[str, Any]  # an object of JSON, as it is sent or has come: whoever reads it checks field by field
LENGTHS = struct.Struct("<II")  # header bytes, blob bytes


@dataclass
class Limits:
    """The most bytes of a frame and of its header, which depend on the sender."""

    header: int
    frame: int

    def accept(self, header_bytes: int, frame_bytes: int) -> None:
        """Raises ProtocolError for a frame that is too large, of which nothing but its lengths is read."""
        if header_bytes > self.header:
            raise ProtocolError(f"a message's header has {header_bytes} bytes, and the most is {self.header >> 20} MiB")
        if frame_bytes > self.frame:
            raise ProtocolError(f"a message has {frame_bytes} bytes, and the most is {self.frame >> 20} MiB")


OURS = Limits(8 << 20, 1032 << 20)  # of a process that runs our code alone; 1 GiB of data behind the header
SUBMISSIONS = Limits(1 << 20, 32 << 20)  # of a process that runs a learner's file, and may send anything


class ProtocolError(Exception):
    """A frame that does not follow the rules; the message says how."""


def is_hung_up(descriptor: int) -> bool:
    """Returns whether the other end of this socket is closed in all processes."""
    poll = select.poll()
    poll.register(descriptor, 0)
    return bool(poll.poll(0))


def pack(header: JsonObject, blob: bytes = b"") -> bytes:
    text = json.dumps(header, allow_nan=False).encode()
    return LENGTHS.pack(len(text), len(blob)) + text + blob


def unpack_lengths(start: bytes, limits: Limits = OURS) -> tuple[int, int]:
    """Returns (header bytes, blob bytes) of a frame from its first 8 bytes. Raises ProtocolError beyond the limits."""
    header_bytes, blob_bytes = LENGTHS.unpack(start)
    limits.accept(header_bytes, header_bytes + blob_bytes)
    return header_bytes, blob_bytes


def unpack_header(text: bytes) -> JsonObject:
    """Returns the header. Raises ProtocolError unless it is a JSON object with a kind.

    Only numbers that JSON has are accepted: a header may be sent on, and NaN could not be.
    """
    try:
        header = json.loads(text, parse_constant=_number, parse_float=_number)
    except (ValueError, RecursionError) as error:
        raise ProtocolError(f"a frame's header is not JSON: {type(error).__name__}") from None
    if not isinstance(header, dict) or not isinstance(header.get("kind"), str):
        raise ProtocolError("a frame's header is not an object with a kind")
    return header


def _number(text: str) -> float:
    """Returns the number. Raises ProtocolError for NaN and for a number too large for a float."""
    if not math.isfinite(number := float(text)):
        raise ProtocolError("a frame's header holds NaN, or a number without end")
    return number


# ---- over files, between processes of our own  -----------------------------------------------------------------------


def send(file: BinaryIO, header: JsonObject, blob: bytes = b"") -> None:
    file.write(pack(header, blob))
    file.flush()


def received(file: BinaryIO) -> tuple[JsonObject, bytes]:
    """Returns (header, blob) of the next frame. Raises EOFError where the other end is gone, and ProtocolError."""
    header_bytes, blob_bytes = unpack_lengths(_exactly(file, LENGTHS.size))
    return unpack_header(_exactly(file, header_bytes)), _exactly(file, blob_bytes)


def _exactly(file: BinaryIO, count: int) -> bytes:
    if len(data := file.read(count)) < count:
        raise EOFError
    return data
