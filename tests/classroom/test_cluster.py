"""Judges that die, hang or differ, noisy GPUs, a share that is away: what the run makes of them."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import signal
import socket
import tempfile
import threading
from pathlib import Path

import click
import pytest
from distributed import LocalCluster, get_worker

import grader.course.folder
from grader.classroom import patience
from grader.classroom.cluster import engine, warm_judge, worker_plugin
from grader.classroom.cluster.engine import EngineError
from grader.classroom.cluster.warm_judge import WarmJudge, request_of
from grader.classroom.handin import HandIn
from grader.classroom.judge_missing import How, Students, check_isolation, judge_missing
from grader.classroom.result_store import Results, Text
from grader.classroom.rubric import items_of
from grader.classroom.student_work import StudentWork
from grader.course.folder import Folder
from grader.processes.bubblewrap import AUTO, LIMITS, STRICT
from grader.wire.frames import received, send
from tests.classroom.instructor import ROOT, solution
from tests.waiting import NEVER, until

ADD = Folder(ROOT / "exercises/01_masked_add")
STUB = ADD.learner_file.read_text(encoding="utf-8")  # judged as soon as a judge is ready


def text(content: str, folder: Folder = ADD) -> Text:
    return Text(folder, content, None)


def works(*texts: Text) -> list[StudentWork]:
    return [StudentWork(student=f"s{n}", exercise=one.exercise.id, hand_in=HandIn(one.text), text=one)
            for n, one in enumerate(texts)]  # fmt: skip


@pytest.fixture
def results(tmp_path) -> Results:
    return Results(tmp_path / "results")


def test_hand_ins_are_kept_from_a_cluster():
    for isolation in (LIMITS, AUTO):
        with pytest.raises(
            click.ClickException, match="Nothing was graded. Next: add --isolation strict, or give Dask"
        ):
            check_isolation(How(isolation, scheduler="tcp://127.0.0.1:1"))
    check_isolation(How(STRICT, scheduler="tcp://127.0.0.1:1"))  # each worker sees whether it has a sandbox
    check_isolation(How(AUTO, scheduler="tls://127.0.0.1:1"))


def test_a_scheduler_that_is_not_there_is_told_at_once(results, monkeypatch):
    monkeypatch.setattr(engine, "CONNECT_SECONDS", 1)
    with pytest.raises(EngineError, match=r"No Dask scheduler answers at tcp://127.0.0.1:1 .* Next: dask scheduler"):
        judge_missing(works(text("x")), Students(), results, How(scheduler="tcp://127.0.0.1:1"), print)


def test_a_judge_that_is_killed_or_hangs_is_a_fault_of_the_machine_and_is_replaced(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    stub, hanging = text(STUB), text(HANGING + solution(ADD.id))
    judge = WarmJudge(LIMITS)
    try:
        guard = threading.Timer(NEVER, judge.end)
        with monkeypatch.context() as short:
            short.setattr(warm_judge, "MOST_SECONDS", 2)
            os.kill(judge._running.process.pid, signal.SIGSTOP)
            guard.start()
            late = judge.judge(request_of(stub, LIMITS))
            guard.cancel()
        assert late["fault"] == "the judge's process did not end within 2 s"
        assert judge.judge(request_of(stub, LIMITS))["outcome"] == "not attempted"
        killer = threading.Thread(target=_killed_at_work, args=[judge, tmp_path])
        killer.start()
        killed = judge.judge(request_of(hanging, LIMITS))
        killer.join(NEVER)
        assert re.fullmatch(r"the judge's process ended with status -9.*", killed["fault"])
        assert judge._running is None  # as after the first: the next text gets a new one
    finally:
        judge.end()
    until(lambda: not _working_in(tmp_path) and not list(tmp_path.iterdir()), lambda: list(tmp_path.rglob("*")))


def test_a_judge_that_computed_all_the_time_is_a_verdict_on_the_text(monkeypatch):
    """The judge is stopped for ever; how much it has computed is told in its place."""
    looks: list[int] = []

    def computed(pid: int) -> float:
        looks.append(pid)
        if len(looks) == 2:  # the limit is reached, and the next judge may take as long as it takes
            monkeypatch.setattr(warm_judge, "MOST_SECONDS", 600)
        return 300.0 * len(looks)

    judge = WarmJudge(LIMITS)
    monkeypatch.setattr(warm_judge, "MOST_SECONDS", 2)
    monkeypatch.setattr(warm_judge, "seconds_of_a_core", computed)
    try:
        os.kill(stopped := judge._running.process.pid, signal.SIGSTOP)
        result = judge.judge(request_of(text(f"import os\n{solution(ADD.id)}"), LIMITS))
    finally:
        judge.end()
    assert looks[:2] == [stopped] * 2
    assert (result["fault"], result["outcome"], result["cause"]) == (None, "fail", "time-limit")
    items = items_of(result).values()
    assert items and all(item.score == 0 and item.judged == item.possible for item in items)
    assert result["message"].startswith("Judging masked_add.py was stopped after 600 s: it computed all that time")


HANGING = """
import os, signal
judge = os.getppid()
open("at_work", "w").close()
while os.getppid() == judge:
    pass
