"""The filter of system calls: its table, its program on both architectures, and what a real child meets."""

from __future__ import annotations

import errno
import json
import os
import platform
import re
import struct
from pathlib import Path

import pytest

from grader.child import seccomp
from grader.processes import bubblewrap
from tests.child.fenced import printed_by

MACHINES = list(seccomp.SECCOMP)
HERE = platform.machine()
CLONE_THREAD, CLONE_NEWUSER, CLONE_NEWNET = 0x10000, 0x10000000, 0x40000000
ITSELF = dict(seccomp.ONLY_ON_ITSELF, ioprio_set=(seccomp.IOPRIO_SET, (0, 1)))
HEADERS = {"x86_64": "x86_64-linux-gnu/asm/unistd_64.h", "aarch64": "asm-generic/unistd.h"}


def answer_to(machine: str, number: int, *arguments: int, architecture: int | None = None) -> int | None:
    """Runs the filter's program as the kernel would. Returns the error that a call gets; None if it is let through."""
    architecture = seccomp.AUDIT_ARCH[machine] if architecture is None else architecture
    given = [argument & (1 << 64) - 1 for argument in (*arguments, *[0] * 6)][:6]
    data = struct.pack("=iIQ6Q", number - (1 << 32 if number >= 1 << 31 else 0), architecture, 0, *given)
    steps = list(struct.iter_unpack("=HBBI", seccomp.program(machine)))
    at, word = 0, 0
    while True:
        code, if_true, if_false, value = steps[at]
        if code == seccomp.LOAD:
            (word,) = struct.unpack_from("=I", data, value)
            at += 1
        elif code == seccomp.RETURN:
            return None if value == seccomp.ALLOW else value & 0xFFFF
        else:
            held = {
                seccomp.EQUAL: word == value, seccomp.GREATER: word > value, seccomp.NOT_BELOW: word >= value,
                seccomp.ANY_BIT: bool(word & value),
            }[code]  # fmt: skip
            at += 1 + (if_true if held else if_false)


def number_of(name: str, machine: str) -> int | None:
    known = seccomp.REFUSED | {name: numbers for name, (numbers, _) in ITSELF.items()} | seccomp.WITHOUT_EFFECT
    known |= {"clone": seccomp.CLONE, "clone3": seccomp.CLONE3, "prctl": seccomp.PRCTL, "ioctl": seccomp.IOCTL}
    known |= {"fcntl": seccomp.FCNTL, "open": seccomp.OPEN, "openat": seccomp.OPENAT, "openat2": seccomp.OPENAT2}
    return known[name][MACHINES.index(machine)]


@pytest.mark.parametrize("machine", MACHINES)
def test_numbers_are_those_of_linux(machine):
    header = Path("/usr/include", HEADERS[machine])
    if not header.exists():
        pytest.skip(f"{header} is not installed")
    found = re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", header.read_text())
    known = {name: int(number) for name, number in found}
    names = [*seccomp.REFUSED, *ITSELF, *seccomp.WITHOUT_EFFECT, "clone", "clone3", "prctl", "ioctl"]
    names += ["fcntl", "open", "openat", "openat2"]
    differ = {name: (number_of(name, machine), known.get(name)) for name in names}
    newer = max(known.values())
    assert {name: two for name, two in differ.items() if two[0] != two[1] and (two[0] or 0) <= newer} == {}


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("name", seccomp.REFUSED)
def test_the_program_refuses_it(machine, name):
    number = number_of(name, machine)
    assert number is None or answer_to(machine, number) == errno.EPERM


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("name", ITSELF)
def test_a_process_may_change_itself_alone(machine, name):
    number, first = number_of(name, machine), 1 if name == "ioprio_set" else 0
    assert answer_to(machine, number, first, 0) is None
    whom = [first, 4321] if name in ("setpriority", "ioprio_set") else [4321, 0]
    assert answer_to(machine, number, *whom) == errno.EPERM
    assert answer_to(machine, number, *[-1, -1]) == errno.EPERM
    if name in ("setpriority", "ioprio_set"):  # of a group of processes, of all of a user
        assert [answer_to(machine, number, first + more, 0) for more in (1, 2)] == [errno.EPERM] * 2


