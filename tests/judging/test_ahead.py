"""Machine code that is begun ahead of the questions: the same plans, the same faults, and nothing in vain."""

from __future__ import annotations

from concurrent.futures import Future
from pathlib import Path

import pytest

from grader.compiler.compiler_pool import processes_here
from grader.course.folder import Folder, load_test_file
from grader.explain.verdict import PASS, failed
from grader.gpu.plan import PackedPlan
from grader.judging.judge import Judge
from grader.judging.run import Run
from grader.judging.uses import CheckUse, CompiledUse, uses_asked
from grader.judging.work_ahead import Foreseen
from grader.numerics.data_sets import normal
from grader.processes.faults import ChildEnded
from tests.conftest import ROOT, mutant

FOLDER = Folder(ROOT / "exercises" / "01_masked_add")
NOTHING_AT_10 = "    if x.numel() == 10:\n        return torch.empty_like(x)\n"


@pytest.fixture
def judge(tmp_path: Path):
    """judge(before_the_launch): a judge of 01's solution with these lines in its host function."""
    made: list[Judge] = []

    def judge(lines: str = "") -> Judge:
        text = FOLDER.solution_file.read_text()
        first = "    z = torch.empty_like(x)\n"
        assert first in text
        (tmp_path / "masked_add.py").write_text(text.replace(first, lines + first))
        made.append(Judge(load_test_file(FOLDER).exercise, Run(FOLDER, str(tmp_path / "masked_add.py"), seed=1)))
        return made[-1]

    yield judge
    for one in made:
        one.run.end()


def of_size(judge: Judge, *sizes: int) -> list:
    return [judge.trial("test", (normal(n), normal(n)), "float32") for n in sizes]


def test_a_plan_made_ahead_is_the_plan_made_when_asked(judge):
    judge = judge()
    trials = [judge.trial(use.test, use.data, "float16") for use in uses_asked(load_test_file(FOLDER), CheckUse)]
    judge.run.compile_ahead([Foreseen(trial) for trial in trials])
    again = Run(FOLDER, "solutions", seed=1)
    try:
        for trial in trials:
            ahead, direct = (run.launch_plan(trial) for run in (judge.run, again))
            assert all(ahead.header[part] == direct.header[part] for part in ("buffers", "steps", "results"))
    finally:
        again.end()


def test_what_was_not_foreseen_is_compiled_when_asked(judge):
    judge = judge()
    foreseen, other = of_size(judge, 100, 200)
    judge.run.compile_ahead([Foreseen(foreseen)])
    assert judge.run.launch_plan(other).plan.results["z"].shape == [200]
    assert judge.run.launch_plan(foreseen, ("llir",)).plan.kernels[0].texts["llir"]


def test_a_fault_ahead_is_told_when_asked_and_to_that_question_alone(judge):
    judge = judge("    if x.numel() == 77:\n        import os\n        os._exit(3)\n")
    trials = of_size(judge, 100, 77, 300)
    judge.run.compile_ahead([Foreseen(trial) for trial in trials])
    assert judge.run.launch_plan(trials[2]).plan.results["z"].shape == [300]
    assert judge.run.launch_plan(trials[0]).plan.results["z"].shape == [100]
    with pytest.raises(ChildEnded) as ended:
        judge.run.launch_plan(trials[1])
    assert (ended.value.how, ended.value.detail) == ("exit", "3")


def test_an_import_that_runs_out_of_time_is_waited_for_once(tmp_path, monkeypatch):
    monkeypatch.setattr("grader.processes.submission_process.LOAD_LIMIT", 1.0)
    (tmp_path / "masked_add.py").write_text(FOLDER.solution_file.read_text() + "while True:\n    pass\n")
    judge = Judge(load_test_file(FOLDER).exercise, Run(FOLDER, str(tmp_path / "masked_add.py"), seed=1))
    try:
        (trial,) = of_size(judge, 9)
        judge.run.compile_ahead([Foreseen(trial)])
        said = CheckUse.of("test", normal(9), normal(9)).verdict(judge).lines
        assert said[0].startswith("Importing masked_add.py was stopped after 1 s: it was in ")
        assert said[1].endswith('belongs below `if __name__ == "__main__":`.')
        with pytest.raises(ChildEnded) as ended:
            judge.run.launch_plan(trial)
        assert ended.value is judge.run.process.load_ended
    finally:
        judge.run.end()


DEVICE = "device = 'cuda' if torch.cuda.is_available() else 'cpu'\nx = torch.rand(2 * BLOCK_N + 1, device=device)\n"


