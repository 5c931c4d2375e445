"""A GPU lent to workers without one: who gets which, and what becomes of it when workers come and go.

Here the judges of a cluster only hold their texts, until a test has seen who holds them and lets go. With real ones:
benchmarks/lent_gpu.py, on a machine with a GPU.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

import pytest

from grader.classroom.cluster import engine, loans
from grader.classroom.cluster.door import Offer
from grader.classroom.cluster.engine import MOST_PER_GPU
from grader.classroom.cluster.lending import Standing, is_withdrawn, loans_for
from grader.classroom.cluster.worker_plugin import GPU, LENT, Judges, has_own_gpu
from grader.classroom.handin import HandIn
from grader.classroom.judge_missing import How, Students, judge_missing
from grader.classroom.result_store import Results, Text, version_of
from grader.classroom.student_work import StudentWork
from grader.course.folder import Folder
from grader.processes.bubblewrap import LIMITS
from tests.classroom.dask_cluster import DaskCluster
from tests.classroom.instructor import ROOT
from tests.waiting import NEVER, until

HERE = "127.0.0.1"
ADD = Folder(ROOT / "exercises/01_masked_add")

# ---- who gets which --------------------------------------------------------------------------------------------------


def offer(worker: str, token: bytes = b"") -> Offer:
    return Offer(worker, HERE, 1, token)


def owner(worker: str, judges: int) -> Standing:
    return Standing(judges, offer(worker))


def without(judges: int, borrowed: Offer | None = None, announced: bool = False) -> Standing:
    return Standing(judges, None, True, borrowed, announced or bool(borrowed))


def lent(standings: dict[str, Standing], most: int = 12) -> dict[str, tuple[str, int]]:
    return {worker: (offer.worker, count) for worker, (offer, count) in loans_for(standings, most).items()}


def test_the_gpu_with_the_fewest_judges_is_lent_first():
    workers = {"g1": owner("g1", 4), "g2": owner("g2", 2), "a": without(1), "b": without(2), "c": without(1)}
    assert lent(workers) == {"a": ("g2", 1), "b": ("g2", 2), "c": ("g1", 1)}


def test_no_gpu_gets_more_judges_than_it_should_have():
    assert lent({"g": owner("g", 4), "a": without(4), "b": without(4), "c": without(4)}, most=9) == {
        "a": ("g", 4),
        "b": ("g", 1),
    }


def test_what_is_lent_counts_and_stays():
    workers = {"g1": owner("g1", 3), "g2": owner("g2", 4), "a": without(2, offer("g1")), "b": without(1)}
    assert lent(workers) == {"b": ("g2", 1)}


def test_a_worker_that_gets_texts_already_has_to_have_a_gpu():
    assert lent({"g": owner("g", 12), "a": without(4, announced=True)}) == {"a": ("g", 1)}
    assert lent({"g": owner("g", 12), "a": replace(without(4), waiting=True)}) == {"a": ("g", 1)}


def test_what_another_command_took_back_is_lent_again():
    took = replace(without(4, offer("g")), announced=False)
    assert lent({"g": owner("g", 2), "a": took}) == {"a": ("g", 4)}


def test_nothing_is_lent_where_nobody_has_or_nobody_wants_one():
    assert lent({"a": without(4), "b": without(4, announced=True)}) == {}
    assert lent({"g": owner("g", 1), "lost its own": Standing(4)}) == {}


def test_a_gpu_is_withdrawn_when_its_worker_is_gone_or_began_anew():
    lends, uses = owner("g", 4), without(2, offer("g"))
    assert not is_withdrawn({"g": lends, "a": uses}, ["g", "a"])
    assert is_withdrawn({"a": uses}, ["a"])
    assert is_withdrawn({"g": Standing(4, offer("g", b"another")), "a": uses}, ["g", "a"])
    assert not is_withdrawn({"a": uses}, ["g", "a"])  # it is slow to answer
    assert not is_withdrawn({"g": lends, "a": without(2)}, ["a"])


def test_a_borrowed_gpu_is_nobodys_own():
    assert has_own_gpu({GPU: 8})
    assert not has_own_gpu({}) and not has_own_gpu({GPU: 8, LENT: 8}) and not has_own_gpu({GPU: 0, LENT: 0})


@pytest.mark.parametrize(
    "address, version, offers",
    [
        ("tcp://127.0.0.1:9", version_of([ADD]), True),
        ("tls://127.0.0.1:9", version_of([ADD]), False),
        ("tcp://127.0.0.1:9", "of another course", False),
    ],
    ids=["as it should be", "a network that is not trusted", "another course there"],
)
def test_who_offers_a_gpu(address, version, offers):
    class Worker:
        pass

    judges, worker = Judges("judges", LIMITS, [], True, [ADD], version), Worker()
    judges._gpu, judges._door, worker.address = "GPU-1", None, address
    try:
        assert (judges._offer(worker) is not None) == offers
    finally:
        if judges._door:
            judges._door.close()


# ---- a cluster -------------------------------------------------------------------------------------------------------


class Run:
    """`course grade` on so many texts, in a thread. Judges call the texts "NAME 0", "NAME 1", ..."""

    def __init__(self, cluster: DaskCluster, texts: int, name: str = "run") -> None:
        self.texts = [Text(ADD, f"# {name} {number}\n", None) for number in range(texts)]
        self.results, self.said = Results(cluster.folder / name), []
        graded = [
            StudentWork(student=one.key, exercise=ADD.id, hand_in=HandIn(one.text), text=one) for one in self.texts
        ]
        how = How(LIMITS, scheduler=cluster.address)
        self._thread = threading.Thread(
            target=judge_missing, args=[graded, Students(), self.results, how, self.said.append], daemon=True
        )
        self._thread.start()

    @property
    def judged(self) -> int:
        return len(list(self.results.folder.glob("*/*.json")))

    def says(self, words: str) -> None:
        """Waits until the command says so."""
        until(lambda: any(words in line for line in self.said), self._so_far)

    def ends_well(self) -> None:
        self._thread.join(NEVER)
        assert not self._thread.is_alive(), self._so_far()
        assert [self.results.find(one)["fault"] for one in self.texts] == [None] * len(self.texts)

    def _so_far(self) -> str:
        return f"{self.judged} of {len(self.texts)}; {self.said}"


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    monkeypatch.setattr(engine, "CONNECT_SECONDS", NEVER)
    monkeypatch.setattr(engine, "PAUSE", 0.3)
    monkeypatch.setattr(loans, "LOOK", 0.2)
    with DaskCluster(tmp_path) as cluster:
        cluster.scheduler()
        yield cluster


class Looks:
    """Keeps what a command sees of workers each time that it looks who may borrow a GPU, and what it lends then."""

    def __init__(self) -> None:
        self._seen: list[tuple[list[Standing], dict]] = []

    def loans_for(self, standings: dict[str, Standing], most_judges: int) -> dict[str, tuple[Offer, int]]:
        lent = loans_for(standings, most_judges)
        self._seen.append((list(standings.values()), lent))
        return lent

    def nobody_has_a_gpu(self) -> None:
        """Waits until a look sees no GPU, and no text that still waits at a worker for a GPU."""
        until(lambda: self._seen and self._is_without(self._seen[-1][0]), lambda: self._seen[-1:])

    def what_is_lent_by_the_next(self) -> list[dict]:
        """Waits until a look sees a GPU and a worker that would borrow it; returns what all looks have lent by then."""
        before = len(self._seen)
        until(lambda: any(self._has_choice(seen) for seen, _ in self._seen[before:]), lambda: self._seen[-1:])
        return [lent for _, lent in self._seen[before:]]

    def something_is_taken_back(self, end: Callable[[], None]) -> bool:
        """Calls `end`, waits for two more looks; returns True if a look saw a GPU borrowed and not announced."""
        before = len(self._seen)
        end()
        ended = len(self._seen)
        until(lambda: len(self._seen) > ended + 1)
        return any(one.borrowed and not one.announced for seen, _ in self._seen[before:] for one in seen)

    @staticmethod
    def _is_without(seen: list[Standing]) -> bool:
        return bool(seen) and not any(one.own or one.announced or one.waiting for one in seen)

    @staticmethod
    def _has_choice(seen: list[Standing]) -> bool:
        return any(one.own for one in seen) and any(one.borrows for one in seen)


@pytest.fixture
def looks(monkeypatch) -> Looks:
    looks = Looks()
    monkeypatch.setattr(loans, "loans_for", looks.loans_for)
    return looks


def test_a_worker_without_a_gpu_uses_the_one_that_comes(cluster):
    cluster.waiting_worker("bare", 4)
    run = Run(cluster, 40)
    cluster.let_go(*cluster.all_held("bare with nothing", 4))
    until(lambda: run.judged == 4)
    cluster.waiting_worker("rich", 2, gpu=True)
    for _ in range(3):
        cluster.let_go(*cluster.all_held("bare with GPU-rich", 4), *cluster.all_held("rich with GPU-rich", 2))
    cluster.let_go()
    run.ends_well()
    judged = cluster.judged()
    assert judged["bare with nothing"] == 4 and judged["bare with GPU-rich"] >= 12 and judged["rich with GPU-rich"] >= 6
    assert [line for line in run.said if "A worker with a GPU has come" in line]


@pytest.mark.parametrize("judges", [2, MOST_PER_GPU], ids=["that has room", "that has none"])
def test_when_the_worker_dies_whose_gpu_others_use_the_next_one_is_used(cluster, looks, judges):
    """The next worker comes only later: by then all that was under way is a fault of the machine."""
    cluster.waiting_worker("bare", 4)
    first = cluster.waiting_worker("first", 2, gpu=True)
    run = Run(cluster, 30)
    cluster.all_held("bare with GPU-first", 4)
    cluster.kill(first)
    run.says("A worker whose GPU others used is gone")
    looks.nobody_has_a_gpu()
    cluster.waiting_worker("second", judges, gpu=True)
    lent = looks.what_is_lent_by_the_next()
    cluster.all_held("second with GPU-second", judges)
    if judges < MOST_PER_GPU:
        cluster.all_held("bare with GPU-second", 4)
    cluster.let_go()
    run.ends_well()
    assert any(lent) == bool(cluster.begun()["bare with GPU-second"]) == (judges < MOST_PER_GPU)


def test_after_so_many_withdrawals_nothing_is_lent(cluster, looks, monkeypatch):
    monkeypatch.setattr(engine, "MOST_WITHDRAWALS", 1)
    cluster.waiting_worker("bare", 4)
    first = cluster.waiting_worker("first", 2, gpu=True)
    run = Run(cluster, 20)
    cluster.all_held("bare with GPU-first", 4)
    cluster.kill(first)
    run.says("A worker whose GPU others used is gone")
    looks.nobody_has_a_gpu()
    cluster.waiting_worker("second", 2, gpu=True)
    assert not any(looks.what_is_lent_by_the_next())
    cluster.let_go()
    run.ends_well()
    assert not cluster.begun()["bare with GPU-second"]


def two_runs_that_use(gpu: str, cluster: DaskCluster) -> tuple[Run, Run]:
    """Starts the runs "few" and "many"; waits until the worker "bare", which borrows this GPU, holds texts of both."""
    few = Run(cluster, 3, "few")
    until(lambda: len(cluster.held(f"bare with GPU-{gpu}") + cluster.held(f"{gpu} with GPU-{gpu}")) == 3, cluster.noted)
    many = Run(cluster, 20, "many")
    cluster.all_held(f"{gpu} with GPU-{gpu}", 2)
    assert {text.split()[0] for text in cluster.all_held(f"bare with GPU-{gpu}", 4)} == {"few", "many"}
    return few, many


def test_two_runs_on_one_cluster_survive_the_worker_whose_gpu_both_use(cluster):
    cluster.waiting_worker("bare", 4)
    first = cluster.waiting_worker("first", 2, gpu=True)
    runs = two_runs_that_use("first", cluster)
    cluster.kill(first)
    for run in runs:
        run.says("A worker whose GPU others used is gone")
    cluster.waiting_worker("second", 2, gpu=True)
    cluster.let_go()
    for run in runs:
        run.ends_well()


def test_a_gpu_that_cannot_be_reached_is_not_used_and_that_is_said(cluster):
    cluster.waiting_worker("bare", 4)
    cluster.waiting_worker("rich", 2, gpu=True, WAITING_DOOR="closed")
    run = Run(cluster, 10)
    run.says("has no GPU and can borrow none: it cannot reach 127.0.0.1")
    cluster.let_go()
    run.ends_well()
    assert not cluster.begun()["bare with GPU-rich"]


def test_a_worker_whose_pool_always_ends_is_sent_away(cluster):
    cluster.waiting_worker("bare", 2)
    cluster.waiting_worker("rich", 2, gpu=True)
    run = Run(cluster, 30)
    cluster.let_go(*cluster.all_held("bare with GPU-rich", 2), *cluster.all_held("rich with GPU-rich", 2))
    until(lambda: run.judged == 4)  # else a text may have failed three times before anybody is known to be well
    cluster.waiting_worker("sick", 2, gpu=True, WAITING_POOL="ends")
    run.says("gives nothing but faults (the pool is gone)")
    cluster.let_go()
    run.ends_well()


def test_of_two_runs_on_one_cluster_the_first_to_end_takes_nothing_from_the_other(cluster, looks):
    cluster.waiting_worker("bare", 4)
    cluster.waiting_worker("rich", 2, gpu=True)
    few, many = two_runs_that_use("rich", cluster)
    cluster.let_go("few 0", "few 1", "few 2")
    assert not looks.something_is_taken_back(few.ends_well)
    for _ in range(2):
        cluster.let_go(*cluster.all_held("bare with GPU-rich", 4))
    cluster.let_go()
    many.ends_well()
