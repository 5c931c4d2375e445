"""A GPU lent to workers without one: who gets which, and what becomes of it when workers come and go.

Here the judges of a cluster only wait; with real ones: benchmarks/lent_gpu.py, on a machine with a GPU.
"""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from grader.classroom import engine
from grader.classroom.door import Offer
from grader.classroom.engine import MOST_PER_GPU
from grader.classroom.graded import Graded
from grader.classroom.handin import HandIn
from grader.classroom.judge_missing import How, Students, judge_missing
from grader.classroom.judges import GPU, LENT, Judges, has_own_gpu
from grader.classroom.lending import Standing, is_withdrawn, loans_for
from grader.classroom.results import Results, Text, version_of
from grader.course.folder import Folder
from grader.processes.bubblewrap import LIMITS
from tests.classroom.dask_cluster import DaskCluster, until
from tests.classroom.instructor import ROOT

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
    """`course grade` on so many texts, in a thread."""

    def __init__(self, cluster: DaskCluster, texts: int, name: str = "run") -> None:
        self.texts = [Text(ADD, f"# {name} {number}\n", None) for number in range(texts)]
        self.results, self.said = Results(cluster.folder / name), []
        graded = [Graded(student=one.key, exercise=ADD.id, hand_in=HandIn(one.text), text=one) for one in self.texts]
        how = How(LIMITS, scheduler=cluster.address)
        self._thread = threading.Thread(
            target=judge_missing, args=[graded, Students(), self.results, how, self.said.append], daemon=True
        )
        self._thread.start()

    @property
    def judged(self) -> int:
        return len(list(self.results.folder.glob("*/*.json")))

    def ends_well(self) -> None:
        self._thread.join(100)
        assert not self._thread.is_alive(), f"{self.judged} of {len(self.texts)}; {self.said}"
        assert [self.results.find(one)["fault"] for one in self.texts] == [None] * len(self.texts)


@pytest.fixture
def cluster(tmp_path):
    with DaskCluster(tmp_path) as cluster:
        cluster.scheduler()
        yield cluster


def test_a_worker_without_a_gpu_uses_the_one_that_comes(cluster):
    cluster.waiting_worker("bare", 4)
    run = Run(cluster, 100)
    until(lambda: run.judged > 3)
    cluster.waiting_worker("rich", 2, gpu=True)
    run.ends_well()
    waited = cluster.waited()
    assert waited["bare with nothing"] > 3 and waited["rich with GPU-rich"] > 10 and waited["bare with GPU-rich"] > 10
    assert [line for line in run.said if "A worker with a GPU has come" in line]


@pytest.mark.parametrize("judges", [2, MOST_PER_GPU], ids=["that has room", "that has none"])
def test_when_the_worker_dies_whose_gpu_others_use_the_next_one_is_used(cluster, judges):
    """It comes only seconds later: by then all that was under way there is a fault of the machine."""
    cluster.waiting_worker("bare", 4)
    first = cluster.waiting_worker("first", 2, gpu=True, seconds=0.5)
    run = Run(cluster, 80)
    until(lambda: cluster.waited()["bare with GPU-first"] > 8)
    cluster.kill(first)
    until(lambda: any("A worker whose GPU others used is gone" in line for line in run.said))
    cluster.waiting_worker("second", judges, gpu=True)
    run.ends_well()
    waited = cluster.waited()
    assert waited["second with GPU-second"] > 10
    assert (waited["bare with GPU-second"] > 5) == (judges < MOST_PER_GPU)


def test_after_so_many_withdrawals_nothing_is_lent(cluster, monkeypatch):
    monkeypatch.setattr(engine, "MOST_WITHDRAWALS", 1)
    cluster.waiting_worker("bare", 4)
    first = cluster.waiting_worker("first", 2, gpu=True, seconds=1)  # so that it leaves something to lend for
    run = Run(cluster, 40)
    until(lambda: cluster.waited()["bare with GPU-first"] > 4)
    cluster.kill(first)
    cluster.waiting_worker("second", 2, gpu=True)
    run.ends_well()
    assert not cluster.waited()["bare with GPU-second"]


def test_two_runs_on_one_cluster_survive_the_worker_whose_gpu_both_use(cluster):
    cluster.waiting_worker("bare", 4)
    first = cluster.waiting_worker("first", 2, gpu=True, seconds=0.5)
    runs = [Run(cluster, 60, "one"), Run(cluster, 20, "other")]
    until(lambda: cluster.waited()["bare with GPU-first"] > 8)
    cluster.kill(first)
    until(lambda: all(any("is gone" in line for line in run.said) for run in runs))
    cluster.waiting_worker("second", 2, gpu=True)
    for run in runs:
        run.ends_well()


def test_a_gpu_that_cannot_be_reached_is_not_used_and_that_is_said(cluster):
    cluster.waiting_worker("bare", 4)
    cluster.waiting_worker("rich", 2, gpu=True, WAITING_DOOR="closed")
    run = Run(cluster, 30)
    run.ends_well()
    assert [line for line in run.said if "has no GPU and can borrow none: it cannot reach 127.0.0.1" in line]
    assert not cluster.waited()["bare with GPU-rich"]


def test_a_worker_whose_pool_always_ends_is_sent_away(cluster):
    cluster.waiting_worker("bare", 2, seconds=1)
    cluster.waiting_worker("rich", 2, gpu=True, seconds=1)
    run = Run(cluster, 70)
    until(lambda: run.judged)  # else a text may have failed three times before anybody is known to be well
    cluster.waiting_worker("sick", 2, gpu=True, WAITING_POOL="ends")
    run.ends_well()
    assert [line for line in run.said if "gives nothing but faults (the pool is gone)" in line]


def test_of_two_runs_on_one_cluster_the_first_to_end_takes_nothing_from_the_other(cluster):
    cluster.waiting_worker("bare", 4)
    cluster.waiting_worker("rich", 2, gpu=True)
    long, short = Run(cluster, 90, "long"), Run(cluster, 10, "short")
    short.ends_well()
    long.ends_well()
    assert cluster.waited()["bare with GPU-rich"] > 30