while True:
    signal.pause()  # no limit ends a process that needs no core
"""


def _killed_at_work(judge: WarmJudge, folder: Path) -> None:
    """Kills the judge, which works below this folder, once it has begun a text that hangs."""
    until(lambda: any("at_work" in files for _, _, files in os.walk(folder)))
    os.kill(judge._running.process.pid, signal.SIGKILL)


def _working_in(folder: Path) -> list[str]:
    """The working folders, below this one, of whatever processes there are."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            found.append(os.readlink(path / "cwd"))
    return [place for place in found if place.startswith(f"{folder}/")]


def test_a_judge_stays_when_its_sandbox_fails(tmp_path, monkeypatch):
    """Meanwhile pytest puts an empty stdin in the place of the judge's own: not to be taken for the end."""
    tools, temporary = tmp_path / "tools", tmp_path / "temporary"
    for folder in (tools, temporary):
        folder.mkdir()
    tool = tools / "bwrap"
    tool.write_text('#!/bin/sh\ncase "$*" in *"env true") exit 0;; esac\necho "bwrap: No such device" >&2\nexit 1\n')
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", os.pathsep.join([str(tools), os.environ["PATH"]]))
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    judge = WarmJudge(AUTO)
    try:
        faults = [judge.judge(request_of(text(solution(ADD.id)), AUTO))["fault"] for _ in range(3)]
        assert faults == ["torch and triton could not be imported: bwrap: No such device"] * 3
    finally:
        judge.end()
    assert not list(temporary.iterdir())  # of all that was tried


def test_a_judge_whose_pool_is_gone_is_connected_anew(monkeypatch):
    connections: list[socket.socket] = []

    def connected() -> socket.socket:
        ours, theirs = socket.socketpair()
        connections.append(ours)
        with ours.makefile("wb") as frames:  # said ahead: each judge asks first which GPU is its own
            send(frames, {"kind": "device", "why": "no GPU"})
        return theirs

    judge = WarmJudge(LIMITS, connected=connected)
    request = request_of(text(STUB), LIMITS)
    try:
        for fault, is_gone in (("of something else", False), ("the pool is gone", True)):
            with monkeypatch.context() as told:
                told.setattr(judge, "_answered", lambda *_: {"fault": fault, "unconnected": is_gone})  # noqa: B023
                assert judge.judge(request) == {"fault": fault}
            assert (judge._running is None) == is_gone
        assert [judge.judge(request)["outcome"] for _ in range(2)] == ["not attempted"] * 2
    finally:
        judge.end()
        for ours in connections:
            # A judge may have ended before it read what was said ahead: then the connection is reset.
            with ours.makefile("rb") as frames, contextlib.suppress(ConnectionResetError):
                assert received(frames)[0] == {"kind": "device"}
                assert frames.read(1) == b""  # nobody is left who holds the other end
        assert len(connections) == 2
        for ours in connections:
            ours.close()


def test_another_copy_of_the_course_is_refused_by_its_workers(shared_judge):
    request = {**request_of(text(STUB), LIMITS), "key": "of another judge"}
    assert re.search(r"course, torch or triton at .* differ", shared_judge.judge(request)["fault"])


def test_a_judge_takes_no_other_plugins_of_pytest_and_none_of_their_options(shared_judge):
    assert shared_judge.judge(request_of(text(solution(ADD.id)), LIMITS))["outcome"] == "pass"


def test_a_judge_has_one_thread(shared_judge):
    """torch asks for as many; with more, each of a dozen judges would have several children that compile ahead."""
    assert shared_judge.judge(request_of(text(STUB), LIMITS))["outcome"]  # by now its environment can be read
    assert b"OMP_NUM_THREADS=1\0" in Path("/proc", str(shared_judge._running.process.pid), "environ").read_bytes()


