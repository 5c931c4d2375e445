"""progress.txt: plain lines that survive merges, other versions, two processes and a crash."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import subprocess
import sys
from datetime import UTC, datetime
from fractions import Fraction

import pytest

from grader.course.folder import Folder
from grader.progress import progress
from grader.progress.last_result import record_run
from grader.progress.progress import NAME, Record, Throughput
from tests.typed_commands import start_pytest
from tests.waiting import NEVER

EARLY, LATE = datetime(2026, 1, 2, tzinfo=UTC), datetime(2026, 1, 3, tzinfo=UTC)


def written(root, *lines: str) -> None:
    (root / NAME).write_text("\n".join(lines) + "\n")


def test_a_record_reads_what_it_wrote(tmp_path):
    speed = Throughput(97.8, 4173, "GB/s")
    record = Record("03_softmax", "fail", "5/17", 4, 2, EARLY, LATE, EARLY, LATE, "padding-counted", speed)
    written(tmp_path, record.line())
    assert progress.read(tmp_path).of("03_softmax") == record


def test_no_file_is_no_progress(tmp_path):
    assert progress.read(tmp_path).records == {}


def test_strange_lines_exercises_and_fields_are_kept(tmp_path):
    strange = ["# my own note", "<<<<<<< HEAD", "03_softmax and more words", "\udcff\udcfe"]
    known = "99_from_the_future  outcome=pass runs=2"
    newer = "03_softmax  outcome=fail runs=many medal=wood"
    text = "\n".join([*strange, known, newer]) + "\n"
    (tmp_path / NAME).write_bytes(text.encode("utf-8", "surrogateescape"))
    with progress.changing(tmp_path) as done:
        done.of("01_masked_add").hints = 1
    lines = (tmp_path / NAME).read_bytes().decode("utf-8", "surrogateescape").splitlines()
    assert lines == [
        progress.HEADER, *strange, "01_masked_add  hints=1", "03_softmax  outcome=fail runs=many medal=wood", known
    ]  # fmt: skip


def test_a_date_of_another_time_zone_is_written_in_utc(tmp_path):
    written(tmp_path, "03_softmax  runs=1 last=2026-01-03T02:00:00+02:00")
    assert progress.read(tmp_path).of("03_softmax").line() == "03_softmax  runs=1 last=2026-01-03T00:00:00Z"
    written(tmp_path, "03_softmax  runs=1 last=0001-01-01T00:00:00+02:00")
    assert progress.read(tmp_path).of("03_softmax").last is None


def test_a_field_that_cannot_be_read_stands_next_to_its_new_value(tmp_path):
    written(tmp_path, "01_masked_add  points=many medal=wood")
    record_run(Folder(tmp_path / "exercises" / "01_masked_add"), result(("pass", {})))
    line = progress.read(tmp_path).of("01_masked_add").line()
    assert " points=1/1 " in line and line.endswith(" points=many medal=wood")
    assert progress.read(tmp_path).of("01_masked_add").points == "1/1"


def test_lines_of_two_machines_merge_in_any_order(tmp_path):
    here = (
        "03_softmax  outcome=pass points=17/17 runs=3 hints=1 last=2026-01-02T00:00:00Z passed=2026-01-02T00:00:00Z "
        "predicted=3/4 core=2026-01-02T00:00:00Z level=full"
    )
    there = "03_softmax  outcome=fail points=5/17 runs=9 last=2026-01-03T00:00:00Z cause=no-other predicted=2/4"
    other = "03_softmax  hints=2 gave-up=2026-01-01T00:00:00Z core=2026-01-01T00:00:00Z"
    merged = set()
    for lines in itertools.permutations((here, there, other)):
        written(tmp_path, *lines)
        merged.add(progress.read(tmp_path).of("03_softmax").line())
    assert merged == {
        "03_softmax  outcome=fail points=5/17 runs=9 hints=2 last=2026-01-03T00:00:00Z passed=2026-01-02T00:00:00Z "
        "gave-up=2026-01-01T00:00:00Z cause=no-other predicted=2/4 core=2026-01-01T00:00:00Z"
    }


@pytest.mark.parametrize("speed", ["fast", "4173GB/s", "4173GB/s,98%", "4173km/h,98.0%", ""])
def test_a_speed_that_cannot_be_read_is_kept_as_it_is(tmp_path, speed):
    written(tmp_path, f"03_softmax  runs=3 throughput={speed}")
    record = progress.read(tmp_path).of("03_softmax")
    assert record.throughput is None and record.line().endswith(f"throughput={speed}")


def test_of_two_predictions_the_smaller_share_counts(tmp_path):
    for here, there in (("9/12", "10/12"), ("2/5", "1/2"), ("3/4", "3/5")):
        for lines in itertools.permutations((here, there, "")):
            written(tmp_path, *(f"03_softmax  runs=1 predicted={line}" for line in lines))
            found = progress.read(tmp_path).of("03_softmax").predicted
            assert found == min(here, there, key=Fraction)


@pytest.mark.parametrize("predicted", ["many", "3", "3/0", "-1/4", ""])
def test_a_prediction_that_cannot_be_read_is_kept_as_it_is(tmp_path, predicted):
    written(tmp_path, f"03_softmax  runs=3 predicted={predicted}")
    record = progress.read(tmp_path).of("03_softmax")
    assert record.predicted == "" and record.line().endswith(f"predicted={predicted}")


def test_of_two_speeds_the_better_share_counts(tmp_path):
    here, there = "throughput=4173GB/s,97.8%", "throughput=700GB/s,98.1%"
    for lines in itertools.permutations((here, there, "runs=3")):
        written(tmp_path, *(f"03_softmax  {line}" for line in lines))
        assert progress.read(tmp_path).of("03_softmax").throughput == Throughput(98.1, 700, "GB/s")


# ---- speeds from runs on a GPU --------------------------------------------------------------------------------------


def result(*tests: tuple[str, dict]) -> dict:
    shown = [{"name": "test_speed", "outcome": outcome, "figures": figures} for outcome, figures in tests]
    return {
        "outcome": "pass",
        "core": True,
        "medal": "",
        "fault": None,
        "points": 1,
        "possible": 1,
        "cause": "",
        "tests": shown,
    }


def speed(share: float, **rate: float) -> dict:
    return {"share": share, "gate": 0.78, **rate}


def test_a_run_on_a_gpu_leaves_its_best_throughput(tmp_path):
    folder = Folder(tmp_path / "exercises" / "01_masked_add")
    record_run(folder, result(("pass", {}), ("pass", speed(0.9784, bytes_per_second=4.1731e12)),
                              ("pass", speed(0.6, bytes_per_second=2e12))))  # fmt: skip
    assert "throughput=4173GB/s,97.8%" in (tmp_path / NAME).read_text()
    record_run(folder, result(("fail", speed(0.5, bytes_per_second=2e12))))
    record_run(folder, result(("skipped", speed(0.99, bytes_per_second=4.2e12))))  # too noisy to tell
    record_run(folder, result(("skipped", {})))
    best = progress.read(tmp_path).of("01_masked_add")
    assert (best.throughput, best.throughput.text) == (Throughput(97.8, 4173, "GB/s"), "4 173 GB/s 98 %")


def test_the_best_medal_is_kept(tmp_path):
    folder = Folder(tmp_path / "exercises" / "01_masked_add")
    for medal in ("silver", "gold", "bronze", ""):
        record_run(folder, result(("pass", {})) | {"medal": medal})
    assert progress.read(tmp_path).of("01_masked_add").medal == "gold"
    written(tmp_path, "03_softmax  medal=silver", "03_softmax  medal=bronze runs=2")
    assert progress.read(tmp_path).of("03_softmax").medal == "silver"


def test_the_first_pass_is_the_one_that_is_kept(tmp_path):
    written(tmp_path, "01_masked_add  outcome=fail passed=2026-01-02T00:00:00Z")
    record_run(Folder(tmp_path / "exercises" / "01_masked_add"), result(("pass", {})))
    record = progress.read(tmp_path).of("01_masked_add")
    assert record.outcome == "pass" and record.passed == EARLY < record.last


def test_a_product_counts_operations(tmp_path):
    record_run(Folder(tmp_path / "exercises" / "05_grouped_matmul"), result(("pass", speed(0.87, flops=612.4e12))))
    assert "throughput=612TFLOP/s,87.0%" in (tmp_path / NAME).read_text()


def _open_hints(root, id, times):
    for _ in range(times):
        with progress.changing(root) as done:
            done.of(id).runs += 1


def test_two_processes_lose_nothing(tmp_path):
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=_open_hints, args=(tmp_path, "03_softmax", 25)) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(NEVER)
    assert progress.read(tmp_path).of("03_softmax").runs == 50


def test_a_crash_while_writing_leaves_the_old_file(tmp_path):
    written(tmp_path, "03_softmax  runs=3")
    script = (
        "import os, sys; from pathlib import Path; from grader.progress import progress; "
        "os.fsync = lambda descriptor: os._exit(9)\n"
        "with progress.changing(Path(sys.argv[1])) as done: done.of('03_softmax').runs = 4"
    )
    assert subprocess.run([sys.executable, "-c", script, str(tmp_path)]).returncode == 9
    assert progress.read(tmp_path).of("03_softmax").runs == 3


def test_an_error_in_between_changes_nothing(tmp_path):
    written(tmp_path, "03_softmax  runs=3")
    with pytest.raises(ZeroDivisionError), progress.changing(tmp_path) as done:
        done.of("03_softmax").runs = 1 // 0
    assert (tmp_path / NAME).read_text() == "03_softmax  runs=3\n"


def test_the_state_folder_ignores_itself(tmp_path):
    assert (progress.state_folder(tmp_path) / ".gitignore").read_text() == "*\n"


# ---- written by runs ------------------------------------------------------------------------------------------------


def test_runs_are_counted_and_a_pass_stays(course):
    course.write("01_masked_add")
    course.pytest("exercises/01_masked_add")
    record = progress.read(course.path).of("01_masked_add")
    reached, _, possible = record.points.partition("/")
    assert (record.outcome, record.runs, record.cause) == ("pass", 1, "") and record.passed and reached == possible
    course.write("01_masked_add", "offsets, x + y", "offsets, x - y")
    course.pytest("exercises/01_masked_add")
    again = progress.read(course.path).of("01_masked_add")
    assert (again.outcome, again.runs, again.cause) == ("fail", 2, "wrong-operation")
    assert again.passed == record.passed and again.points != record.points
    assert "passed, now failing" in course.here("status").out


def test_what_others_handed_in_stubs_and_partial_runs_are_no_progress(course):
    course.pytest("exercises/01_masked_add")
    course.pytest("exercises/01_masked_add", "--submission", "solutions")
    course.write("01_masked_add")
    course.pytest("exercises/01_masked_add", "-k", "one_element")
    assert not (course.path / NAME).exists()


def test_a_course_that_cannot_be_written_is_judged_all_the_same(course):
    course.write("01_masked_add")
    (course.path / ".course").write_text("a file where a folder belongs")
    done = course.pytest("exercises/01_masked_add")
    assert done.status == 0 and "Passed, judged in" in done.out
    said = " ".join(done.out.split())  # where it wraps depends on the path
    assert "Progress was not kept (" in said and "The verdict stands." in said


def test_nothing_is_read_from_the_network_or_written_elsewhere(course, tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    course.write("01_masked_add")
    start_pytest("exercises/01_masked_add", "-k", "one_full_block", cwd=course.path, HOME=str(home))
    course.course("hint", "03", HOME=str(home))
    assert os.listdir(home) == []
    copied = {"exercises", "solutions", "hints", "pyproject.toml", "course.md"}
    assert sorted({p.name for p in course.path.iterdir()} - copied) == [".course", NAME]
