"""What a child may send: anything. What gets past the checks: only plain data that fits together."""

from __future__ import annotations

import json

import pytest
import torch

from grader.wire.frames import LENGTHS, OURS, SUBMISSIONS, ProtocolError, pack, unpack_header, unpack_lengths
from grader.wire.messages import Finding, TensorSpec
from grader.wire.reply import read_reply, spec_and_bytes, tensor_of

GOOD = {"name": "z", "dtype": "float32", "shape": [2, 3], "strides": [3, 1], "offset": 0, "start": 0, "size": 24}


def test_a_frame_comes_back():
    frame = pack({"kind": "run", "n": 1}, b"abc")
    header_bytes, blob_bytes = unpack_lengths(frame[:8])
    assert unpack_header(frame[8 : 8 + header_bytes]) == {"kind": "run", "n": 1}
    assert frame[8 + header_bytes :] == b"abc" and blob_bytes == 3


NO_MESSAGES = [b"", b"{", b"[]", b"3", b'{"kind": 3}', b"\xff", b"[" * 100_000]
NO_NUMBERS = [b"NaN", b"Infinity", b"-Infinity", b"1e999", b"9" * 5000]  # we could not write them ourselves


@pytest.mark.parametrize("text", [*NO_MESSAGES, *(b'{"kind": "ran", "x": [%s]}' % number for number in NO_NUMBERS)])
def test_a_header_that_is_no_message_is_refused(text):
    with pytest.raises(ProtocolError):
        unpack_header(text)


@pytest.mark.parametrize(
    ("header", "blob", "who"),
    [(9 << 20, 0, OURS), (1, 2 << 30, OURS), (2 << 20, 0, SUBMISSIONS), (1, 32 << 20, SUBMISSIONS)],
)
def test_a_frame_over_the_limit_is_refused(header, blob, who):
    with pytest.raises(ProtocolError, match="and the most is"):
        unpack_lengths(LENGTHS.pack(header, blob), who)


@pytest.mark.parametrize(
    ("header", "blob", "who"),
    [(8 << 20, 1 << 30, OURS), (1 << 20, 31 << 20, SUBMISSIONS), (1, (32 << 20) - 1, SUBMISSIONS)],
)
def test_a_frame_within_the_limit_of_whoever_answers_is_taken(header, blob, who):
    assert unpack_lengths(LENGTHS.pack(header, blob), who) == (header, blob)


@pytest.mark.parametrize(
    "tensor",
    [
        torch.arange(6.0).reshape(2, 3),
        torch.arange(6.0).reshape(2, 3).t(),
        torch.arange(20.0)[3::4],
        torch.empty(0),
        torch.tensor(3.0),
        torch.ones(1, 4).expand(3, 4),
        torch.arange(8, dtype=torch.int64)[1:],
    ],
)
def test_a_tensor_of_any_layout_comes_back(tensor):
    spec, data = spec_and_bytes("x", tensor, 5)
    back = tensor_of(TensorSpec.from_json(json.loads(json.dumps(spec.to_json())), 5 + len(data)), b"12345" + data)
    assert back.stride() == tensor.stride() and torch.equal(back, tensor)


@pytest.mark.parametrize(
    "change",
    [
        {"shape": [2, 4]},
        {"strides": [4, 1]},
        {"offset": 1},
        {"size": 23},
        {"start": 1},
        {"shape": [2]},
        {"shape": [-2, 3]},
        {"strides": [-3, 1]},
        {"dtype": "object"},
        {"name": 3},
        {"shape": [True, 3]},
        {"shape": [1 << 60, 0]},
        {"offset": 0.0},
        {"size": None},
        {"shape": [1 << 47, 1 << 47], "strides": [0, 0]},
        {"dtype": ["float32"]},
        {"shape": "23"},
    ],
)
def test_a_tensor_that_does_not_fit_is_refused(change):
    assert TensorSpec.from_json(GOOD, 24)
    with pytest.raises(ProtocolError):
        TensorSpec.from_json({**GOOD, **change}, 24)


def reply(**fields) -> dict:
    return {"kind": "ran", "outputs": [GOOD], "result": {"type": "Tensor"}, **fields}


@pytest.mark.parametrize(
    "fields",
    [
        {"kind": "passed"},
        {"findings": [3]},
        {"findings": {"kind": "unwritten"}},
        {"findings": [{"kind": 3, "argument": "x"}]},
        {"findings": [{"kind": "wild-pointer", "argument": "x"}] * 300},
        {"launches": [{"kernel": "k", "grid": ["1"]}]},
        {"printed": [1]},
        {"writers": [{"start": 0, "size": 4, "grid": []}]},
        {"writers": [{"start": 0, "size": 24, "grid": "1"}]},
        {"writers": [{"start": 0, "size": 24, "grid": []}]},
        {"writers": [{"start": -4, "size": 24, "grid": [1, 1, 1]}]},
        {"traffic": [{"argument": "x", "read": 1e9}]},
        {"error": []},
        {"findings": [{"kind": "unwritten", "argument": "x"}]},
        {"findings": [{"argument": "x"}]},
        {"launches": [{}]},
    ],
)
def test_a_reply_with_a_wrong_field_is_refused(fields):
    assert read_reply(reply(), bytes(24)).output.shape == (2, 3)
    with pytest.raises(ProtocolError):
        read_reply(reply(**fields), bytes(24))


def test_unknown_findings_and_control_characters_do_no_harm():
    finding = {"kind": "uninitialised-read", "argument": "x\x1b[2J", "surplus": 1}
    assert read_reply(reply(findings=[finding]), bytes(24)).findings == [Finding("uninitialised-read", "x?[2J")]
