"""A measurement is prepared beside others and timed alone. In place of the replay process: one without a GPU."""

from __future__ import annotations

import os

import pytest

from grader.gpu import replayer
from grader.gpu.device import Device
from grader.gpu.lock import GpuBusy, gpu_held, next_to_measure
from grader.gpu.models import MODELS
from grader.gpu.replayer import ReplayEnded, Replays

UUID = f"test-{os.getpid()}-replayer"
# Answers like the real one, and asks the locks what the others may do meanwhile.
PROCESS = """
import sys
sys.path.insert(0, {root!r})
from pathlib import Path
from grader.gpu.lock import GpuBusy, gpu_held, next_to_measure
from grader.protocol import LENGTHS, pack, unpack_header, unpack_lengths

requests, replies = open(int(sys.argv[2]), "rb"), open(int(sys.argv[3]), "wb")

def send(header):
    replies.write(pack(header))
    replies.flush()

def received():
    header_bytes, blob_bytes = unpack_lengths(requests.read(LENGTHS.size))
    return unpack_header(requests.read(header_bytes)), requests.read(blob_bytes)

def may(lock):
    try:
        with lock:
            return True
    except GpuBusy:
        return False

def others_may():
    uuid = {uuid!r}
    return [may(gpu_held(uuid, False, limit=0)), may(gpu_held(uuid, True, limit=0)), may(next_to_measure(uuid, 0))]

send({{"kind": "ready"}})
received()
tries = Path({tries!r})
tries.write_text(tries.read_text() + "x")
if len(tries.read_text()) <= {no_room}:
    send({{"kind": "no-room", "message": "out of memory"}})
else:
    preparing = others_may()
    send({{"kind": "prepared"}})
    go, _ = received()
    send({{"kind": "measured", "preparing": preparing, "measuring": others_may(), "told": go["kind"]}})
"""
CHECK, MEASURE, PREPARE = range(3)


@pytest.fixture
def sampled(tmp_path, monkeypatch):
    """sampled(no_room=0): the reply to a measurement whose first tries find too little memory."""

    def sampled(no_room: int = 0) -> dict:
        tries = tmp_path / "tries"
        tries.write_text("")
        root = os.getcwd()
        monkeypatch.setattr(replayer, "BOOT", PROCESS.format(root=root, uuid=UUID, tries=str(tries), no_room=no_room))
        replays = Replays(Device(UUID, MODELS["sm_90"]))
        try:
            return replays.ceilings(1)
        finally:
            replays.end()

    return sampled


def test_a_measurement_is_prepared_beside_others_and_timed_alone(sampled):
    reply = sampled()
    assert reply["told"] == "go"
    assert reply["preparing"] == [True, False, False]  # checks go on; nobody may measure, or prepare to
    assert reply["measuring"] == [False, False, True]  # all wait, and the next one may prepare


def test_where_memory_is_short_it_is_prepared_alone(sampled):
    reply = sampled(no_room=1)
    assert reply["preparing"] == reply["measuring"] == [False, False, False]


def test_a_gpu_with_too_little_memory_is_told(sampled):
    with pytest.raises(ReplayEnded) as ended:
        sampled(no_room=2)
    assert ended.value.how == "no-room"


def test_afterwards_the_gpu_is_free(sampled):
    sampled()
    for lock in (gpu_held(UUID, alone=True, limit=0), next_to_measure(UUID, limit=0)):
        with lock:
            pass


def test_one_at_a_time_prepares():
    with next_to_measure(UUID), pytest.raises(GpuBusy), next_to_measure(UUID, limit=0):
        pass
