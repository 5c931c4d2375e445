"""A cluster on which some workers have a GPU: which worker decides which text, and what becomes of a GPU that is lost.

The scheduler and the workers are Dask's own. They live in this process, and so do the judges that stand in for real
ones, except in the first test.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest
from distributed import LocalCluster, Worker, get_worker

from grader.classroom.cluster.engine import _open_tests
from grader.classroom.cluster.warm_judge import request_of
from grader.classroom.cluster.worker_plugin import GPU, Judges
from grader.classroom.handin import HandIn
from grader.classroom.judge_missing import How, Students, judge_missing
from grader.classroom.result_store import Results, Text
from grader.classroom.rubric import as_on_gpu
from grader.classroom.student_work import StudentWork
from grader.course.folder import Folder
from grader.processes.bubblewrap import LIMITS
from tests.classroom.instructor import ROOT, solution
from tests.waiting import NEVER, until

SOFTMAX = Folder(ROOT / "exercises/03_softmax")
TESTS = {  # by the first word of a text: the outcome, and the test of speed, on a worker with and without a GPU
    "right": ("pass", {"outcome": "pass", "id": ""}, {"outcome": "skipped", "id": "not-run"}),
    "wrong": ("fail", {"outcome": "skipped", "id": "waited"}, {"outcome": "skipped", "id": "not-run"}),
    "stub": ("not attempted", *[{"outcome": "not attempted", "id": ""}] * 2),
}
COST = {"name": "test_cost", "item": "cost", "hidden": False, "points": 1, "message": ""}
SPEED = {**COST, "name": "test_speed", "item": "speed"}


def test_only_a_right_text_needs_a_gpu(shared_judge):
    add = Folder(ROOT / "exercises/01_masked_add")
    right, stub = solution(add.id), add.learner_file.read_text(encoding="utf-8")
    wrong = right.replace("x + y", "x - y")
    assert wrong != right
    results = [shared_judge.judge(request_of(Text(add, text, None), LIMITS)) for text in (right, wrong, stub)]
    assert [(one["fault"], one["device"], bool(_open_tests(as_on_gpu(one)))) for one in results] == [
        (None, "cpu", True),
        (None, "cpu", False),
        (None, "cpu", False),
    ]


class Cluster:
    """Workers by name, some with a GPU. `judged`: the worker and the text of each request, as it came.

    `before`: called with the worker's name and the text before a judge answers.
    """

    def __init__(self, dask: LocalCluster) -> None:
        self._dask, self._workers = dask, {}
        self.judged: list[tuple[str, str]] = []
        self.before: Callable[[str, str], object] = lambda worker, text: None

    def start(self, name: str, gpu: bool = False) -> None:
        async def started() -> Worker:
            resources = {GPU: 1} if gpu else {}
            return await Worker(self._dask.scheduler_address, name=name, nthreads=1, resources=resources)

        self._workers[name] = self._dask.sync(started)

    def lose(self, name: str) -> None:
        self._dask.sync(self._workers.pop(name).close, executor_wait=False)

    def lose_all(self) -> None:
        for name in list(self._workers):
            self.lose(name)

    def by(self, name: str) -> list[str]:
        return [text for worker, text in self.judged if worker == name]

    def judge(self, request: dict) -> dict:
        worker, text = get_worker(), request["text"]
        self.judged.append((worker.name, text))
        self.before(worker.name, text)
        has_gpu = bool(worker.state.total_resources.get(GPU))
        outcome, with_gpu, without = TESTS[text.split()[0]]
        cost = {"outcome": "skipped", "id": "waited"} if outcome == "fail" else {"outcome": outcome, "id": ""}
        return {
            "exercise": SOFTMAX.id, "outcome": outcome, "points": 0, "fault": None,
            "device": "cuda" if has_gpu else "cpu",
            "tests": [{**COST, **cost}, {**SPEED, **(with_gpu if has_gpu else without)}],
        }  # fmt: skip

    def grade(self, results: Results, texts: list[Text]) -> threading.Thread:
        """Begins `course grade` on these texts, in a thread."""
        graded = [
            StudentWork(student=one.key, exercise=SOFTMAX.id, hand_in=HandIn(one.text), text=one) for one in texts
        ]
        how = How(LIMITS, scheduler=self._dask.scheduler_address)
        running = threading.Thread(target=judge_missing, args=[graded, Students(), results, how, print], daemon=True)
        running.start()
        return running


@pytest.fixture
def cluster(monkeypatch) -> Iterator[Cluster]:
    with LocalCluster(n_workers=0, processes=False, protocol="tcp", host="127.0.0.1", dashboard_address=None) as dask:
        cluster = Cluster(dask)
        monkeypatch.setattr(Judges, "setup", lambda self, worker: None)
        monkeypatch.setattr(Judges, "teardown", lambda self, worker: None)
        monkeypatch.setattr(Judges, "judge", lambda self, request: cluster.judge(request))
        yield cluster
        cluster.lose_all()


@pytest.fixture
def results(tmp_path) -> Results:
    return Results(tmp_path / "results")


def texts(*kinds: str, each: int = 1) -> list[Text]:
    return [Text(SOFTMAX, f"{kind} {number}", None) for number in range(each) for kind in kinds]


def ended(running: threading.Thread) -> bool:
    running.join(NEVER)
    return not running.is_alive()


def test_a_worker_without_a_gpu_decides_wrong_texts_and_stubs_and_sends_right_texts_on(cluster, results):
    """The worker with a GPU holds its first text until the other has met each kind."""

    def hold(worker: str, text: str) -> None:
        if worker == "gpu":
            until(lambda: {text.split()[0] for text in cluster.by("plain")} == TESTS.keys(), lambda: cluster.judged)

    cluster.before = hold
    cluster.start("plain")
    cluster.start("gpu", gpu=True)
    graded = texts(*TESTS, each=10)
    assert ended(cluster.grade(results, graded))
    assert not any(results.is_missing(one, gpu=True) for one in graded)
    for one in graded:
        judged_by = [worker for worker, text in cluster.judged if text == one.text]
        assert judged_by in ([["gpu"], ["plain", "gpu"]] if "right" in one.text else [["gpu"], ["plain"]]), one.text


def test_without_a_gpu_open_tests_stay_open_and_the_class_ends(cluster, results):
    cluster.start("plain")
    graded = texts(*TESTS)
    assert ended(cluster.grade(results, graded))
    assert sorted(cluster.by("plain")) == sorted(one.text for one in graded)  # each once
    assert [results.is_missing(one, gpu=True) for one in graded] == [True, True, False]
    assert not any(results.is_missing(one, gpu=False) for one in graded)


def test_a_gpu_that_comes_while_texts_are_judged_decides_them_and_so_does_the_next_when_it_is_lost(cluster, results):
    has_come, is_lost = threading.Event(), threading.Event()
    events = {"plain": has_come, "first": is_lost}
    cluster.before = lambda worker, text: events[worker].wait(NEVER) if worker in events else None
    cluster.start("plain")
    (right,) = texts("right")
    running = cluster.grade(results, [right])
    until(lambda: cluster.by("plain"))
    cluster.start("first", gpu=True)
    has_come.set()
    until(lambda: cluster.by("first"))
    cluster.lose("first")
    assert running.is_alive() and results.find(right) is None
    cluster.start("second", gpu=True)
    assert ended(running)
    is_lost.set()
    assert [worker for worker, _ in cluster.judged] == ["plain", "first", "second"]
    assert not results.is_missing(right, gpu=True)
