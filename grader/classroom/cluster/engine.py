"""Many texts judged side by side by Dask: on this machine, or on the cluster that a scheduler's address leads to.

Dask decides what runs where, and gives the work of a worker that died to another. A text goes to any worker first. A
worker without a GPU decides most wrong texts and all stubs; a text that only a GPU decides is submitted again, for
workers that announce a GPU. This module also submits texts again that met a fault or a noisy GPU, at the end of the
queue. When the scheduler is gone, it submits the texts without a result to the next scheduler at that address.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import math
import os
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from queue import Empty, SimpleQueue
from uuid import uuid4

import click
import dask.config
from distributed import Client, Future, LocalCluster
from distributed.comm import CommClosedError

from grader.classroom.cluster import gpus
from grader.classroom.cluster.health import Health
from grader.classroom.cluster.live import View
from grader.classroom.cluster.warm_judge import request_of
from grader.classroom.cluster.worker_plugin import GPU, Judges, judge_there
from grader.classroom.patience import patiently
from grader.classroom.result_store import Results, Text, faulty
from grader.classroom.rubric import as_on_gpu, is_decided

ATTEMPTS = 3  # at a text that meets a fault of the machine, or a GPU that is too noisy
PAUSE = 4.0  # seconds between attempts: the trouble may pass
MOST_PER_GPU = 12  # judges, unless more are asked for: on an H200 with 16 cores 8 took 49 s for 50 texts, 12 took 42 s
CLUSTER_SETTINGS = {
    "distributed.scheduler.worker-saturation": 1.0,  # no text waits at a worker
    # Threads here only wait. By default each worker would note 100 times a second where they are, and 50 times whether
    # its event loop turns.
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "500ms",
}
CONNECT_SECONDS = 10
RESULT_SECONDS = 10  # for a few kilobytes
MOST_ABSENT = 900  # seconds without a scheduler, once there was one


class EngineError(click.ClickException):
    """Raised where nothing can be judged at a place; the message says why, and what to do."""


@dataclass(frozen=True)
class JudgingPlace:
    """The machine or cluster that judges texts. `scheduler`: a Dask scheduler's address; "" for this machine.

    `jobs`: how many texts are judged at a time on this machine; None for as many as it has cores, and at most
    MOST_PER_GPU per GPU.
    """

    scheduler: str = ""
    jobs: int | None = None

    def has_gpu(self) -> bool:
        if not self.scheduler:
            return bool(gpus.identifiers())
        with _connected(self) as client:
            return bool(_workers_with_gpu(client))


@dataclass
class Work:
    text: Text
    request: dict
    attempts: int = 0
    needs_gpu: bool = False
    best: dict = field(default_factory=dict)  # the result with the fewest open tests


def judge_all(
    texts: list[Text], results: Results, level: str, place: JudgingPlace, view: View, mend: bool = False
) -> None:
    """Judges each text and stores its result, until none is left; `view` is told of each result.

    Raises EngineError, CommClosedError or TimeoutError where the scheduler cannot be reached: at once if it never was,
    else after MOST_ABSENT seconds. `level`: how submissions are isolated. `mend`: whether that line is looked for.
    """
    work = patiently(lambda: {text.key: Work(text, request_of(text, level, mend)) for text in texts}, view.note)
    run = _Run(work, results, level, view)
    lost = -math.inf  # the time at which the scheduler was lost; -inf if there never was a scheduler
    while run.left:
        try:
            with _connected(place, len(run.left)) as client:
                lost = math.inf
                run.on(client, [] if place.scheduler else gpus.identifiers())
        except (EngineError, CommClosedError, TimeoutError):
            lost = min(lost, time.monotonic())
            if time.monotonic() - lost > MOST_ABSENT or not place.scheduler:
                raise
            view.note(f"The scheduler at {place.scheduler} is gone. Waiting for it; what was judged is kept.")
            time.sleep(2)


class _Run:
    """The texts that have to be judged. `left` loses a text only once its result is stored."""

    def __init__(self, left: dict[str, Work], results: Results, level: str, view: View) -> None:
        self.left, self.results, self.level, self.view = left, results, level, view
        self._had_gpu = False  # once there was a GPU, texts that need it wait for the next if it is gone

    def on(self, client: Client, pins: list[str]) -> None:
        """Submits all texts left and stores their results, until none is left.

        Raises EngineError when the scheduler is lost. `pins`: the UUIDs of this machine's GPUs; [] on a cluster.
        """
        self._client, self._name = client, f"judges-{uuid4().hex}"
        self._done: SimpleQueue[Future] = SimpleQueue()
        self._running: dict[Future, Work] = {}
        self._order = itertools.count()
        self._later: deque[tuple[float, Work]] = deque()  # with the time to submit it again, earliest first
        self._had_gpu, self._health = self._had_gpu or bool(_workers_with_gpu(client)), Health()
        self.view.dashboard = _dashboard(client)
        with _judges(client, Judges(self._name, self.level, pins)):
            for work in sorted(self.left.values(), key=_number, reverse=True):
                self._submit(work)
            while self._running or self._later:
                while self._later and self._later[0][0] <= time.monotonic():
                    self._submit(self._later.popleft()[1])
                try:
                    self._take(self._done.get(timeout=min(1, PAUSE)))
                except Empty:
                    self.view.tick(len(present_workers(client)))

    def _submit(self, work: Work) -> None:
        """Submits a text to Dask, for any worker, or for workers with a GPU if it needs one.

        Dask keeps a text that any worker may judge until a worker is free, but gives a text that asks for a GPU to a
        worker at once. A worker that has such texts gets no others until it is through with them.
        """
        where = {GPU: 1} if work.needs_gpu else None
        future = self._client.submit(
            judge_there, self._name, work.request, pure=False, key=f"text-{uuid4().hex}", resources=where,
            priority=-next(self._order),  # otherwise Dask may keep the first texts for the end
        )  # fmt: skip
        self._running[future] = work
        future.add_done_callback(self._done.put)

    def _take(self, future: Future) -> None:
        work = self._running.pop(future, None)
        if work is None:
            return
        if future.status in ("cancelled", "lost"):  # as all are once the scheduler is gone
            raise EngineError(f"The scheduler at {_address(self._client)} is gone.")
        result = _result_of(future, work.text)
        worker, with_gpu = result.pop("worker", None), _workers_with_gpu(self._client)
        self._had_gpu = self._had_gpu or bool(with_gpu)
        if self._had_gpu and result.get("device") == "cpu":
            result = as_on_gpu(result)
        if not work.best or _open_tests(result) <= _open_tests(work.best):
            work.best = result
        left = self._worker_left(worker, result, with_gpu)
        is_open = self._had_gpu and not result["fault"] and bool(_open_tests(result))
        if is_open and not work.needs_gpu:
            work.needs_gpu = True
            if worker not in with_gpu:  # all went well: it is no attempt, and there is nothing to wait for
                return self._submit(work)
        work.attempts += not left
        if (is_open or result["fault"]) and work.attempts < ATTEMPTS:
            self._later.append((time.monotonic() + PAUSE, work))
            return
        patiently(lambda: self.results.store(work.text, work.best), self.view.note)
        del self.left[work.text.key]
        self.view.judged(work.best)

    def _worker_left(self, worker: str | None, result: dict, with_gpu: list[str]) -> bool:
        """Sends the worker of this result away if it gives nothing but faults or has lost its GPU; returns whether it
        did.

        The text then does not lose an attempt. `with_gpu`: the workers that announce a GPU, the last of which stays.
        """
        lost_gpu = worker in with_gpu and result.get("device") == "cpu" and bool(_open_tests(result))
        is_sick = bool(result["fault"]) or lost_gpu
        if worker is None or with_gpu == [worker] or not self._health.should_leave(worker, is_sick):
            return False
        why = result["fault"] or "it has lost its GPU"
        self.view.note(f"Worker {worker} gives nothing but faults ({why}). It gets no more work.")
        self._client.retire_workers([worker])
        return True


def _result_of(future: Future, text: Text) -> dict:
    try:
        error = future.exception(timeout=RESULT_SECONDS)
        if error is None:
            return future.result(timeout=RESULT_SECONDS)
    except TimeoutError:  # its machine is gone or hangs, and no other result is taken meanwhile
        return faulty(text.exercise.id, "its worker does not hand over the result")
    return faulty(text.exercise.id, f"its worker failed: {type(error).__name__}: {str(error)[:200]}")


def _number(work: Work) -> str:
    """Returns the id of the exercise, by which texts are sorted.

    Later exercises take longer: they are judged first, so that at the end nobody waits for a long text.
    """
    return work.text.exercise.id


def _open_tests(result: dict) -> float:
    """Returns how many tests of a result are not decided; inf for a fault."""
    return float("inf") if result["fault"] else sum(not is_decided(test) for test in result["tests"])


@contextlib.contextmanager
def _connected(place: JudgingPlace, texts: int = 0) -> Iterator[Client]:
    if not place.scheduler:
        with _own_cluster(place.jobs, texts) as cluster, Client(cluster) as client:
            yield client
        return
    try:
        client = Client(place.scheduler, timeout=CONNECT_SECONDS)
    except (OSError, ValueError, TimeoutError) as error:
        raise EngineError(
            f"No Dask scheduler answers at {place.scheduler} ({type(error).__name__}). Next: dask scheduler, there."
        ) from None
    with _quiet(), client:
        yield client


@contextlib.contextmanager
def _own_cluster(jobs: int | None, texts: int) -> Iterator[LocalCluster]:
    """Yields a cluster in this process: one worker per GPU, each with its share of the jobs, or one worker for all.

    No more GPUs are used than there are jobs. The workers' threads only wait for judges, which are processes; so the
    workers live in this process, and nothing listens to other machines. A judge takes seconds of a core to start: a
    worker has no more judges than its share of the texts.
    """
    pins, cores = gpus.identifiers(), len(os.sched_getaffinity(0))
    jobs = jobs or min(cores, MOST_PER_GPU * len(pins) or cores)
    workers = min(jobs, len(pins)) or 1
    threads = max(1, min(jobs // workers, math.ceil(texts / workers)))
    with dask.config.set(CLUSTER_SETTINGS):
        cluster = LocalCluster(
            n_workers=workers, threads_per_worker=threads, processes=False, memory_limit=0,
            resources={GPU: threads} if pins else {}, silence_logs=logging.CRITICAL,
            dashboard_address="127.0.0.1:0", worker_dashboard_address="127.0.0.1:0",
        )  # fmt: skip
    with cluster:
        yield cluster


@contextlib.contextmanager
def _judges(client: Client, judges: Judges) -> Iterator[None]:
    """Starts the judges of all workers, and of workers that come later; ends them with the block.

    Raises EngineError where a worker cannot import the course, or does not answer.
    """
    try:
        client.register_plugin(judges, name=judges.name)
    except ImportError as error:
        raise EngineError(
            f"The workers at {_address(client)} cannot import the course ({error}). Next: pip install -e "
            '".[cluster]" there, in a copy of the same course.'
        ) from None
    except OSError as error:  # a machine that is gone, which the scheduler has not noticed
        raise EngineError(f"A worker at {_address(client)} does not answer: {error}") from None
    try:
        yield
    finally:
        with contextlib.suppress(Exception):  # the scheduler may be gone, and its workers with it
            client.unregister_worker_plugin(judges.name)


def _dashboard(client: Client) -> str:
    """Returns the address of Dask's dashboard; "" where bokeh, which it needs, is not installed."""
    if not find_spec("bokeh"):
        return ""
    if client.cluster is None:
        return client.dashboard_link
    return f"http://127.0.0.1:{client.cluster.scheduler.services['dashboard'].port}/status"


def _address(client: Client) -> str:
    return str(client.scheduler.address) if client.scheduler else "an unknown address"


def present_workers(client: Client) -> dict[str, dict]:
    """Returns what the scheduler knows of each worker, by the worker's address.

    Every two seconds the client itself asks for no workers, and the answer to that may replace the answer to our
    question. So an answer without workers is asked for once more.
    """
    return client.scheduler_info(n_workers=-1)["workers"] or client.scheduler_info(n_workers=-1)["workers"]


def _workers_with_gpu(client: Client) -> list[str]:
    """Returns the addresses of the workers that announce a GPU."""
    return [address for address, worker in present_workers(client).items() if worker["resources"].get(GPU)]


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Silences Dask's log within the block: it repeats what our own messages say in a sentence."""
    log = logging.getLogger("distributed")
    before = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(before)
