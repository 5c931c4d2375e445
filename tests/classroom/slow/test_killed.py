"""Runs that are killed again and again, and a cluster that loses its workers and its scheduler: the same results."""

from __future__ import annotations

import random
import threading
import time

from grader.classroom.handin import HandIn
from grader.classroom.judge_missing import How, Students, judge_missing
from grader.classroom.result_store import Results, Text
from grader.classroom.student_work import StudentWork
from grader.course.folder import Folder
from grader.processes.bubblewrap import LIMITS
from tests.classroom.dask_cluster import DaskCluster
from tests.classroom.instructor import ROOT, solution
from tests.classroom.submission_folder import SubmissionFolder
from tests.classroom.synthetic import Class, handed_out
from tests.waiting import NEVER, until

ADD, SOFTMAX = "01_masked_add", "03_softmax"
SEED, STUDENTS, KILLS = 6, 35, 20


def test_a_run_killed_twenty_times_ends_with_the_results_of_an_undisturbed_one(tmp_path):
    submissions = tmp_path / "submissions"
    undisturbed = SubmissionFolder(submissions, tmp_path / "undisturbed")
    killed = SubmissionFolder(submissions, tmp_path / "killed")
    for hand_in in Class(SEED, handed_out(ADD, SOFTMAX)).hand_ins(STUDENTS):
        undisturbed.hand_in(hand_in)
    undisturbed.grade()
    draw, kills = random.Random(SEED), 0
    while kills < KILLS:
        moment = time.monotonic() + draw.uniform(0.2, 9)
        if killed.killed(lambda at=moment: time.monotonic() > at):
            kills += 1
        else:  # it was done before its time: its results go, and it begins again
            for path in killed.out.glob("texts/*/*.json"):
                path.unlink()
    killed.grade()
    assert killed.verdicts() == undisturbed.verdicts()


def test_workers_and_the_scheduler_may_be_killed(tmp_path):
    folder, right = Folder(ROOT / "exercises" / ADD), solution(ADD)
    texts = [Text(folder, f"{right}# {number}\n", None) for number in range(10)]
    graded = [StudentWork(student=one.key, exercise=ADD, hand_in=HandIn(one.text), text=one) for one in texts]
    results, said = Results(tmp_path / "results"), []

    def judged() -> int:
        return len(list(results.folder.glob("*/*.json")))

    with DaskCluster(tmp_path) as cluster:
        scheduler, first = cluster.scheduler(), cluster.worker()
        how = How(LIMITS, scheduler=cluster.address)
        run = threading.Thread(target=judge_missing, args=[graded, Students(), results, how, said.append])
        run.start()
        until(lambda: judged() >= 2)
        cluster.kill(first)
        cluster.worker()
        until(lambda: judged() >= 5)
        cluster.kill(scheduler)
        until(lambda: any("is gone. Waiting for it" in line for line in said))
        cluster.scheduler()
        cluster.worker()
        run.join(NEVER)
        assert not run.is_alive()
    assert said[-1].endswith("10 right.")
    assert [results.find(one)["outcome"] for one in texts] == ["pass"] * 10
    assert not list(results.folder.rglob("*.fault.json"))
