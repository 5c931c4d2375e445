"""What costs a text one of its attempts, and a worker its place: decided by what a result says and who has a GPU."""

from __future__ import annotations

import os
import signal
from types import SimpleNamespace

import pytest
from distributed import Client, wait

from grader.classroom.cluster import engine
from grader.classroom.cluster.engine import EngineError, Work, _judges, _result_of, _Run
from grader.classroom.cluster.health import MOST_SICK, Health
from grader.classroom.cluster.live import View
from grader.classroom.cluster.loans import present_workers
from grader.classroom.cluster.worker_plugin import GPU, LENT
from grader.classroom.result_store import Results, Text, faulty
from grader.course.folder import Folder
from grader.processes.bubblewrap import LIMITS
from tests.classroom.dask_cluster import DaskCluster
from tests.classroom.instructor import ROOT
from tests.waiting import NEVER

ADD = Folder(ROOT / "exercises/01_masked_add")
OWNER, BORROWER = {GPU: 2}, {GPU: 2, LENT: 2}


class Scheduler:
    """What a client tells of a cluster with these workers. `sent_away`: who was asked to leave."""

    cluster = None

    def __init__(self, **workers: dict) -> None:
        self.workers, self.sent_away = workers, []

    def scheduler_info(self, n_workers: int) -> dict:
        return {"workers": {name: {"resources": resources} for name, resources in self.workers.items()}}

    def retire_workers(self, workers: list[str]) -> None:
        self.sent_away += workers


class Answer:
    """A future that is done."""

    status = "finished"

    def __init__(self, result: dict) -> None:
        self._result = result

    def exception(self, timeout: float) -> None:
        return None

    def result(self, timeout: float) -> dict:
        return dict(self._result)


def test_workers_are_there_also_when_the_clients_own_question_for_none_comes_between():
    class Interrupted(Scheduler):
        answers = 0

        def scheduler_info(self, n_workers: int) -> dict:
            self.answers += 1
            return {"workers": {}} if self.answers == 1 else super().scheduler_info(n_workers)

    assert present_workers(Interrupted(well=OWNER)) == {"well": {"resources": OWNER}}
    assert present_workers(Scheduler()) == {}


@pytest.fixture
def run(tmp_path):
    """run(**workers): one that wants a GPU, on such a cluster; its worker "well" has judged already."""

    def start(**workers: dict) -> _Run:
        run = _Run({}, Results(tmp_path), LIMITS, View(0, print))
        run._client, run._wants_gpu, run._health = Scheduler(**workers), True, Health()
        run._running, run._later = {}, []
        run._health.should_leave("well", False)
        return run

    return start


ON_CPU = {"fault": None, "device": "cpu", "tests": [{"outcome": "skipped", "id": "no-gpu"}]}


def attempts_after(run: _Run, result: dict) -> int:
    text = Text(ADD, "x", None)
    work = Work(text, {})
    run.left[text.key] = work
    run._running[answer := Answer(result)] = work
    run._take(answer)
    return work.attempts


GONE = {**faulty(ADD.id, "the pool is gone"), "worker": "borrower", "unconnected": True}


@pytest.mark.parametrize(
    "workers, result, attempts",
    [
        ({"borrower": BORROWER}, GONE, 0),
        ({"borrower": BORROWER, "owner": OWNER}, GONE, 1),
        ({"borrower": BORROWER}, {**GONE, "unconnected": False}, 1),
    ],
    ids=["nobody has a GPU to lend", "somebody has", "a fault of its own"],
)
def test_a_text_that_waits_for_the_next_gpu_loses_no_attempt(run, workers, result, attempts):
    assert attempts_after(run(**workers), result) == attempts


@pytest.mark.parametrize(
    "workers, result, leaves",
    [
        ({"owner": OWNER, "well": OWNER}, {"worker": "owner"}, True),
        ({"owner": OWNER, "well": BORROWER}, {"worker": "owner"}, False),
        ({"borrower": BORROWER, "well": OWNER}, {"worker": "borrower"}, True),
        ({"borrower": BORROWER, "well": OWNER}, {"worker": "borrower", "unconnected": True}, False),
        ({"borrower": BORROWER, "well": OWNER}, {"worker": "borrower", **ON_CPU}, False),
        ({"owner": OWNER, "well": OWNER}, {"worker": "owner", **ON_CPU}, True),
    ],
    ids=[
        "one of two with a GPU",
        "the last with a GPU",
        "one that borrows",
        "for the GPU of another",
        "for another's that it lost",
        "one that lost its own",
    ],
)
def test_who_is_sent_away_after_faults_in_a_row(run, workers, result, leaves):
    run = run(**workers)
    for _ in range(MOST_SICK):
        attempts_after(run, {**faulty(ADD.id, "no room"), **result})
    assert run._client.sent_away == ([result["worker"]] if leaves else [])


def test_a_result_on_a_worker_that_hangs_is_a_fault_of_the_machine(tmp_path, monkeypatch):
    monkeypatch.setattr(engine, "RESULT_SECONDS", 1)
    with DaskCluster(tmp_path) as cluster:
        cluster.scheduler()
        worker = cluster.worker()
        with Client(cluster.address, timeout=NEVER) as client:
            answer = client.submit(dict, fault=None)
            wait(answer, timeout=NEVER)
            os.killpg(worker.pid, signal.SIGSTOP)
            assert _result_of(answer, Text(ADD, "x", None))["fault"] == "its worker does not hand over the result"


def test_a_worker_that_fell_off_while_judges_were_started_is_no_traceback():
    class Broken:
        scheduler = SimpleNamespace(address="tcp://127.0.0.1:1")

        def register_plugin(self, *_: object, **__: object) -> None:
            raise OSError("timed out")

    with (
        pytest.raises(EngineError, match="A worker at tcp://127.0.0.1:1 does not answer: timed out"),
        _judges(Broken(), SimpleNamespace(name="judges")),
    ):
        pass
