"""Who is asked, when, and how far it is trusted. In place of the replay process: one without a GPU."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from grader.course.folder import Folder
from grader.gpu.device import NO_GPU, Device
from grader.gpu.inside import process as process_module
from grader.gpu.lock import GpuBusy, gpu_held, next_to_measure
from grader.gpu.models import MODELS
from grader.gpu.plan import PackedPlan
from grader.gpu.pool import pool as pool_module
from grader.gpu.pool import replay_process, shared_pool
from grader.gpu.pool.pool import ReplayPool
from grader.gpu.pool.replay_process import ReplayEnded
from grader.gpu.pool.replays import Replays
from grader.gpu.pool.shared_pool import PoolElsewhere, SharedPool
from grader.processes import asked_process
from grader.processes.call_clock import ProcessTimes
from grader.wire.frames import ProtocolError, pack
from tests.conftest import ROOT
from tests.waiting import NEVER, until

COPY = "copy for [1000] float32"
UUID = f"test-{os.getpid()}-replayer"
# Answers like the real one, and asks the locks what the others may do meanwhile.
PROCESS = """
import os, sys, time
sys.path.insert(0, {root!r})
from pathlib import Path
from grader.gpu.lock import GpuBusy, gpu_held, next_to_measure
from grader.wire.frames import received, send

requests, replies = open(int(sys.argv[2]), "rb"), open(int(sys.argv[3]), "wb")

def may(lock):
    try:
        with lock:
            return True
    except GpuBusy:
        return False

def others_may():
    uuid = {uuid!r}
    return [may(gpu_held(uuid, False, limit=0)), may(gpu_held(uuid, True, limit=0)), may(next_to_measure(uuid, 0))]

samples = 0
send(replies, {{"kind": "ready"}})
tries = Path({tries!r})
while True:
    asked, _ = received(requests)
    tries.write_text(tries.read_text() + "x")
    if len(tries.read_text()) <= {no_room}:
        send(replies, {{"kind": "no-room", "message": "out of memory"}})
        continue
    preparing = others_may()
    if asked["kind"] == "check":
        time.sleep(asked["config"])
        send(replies, {{"kind": "checked", "checking": preparing, "process": os.getpid()}})
        continue
    send(replies, {{"kind": "prepared"}})
    go, _ = received(requests)
    samples += 1
    used = samples > 1 and asked.get("used", {{}})
    if used and used.get("fails"):
        send(replies, {{"kind": "failed", "message": "CUDA_ERROR_UNKNOWN"}})
        continue
    seconds = {{"kernel": 1.0, "anchor": used and used.get("anchor") or 1.0}}
    send(replies, {{
        "kind": "measured", "preparing": preparing, "measuring": others_may(), "told": go["kind"],
        "process": os.getpid(), "rounds": [{{"seconds": seconds}}] * 7, "bytes": 1, "config": 0,
        "wrong": asked.get("wrong", "") or used and used.get("wrong", "") or "",
    }})