@pytest.mark.parametrize("machine", MACHINES)
def test_forks_and_threads_are_let_through_and_namespaces_are_not(machine):
    clone = number_of("clone", machine)
    sigchld = 17
    assert answer_to(machine, clone, sigchld) is None and answer_to(machine, clone, CLONE_THREAD | 0x3D0F00) is None
    for flag in (0x20000, 0x2000000, 0x4000000, 0x8000000, CLONE_NEWUSER, 0x20000000, CLONE_NEWNET, 0x8000):
        assert answer_to(machine, clone, flag | sigchld) == errno.EPERM, hex(flag)
    assert answer_to(machine, number_of("clone3", machine)) == errno.ENOSYS


@pytest.mark.parametrize("machine", MACHINES)
def test_only_the_child_itself_is_told_of_its_orphans(machine):
    prctl = number_of("prctl", machine)
    assert answer_to(machine, prctl, seccomp.PR_SET_CHILD_SUBREAPER) == errno.EPERM
    assert answer_to(machine, prctl, seccomp.PR_SET_NO_NEW_PRIVS) is None


@pytest.mark.parametrize("machine", MACHINES)
def test_of_a_device_or_file_only_plain_questions_are_asked(machine):
    ioctl = number_of("ioctl", machine)
    assert [answer_to(machine, ioctl, 5, request) for request in seccomp.IOCTLS.values()] == [None] * len(
        seccomp.IOCTLS
    )
    flags_of_a_file, typed_into_a_terminal = 0x40086602, 0x5412
    assert [answer_to(machine, ioctl, 5, n) for n in (flags_of_a_file, typed_into_a_terminal)] == [errno.EPERM] * 2


@pytest.mark.parametrize("machine", MACHINES)
def test_a_descriptor_holds_up_nobody(machine):
    fcntl = number_of("fcntl", machine)
    duplicate, close_on_exec, size_of_a_pipe = 0, 2, 1032
    assert [answer_to(machine, fcntl, 5, command) for command in (duplicate, close_on_exec, size_of_a_pipe)] == [
        None
    ] * 3
    refused = seccomp.FCNTL_REFUSED.values()
    assert [answer_to(machine, fcntl, 5, command) for command in refused] == [errno.EPERM] * len(refused)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("name", ["open", "openat"])
def test_no_file_is_emptied_that_may_only_be_read(machine, name):
    number = number_of(name, machine)
    if number is None:
        pytest.skip(f"{machine} has no {name}")
    before = [0] if name == "open" else [-100, 0]
    create, append = 0o100, 0o2000
    for flags in (os.O_RDONLY, os.O_WRONLY | seccomp.TRUNCATE, os.O_RDWR | seccomp.TRUNCATE | create, append):
        assert answer_to(machine, number, *before, flags) is None, oct(flags)
    for flags in (seccomp.TRUNCATE, seccomp.TRUNCATE | create):
        assert answer_to(machine, number, *before, flags) == errno.EPERM, oct(flags)
    assert answer_to(machine, number_of("openat2", machine)) == errno.ENOSYS


@pytest.mark.parametrize("machine", MACHINES)
def test_another_set_of_calls_is_no_way_around(machine):
    other = seccomp.AUDIT_ARCH[MACHINES[1 - MACHINES.index(machine)]]
    i386, arm = 0x40000003, 0x40000028
    harmless = 0
    assert answer_to(machine, harmless) is None
    assert [answer_to(machine, harmless, architecture=one) for one in (other, i386, arm)] == [errno.EPERM] * 3
    assert answer_to(machine, seccomp.X32 + harmless) == answer_to(machine, 0xFFFFFFFF) == errno.EPERM
    assert answer_to(machine, seccomp.NEWEST_KNOWN + 1) == errno.ENOSYS


def test_an_architecture_without_numbers_has_no_filter(monkeypatch):
    monkeypatch.setattr(seccomp, "MACHINE", "riscv64")
    assert seccomp.close() is False


# ---- a real child ---------------------------------------------------------------------------------------------------

ASKS = """
import ctypes, json
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *arguments):
    ctypes.set_errno(0)
    given = [ctypes.c_long(argument) for argument in (*arguments, *[-1] * 6)][:6]
    returned = libc.syscall(ctypes.c_long(number), *given)
    return [returned, ctypes.get_errno()]
"""


