"""What costs a text one of its attempts, and a worker its place: decided by what a result says and who has a GPU."""

from __future__ import annotations

import os
import signal
from types import SimpleNamespace

import pytest
from distributed import Client, wait

from grader.classroom.cluster import engine
from grader.classroom.cluster.engine import ATTEMPTS, EngineError, Work, _judges, _result_of, _Run, present_workers
from grader.classroom.cluster.health import MOST_SICK, Health
from grader.classroom.cluster.live import View
from grader.classroom.cluster.worker_plugin import GPU
from grader.classroom.result_store import Results, Text, faulty
from grader.course.folder import Folder
from grader.processes.bubblewrap import LIMITS
from tests.classroom.dask_cluster import DaskCluster
from tests.classroom.instructor import ROOT
from tests.waiting import NEVER

ADD = Folder(ROOT / "exercises/01_masked_add")
OWNER, NONE = {GPU: 2}, {}  # the resources of a worker with a GPU, and of one without


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
    """run(**workers): one that had a GPU, on such a cluster; its worker "well" has judged already.

    `submitted`: the texts that were submitted again at once.
    """

    def start(**workers: dict) -> _Run:
        run = _Run({}, Results(tmp_path), LIMITS, View(0, print))
        run._client, run._had_gpu, run._health = Scheduler(**workers), True, Health()
        run._running, run._later, run.submitted = {}, [], []
        run._submit = run.submitted.append
        run._health.should_leave("well", False)
        return run

    return start


ON_CPU = {"fault": None, "device": "cpu", "tests": [{"outcome": "skipped", "id": "no-gpu"}]}
NOISY = {"fault": None, "device": "cuda", "tests": [{"outcome": "skipped", "id": "inconclusive"}]}


def attempted(run: _Run, result: dict, work: Work | None = None) -> Work:
    """Returns the text, a new text if none is given, after the run has taken this result for it."""
    work = work or Work(Text(ADD, "x", None), {})
    run.left[work.text.key] = work
    run._running[answer := Answer(result)] = work
    run._take(answer)
    return work


@pytest.mark.parametrize(
    "workers, result, attempts, sent_on",
    [
        ({"plain": NONE, "well": OWNER}, {"worker": "plain", **ON_CPU}, 0, True),
        ({"plain": NONE}, {"worker": "plain", **ON_CPU}, 0, True),
        ({"plain": NONE, "well": OWNER}, {"worker": "plain", **faulty(ADD.id, "no room")}, 1, False),
        ({"owner": OWNER, "well": OWNER}, {"worker": "owner", **NOISY}, 1, False),
    ],
    ids=["for a GPU", "for the next GPU, where the last is gone", "a fault", "a GPU that is too noisy"],
)
def test_a_text_that_a_worker_without_a_gpu_sends_on_loses_no_attempt(run, workers, result, attempts, sent_on):
    run = run(**workers)
    work = attempted(run, result)
    assert work.attempts == attempts and run.submitted == [work] * sent_on
    assert [later for _, later in run._later] == [work] * (not sent_on)
    assert work.needs_gpu == (result["fault"] is None)


def test_a_text_that_needs_a_gpu_is_given_up_after_the_last_attempt(run):
    run, work = run(owner=OWNER, well=OWNER), Work(Text(ADD, "x", None), {}, ATTEMPTS - 1, needs_gpu=True)
    assert attempted(run, {"worker": "owner", **NOISY}, work).attempts == ATTEMPTS
    assert not run._later and not run.left and run.results.find(work.text)["tests"] == NOISY["tests"]


@pytest.mark.parametrize(
    "workers, result, leaves",
    [
        ({"owner": OWNER, "well": OWNER}, {"worker": "owner"}, True),
        ({"owner": OWNER, "well": NONE}, {"worker": "owner"}, False),
        ({"plain": NONE, "well": OWNER}, {"worker": "plain"}, True),
        ({"plain": NONE, "well": OWNER}, {"worker": "plain", **ON_CPU}, False),
        ({"owner": OWNER, "well": OWNER}, {"worker": "owner", **ON_CPU}, True),
    ],
    ids=[
        "one of two with a GPU",
        "the last with a GPU",
        "one without a GPU",
        "one that has no GPU to lose",
        "one that lost its GPU",
    ],
)
def test_who_is_sent_away_after_faults_in_a_row(run, workers, result, leaves):
    run = run(**workers)
    for _ in range(MOST_SICK):
        attempted(run, {**faulty(ADD.id, "no room"), **result})
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