"""


def instead(program: str) -> Callable[..., list[str]]:
    """Returns a stand-in for python_calling: this program finds the arguments from sys.argv[2] on."""
    return lambda module, *given, **_: [sys.executable, "-I", "-c", program, module, *map(str, given)]


@pytest.fixture
def replays(tmp_path, monkeypatch):
    """replays(no_room=0): Replays whose first tries to measure find too little memory."""
    made: list[Replays] = []

    def replays(no_room: int = 0) -> Replays:
        tries = tmp_path / "tries"
        tries.write_text("")
        process = PROCESS.format(root=str(ROOT), uuid=UUID, tries=str(tries), no_room=no_room)
        monkeypatch.setattr(asked_process, "python_calling", instead(process))
        made.append(Replays(Device(UUID, MODELS["sm_90"])))
        return made[-1]

    yield replays
    for one in made:
        one.end()


def process_of_sample(replays: Replays, **special) -> int:
    """`special`: what is wrong with the sample; `used`: only if the process has taken one before."""
    nothing = PackedPlan(None, {}, b"", [])
    return replays.measure(nothing, 0, Folder(ROOT / "exercises/01_masked_add"), **special)["process"]


def checked(replays: Replays, seconds: float = 0) -> dict:
    return replays.check(PackedPlan(None, {}, b"", []), seconds, [], b"", [])[0]


def test_a_replay_process_leaves_the_cores_to_others(replays):
    """numpy would start a thread on each, to look for work."""
    process = checked(replays())["process"]
    assert b"OPENBLAS_NUM_THREADS=1\0" in Path("/proc", str(process), "environ").read_bytes()


def test_a_measurement_is_prepared_beside_others_and_timed_alone(replays):
    reply = replays().ceilings(1)
    assert reply["told"] == "go"
    assert reply["preparing"] == [True, False, False]  # checks go on; nobody may measure, or prepare to
    assert reply["measuring"] == [False, False, True]  # all wait; one of them may be the next


def test_checks_go_on_side_by_side(replays):
    assert checked(replays())["checking"] == [True, False, True]


def test_where_memory_is_short_a_check_is_made_alone(replays):
    assert checked(replays(no_room=1))["checking"] == [False, False, False]


def test_a_check_that_fits_nowhere_is_told(replays):
    with pytest.raises(ReplayEnded) as ended:
        checked(replays(no_room=2))
    assert ended.value.how == "no-room"


def test_where_memory_is_short_it_is_prepared_alone(replays):
    reply = replays(no_room=1).ceilings(1)
    assert reply["preparing"] == reply["measuring"] == [False, False, False]


def test_a_gpu_with_too_little_memory_is_told(replays):
    with pytest.raises(ReplayEnded) as ended:
        replays(no_room=2).ceilings(1)
    assert ended.value.how == "no-room"


def test_afterwards_the_gpu_is_free(replays):
    replays().ceilings(1)
    for lock in (gpu_held(UUID, alone=True, limit=0), next_to_measure(UUID, limit=0)):
        with lock:
            pass


def test_a_process_that_was_ruined_is_replaced_at_once(replays):
    replays = replays(no_room=2)
    with pytest.raises(ReplayEnded):
        checked(replays)
    assert [process.alive for process in replays.pool._checkers] == [True]
    checked(replays)


def test_a_question_that_was_interrupted_leaves_no_answer_to_the_next_one(replays, monkeypatch):
    replays = replays()
    process = checked(replays)["process"]
    with monkeypatch.context() as interrupted, pytest.raises(KeyboardInterrupt):
        interrupted.setattr(replay_process.Replayer, "_receive", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        checked(replays)
    assert checked(replays)["process"] != process


def test_what_waits_to_be_alone_keeps_no_process_from_others(replays):
    replays = replays()
    request, answers = {"kind": "check", "config": 0}, []
    with next_to_measure(UUID):
        asked = threading.Event()

        def ask() -> None:
            asked.set()
            answers.append(replays.pool.check(request, b"", NEVER, alone=True))

        waiting = threading.Thread(target=ask)
        waiting.start()
        asked.wait(NEVER)
        checked(replays)
        assert not answers
    waiting.join(NEVER)
    assert answers


def test_one_at_a_time_prepares():
    with next_to_measure(UUID), pytest.raises(GpuBusy), next_to_measure(UUID, limit=0):
        pass


def test_each_sample_of_a_call_comes_from_another_process(replays):
    replays = replays()
    replays.begin_call(COPY)
    assert len({process_of_sample(replays) for _ in range(4)}) == 4


def test_the_next_call_with_the_same_anchor_is_measured_by_processes_that_are_warm(replays):
    replays = replays()
    replays.begin_call(COPY)
    first = [process_of_sample(replays) for _ in range(3)]
    for _ in range(2):
        replays.begin_call(COPY)
        assert [process_of_sample(replays) for _ in range(2)] == first[:2]


def test_what_no_fresh_process_has_told_yet_is_asked_of_one(replays):
    replays = replays()
    replays.begin_call(COPY)
    first = {process_of_sample(replays) for _ in range(2)}
    replays.begin_call("copy for [5] float32")
    assert process_of_sample(replays) not in first
    assert process_of_sample(replays) in first  # by now there is something to confirm


@pytest.mark.parametrize(
    "used", [{"anchor": 1.06}, {"anchor": 0.94}, {"wrong": "an output of a timed call is wrong"}, {"fails": True}]
)
def test_a_used_process_may_only_confirm_what_is_usual(replays, used):
    """Else a kernel of one submission could decide about another."""
    replays = replays()
    replays.begin_call(COPY)
    first = {process_of_sample(replays) for _ in range(2)}
    replays.begin_call(COPY)
    assert process_of_sample(replays, used=used) not in first
    assert process_of_sample(replays, used=used) not in first


def test_a_call_of_unknown_work_is_measured_by_fresh_processes(replays):
    replays = replays()
    replays.begin_call(COPY)
    first = process_of_sample(replays)
    replays.begin_call("")
    assert process_of_sample(replays) != first


def test_an_anchor_within_its_noise_is_usual(replays):
    replays = replays()
    replays.begin_call(COPY)
    first = process_of_sample(replays)
    replays.begin_call(COPY)
    assert process_of_sample(replays, used={"anchor": 1.04}) == first


def test_a_process_that_saw_a_wrong_output_is_used_no_more(replays):
    replays = replays()
    replays.begin_call(COPY)
    process_of_sample(replays)  # tells the usual
    wrong = process_of_sample(replays, wrong="an output of a timed call is wrong")
    replays.begin_call(COPY)
    assert wrong not in {process_of_sample(replays) for _ in range(2)}


def test_a_ceiling_is_always_told_by_a_fresh_process(replays):
    replays = replays()
    replays.begin_call(COPY)
    processes = [process_of_sample(replays) for _ in range(2)]
    replays.begin_call(COPY)
    processes += [replays.ceilings(1)["process"] for _ in range(2)]
    assert len(set(processes)) == 4


# ---- one pool for several judges -------------------------------------------------------------------------------------


@pytest.fixture
def judge(replays):
    """judge(): the replays of one more judge; all ask the same pool."""
    device, pool = Device(UUID, MODELS["sm_90"]), ReplayPool(UUID, checkers=2, kept=3, spare=1)
    connections: list[socket.socket] = []
    serving: list[threading.Thread] = []

    def judge(no_room: int = 0) -> Replays:
        if not connections:
            replays(no_room)
        theirs, ours = socket.socketpair()
        connections.append(ours)
        serving.append(threading.Thread(target=shared_pool._serve, args=[device, pool, theirs], daemon=True))
        serving[-1].start()
        elsewhere = PoolElsewhere(ours)
        return Replays(elsewhere.device(), elsewhere)

    judge.connections, judge.pool = connections, pool
    yield judge
    for connection in connections:
        with contextlib.suppress(OSError):  # a test has done it
            connection.shutdown(socket.SHUT_RDWR)
        connection.close()
    for thread in serving:
        thread.join(NEVER)
    pool.end()


def test_a_judge_is_told_which_gpu_it_uses(judge):
    assert judge().device == Device(UUID, MODELS["sm_90"])


def test_judges_share_the_processes_that_take_samples(judge):
    one, other = judge(), judge()
    one.begin_call(COPY)
    first = [process_of_sample(one) for _ in range(2)]
    other.begin_call(COPY)
    assert [process_of_sample(other) for _ in range(2)] == first


def test_samples_of_each_of_several_calls_at_a_time_come_from_different_processes(judge):
    calls = [judge() for _ in range(3)]
    for call in calls:
        call.begin_call(COPY)
    with ThreadPoolExecutor(len(calls)) as threads:
        taken = list(threads.map(lambda call: [process_of_sample(call) for _ in range(3)], calls))
    assert [len(set(processes)) for processes in taken] == [3, 3, 3]
    assert len({process for processes in taken for process in processes}) < 9


def test_one_call_at_a_time_is_checked(judge):
    judges = [judge() for _ in range(4)]
    begun = time.monotonic()
    with ThreadPoolExecutor(len(judges)) as threads:
        processes = list(threads.map(lambda one: checked(one, seconds=0.3)["process"], judges))
    assert len(set(processes)) == 1 and time.monotonic() - begun >= 1.2


def test_when_a_kernel_ruins_a_process_the_next_one_is_warm(judge, monkeypatch):
    one = judge()
    checked(one)
    started = [process.pid for process in judge.pool._checkers]
    with monkeypatch.context() as ruined, pytest.raises(ReplayEnded):
        ruined.setattr(replay_process.Replayer, "_receive", lambda *_: (_ for _ in ()).throw(ProtocolError("garbled")))
        checked(one)
    assert checked(one)["process"] == started[0]
    assert [process.alive for process in judge.pool._checkers] == [True, True]


def test_a_judge_hears_through_the_pool_why_a_process_ended(judge):
    with pytest.raises(ReplayEnded) as ended:
        checked(judge(no_room=2))
    assert (ended.value.how, ended.value.detail) == ("no-room", "out of memory")


def test_a_judge_hears_through_the_pool_that_the_gpu_is_kept(judge, monkeypatch):
    one = judge()
    checked(one)
    monkeypatch.setattr(pool_module, "gpu_held", lambda uuid, alone: gpu_held(uuid, alone, limit=0))
    with gpu_held(UUID, alone=True), pytest.raises(GpuBusy, match="another judge has kept the GPU"):
        checked(one)


def test_a_judge_that_leaves_disturbs_no_other(judge):
    """Whatever it does then: one is in the middle of a check, one waits for its turn, one has asked by half."""
    leaving, staying = [judge() for _ in range(3)], judge()
    question = pack({"kind": "check", "request": {"kind": "check", "config": 0.3}, "limit": 5, "alone": False})
    for number, (replays, said) in enumerate(zip(leaving, (question, question, question[:9]))):
        replays.pool._sent.write(said)
        replays.pool._sent.flush()
        judge.connections[number].shutdown(socket.SHUT_RDWR)
    assert checked(staying)["kind"] == "checked"


def test_a_pool_without_its_gpu_is_the_machines_fault(monkeypatch):
    """A real process; there is no such GPU."""
    shared = SharedPool("GPU-of-nobody")
    try:
        with shared.connection() as connection:
            pool = PoolElsewhere(connection)
            assert pool.device() == NO_GPU
            with pytest.raises(ReplayEnded) as ended:
                checked(Replays(Device("GPU-of-nobody", MODELS["sm_90"]), pool))
        assert (ended.value.how, ended.value.detail) == ("died", NO_GPU)
    finally:
        shared.end()
    assert not shared.alive


def test_a_judge_knows_when_its_pool_is_gone():
    theirs, ours = socket.socketpair()
    theirs.close()
    pool = PoolElsewhere(ours)
    with ours, pytest.raises(ReplayEnded) as ended:
        checked(Replays(Device(UUID, MODELS["sm_90"]), pool))
    assert pool.gone and ended.value.detail == "the process that shares a GPU among judges is gone"
    assert pool.device() == ended.value.detail


def test_a_kernel_that_never_ends_ends_with_its_pool(tmp_path, monkeypatch):
    """A real pool. In place of the replay process: one that says who it is, and hears nothing while it is asked."""
    hanging = (
        "import os, sys, time; sys.path.insert(0, {root!r}); from grader.wire.frames import pack; "
        "replies = open(int(sys.argv[3]), 'wb'); replies.write(pack({{'kind': 'ready'}})); replies.flush(); "
        "os.read(int(sys.argv[2]), 9); open({said!r}, 'w').write(str(os.getpid())); time.sleep(1000)"
    ).format(root=str(ROOT), said=str(tmp_path / "said"))
    without_gpu = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r}); from grader.processes import asked_process; "
        "from grader.gpu.models import MODELS; from grader.gpu.pool import shared_pool; "
        "asked_process.python_calling = lambda module, *given, **_: "
        f"[sys.executable, '-I', '-c', {hanging!r}, module, *map(str, given)]; "
        f"shared_pool.driver_device = lambda: shared_pool.Device({UUID!r}, MODELS['sm_90']); "
        "shared_pool.main(int(sys.argv[2]))"
    )
    monkeypatch.setattr(shared_pool, "python_calling", instead(without_gpu))
    shared = SharedPool(UUID)
    with shared.connection() as connection:
        replays = Replays(Device(UUID, MODELS["sm_90"]), PoolElsewhere(connection))
        asking = threading.Thread(target=lambda: pytest.raises(ReplayEnded, checked, replays))
        asking.start()
        process = until(lambda: (tmp_path / "said").exists() and (tmp_path / "said").read_text())
        shared.end()
        asking.join(NEVER)
    assert not asking.is_alive() and replays.pool.gone
    until(lambda: not os.path.exists(f"/proc/{process}") or _is_over(process))


def test_a_process_that_no_longer_reads_is_ended_at_its_limit(monkeypatch):
    deaf = (
        f"import sys, time; sys.path.insert(0, {str(ROOT)!r}); from grader.wire.frames import send; "
        "send(open(int(sys.argv[3]), 'wb'), {'kind': 'ready'}); time.sleep(10 * 3600)"
    )
    monkeypatch.setattr(asked_process, "python_calling", instead(deaf))
    replayer = replay_process.Replayer(UUID)
    with pytest.raises(ReplayEnded) as ended:
        replayer.ask({"kind": "check"}, bytes(1 << 20), limit=0.5)  # more than a pipe holds
    assert ended.value.how == "time" and not replayer.alive


def test_a_process_without_a_core_is_not_ended_at_its_limit(replays, monkeypatch):
    """It answers after 0.5 s, for all of which it waits for a core."""
    monkeypatch.setattr(asked_process, "process_times", lambda pid: ProcessTimes(0.0, time.monotonic(), "R"))
    monkeypatch.setattr(asked_process, "MOST_WAITING", 10 * NEVER)
    reply, _ = replays().pool.check({"kind": "check", "config": 0.5}, b"", limit=0.1, alone=False)
    assert reply["kind"] == "checked"


def test_a_process_that_never_answers_is_ended_though_it_waits_for_a_core(replays, monkeypatch):
    monkeypatch.setattr(asked_process, "process_times", lambda pid: ProcessTimes(0.0, time.monotonic(), "R"))
    with pytest.raises(ReplayEnded) as ended:
        replays().pool.check({"kind": "check", "config": NEVER}, b"", limit=0.1, alone=False)
    assert ended.value.how == "time"


def _is_over(process: str) -> bool:
    """Nobody may be there to hear of its end."""
    with open(f"/proc/{process}/stat") as stat:
        return stat.read().rpartition(")")[2].split()[0] == "Z"


def test_the_process_of_a_pool_needs_no_torch():
    """It starts before the judges do, and imports in no time."""
    code = "import sys, grader.gpu.pool.shared_pool; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, timeout=NEVER).returncode == 0


def test_a_course_on_another_machine_is_the_one_here(tmp_path):
    """The judge names the folder where its own course lies."""
    for course in (ROOT, tmp_path / "elsewhere"):
        assert process_module._exercise({"folder": str(course / "exercises/01_masked_add")}).arguments == ["x", "y"]
