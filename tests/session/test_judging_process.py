"""The process that judges for pytest's own process and for `course watch`: what it takes over, and how it ends."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pexpect
import pytest

from grader.session import judging_process
from grader.session.judging_process import INTERRUPT, JudgeEnded, JudgingProcess, _threads
from grader.session.plugin import STAYS_HERE, _wants_judge
from tests.conftest import ROOT
from tests.typed_commands import of_a_terminal, started
from tests.waiting import NEVER, is_in, until

ADD = "exercises/01_masked_add"
SOLUTION = ROOT / "solutions/01_masked_add/masked_add.py"
HANGS = "    open('begun', 'w')\n    while True: pass"  # in the folder of its process
CORES = len(os.sched_getaffinity(0))
ONE_TEST = ("-k", "one_full_block")  # where it does not matter how many are judged
# Looks for a secret in all that this process can write to. The pattern does not match itself.
LOOKS_FOR_SECRET = r"""
import ctypes, re
found = False
with open("/proc/self/maps") as maps:
    for line in maps.readlines():
        first, last = (int(end, 16) for end in line.split()[0].split("-"))
        if "rw" in line.split()[1] and "[v" not in line:
            memory = ctypes.string_at(first, last - first)
            found = found or re.search(rb"of-our[s]-and-of-nobody-els[e]", memory) is not None
            del memory
if found:
    open("found", "w")
"""
SECRET = "of-ours-and-of-nobody-else"
LOOKS_AT_SIGNALS = """
import signal
usual = [signal.default_int_handler, signal.SIG_DFL, signal.SIG_DFL, signal.SIG_DFL]
numbers = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1]
if [signal.getsignal(number) for number in numbers] != usual:
    open("other signals", "w")
"""
STAYS = """
open("begun", "w")
while True: pass
"""


@pytest.fixture
def temporary(tmp_path, monkeypatch) -> Path:
    """Makes a folder for temporary files, which all processes of the test have in their environment."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")  # the lock of a GPU is a file that stays
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path / "temporary"


@pytest.fixture
def hanging(tmp_path) -> Path:
    path = tmp_path / "hanging.py"
    path.write_text(SOLUTION.read_text().replace("    z = torch.empty_like(x)", HANGS))
    return path


def copy_of_the_exercise(course: Path) -> Path:
    """Returns its folder, in which it is solved."""
    exercise = course / ADD
    exercise.mkdir(parents=True)
    (course / "pyproject.toml").touch()
    for file in (ROOT / ADD).glob("*.py"):
        (exercise / file.name).write_text(file.read_text())
    (exercise / "masked_add.py").write_text(SOLUTION.read_text())
    return exercise


def environments(temporary: Path) -> dict[int, str]:
    """Returns what the processes of this test were started with, by their numbers."""
    found = {}
    for path in Path("/proc").glob("[0-9]*"):
        try:
            environment = (path / "environ").read_bytes().decode()
        except OSError:
            continue
        if str(temporary) in environment and int(path.name) != os.getpid():
            found[int(path.name)] = environment
    return found


def start(temporary: Path, *arguments: str | Path, ignores: tuple = (), **environment: str) -> subprocess.Popen:
    """Starts pytest in a process of its own, which finds all signals but these as a terminal gives them."""

    def set_signals() -> None:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, INTERRUPT):
            signal.signal(number, signal.SIG_IGN if number in ignores else signal.SIG_DFL)

    return subprocess.Popen(
        [sys.executable, "-m", "pytest", ADD, *map(str, arguments)], cwd=ROOT, text=True, stdout=subprocess.PIPE,
        env=of_a_terminal({"TMPDIR": str(temporary), **environment}), stderr=subprocess.STDOUT, preexec_fn=set_signals,
    )  # fmt: skip


@contextlib.contextmanager
def running(temporary: Path, submission: Path, ignores: tuple = (), **environment: str) -> Iterator[subprocess.Popen]:
    """Starts pytest, and waits until it is in the midst of a run that never ends."""
    with start(temporary, "--submission", submission, ignores=ignores, **environment) as run:
        try:
            until(lambda: is_in(temporary, "begun"), run.poll)
            yield run
        finally:
            run.kill()
    until_nothing_is_left(temporary)


def until_nothing_is_left(temporary: Path) -> None:
    until(
        lambda: not environments(temporary) and not list(temporary.iterdir()),
        lambda: (environments(temporary), list(temporary.iterdir())),
    )


def judge_of(run: subprocess.Popen) -> int:
    (pid,) = children_of(run.pid)
    return int(pid)


