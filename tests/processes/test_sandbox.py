"""bubblewrap around a submission, looked at from inside: past the list of what a file may import, on purpose."""

from __future__ import annotations

import os
import subprocess

import pytest

from grader.course.folder import Folder, load_test_file
from grader.explain.verdict import PASS
from grader.gpu.models import DEFAULT_MODEL
from grader.judging.judge import Judge
from grader.judging.run import Run
from grader.judging.uses import CheckUse, CompiledUse
from grader.numerics.data_sets import normal
from grader.processes import bubblewrap
from grader.processes.child import ChildProcess
from grader.processes.faults import ChildEnded
from grader.processes.triton_forkserver_client import TritonForkServer
from tests.conftest import ROOT
from tests.typed_commands import run_pytest

needs_bubblewrap = pytest.mark.skipif(bool(bubblewrap.missing()), reason=bubblewrap.missing() or "-")


def inside(text: str) -> str:
    """What a submission that consists of `text` prints in a sandbox; its failure, if it has one."""
    child = ChildProcess(DEFAULT_MODEL, bubblewrap.SUBMISSION)
    try:
        answer, _ = child.ask({"kind": "load", "filename": "kernel.py"}, text.encode(), 20)
        failure = answer["error"] or {}
        said = f"{failure.get('type', '')} {failure.get('message', '')}"
    except ChildEnded as ended:
        said = f"{ended.how} {ended.detail}"
    finally:
        child.end()
    return f"{child.printed}{said}".strip()


@needs_bubblewrap
def test_it_sees_the_judge_and_python_and_nothing_else():
    seen = inside(f"import os\nprint(*[os.path.exists(p) for p in {[str(ROOT / 'grader'), str(ROOT / 'solutions')]}])")
    assert seen == "True False"


@needs_bubblewrap
def test_what_an_installed_package_holds_of_the_course_is_an_empty_folder_inside(tmp_path, monkeypatch):
    packages = tmp_path / "prefix/lib/site-packages"
    for name in ("torch/torch.py", "triton_course/solutions/softmax.py"):
        (packages / name).parent.mkdir(parents=True)
        (packages / name).touch()
    monkeypatch.setattr(bubblewrap, "COURSE", packages / "triton_course")
    monkeypatch.setattr(bubblewrap, "is_installed", lambda: True)
    monkeypatch.setattr(bubblewrap, "places_of_python", lambda path: [tmp_path / "prefix"])
    (tmp_path / "own").mkdir()
    walls, _ = bubblewrap.command(str(tmp_path / "own"), [], {})
    script = f"cd {packages}; ls torch; ls -A triton_course; touch triton_course/left"
    done = subprocess.run([*walls, "/bin/sh", "-c", script], capture_output=True, text=True)
    assert done.stdout == "torch.py\n" and "Read-only file system" in done.stderr


@needs_bubblewrap
@pytest.mark.parametrize(
    "text, said",
    [
        ("open('/tmp/course_was_here', 'w')", "OSError"),
        ("open('/dev/shm/left', 'w')", "OSError"),
        ("import socket\nsocket.create_connection(('127.0.0.1', 80), 1)", "PermissionError"),
        ("import os, signal\nos.kill(os.getppid(), signal.SIGKILL)", "PermissionError"),
        ("import os, signal\nos.kill(os.getppid(), signal.SIGSTOP)", "PermissionError"),
        ("import os\nopen(f'/proc/{os.getppid()}/mem', 'rb')", "PermissionError"),
        ("open('/proc/1/cmdline')", "PermissionError"),
        ("import os\nos.listdir('/proc')", "PermissionError"),
        ("import os\nkept = [os.pipe() for _ in range(200)]", "Too many open files"),
        ("import os\nos._exit(7)", "exit 7"),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)", "signal 11"),
    ],
)
def test_attacks_meet_a_wall(text, said):
    assert said in inside(text)


@needs_bubblewrap
def test_what_a_submission_leaves_behind_is_gone_with_it():
    leave = (
        "import os, time\nfor _ in range(30):\n    if os.fork() == 0:\n        os.setsid()\n        time.sleep(600)\n"
    )
    assert inside(f"{leave}open('left', 'w').write('x')") == ""
    others = """
import os
def is_there(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
print([pid for pid in range(3, 1000) if pid != os.getpid() and is_there(pid)])"""
    seen = inside(f"{others}\nprint(os.listdir('.'), len(os.listdir('..')))")
    assert seen == "[]\n['kernel.py'] 1"


@needs_bubblewrap
def test_processes_are_few_for_an_ordinary_user():
    if os.getuid() == 0:
        pytest.skip("Linux does not count the processes of root")
    assert "BlockingIOError" in inside("import os\nwhile True:\n    if os.fork() == 0:\n        break")


@needs_bubblewrap
def test_a_triton_fork_server_that_was_lost_is_replaced():
    from grader.processes.triton_forkserver_client import shared_triton_fork_server

    assert inside("print(1)") == "1"
    lost = shared_triton_fork_server(DEFAULT_MODEL, bubblewrap.SUBMISSION)
    lost._process.kill()
    lost._process.wait()
    assert inside("print(2)") == "2"


@needs_bubblewrap
def test_a_hanging_submission_ends_at_its_time_limit():
    child = ChildProcess(DEFAULT_MODEL, bubblewrap.SUBMISSION)
    with pytest.raises(ChildEnded) as ended:
        child.ask({"kind": "load", "filename": "kernel.py"}, b"while True: pass", 1)
    assert ended.value.how == "time"


def test_strict_refuses_without_bubblewrap(tmp_path):
    bubblewrap.missing.cache_clear()  # once known, it is not looked for again
    try:
        done = run_pytest("exercises/01_masked_add", "--isolation", "strict", cwd=ROOT, PATH=str(tmp_path))
    finally:
        bubblewrap.missing.cache_clear()
    assert done.status == 4
    assert "--isolation strict: bubblewrap is not installed" in done.out + done.err
    assert "Nothing was graded." in done.out + done.err


@needs_bubblewrap
def test_a_text_is_made_in_a_sandbox_of_its_own(monkeypatch):
    """A sandbox has room for one child: making a text must not end the recording, nor run outside."""
    made: list[tuple] = []
    start = TritonForkServer.child
    monkeypatch.setattr(
        TritonForkServer, "child", lambda *given: made.append((given[0], given[0].sandboxed)) or start(*given)
    )
    folder = Folder(ROOT / "exercises/03_softmax")
    judge = Judge(load_test_file(folder).exercise, Run(folder, "solutions", seed=1, sandboxed=True))
    try:
        assert CheckUse.of("test", normal(9, 70), dtypes=("float32",)).verdict(judge).outcome == PASS
        assert CompiledUse.of("test", normal(64, 1024)).verdict(judge).outcome == PASS
    finally:
        judge.run.end()
    recorder, *others = [triton_server for triton_server, sandboxed in made if sandboxed]
    assert len(others) == 1 and others[0] is not recorder
