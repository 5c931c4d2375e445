"""`python -m tests.reads [FILE]`: records in tests/reads.json which parts of the course each test reads.

Each test file runs in a pytest of its own, alone in a checkout. inotify, of Linux, reports each file of the course that
is opened while a test runs, by whatever process. A copy that a test makes is watched like the course, and making it is
no reading. A file with a failing test is not recorded.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue

import pytest

from grader.author.git import git_text
from grader.author.touched import OF_ONE
from grader.course.folder import all_folders
from grader.files import write_whole

ROOT = Path(__file__).resolve().parent.parent
FILE = "tests/reads.json"
RESULT = "RECORDED_READS"  # names the file into which pytest's process writes what it has recorded
OF_PAGES = re.compile(r"docs/|[^/]+\.md$|tests/(?:proven|reads|(?:mutants|gates)/[^/]+)\.json$")
SHALLOW = (".", "tests")  # folders whose own files are watched, and not what lies deeper
PLACES = ("exercises", "solutions", "hints", "docs", "tests/mutants", "tests/accepted", "tests/cheats", "tests/gates")
SLOW = ":!tests/classroom/slow"  # these take an hour, and are chosen by nobody: tox -e slow runs them all
EVERYTHING, EVERY_EXERCISE = "*", "exercises"  # of these, lessons too
OWN = "{id}"  # the exercises that the parameters in brackets name
OPEN, CREATE, OVERFLOW, OF_FOLDER = 0x20, 0x100, 0x4000, 0x40000000
AT_A_TIME = 3  # for two cores: some tests wait for processes, and others compute meanwhile
EVENT = struct.Struct("iIII")


def part_of(path: str, listed: bool = False) -> str:
    """Returns the id of the exercise or lesson that a file belongs to, or the path of a page; "" of other files.

    A folder that is `listed` counts only where files come and go with one exercise: its mutants and their like.
    """
    if match := OF_ONE.match(path):
        return match[1] if not listed or path.startswith("tests/") else ""
    return path if OF_PAGES.match(path) and not listed else ""


def named_in(test: str, id: str) -> bool:
    """Returns whether the parameters of a test, which stand in brackets, name the exercise: by its id or number."""
    parameters = test.partition("[")[2]
    return id in parameters or re.search(rf"(?<![\w.]){id[:2]}(?![\w.])", parameters) is not None


class Watch:
    """Folders of the course and of its copies, and what has been opened in them."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._queue = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        self._folders: dict[int, tuple[Path, str]] = {}
        self._seen: set[str] = set()
        for place in (*SHALLOW, *PLACES):
            self._add(ROOT / place, place, deep=place in PLACES)
        self._events()

    def _add(self, folder: Path, place: str, deep: bool = True) -> None:
        watched = self._libc.inotify_add_watch(self._queue, os.fsencode(folder), OPEN | CREATE)
        if watched < 0:
            raise OSError(ctypes.get_errno(), f"inotify cannot watch {folder}")
        self._folders[watched] = folder, place
        for each in os.scandir(folder) if deep else ():
            if each.is_dir(follow_symlinks=False):
                self._add(folder / each.name, f"{place}/{each.name}")

    def _events(self) -> bytes:
        events = b""
        with contextlib.suppress(BlockingIOError):
            while True:
                events += os.read(self._queue, 1 << 20)
        return events

    def opened(self) -> set[str]:
        """Returns the parts of the course in which something was opened since the last question."""
        self._look()
        opened, self._seen = self._seen - {""}, set()
        return opened

    def _look(self) -> None:
        while events := self._events():
            while events:
                watched, mask, _, length = EVENT.unpack_from(events)
                self._note(watched, mask, os.fsdecode(events[EVENT.size : EVENT.size + length].rstrip(b"\0")))
                events = events[EVENT.size + length :]

    def _note(self, watched: int, mask: int, name: str) -> None:
        if mask & OVERFLOW:
            self._seen.add(EVERYTHING)
            return
        folder, place = self._folders[watched]
        path = f"{place}/{name}".removeprefix("./").rstrip("/")
        if mask & CREATE and mask & OF_FOLDER and place not in SHALLOW:
            with contextlib.suppress(FileNotFoundError):  # it is gone again
                self._add(folder / name, path)  # __pycache__, in which a file of the course is read again
        if mask & OPEN:
            self._seen.add(part_of(path, listed=bool(mask & OF_FOLDER)))

    def copytree(self, copy: Callable, source: str | Path, target: str | Path, *more, **named) -> str | Path:
        """Has `copy` copy a folder. If it is of the course, its copy is watched, and copying it is no reading."""
        place = dict(self._folders.values()).get(Path(source).absolute())
        self._look()
        made = copy(source, target, *more, **named)
        if place is not None:
            self._add(Path(target).absolute(), place)
            self._events()
        return made