def children_of(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def test_a_run_there_finds_the_folder_the_arguments_and_the_encoding_of_the_command(tmp_path):
    """And pytest's own process, which has them, imports no torch."""
    wrong = tmp_path / "wrong.py"
    wrong.write_text(SOLUTION.read_text().replace("offsets, x + y", "offsets, x - y"))
    judged = [str(ROOT / ADD), *ONE_TEST, "--submission", "wrong.py", "--result", "result.json"]
    script = f"import sys, pytest; print(int(pytest.main({judged!r})), 'torch' in sys.modules)"
    done = started([sys.executable, "-c", script], tmp_path, {"PYTHONIOENCODING": "ascii"})
    assert done.lines[-1] == "1 False" and "z holds x - y: the operation is another." in done.out
    assert done.out.isascii() and (tmp_path / "result.json").exists()


def test_a_run_in_a_process_that_has_imported_torch_takes_one_thread(tmp_path):
    """Its threads would look for work in a loop, on as many cores as there are."""
    script = f"import torch, pytest; print(int(pytest.main({[str(ROOT / ADD)]!r})), torch.get_num_threads())"
    assert started([sys.executable, "-c", script], tmp_path, {"OMP_NUM_THREADS": "3"}).lines[-1] == "1 1"


def test_a_submission_finds_the_usual_signals_and_not_the_environment_of_pytests_in_its_memory(tmp_path, temporary):
    looking = tmp_path / "looking.py"
    looking.write_text(SOLUTION.read_text() + LOOKS_FOR_SECRET + LOOKS_AT_SIGNALS + STAYS)
    with running(temporary, looking, SECRET=SECRET) as run:
        assert not is_in(temporary, "found") and not is_in(temporary, "other signals")
        assert {pid for pid, started_with in environments(temporary).items() if SECRET in started_with} == {run.pid}
        assert not {signal.SIGHUP, signal.SIGINT} & ignored_by(judge_of(run))


@pytest.mark.parametrize(
    ("ignored", "how"),
    [((), signal.SIGINT), ((signal.SIGHUP, signal.SIGINT), signal.SIGTERM)],
    ids=["Ctrl-C on a terminal", "the end of one below nohup"],
)
def test_a_run_that_is_ended_leaves_nothing_behind(hanging, temporary, ignored, how):
    """What the command ignores is ignored, as SIGHUP below nohup, and Ctrl-C in the background of a script.

    Each run of these tests is ended by SIGKILL, if by nothing else, and leaves nothing either.
    """
    with running(temporary, hanging, ignores=ignored) as run:
        for pid in (run.pid, judge_of(run)) if ignored else ():
            assert {*ignored} <= ignored_by(pid)
        run.send_signal(how)
        out, _ = run.communicate(timeout=NEVER)
    assert run.returncode == (pytest.ExitCode.INTERRUPTED if how == signal.SIGINT else -how)
    assert "Traceback" not in out


def ignored_by(pid: int) -> set[int]:
    mask = int(re.search(r"SigIgn:\s+(\w+)", Path(f"/proc/{pid}/status").read_text())[1], 16)
    return {number for number in range(1, 65) if mask >> number - 1 & 1}


def test_a_submission_would_find_it_where_it_is(temporary):
    """The same look, in a process that has it."""
    assert started([sys.executable, "-c", LOOKS_FOR_SECRET], temporary, {"SECRET": SECRET}).status == 0
    assert is_in(temporary, "found")


def test_an_interrupt_while_it_prepares_ends_the_run_that_follows():
    judge = JudgingProcess()
    try:
        judge.prepare()
        until(
            lambda: children_of(judge._process.pid), judge._process.poll
        )  # the torch fork server, the first thing after torch
        judge._process.send_signal(INTERRUPT)
        judge.begin([ADD, "--submission", "solutions"])
        with contextlib.suppress(JudgeEnded):
            assert judge.wait() == pytest.ExitCode.INTERRUPTED
    finally:
        judge.end()


@pytest.fixture
def interrupts_raise() -> Iterator[None]:
    """Ctrl-C counts here, also where these tests run in the background of a shell, which has it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interrupts_raise")
def test_a_second_interrupt_does_not_cut_off_the_end_of_the_judge():
    told: list[int] = []
    judge = SimpleNamespace(begin=lambda _: None, wait=lambda: 2, _process=SimpleNamespace(send_signal=told.append))
    judge.end = lambda: signal.raise_signal(signal.SIGINT)
    assert JudgingProcess.run(judge, []) == 2 and told == [INTERRUPT]


def test_an_interrupt_that_python_has_swallowed_still_counts(monkeypatch):
    """As where it comes in a callback: an exception is printed there, and lost."""
    monkeypatch.setattr(judging_process, "_interrupts", [])
    with contextlib.suppress(KeyboardInterrupt):
        judging_process._interrupt(INTERRUPT, None)
    with pytest.raises(KeyboardInterrupt):
        judging_process._judge([ADD])


def test_that_the_judge_was_killed_is_told_in_a_sentence(hanging, temporary):
    with start(temporary, "--submission", hanging) as run:
        until(lambda: is_in(temporary, "begun"), run.poll)
        os.kill(judge_of(run), signal.SIGKILL)
        out, _ = run.communicate(timeout=NEVER)
    assert run.returncode == pytest.ExitCode.USAGE_ERROR
    assert out.strip().splitlines()[-1] == (
        "ERROR: the process that judges was ended by SIGKILL before its verdict was whole. Next: course doctor"
    )
    until(lambda: not environments(temporary), lambda: environments(temporary))


def test_one_process_judges_again_and_reads_the_tests_anew(tmp_path, temporary, capfd):
    """A report that cannot be written is no success."""
    exercise = copy_of_the_exercise(tmp_path)
    judge, counts = JudgingProcess(), []
    try:
        judge.prepare()
        for more in ("", "\n\ndef test_another(check):\n    check(normal(5), normal(5))\n"):
            with (exercise / "test_masked_add.py").open("a") as file:
                file.write(more)
            judge.begin([str(exercise), "-W", "ignore", "-k", "one_full_block or another"])
            assert judge.wait() == 0
            counts.append(len(re.findall(r"^  pass  ", capfd.readouterr().out, re.MULTILINE)))
        with open("/dev/full", "w") as full:
            judge.begin([str(exercise), "-W", "ignore", *ONE_TEST], full.fileno())
            assert judge.wait() == pytest.ExitCode.TESTS_FAILED
    finally:
        judge.end()
    assert counts[1] == counts[0] + 1
    until_nothing_is_left(temporary)


def test_a_breakpoint_in_a_test_is_answered_on_the_terminal(tmp_path):
    copy = copy_of_the_exercise(tmp_path)
    (copy / "test_masked_add.py").write_text("def test_one(check):\n    breakpoint()\n")
    terminal = pexpect.spawn(
        sys.executable, ["-m", "pytest", ADD], cwd=str(tmp_path), env=of_a_terminal({}), timeout=NEVER, encoding="utf-8"
    )
    terminal.expect_exact("01_masked_add: judging ...")  # at once: importing torch takes seconds
    terminal.expect_exact("(Pdb)")
    terminal.send("print('six times seven is', 6 * 7)\n")
    terminal.expect_exact("six times seven is 42")
    terminal.close(force=True)


@pytest.mark.parametrize("error", [ImportError("torch is broken here"), OSError("libcudart.so.12: cannot open")])
def test_that_torch_cannot_be_imported_is_told(tmp_path, monkeypatch, capfd, error):
    (tmp_path / "torch.py").write_text(f"raise {error!r}")
    monkeypatch.syspath_prepend(str(tmp_path))
    judge = JudgingProcess()
    try:
        judge.begin([ADD, "--submission", "solutions"])
        assert judge.wait() == pytest.ExitCode.USAGE_ERROR
    finally:
        judge.end()
    assert f"ERROR: {error}. Next: course doctor" in capfd.readouterr().err


def test_an_error_of_our_own_is_told(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    judge = JudgingProcess()
    try:
        monkeypatch.setattr("os.getcwd", lambda: str(tmp_path / "gone"))
        judge.begin([ADD])
        with pytest.raises(JudgeEnded, match="failed in our own code: FileNotFoundError"):
            judge.wait()
    finally:
        judge.end()


def test_a_judge_that_was_killed_says_so():
    judge = JudgingProcess()
    try:
        os.kill(judge._process.pid, signal.SIGKILL)
        judge.begin([ADD])
        with pytest.raises(JudgeEnded, match="was ended by SIGKILL"):
            judge.wait()
    finally:
        judge.end()


@pytest.mark.parametrize("wanted, threads", [("3", 3), ("0", CORES), ("", CORES), ("two", CORES), ("9" * 9, CORES)])
def test_torch_has_the_threads_that_the_environment_asks_for(wanted, threads):
    assert _threads(wanted) == threads


@pytest.fixture
def started_as_a_command(monkeypatch) -> SimpleNamespace:
    """Makes this process as pytest's own is at its start, and returns what pytest knows then."""
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    return SimpleNamespace(known_args_namespace=SimpleNamespace(), invocation_params=SimpleNamespace(plugins=None))


def test_a_command_wants_a_judge(started_as_a_command):
    assert _wants_judge(started_as_a_command)


@pytest.mark.parametrize("option", STAYS_HERE)
def test_a_debugger_and_what_judges_nothing_stay_in_pytests_own_process(started_as_a_command, option):
    setattr(started_as_a_command.known_args_namespace, option, True)
    assert not _wants_judge(started_as_a_command)


def test_a_caller_in_a_thread_or_with_plugins_of_its_own_is_judged_where_it_is(started_as_a_command):
    with ThreadPoolExecutor(1) as other:
        assert not other.submit(_wants_judge, started_as_a_command).result()
    started_as_a_command.invocation_params.plugins = [object()]
    assert not _wants_judge(started_as_a_command)
