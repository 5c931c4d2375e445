"""Whatever a learner's file does, the answer is an ordinary verdict with its own sentence, and the run goes on."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from grader.explain.verdict import FAIL, PASS, SKIPPED, WAITED
from grader.judging.work_ahead import Foreseen
from grader.numerics.data_sets import normal
from grader.processes.call_clock import CallClock
from grader.processes.faults import ChildEnded
from tests.waiting import until

ROOT = Path(__file__).resolve().parent.parent
HEAD = "import os, sys\nimport torch\nimport triton\nimport triton.language as tl\n"
KERNEL = """
@triton.jit
def masked_add_kernel(x_ptr, y_ptr, z_ptr, N, BLOCK_N: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = offsets < N
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(z_ptr + offsets, x + y, mask=mask)
"""
LAUNCH = "    masked_add_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, z, x.numel(), BLOCK_N=1024)\n"
RIGHT = f"{HEAD}{KERNEL}\ndef masked_add(x, y):\n    z = torch.empty_like(x)\n{LAUNCH}    return z\n"


@pytest.fixture(autouse=True)
def behind_the_list(monkeypatch):
    """Most of these files would be refused as text. Here it is seen what holds if one were not."""
    monkeypatch.setattr("grader.judging.judge.all_refused", lambda tree: [])


def host(body: str) -> str:
    """A file whose kernel is right and whose entry does `body` before returning z."""
    return RIGHT.replace("    return z\n", "".join(f"    {line}\n" for line in body.splitlines()) + "    return z\n")


def kernel(line: str) -> str:
    """A file whose kernel does `line` before its store."""
    return RIGHT.replace("    tl.store(", f"    {line}\n    tl.store(")


SENTENCES = {
    "syntax error": (RIGHT.replace("mask = offsets < N", "mask = (offsets < N"), "is not valid Python"),
    "a range for a tile": (
        RIGHT.replace("tl.arange(0, BLOCK_N)", "range(BLOCK_N)"),
        "Python's range is no tile: tl.arange(0, BLOCK_N) makes one (line 8).",
    ),
    "a notebook's command": (f"{RIGHT}%matplotlib inline\n", "is a command of notebooks and no Python"),
    "a notebook's call of a shell": (f"!nvidia-smi\n{RIGHT}", "Line 1 of masked_add.py is a command of notebooks"),
    "a notebook": ('{"cells": [], "a": false}', "masked_add.py is a notebook, saved under the name of a Python file"),
    "a notebook as Jupyter writes it": ('{\n "cells": [],\n "a": false\n}', "masked_add.py is a notebook, saved"),
    "null byte": (RIGHT + "\0", "is not valid Python"),
    "import error": (
        f"import nonexistent_package\n{RIGHT}",
        "cannot be imported: No module named 'nonexistent_package'",
    ),
    "another encoding": (b"# coding: utf-7\n" + RIGHT.encode(), "Line 1 of masked_add.py says that its text is utf-7"),
    "an encoding that nobody knows": (b"\n# coding: ebcdic-9\n" + RIGHT.encode(), "says that its text is ebcdic-9"),
    "not UTF-8": (RIGHT.encode() + b"# \xff\xfe\n", "is not UTF-8 text from line"),
    "exception at import": (f"{RIGHT}\nraise ValueError('too early')\n", "raises ValueError in line"),
    "sys.exit at import": (f"{RIGHT}\nsys.exit(0)\n", "ends the program in line"),
    "os._exit at import": (f"{RIGHT}\nos._exit(0)\n", "Importing masked_add.py ended its process (exit status 0)"),
    "entry missing": (RIGHT.replace("def masked_add(", "def add("), "defines no function masked_add"),
    "entry is a number": (f"{RIGHT}\nmasked_add = 3\n", "defines no function masked_add"),
    "wrong arity": (RIGHT.replace("(x, y):", "(x):\n    y = x"), "masked_add takes 1 argument"),
    "returns None": (RIGHT.replace("    return z\n", ""), "returns nothing (None)"),
    "returns a list": (
        RIGHT.replace("return z", "return z.tolist()"),
        ".tolist() in line 17 asks for the values of a tensor, and those only kernels see.",
    ),
    "returns a tuple": (RIGHT.replace("return z", "return (z,)"), "returns an object of type tuple"),
    "wrong dtype": (
        RIGHT.replace("torch.empty_like(x)", "torch.empty(x.shape, dtype=torch.float64, device=x.device)"),
        "z has dtype fp64; fp32",
    ),
    "wrong shape": (RIGHT.replace("return z", "return z[:-1]"), "z has shape (2047,); (2048,) was expected"),
    "wrong device": (
        RIGHT.replace("return z", 'return torch.empty(x.shape, device="cpu")'),
        "masked_add returns a tensor on the CPU: use the input's device.",
    ),
    "complex result on the CPU": (
        RIGHT.replace("return z", "return torch.zeros(x.shape, dtype=torch.complex64)"),
        "returns a tensor of dtype complex64, where fp32 was expected, and on the CPU",
    ),
    "a value in a text": (
        host("print(f'{x[0]:.1f}')"),
        "A format such as :.1f in line 17 asks for the values of a tensor, and those only kernels see.",
    ),
    "a result without memory": (
        host("return torch.empty(x.shape, device='meta')"),
        "Line 17: device='meta' makes tensors without memory: allocate on the input's device",
    ),
    "default device without memory": (
        host("torch.set_default_device('meta')"),
        "Line 17: device='meta' makes tensors without memory",
    ),
    "a library that lacks a part": (
        host("import importlib\nimportlib.import_module('nothing_there')"),
        "masked_add cannot be called: No module named 'nothing_there' (line 18).",
    ),
    "a file that is not there": (
        host("import numpy\nnumpy.load('nothing.npy')"),
        "masked_add raises FileNotFoundError in line 18",
    ),
    "a million launches": (
        host("for _ in range(1000000):\n    masked_add_kernel[(1,)](x, y, z, 1, BLOCK_N=1024)"),
        "Line 18: more than 64 launches in one call.",
    ),
    "a grid below 0": (
        RIGHT.replace("(triton.cdiv(x.numel(), 1024),)", "(x.numel() // 1024 - 5,)"),
        "Line 16: the grid (-3,) has a size below 0: how many programs are there to be?",
    ),
    "launched on the CPU's memory": (
        RIGHT.replace("torch.empty_like(x)", "torch.empty(x.shape)"),
        "z_ptr lies in the CPU's memory",
    ),
    "kernel never launched": (RIGHT.replace(LAUNCH, ""), "returned without launching a kernel"),
    "exception in the host code": (host("raise KeyError('lost')"), "masked_add raises KeyError in line 17: 'lost'"),
    "grid is a number": (
        RIGHT.replace("(triton.cdiv(x.numel(), 1024),)", "triton.cdiv(x.numel(), 1024)"),
        "the grid must be a tuple, such as (n,)",
    ),
    "grid is a float": (
        RIGHT.replace("triton.cdiv(x.numel(), 1024)", "x.numel() / 1024"),
        "the grid must hold whole numbers: triton.cdiv rounds up",
    ),
    "torch in the kernel": (
        kernel("torch.arange(4)"),
        "The compiler refuses line 12: a kernel sees no globals, and torch is one",
    ),
    "exception in the kernel": (
        kernel("tl.arange(0, 7)"),
        "The compiler refuses line 12: the length of tl.arange has to be a power of two",
    ),
    "wrong name in the kernel": (
        kernel("undefined_name + 1"),
        "The compiler refuses line 12: undefined_name is not defined",
    ),
    "endless recursion": (host("def again():\n    again()\nagain()"), "raises RecursionError"),
    "endless recursion that allocates": (host("masked_add(x, y)"), "more than 64 tensors are allocated in one call"),
    "memory bomb": (
        host("import numpy\nhoard = [numpy.empty(1 << 28, 'u1') for _ in range(16)]"),
        "asks for more memory",
    ),
    "torch memory bomb": (host("hoard = torch.zeros(1 << 35)"), "asks for more memory"),
    "segmentation fault": (host("import ctypes; ctypes.string_at(0)"), "segmentation fault"),
    "abort": (host("os.abort()"), "crashed its process (SIGABRT)"),
    "sys.exit": (host("sys.exit(0)"), "ends the program in line 17 (SystemExit)"),
    "os._exit": (host("os._exit(0)"), "ended its process (exit status 0)"),
    "kill -9 of itself": (host("os.kill(os.getpid(), 9)"), "was killed (signal 9)"),
    "starts a thread": (
        host("import threading, time\nthreading.Thread(target=time.sleep, args=(60,)).start()"),
        "starts a thread, which torch does not watch",
    ),
    "leaves a process": (
        host("import subprocess\nself_ = subprocess.Popen(['sleep', '60'], start_new_session=True)"),
        "left 1 process running",
    ),
    "starts many processes": (
        host("import signal\nfor _ in range(100):\n    if os.fork() == 0: signal.pause()\nwhile True: signal.pause()"),
        "masked_add started more than 64 processes and threads.",
    ),
    "changes an input": (host("x.zero_()"), "masked_add changes x"),
    "closes its descriptors": (host("os.closerange(3, 100)"), "masked_add ended its process"),
    "writes to every descriptor": (
        host('for fd in range(3, 100):\n    try: os.write(fd, b\'{"kind": "ran"}\' * 9)\n    except OSError: pass'),
        "masked_add left its process unable to answer",
    ),
    "deletes files beside it": (
        host("os.unlink(os.path.join(FOLDER, 'test_masked_add.py'))"),
        "raises PermissionError",
    ),
    "rewrites files beside it": (
        host("open(os.path.join(FOLDER, 'test_masked_add.py'), 'w').write('')"),
        "raises PermissionError",
    ),
}


@pytest.mark.parametrize("name", SENTENCES)
def test_gets_its_own_sentence(bench, tmp_path, name):
    source, sentence = SENTENCES[name]
    if not isinstance(source, bytes):
        source = source.replace("FOLDER", repr(str(tmp_path)))
    (tmp_path / "test_masked_add.py").write_text("beside")
    judged = bench(source)
    verdict = judged.check(normal(2048), normal(2048))
    assert verdict.outcome == FAIL
    assert sentence in " ".join(verdict.lines)
    assert "Traceback" not in " ".join(verdict.lines)
    assert judged.path.exists() and (tmp_path / "test_masked_add.py").read_text() == "beside"


def test_missing_file(bench, tmp_path):
    judged = bench(RIGHT)
    judged.path.unlink()
    again = bench(RIGHT)
    again.path.unlink()
    from grader.judging.run import Run

    run = Run(judged.run.folder, str(judged.path), 1)
    assert run.submission.failure.kind == "missing"


HANGS = {
    "a loop": (host("while True:\n    pass"), "it was in (line 18, in )?the loop that begins in line 17."),
    "one operation": (host("10 ** 10 ** 9"), "it was in line 17. Does this line"),
    "printing": (
        host("while True:\n    print('=' * 1000)"),
        "it was in (line 18, in )?the loop that begins in line 17.",
    ),
    "waiting": (host("import time\ntime.sleep(1e6)"), "it was in line 18."),
    "compiling": (
        kernel("for k in tl.static_range(1 << 30):\n        x += y"),
        "the compiler was still at work on what line 18 launches. tl.static_range",
    ),
}


@pytest.mark.parametrize("name", HANGS)
def test_what_has_no_end_is_ended_at_its_limit_and_told_by_its_line(bench, monkeypatch, name):
    source, sentence = HANGS[name]
    monkeypatch.setattr("grader.judging.run.RECORD_LIMIT", 1.0)
    monkeypatch.setattr("grader.processes.front_end_process.LIMIT", 1.0)
    monkeypatch.setattr("grader.processes.call_clock.WAITING", 1.0)
    judged = bench(source)
    verdict = judged.check(normal(5), normal(5))
    assert re.search(f"masked_add was stopped after 1 s: {sentence}", " ".join(verdict.lines)), verdict.lines
    assert verdict.line and verdict.lines[-1] == f"Line {verdict.line}:  {judged.run.submission.line(verdict.line)}"
    assert "Stack" not in judged.run.process.printed
    again = judged.check(normal(2048), normal(2048))
    assert (again.outcome, again.id) == (SKIPPED, WAITED) and "ran out of time" in again.note


def test_what_has_no_end_in_an_earlier_call_either_is_told_with_the_limit_of_both(bench, monkeypatch):
    """The first call may be one that is recorded ahead, of which nothing is told until one is asked for."""
    monkeypatch.setattr("grader.judging.run.RECORD_LIMIT", 1.0)
    monkeypatch.setattr("grader.processes.submission_process.LIMIT_AFTER_AN_END", 0.5)
    judged = bench(HANGS["a loop"][0])
    ahead = judged.judge.trial("ahead", (normal(6), normal(6)), "float32", None, {})
    judged.run.record_in_drawn_order([Foreseen(ahead)])
    verdict = judged.check(normal(5), normal(5))
    limits = "after 1 s, and another call of it after 0.5 s"
    assert verdict.lines[0].startswith(f"masked_add was stopped {limits}: it was in ") and verdict.line == 17


def test_calls_that_wait_a_little_each_end_the_run_together(bench, monkeypatch):
    """Each call goes on once it has been seen to wait: the parent then lays a file into its folder."""
    monkeypatch.setattr("grader.processes.submission_process.MOST_WAITING", 0.01)
    judged = bench(host("import time\nwhile not os.path.exists('seen'):\n    time.sleep(0.05)"))
    look = CallClock._look

    def looked(clock: CallClock) -> None:
        look(clock)
        if clock.waited > 0.01 and (child := judged.run.process._child):
            (child.folder / "seen").touch()

    monkeypatch.setattr(CallClock, "_look", looked)
    verdicts = [judged.check(normal(size), normal(size), dtypes=("float32",)) for size in (5, 6)]
    limit = "masked_add was stopped after the 0.01 s that all its calls together may wait"
    assert verdicts[0].id == "time-limit" and verdicts[0].lines[0].startswith(limit), verdicts[0].lines
    assert judged.run.process.printed == "" and verdicts[1].outcome == SKIPPED
    assert "ran out of time" in verdicts[1].note


def test_an_import_without_end_is_told_by_its_line(bench, monkeypatch):
    monkeypatch.setattr("grader.processes.submission_process.LOAD_LIMIT", 1.0)
    verdict = bench(f"{RIGHT}\nX = 10 ** 10 ** 9\n").check(normal(5), normal(5))
    assert verdict.kind == "file" and verdict.line == 19
    assert verdict.lines[0] == "Importing masked_add.py was stopped after 1 s: it was in line 19."
    assert "__main__" in verdict.lines[1] and verdict.lines[2] == "Line 19:  X = 10 ** 10 ** 9"


def test_what_follows_a_call_is_not_charged_to_it(bench):
    """Reading the next request is work too: one with 200 MB takes longer than what may be left of a call's limit."""
    judged = bench(RIGHT)
    judged.check(normal(5), normal(5))

    def limits() -> list[str]:
        """The soft and the hard limit."""
        lines = Path("/proc", str(judged.run.process._child._pid), "limits").read_text().splitlines()
        return next(line for line in lines if "cpu time" in line).split()[3:5]

    until(lambda: len(set(limits())) == 1, limits)  # the child takes the limit back once its answer is sent
    assert "unlimited" not in limits()


def test_a_call_that_waits_for_ever_ends_too(bench):
    """It computes nothing, so the limit on that alone would not end it."""
    judged = bench(RIGHT)
    judged.check(normal(5), normal(5))
    child = judged.run.process._child
    os.kill(child._pid, signal.SIGSTOP)
    with pytest.raises(ChildEnded) as ended:
        child.ask({"kind": "record"}, b"", 0.2)
    assert (ended.value.how, ended.value.detail) == ("time", "0.2 s")


def in_a_second(judged):
    judged.judge.interpreted.exercise = judged.judge.exercise = replace(judged.judge.exercise, time_limit=1.0)
    return judged


def test_endless_loop_in_the_kernel(bench):
    judged = in_a_second(bench(kernel("while N > 0:\n        tl.store(z_ptr + offsets, x, mask=mask)")))
    verdict = judged.check(normal(5), normal(5))
    assert verdict.lines[0].startswith(
        "The `while` in line 12 never ends: no iteration changes what its condition asks for."
    )
    assert verdict.line == 12 and verdict.id == "endless"
    assert judged.check(normal(2048), normal(2048)).id == WAITED


def test_an_endless_loop_that_changes_its_numbers_is_ended_at_its_limit(bench):
    loop = "k = N\n    while k > 0:\n        tl.store(z_ptr + offsets, x + k, mask=mask)\n        k = 3 - k % 2"
    verdict = in_a_second(bench(kernel(loop))).check(normal(5), normal(5))
    assert verdict.lines[0].startswith("The kernel does not come to an end: ") and verdict.line in (13, 14, 15)


def test_a_program_that_waits_for_a_later_one_is_told_so(bench):
    wait = "while tl.atomic_add(z_ptr, 0.0) != 2.0:\n        pass"
    verdict = in_a_second(bench(kernel(wait))).check(normal(3000), normal(3000))
    assert verdict.id == "endless" and verdict.lines[0].startswith(
        "The kernel does not come to an end: program (0,) asks again and again for what other programs have to do "
    ), verdict.lines


@pytest.mark.parametrize("programs", [2**31 - 1, 70_000_000])
def test_a_grid_without_measure_is_told_by_its_size(bench, programs):
    judged = in_a_second(bench(RIGHT.replace("triton.cdiv(x.numel(), 1024)", str(programs))))
    verdict = judged.check(normal(5), normal(5))
    assert verdict.id == "grid" and verdict.line == 16
    assert re.search(rf"The launch in line 16 asks .*: \d+ of {programs} came to their end", verdict.lines[0])


def test_a_program_that_waits_for_ever_is_not_taken_for_a_large_grid(bench):
    source = kernel("while tl.program_id(0) > 0:\n        tl.atomic_add(z_ptr, 0.0)").replace("1024", "16")
    verdict = in_a_second(bench(source)).check(normal(500), normal(500))
    assert verdict.id == "endless" and verdict.line in (12, 13)


def test_a_loop_that_the_compiler_drops_is_no_loop(bench):
    assert bench(kernel("while N > 0:\n        N += 0")).check(normal(5), normal(5)).outcome == PASS


def test_a_sum_of_no_terms_may_be_a_fill(bench):
    source = (ROOT / "solutions/05_grouped_matmul/grouped_matmul.py").read_text()
    for when, given in (("==", 0), (">", 3)):
        filled = source.replace("    grid = (", f"    if K {when} 0:\n        return c.zero_()\n    grid = (")
        verdict = bench(filled, "05_grouped_matmul").check(normal(5, given), normal(given, 7))
        assert verdict.outcome == PASS or verdict.lines[0] == "matmul returned without launching a kernel."
        assert (verdict.outcome == PASS) == (given == 0)


def test_after_a_crash_the_next_test_runs(bench):
    judged = bench(RIGHT.replace("    z = torch", "    if x.numel() == 5:\n        os.abort()\n    z = torch"))
    assert judged.check(normal(5), normal(5)).outcome == FAIL
    assert judged.check(normal(2048), normal(2048)).outcome == PASS


def test_a_file_that_ends_its_process_in_every_call_is_not_asked_for_ever(bench):
    judged = bench(host("os.abort()"))
    outcomes = [judged.check(normal(size), normal(size)).outcome for size in (5, 6, 7, 8)]
    assert outcomes == [FAIL, FAIL, FAIL, SKIPPED]


FLOOD = "for _ in range(20):\n    print('=' * (1 << 20))"


def test_80_mb_of_print_change_no_verdict(bench):
    judged = bench(host(FLOOD))
    assert judged.check(normal(100), normal(100)).outcome == PASS
    judged.run.end()
    assert judged.run.process.printed_bytes >= 80 << 20  # 2 dtypes, each called twice
    assert len(judged.run.process.printed) <= 4000


@pytest.mark.parametrize("text", ["PASSED", '{"kind": "ran", "outputs": []}', "\\x1b[2J"])
def test_printing_changes_no_verdict(bench, text):
    wrong = host(f"print('{text}', flush=True)\nprint('{text}', file=sys.stderr)").replace("x + y", "x - y")
    assert bench(wrong).check(normal(100), normal(100)).outcome == FAIL


def test_processes_left_behind_are_ended(bench, tmp_path):
    """Also one that left the child's session and its parent."""
    note = tmp_path / "note"
    body = f"import subprocess\nsubprocess.run(['setsid', '-f', 'sleep', '1234'])\nopen({str(note)!r})"
    judged = bench(host(body))
    judged.check(normal(100), normal(100))
    judged.run.end()
    assert not [pid for pid in _pids() if b"sleep\x001234" in _command(pid)]


def _pids() -> list[str]:
    return [name for name in os.listdir("/proc") if name.isdigit()]


def _command(pid: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def test_a_forked_process_is_ended_too(bench, tmp_path):
    """A fork shares its parent's environment as it was when that was started; its folder gives it away."""
    body = (
        "if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        import time\n        time.sleep(4321)\n"
    )
    body += "    os._exit(0)"
    judged = bench(host(body))
    judged.check(normal(100), normal(100))
    folder = judged.run.process._child.folder
    judged.run.end()
    assert not [pid for pid in _pids() if _folder_of(pid) == str(folder)]


def _folder_of(pid: str) -> str:
    try:
        return os.readlink(f"/proc/{pid}/cwd")
    except OSError:
        return ""


def test_the_temporary_folder_is_removed(bench):
    judged = bench(host("open('leftover', 'w').write('x')"))
    assert judged.check(normal(100), normal(100)).outcome == PASS
    folder = judged.run.process._child.folder
    judged.run.end()
    assert not folder.exists()


def test_a_killed_parent_leaves_nothing_running(tmp_path):
    """SIGKILL of pytest in the middle of an endless loop: the children notice, or run into their limit of CPU time."""
    script = (
        "import sys; from grader.processes.child import ChildProcess\n"
        "from grader.processes.triton_forkserver_client import shared_triton_fork_server\n"
        "child = ChildProcess(); print(child.folder, shared_triton_fork_server().folder, flush=True)\n"
        "sys.stdin.read()\n"
    )
    command = [sys.executable, "-c", script]
    parent = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    folders = [Path(name) for name in parent.stdout.readline().split()]
    assert len(folders) == 2 and all(folder.exists() for folder in folders)
    parent.kill()
    parent.wait()
    until(lambda: not any(folder.exists() for folder in folders), lambda: folders)