class Recorder:
    """A plugin of pytest's that notes for each test of one file what was opened while it ran."""

    def __init__(self) -> None:
        self._watch = Watch()
        shutil.copytree = functools.partial(self._watch.copytree, shutil.copytree)
        self._tests: dict[str, set[str]] = {}
        self._of_file: set[str] = set()  # what is read as the file is imported
        self._shared: set[str] = set()  # names of fixtures that several tests share
        self._sharing: set[str] = set()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._of_file |= self._watch.opened()
        _forget()
        done = yield
        test = item.nodeid.partition("::")[2]
        name, opened = test.partition("[")[0], {OWN if named_in(test, part) else part for part in self._watch.opened()}
        self._tests.setdefault(name, set()).update(opened)
        if self._shared.intersection(getattr(item, "fixturenames", ())):
            self._sharing.add(name)
        return done

    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef) -> None:
        """A fixture of several tests may hold a process, or keep what it has read: what one reads, all may see."""
        if fixturedef.baseid and fixturedef.scope != "function":
            self._shared.add(fixturedef.argname)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A test that was skipped may read anything where it is not."""
        if report.skipped:
            self._tests.setdefault(report.nodeid.partition("::")[2].partition("[")[0], set()).add(EVERYTHING)

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        if exitstatus == pytest.ExitCode.OK:
            Path(os.environ[RESULT]).write_text(json.dumps(self._by_reads()), encoding="utf-8")

    def _by_reads(self) -> dict[str, list[str]]:
        """Returns the names of the tests by what they read, in one line: parts of the course with blanks between."""
        ids = {folder.id for folder in all_folders(ROOT)}
        shared = set().union(*(self._tests[test] for test in self._sharing))
        found: dict[str, list[str]] = {}
        for test, reads in sorted(self._tests.items()):
            reads = reads | self._of_file | (shared if test in self._sharing else set())
            if EVERYTHING in reads:
                reads = {EVERYTHING}
            elif ids <= reads:
                reads = {EVERY_EXERCISE, *(part for part in reads if OF_PAGES.match(part))}
            found.setdefault(" ".join(sorted(reads)), []).append(test)
        return found


def _forget() -> None:
    """Empties what this process keeps of files: another test would not open them again."""
    for name, module in list(sys.modules.items()):
        if name.startswith(("grader.", "tests.")):
            for each in vars(module).values():
                if isinstance(each, functools._lru_cache_wrapper):
                    each.cache_clear()
        elif OF_ONE.search(str(getattr(module, "__file__", ""))):
            del sys.modules[name]  # of an exercise


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Recorder())


def recorded(checkout: Path, test_file: str) -> dict[str, list[str]] | None:
    """Returns what each test of a file reads; None where one of them fails, or none was collected."""
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "reads.json"
        command = [sys.executable, "-m", "pytest", "-q", "--tb=short", "-p", "tests.reads", test_file]
        environment = {**os.environ, "PYTHONPATH": str(checkout), RESULT: str(result)}
        done = subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True)
        print(f"{test_file}: {done.stdout.strip() if done.returncode else 'recorded'}", flush=True)
        return json.loads(result.read_text(encoding="utf-8")) if result.exists() else None


@contextlib.contextmanager
def checkouts() -> Iterator[Queue[Path]]:
    """Gives checkouts of the commit for the time of the block. In each one file is tested at a time, and no more."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"course{number}" for number in range(AT_A_TIME)]
        free: Queue[Path] = Queue()
        try:
            for path in paths:
                git_text(ROOT, "worktree", "add", "--detach", str(path), "HEAD")
                free.put(path)
            yield free
        finally:
            for path in paths:
                git_text(ROOT, "worktree", "remove", "--force", str(path))


def main(test_files: list[str]) -> int:
    """Records the files that are not yet recorded at this commit; without arguments, all."""
    commit = git_text(ROOT, "rev-parse", "HEAD")
    if git_text(ROOT, "status", "--porcelain", "--", ".", f":!{FILE}"):
        raise SystemExit("Something is not committed: commit it first, or no commit is recorded.")
    kept = json.loads((ROOT / FILE).read_text(encoding="utf-8")) if (ROOT / FILE).exists() else {}
    files = kept["files"] if kept.get("commit") == commit else {}
    tests = test_files or git_text(ROOT, "ls-files", "tests/**/test_*.py", "tests/test_*.py", SLOW).splitlines()
    todo = sorted({*tests} - files.keys())

    def reads_of(test_file: str) -> dict[str, list[str]] | None:
        checkout = free.get()
        try:
            return recorded(checkout, test_file)
        finally:
            free.put(checkout)

    with checkouts() as free, ThreadPoolExecutor(AT_A_TIME) as pool:
        for test_file, found in zip(todo, pool.map(reads_of, todo)):
            if found is None:
                continue
            files[test_file] = found
            write_whole(ROOT / FILE, json.dumps({"commit": commit, "files": files}, indent=1, sort_keys=True) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