def test_faults_are_tried_again_and_stay_faults(results, judged_by):
    attempts = []

    def fails(request: dict) -> dict:
        attempts.append(request["key"])
        if len(attempts) > 4:
            raise MemoryError("no room")
        return {"exercise": ADD.id, "tests": [], "points": 0, "fault": "no room"}

    judged_by(fails)
    said: list[str] = []
    judge_missing(works(text("one"), text("two")), Students(), results, How(LIMITS), said.append)
    assert len(attempts) == 2 * engine.ATTEMPTS
    assert said[-1].endswith("2 faults of the machine.")
    assert all(results.is_missing(one, gpu=False) for one in (text("one"), text("two")))


def test_the_longest_exercises_come_first(results, judged_by):
    asked: list[str] = []

    def judge(request: dict) -> dict:
        asked.append(request["exercise"])
        return {"exercise": request["exercise"], "outcome": "pass", "tests": [], "points": 0, "fault": None}

    judged_by(judge)
    names = ("01_masked_add", "05_grouped_matmul", "03_softmax")
    texts = [text(f"x = {number}", Folder(ROOT / "exercises" / name)) for number, name in enumerate(names)]
    judge_missing(works(*texts), Students(), results, How(LIMITS, jobs=1), print)
    assert asked == ["05_grouped_matmul", "03_softmax", "01_masked_add"]


def test_texts_wait_for_whichever_gpu_is_free_first(results, judged_by, monkeypatch):
    """Before a judge answers, the scheduler has heard of all texts, and of all earlier answers."""
    waiting, answered, clusters = {}, [], []

    class Kept(LocalCluster):
        def __init__(self, **given) -> None:
            super().__init__(**given)
            clusters.append(self)

    def unanswered() -> int:
        scheduler = clusters[0].scheduler
        return len(scheduler.queued) + sum(len(worker.processing) for worker in list(scheduler.workers.values()))

    def judge(request: dict) -> dict:
        until(lambda: unanswered() == len(texts) - len(answered), lambda: f"{unanswered()}, {len(answered)} of 30")
        here = get_worker().address
        waiting.setdefault(here, []).append(len(clusters[0].scheduler.workers[here].processing) - 1)
        answered.append(request["key"])
        return {"exercise": ADD.id, "outcome": "pass", "tests": [], "points": 0, "fault": None}

    judged_by(judge)
    monkeypatch.setattr(engine, "LocalCluster", Kept)
    monkeypatch.setattr(engine.gpus, "identifiers", lambda: ["GPU-1", "GPU-2"])
    texts = [text(f"x = {number}") for number in range(30)]
    judge_missing(works(*texts), Students(), results, How(LIMITS, jobs=2), print)
    assert sum(map(len, waiting.values())) == 30
    for counts in waiting.values():  # Dask gives out the first two for each thread before it knows of more
        assert not any(counts[2:]), waiting


def test_one_job_uses_one_of_several_gpus(monkeypatch):
    monkeypatch.setattr(engine.gpus, "identifiers", lambda: ["GPU-1", "GPU-2"])
    with engine._own_cluster(1, texts=9) as cluster:
        assert [worker.state.nthreads for worker in cluster.workers.values()] == [1]


def test_a_noisy_gpu_is_asked_again_and_the_points_stay_open(results, judged_by, monkeypatch):
    speed = {"name": "test_speed", "item": "speed", "hidden": False, "outcome": "skipped", "id": "inconclusive",
             "points": 1, "message": "runs differ by 6 %"}  # fmt: skip
    attempts = []

    def noisy(request: dict) -> dict:
        attempts.append(request["key"])
        outcome = "pass" if request["text"] == "quiet at last" and attempts.count(request["key"]) == 2 else "skipped"
        return {"exercise": ADD.id, "outcome": "pass", "tests": [{**speed, "outcome": outcome}], "fault": None}

    judged_by(noisy)
    monkeypatch.setattr(engine.gpus, "identifiers", lambda: ["GPU-1", "GPU-2"])
    graded = works(text("quiet at last"), text("noisy"))
    judge_missing(graded, Students(), results, How(LIMITS, jobs=4), print)
    assert [attempts.count(one.text.key) for one in graded] == [2, engine.ATTEMPTS]
    assert not results.is_missing(graded[0].text, gpu=True)
    assert results.is_missing(graded[1].text, gpu=True) and not results.is_missing(graded[1].text, gpu=False)