def answers(calls: dict[str, list[int]], sandbox: int | None = None) -> dict[str, list[int]]:
    """Returns what each call gives back, and its error, in a child; arguments that are not given are -1."""
    text = f"{ASKS}\ncalls = {calls!r}\nprint(json.dumps({{name: call(*given) for name, given in calls.items()}}))"
    return json.loads(printed_by(text, sandbox))


@pytest.fixture(scope="module", params=["default", "strict"])
def isolation(request) -> int | None:
    if request.param == "strict" and bubblewrap.missing():
        pytest.skip(bubblewrap.missing())
    return bubblewrap.SUBMISSION if request.param == "strict" else None


@pytest.fixture(scope="module")
def refused_here(isolation) -> dict[str, list[int]]:
    """Every refused call, made once in the same child."""
    of_others = {"prlimit64": [1], "setpriority": [1, 0], "ioprio_set": [2, 0], "clone": [CLONE_NEWUSER | 17]}
    calls = {name: [number] for name in seccomp.REFUSED if (number := number_of(name, HERE)) is not None}
    calls |= {name: [number_of(name, HERE), *of_others.get(name, [1])] for name in (*ITSELF, "clone")}
    calls["prctl"] = [number_of("prctl", HERE), seccomp.PR_SET_CHILD_SUBREAPER, 0]
    calls["x32"] = [seccomp.X32 + 39]
    return answers(calls, isolation)


NAMES = [name for name in seccomp.REFUSED if HERE in MACHINES and number_of(name, HERE) is not None]


@pytest.mark.parametrize("name", [*NAMES, *ITSELF, "clone", "prctl", "x32"])
def test_a_child_is_refused(refused_here, name):
    assert refused_here[name] == [-1, errno.EPERM]


def test_a_child_takes_the_older_clone(isolation):
    assert answers({"clone3": [number_of("clone3", HERE)]}, isolation) == {"clone3": [-1, errno.ENOSYS]}


USUAL = """
import mmap, os, resource, signal, subprocess, sys
print(subprocess.run(["echo", "a program"], capture_output=True, text=True).stdout.strip())
print(subprocess.run(["echo", "in a session"], capture_output=True, text=True, start_new_session=True).stdout.strip())
if (pid := os.fork()) == 0:
    signal.pause()
os.kill(pid, signal.SIGKILL)
print("its child ended by", -os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (soft - 1, hard))
os.nice(1)
os.sched_setaffinity(0, os.sched_getaffinity(0))
print("its own limits, priority, cores")
os.close(os.memfd_create("own"))
mmap.mmap(-1, 4096).close()
print("its own memory", sys.stdout.isatty())
"""


def test_what_a_process_does_to_itself_stays_allowed(isolation):
    assert printed_by(USUAL, isolation).splitlines() == [
        "a program", "in a session", "its child ended by 9", "its own limits, priority, cores",
        "its own memory False",
    ]  # fmt: skip


def test_a_child_takes_no_lease_and_empties_no_file_that_it_reads(isolation):
    text = """
import fcntl, os
own = os.open("own", os.O_RDWR | os.O_CREAT | os.O_TRUNC)
print(os.write(own, b"three"))
for attempt in (lambda: fcntl.fcntl(own, fcntl.F_SETLEASE, fcntl.F_WRLCK), lambda: os.open("own", os.O_TRUNC)):
    try:
        attempt()
    except OSError as error:
        print(error.errno, os.fstat(own).st_size)
"""
    assert printed_by(text, isolation).splitlines() == ["5", f"{errno.EPERM} 5", f"{errno.EPERM} 5"]


def test_a_new_session_and_a_new_group_have_no_effect(isolation):
    text = """
import os
before = os.getsid(0), os.getpgid(0)
if (pid := os.fork()) == 0:
    os.setsid()
    os.setpgid(0, 0)
    os._exit((os.getsid(0), os.getpgid(0)) == before)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""
    assert printed_by(text, isolation) == "1"


def test_a_program_that_it_starts_is_filtered_too(isolation):
    text = "import subprocess, sys\nprint(subprocess.run([sys.executable, '-c', 'import socket; socket.socket()'],"
    text += " capture_output=True, text=True).stderr)"
    assert "PermissionError: [Errno 1]" in printed_by(text, isolation)