@pytest.mark.parametrize(
    "tried",
    [
        "x = torch.rand(10)\nprint(masked_add(x, x), (x + 1).sum())\n",
        "x = torch.rand(10)\nassert torch.equal(masked_add(x, x), x + x)\n",
        "x = torch.rand(2 * BLOCK_N + 1)\nz = masked_add(x, x)\n",  # run again when BLOCK_N is another
        f"{DEVICE}z = masked_add(x, x)\nprint(z)\n",
        f"{DEVICE}total = x.sum().item()\nfor number in x.tolist():\n    total -= number\n",
    ],
)
def test_a_kernel_may_be_tried_at_import_where_nothing_has_values(tmp_path, tried):
    first = '"""A docstring."""\n\nfrom __future__ import annotations\n'  # which must stay the first statements
    (tmp_path / "masked_add.py").write_text(first + FOLDER.solution_file.read_text() + tried)
    judge = Judge(load_test_file(FOLDER).exercise, Run(FOLDER, str(tmp_path / "masked_add.py"), seed=1))
    other = judge.trial("test", (normal(300), normal(300)), "float32", constants={"BLOCK_N": 128})
    try:
        assert CheckUse.of("test", normal(9), normal(9)).verdict(judge).outcome == PASS
        for trial, programs in zip((*of_size(judge, 9), other, *of_size(judge, 10), other), (1, 3, 1, 3)):
            recording = judge.launch_plan(trial)
            assert isinstance(recording, PackedPlan), recording.lines
            assert [step.grid[0] for step in recording.plan.steps] == [programs]
    finally:
        judge.run.end()


@pytest.mark.parametrize("statement", ["raise ValueError('too early')", "nothing + 1"])
def test_a_failure_at_import_is_told_as_the_interpreter_saw_it(tmp_path, statement):
    (tmp_path / "masked_add.py").write_text(f"{FOLDER.solution_file.read_text()}{statement}\n")
    judge = Judge(load_test_file(FOLDER).exercise, Run(FOLDER, str(tmp_path / "masked_add.py"), seed=1))
    try:
        first = CheckUse.of("test", normal(9), normal(9)).verdict(judge)
        second = CompiledUse.of("test", normal(9), normal(9)).verdict(judge)
        assert first.lines[0].startswith("Importing masked_add.py raises") and second.lines == first.lines
    finally:
        judge.run.end()


class Waiting:
    """A pool whose processes are all busy, with what it was asked."""

    def __init__(self) -> None:
        self.futures: dict[str, Future] = {}

    def compile(self, source: str, *_) -> Future:
        return self.futures.setdefault(source, Future())


@pytest.mark.parametrize(
    ("before", "kind", "left"),
    [("", None, 3), (NOTHING_AT_10, None, 1), ("", "file", 3)],
    ids=["right", "wrong", "a file that does not load"],
)
def test_what_waits_for_right_values_is_not_begun_once_one_is_wrong(judge, monkeypatch, before, kind, left):
    """A check, too, asks for the call with 208 elements. After a file that does not load nothing waits."""
    judge, pool = judge(before), Waiting()
    monkeypatch.setattr("grader.compiler.machine_code.shared_pool", lambda: pool)
    both, once, twice = of_size(judge, 208, 301, 301)  # three kernels: N is a multiple of 16, or is none
    twice.constants["BLOCK_N"] = 512
    judge.run.compile_ahead(
        [Foreseen(once, if_right=True), Foreseen(twice, if_right=True), Foreseen(both, if_right=True), Foreseen(both)],
    )
    if kind is not None:
        monkeypatch.setattr(judge, "up_to_a_failure", lambda *_: [failed("import", kind=kind)])
    CheckUse.of("test", normal(10), normal(10), dtypes=("float32",)).verdict(judge)
    assert sum(not future.cancelled() for future in pool.futures.values()) == left and len(pool.futures) == 3
    judge.run.end()
    assert all(future.cancelled() for future in pool.futures.values())


@pytest.mark.parametrize(("threads", "processes"), [(1, 1), (4, 2), (64, 6)])
def test_as_many_processes_as_torch_leaves_cores_for(monkeypatch, threads, processes):
    """A judge among many has one thread."""
    monkeypatch.setattr("torch.get_num_threads", lambda: threads)
    assert processes_here() == processes


def test_a_python_function_in_a_kernel_is_told_as_one_however_often_it_is_compiled(bench):
    """Triton 3.6 says so only the first time; then that the kernel sees no globals."""
    judge = bench(mutant("01_masked_add/python_function_in_kernel")).judge
    for trial in of_size(judge, 100, 200, 300):
        refused = judge.launch_plan(trial)
        assert "the kernel calls add, a Python function: give it @triton.jit" in refused.lines[0]


@pytest.mark.parametrize(
    ("threads", "small", "expected"),
    [
        (64, {1, 2, 3, 4}, [1, 50, 2, 60, 3, 4]),
        (64, {50, 60}, [1, 50, 2, 60, 3, 4]),
        (1, {1, 2, 3, 4}, [1, 2, 3, 4, 50, 60]),
    ],
)
def test_kernels_with_the_files_own_block_sizes_take_turns_with_others(judge, monkeypatch, threads, small, expected):
    """They take longest: begun last, they would be waited for. A child that is alone takes them as they are asked."""
    judge, order = judge(), []
    monkeypatch.setattr(judge.run, "compile_ahead", lambda foreseen: order.extend(one.trial for one in foreseen))
    monkeypatch.setattr("torch.get_num_threads", lambda: threads)
    sizes = [1, 2, 3, 4, 50, 60]
    own, set = {}, {"BLOCK_N": 64}
    judge.compile_ahead([
        CheckUse.of("test", normal(n), normal(n), dtypes=("float32",), **(set if n in small else own)) for n in sizes
    ])  # fmt: skip
    assert [trial.data[0].shape[0] for trial in order] == expected