@pytest.mark.parametrize("sick", [{"fault": "no room"}, {"device": "cpu"}], ids=["faults", "lost GPU"])
def test_a_worker_that_gives_nothing_but_faults_gets_no_more_work(results, judged_by, monkeypatch, sick):
    speed = {"name": "test_speed", "item": "speed", "hidden": False, "points": 1, "id": "", "message": ""}
    names, said = [], []

    def judge(request: dict) -> dict:
        names.append(name := get_worker().name)
        result = {"exercise": ADD.id, "outcome": "pass", "fault": None, "device": "cuda"}
        if name == 0:
            if names.count(0) == 1:
                until(lambda: list(results.folder.glob("*/*.json")))  # the other worker is known to be well
            return {**result, "tests": [{**speed, "outcome": "skipped"}], **sick}
        if names.count(1) == 2:
            until(lambda: any("gives nothing but faults" in line for line in said))
        return {**result, "tests": [{**speed, "outcome": "pass"}]}

    judged_by(judge)
    monkeypatch.setattr(engine.gpus, "identifiers", lambda: ["GPU-1", "GPU-2"])
    graded = works(*(text(f"{number}") for number in range(20)))
    judge_missing(graded, Students(), results, How(LIMITS, jobs=2), said.append)
    assert [line for line in said if "gives nothing but faults" in line]
    assert not any(results.is_missing(one.text, gpu=True) for one in graded)
    assert names.count(0) < 30


@pytest.mark.parametrize(
    ("jobs", "cores", "texts", "each"),
    [(5, 64, 50, 2), (None, 64, 50, 12), (None, 6, 50, 3), (40, 2, 50, 20), (None, 64, 3, 2), (40, 2, 1, 1)],
)
def test_each_of_two_gpus_gets_its_share_of_the_judges(results, monkeypatch, jobs, cores, texts, each):
    started: list[str] = []

    class Noted:
        def __init__(self, level: str, gpu: str, connected) -> None:
            started.append(gpu)

        def judge(self, request: dict) -> dict:
            return {"exercise": ADD.id, "outcome": "pass", "tests": [], "fault": None}

        def end(self) -> None:
            started.append("ended")

    monkeypatch.setattr(engine.gpus, "identifiers", lambda: ["GPU-1", "GPU-2"])
    monkeypatch.setattr(worker_plugin, "WarmJudge", Noted)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(cores)))
    graded = works(*(text(f"{number}") for number in range(texts)))
    judge_missing(graded, Students(), results, How(LIMITS, jobs=jobs), print)
    assert sorted(started) == ["GPU-1"] * each + ["GPU-2"] * each + ["ended"] * 2 * each


def test_a_share_that_comes_back_is_waited_for(monkeypatch):
    monkeypatch.setattr(patience.time, "sleep", lambda seconds: None)
    answers = [OSError(errno.ESTALE, "Stale file handle", "results/x.json")] * 3 + ["stored"]
    said: list[str] = []

    def store() -> str:
        answer = answers.pop(0)
        if isinstance(answer, OSError):
            raise answer
        return answer

    assert patience.patiently(store, said.append) == "stored"
    assert said[0] == "results/x.json: Stale file handle. Waiting for it to come back; nothing is lost."


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES, errno.EROFS])
def test_a_full_disk_is_not_waited_for(number):
    def store() -> None:
        raise OSError(number, os.strerror(number))

    with pytest.raises(OSError):
        patience.patiently(store, print)


def test_a_judge_waits_for_the_course_itself(tmp_path, monkeypatch):
    exercise = tmp_path / "course/exercises" / ADD.id
    monkeypatch.setattr(grader.course.folder, "COURSE", tmp_path / "none")
    request = {"course": str(tmp_path / "course"), "exercise": ADD.id}

    def comes_back(seconds: float) -> None:
        exercise.mkdir(parents=True)
        (exercise / "test_masked_add.py").touch()

    monkeypatch.setattr(warm_judge.time, "sleep", comes_back)
    assert warm_judge._exercise_of(request) == Folder(exercise)
    monkeypatch.setattr(warm_judge, "PATIENCE", -1)
    assert warm_judge._exercise_of({**request, "exercise": "77_gone"}) is None


def test_a_judge_takes_its_own_course_where_that_of_the_command_is_not_shared(tmp_path):
    assert warm_judge._exercise_of({"course": str(tmp_path), "exercise": ADD.id}) == ADD


def test_results_of_a_share_that_is_away_are_not_written_beneath_it(tmp_path):
    away = Results(tmp_path / "share/results")
    with pytest.raises(FileNotFoundError):
        away.store(text("x"), {"exercise": ADD.id, "tests": [], "fault": None})
    assert not (tmp_path / "share").exists()
