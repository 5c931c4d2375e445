"""A GPU lent to workers without one: who gets which, who is let in, and a real cluster of Dask in which it happens."""

from __future__ import annotations

import socket
import threading

import pytest

from grader.classroom.batch import How, Students, judge_missing
from grader.classroom.graded import Graded
from grader.classroom.handin import HandIn
from grader.classroom.judges import GPU, LENT, has_own_gpu
from grader.classroom.lending import Door, Lending, Offer
from grader.classroom.results import Results, Text
from grader.exercise import Folder
from grader.sandbox import LIMITS
from tests.classroom.dask_cluster import DaskCluster, until
from tests.classroom.instructor import ROOT, solution

HERE = "127.0.0.1"


@pytest.fixture
def door():
    """A door whose visitors are told "welcome"."""
    door = Door(HERE, lambda connection: connection.sendall(b"welcome"))
    yield door
    door.close()


def told(connection: socket.socket) -> bytes:
    connection.settimeout(30)
    return b"".join(iter(lambda: connection.recv(100), b""))


def test_whoever_knows_the_token_is_let_in(door):
    with door.offer.connection() as connection:
        assert told(connection) == b"welcome"


@pytest.mark.parametrize("token", [b"x" * 32, b"short", b""], ids=["another one", "a part", "none"])
def test_nobody_else_is(door, token):
    with socket.create_connection((HERE, door.offer.port)) as connection:
        connection.sendall(token)
        connection.shutdown(socket.SHUT_WR)
        assert told(connection) == b""


def test_one_who_says_nothing_keeps_nobody_out(door):
    with socket.create_connection((HERE, door.offer.port)), door.offer.connection() as connection:
        assert told(connection) == b"welcome"


def test_a_closed_door_takes_nobody(door):
    door.close()
    with pytest.raises(OSError):
        door.offer.connection()


def test_each_door_has_a_token_of_its_own(door):
    other = Door(HERE, lambda connection: None)
    other.close()
    assert other.offer.token != door.offer.token


class Cluster:
    """What Lending asks of: `offers` of workers with a GPU, `lent` to those without. A `silent` one does not answer."""

    def __init__(self, most_judges: int = 12) -> None:
        self.lent: dict[str, str | None] = {}
        self.silent: set[str] = set()
        self.asked = 0
        self.lending = Lending(most_judges, self.offered, self.lend)

    def offered(self, worker: str) -> Offer | None:
        self.asked += 1
        return None if worker in self.silent else Offer(worker, 1, b"")

    def lend(self, worker: str, offer: Offer | None) -> bool:
        if worker in self.silent:
            return False
        self.lent[worker] = offer and offer.host
        return True

    def settle(self, judges: dict[str, int]) -> dict[str, str | None]:
        self.lending.settle(judges, {worker for worker in judges if worker.startswith("gpu")})
        return self.lent


def test_the_gpu_with_the_fewest_judges_is_lent_first():
    assert Cluster().settle({"gpu1": 4, "gpu2": 2, "a": 1, "b": 2, "c": 1}) == {"a": "gpu2", "b": "gpu2", "c": "gpu1"}


def test_a_gpu_that_has_enough_judges_gets_no_more():
    assert Cluster(most_judges=6).settle({"gpu1": 4, "a": 4, "b": 4}) == {"a": "gpu1"}


def test_what_is_settled_is_not_asked_again():
    cluster = Cluster()
    cluster.settle({"gpu1": 4, "a": 1})
    before = cluster.asked
    cluster.settle({"gpu1": 4, "a": 1})
    assert cluster.asked == before


def test_a_worker_that_comes_later_gets_one():
    cluster = Cluster()
    cluster.settle({"gpu1": 4})
    assert cluster.settle({"gpu1": 4, "a": 1}) == {"a": "gpu1"}


def test_whose_gpu_is_gone_gets_another_one_or_none():
    cluster = Cluster()
    cluster.settle({"gpu1": 4, "gpu2": 9, "a": 1})
    assert cluster.settle({"gpu2": 9, "a": 1}) == {"a": "gpu2"}
    assert cluster.settle({"a": 1}) == {"a": None}
    assert cluster.settle({"gpu3": 1, "a": 1}) == {"a": "gpu3"}


def test_one_that_does_not_answer_is_asked_again():
    cluster = Cluster()
    cluster.silent = {"gpu1", "b"}
    assert cluster.settle({"gpu1": 1, "gpu2": 4, "a": 1, "b": 1}) == {"a": "gpu2"}
    cluster.silent = set()
    assert cluster.settle({"gpu1": 1, "gpu2": 4, "a": 1, "b": 1}) == {"a": "gpu2", "b": "gpu1"}


def test_a_borrowed_gpu_is_nobodys_own():
    assert has_own_gpu({GPU: 8})
    assert not has_own_gpu({}) and not has_own_gpu({GPU: 8, LENT: 8}) and not has_own_gpu({GPU: 0, LENT: 0})


def test_a_worker_without_a_gpu_uses_the_one_that_comes(tmp_path):
    folder = Folder(ROOT / "exercises/01_masked_add")
    wrong = solution(folder.id).replace("x + y", "x - y")  # a right one would wait for a real GPU
    texts = [Text(folder, f"{wrong}# {number}\n", None) for number in range(8)]
    graded = [Graded(student=one.key, exercise=folder.id, hand_in=HandIn(one.text), text=one) for one in texts]
    results, said = Results(tmp_path / "results"), []
    with DaskCluster(tmp_path) as cluster:
        cluster.scheduler()
        cluster.worker()
        how = How(LIMITS, scheduler=cluster.address)
        run = threading.Thread(target=judge_missing, args=[graded, Students(), results, how, said.append])
        run.start()
        until(lambda: list(results.folder.glob("*/*.json")))
        cluster.gpu_worker("first")
        run.join(120)
        assert not run.is_alive()
        assert cluster.asked() == {"first AF_UNIX", "first AF_INET"}
    assert [line for line in said if "A worker with a GPU has come" in line]
    assert [results.find(one)["outcome"] for one in texts] == ["fail"] * len(texts)
    assert not list(results.folder.rglob("*.fault.json"))
