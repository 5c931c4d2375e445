"""`python -m tests.reads [FILE]`: records in tests/reads.json what each test reads: of the course, and of the code.

Each test file runs in a pytest of its own, alone in a checkout. inotify, of Linux, reports each file that is opened
while a test runs, by any process. A copy that a test makes is watched like the course, and making it is no reading.
Which code is read is told of a file's tests together: a module that the first of them imports is there for all. A file
with a failing test is not recorded.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import json
import os
import select
import shutil
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue

import pytest

from grader.author.git import git_text
from grader.author.touched import OF_ONE
from grader.course.folder import all_folders
from tests.parts import EVERY_EXERCISE, EVERYTHING, OF_PAGES, OWN, code_of, listing, named_in, part_of
from tests.recorded_reads import FILE, FileReads, write_record
from tests.selection import selection_of

ROOT = Path(__file__).resolve().parent.parent
RESULT = "RECORDED_READS"  # names the file into which pytest's process writes what it has recorded
SHALLOW = "."  # the folder whose own files are watched, and not what lies deeper
PLACES = ("exercises", "solutions", "hints", "docs", "grader", "tests")
SLOW = ":!tests/classroom/slow"  # these take an hour, and are chosen by nobody: tox -e slow runs them all
OPEN, CREATE, OVERFLOW, OF_FOLDER = 0x20, 0x100, 0x4000, 0x40000000
ALL = 0.9  # of the modules of a folder: some are there for type checkers, and no process imports them
AT_A_TIME = 3  # for two cores: some tests wait for processes, and others compute meanwhile
EVENT = struct.Struct("iIII")


class Watch:
    """Folders of the course and of its copies, and what has been opened in them."""

    def __init__(self) -> None:
        self._code: set[str] = set()  # files of grader/ and tests/
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._queue = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        self._folders: dict[int, tuple[Path, str]] = {}
        self._seen: set[str] = set()
        self._lock = threading.RLock()
        self._copies = False
        for place in (SHALLOW, *PLACES):
            self._add(ROOT / place, place, deep=place in PLACES)
        self._events()
        threading.Thread(target=self._keep_looking, daemon=True).start()

    def _keep_looking(self) -> None:
        """Looks before Linux drops events: it keeps 16384, and a test may start many processes."""
        while True:
            select.select([self._queue], [], [])
            self._look()
            time.sleep(0.05)

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
        with self._lock:
            opened, self._seen = self._seen - {""}, set()
        return opened

    def _look(self) -> None:
        with self._lock:
            self._note_all()

    def _note_all(self, but: tuple[Path, ...] = ()) -> None:
        """Notes what has happened until now, but not in the folders that are given."""
        while events := self._events():
            begin = 0
            while begin < len(events):
                watched, mask, _, length = EVENT.unpack_from(events, begin)
                name = events[begin + EVENT.size : begin + EVENT.size + length].rstrip(b"\0")
                self._note(watched, mask, os.fsdecode(name), but)
                begin += EVENT.size + length

    def _note(self, watched: int, mask: int, name: str, but: tuple[Path, ...]) -> None:
        if mask & OVERFLOW:
            self._lose()
            return
        folder, place = self._folders[watched]
        if any((folder / name).is_relative_to(each) for each in but):
            return
        path = f"{place}/{name}".removeprefix("./").rstrip("/")
        if mask & CREATE and mask & OF_FOLDER and place != SHALLOW:
            try:
                self._add(folder / name, path)  # __pycache__, in which a file of the course is read again
            except FileNotFoundError:
                pass  # it is gone again
            except OSError:
                self._lose()
        if mask & OPEN:
            self._seen.add(part_of(path, listed=bool(mask & OF_FOLDER)))
            self._code.add("" if mask & OF_FOLDER else code_of(path))

    def copytree(self, copy: Callable, source: str | Path, target: str | Path, *more, **named) -> str | Path:
        """Has `copy` copy a folder. If it is of the course, its copy is watched, and copying it is no reading."""
        with self._lock:
            if self._copies:  # a folder in the folder
                return copy(source, target, *more, **named)
            place = dict(self._folders.values()).get(Path(source).absolute())
            self._note_all()
            self._copies = True
            try:
                made = copy(source, target, *more, **named)
            finally:
                self._copies = False
            if place is not None:
                self._add(Path(target).absolute(), place)
                self._note_all(but=(Path(source).absolute(), Path(target).absolute()))
            return made

    def _lose(self) -> None:
        """Something was opened that is not known: it may be anything."""
        self._seen.add(EVERYTHING)
        self._code.add(EVERYTHING)

    def code(self) -> set[str]:
        """Returns the files of grader/ and tests/ that were opened since the beginning."""
        self._look()
        with self._lock:
            return self._code - {""}


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
            result = {"code": sorted(self._code()), "tests": {test: sorted(of) for test, of in self._reads()}}
            Path(os.environ[RESULT]).write_text(json.dumps(result), encoding="utf-8")

    def _code(self) -> set[str]:
        """Returns what this process has imported, whenever that was, and what was opened by others."""
        imported = {_in_course(Path(str(getattr(module, "__file__", "")))) for module in list(sys.modules.values())}
        code = self._watch.code() | {path for path in imported if code_of(path)}
        return code | {folder for folder, modules in _modules().items() if len(modules & code) >= ALL * len(modules)}

    def _reads(self) -> Iterator[tuple[str, set[str]]]:
        """Yields the name of each test and what it reads of the course."""
        ids = {folder.id for folder in all_folders(ROOT)}
        shared = set().union(*(self._tests[test] for test in self._sharing))
        for test, reads in self._tests.items():
            reads = reads | self._of_file | (shared if test in self._sharing else set())
            if EVERYTHING in reads:
                reads = {EVERYTHING}
            elif ids <= reads:
                reads = {EVERY_EXERCISE, *(part for part in reads if OF_PAGES.match(part))}
            yield test, reads


def _modules() -> dict[str, set[str]]:
    """Returns the modules of the code by the folder that they are in."""
    found: dict[str, set[str]] = {}
    for path in map(_in_course, (*(ROOT / "grader").rglob("*.py"), *(ROOT / "tests").rglob("*.py"))):
        if code_of(path):
            found.setdefault(listing(path), set()).add(path)
    return found


def _in_course(path: Path) -> str:
    """Returns a path as the course has it, and "" for a file elsewhere."""
    return path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else ""


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


def recorded(checkout: Path, test_file: str, commit: str) -> FileReads | None:
    """Returns what a file's tests read at a commit; None where one of them fails, or none was collected."""
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "reads.json"
        command = [sys.executable, "-m", "pytest", "-q", "--tb=short", "-p", "tests.reads", test_file]
        environment = {**os.environ, "PYTHONPATH": str(checkout), RESULT: str(result)}
        done = subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True)
        print(f"{test_file}: {done.stdout.strip() if done.returncode else 'recorded'}", flush=True)
        if not result.exists():
            return None
        kept = json.loads(result.read_text(encoding="utf-8"))
    tests = {test: frozenset(reads) for test, reads in kept["tests"].items()}
    return FileReads(commit, frozenset(kept["code"]), tests)


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
    """Records the files whose tests read something that has changed since that was recorded; or the given files."""
    if git_text(ROOT, "status", "--porcelain", "--", ".", f":!{FILE}"):
        raise SystemExit("Something is not committed: commit it first, or no commit is recorded.")
    commit = git_text(ROOT, "rev-parse", "HEAD")
    tests = git_text(ROOT, "ls-files", "tests/**/test_*.py", "tests/test_*.py", SLOW).splitlines()
    selection = selection_of(ROOT)
    todo = test_files or [test_file for test_file in tests if not selection.is_recorded(test_file)]
    files = {path: kept for path, kept in selection.files.items() if path in tests and path not in todo}
    if files != selection.files:  # what does not hold any more, or is of a file that is gone, leaves the record now
        write_record(ROOT, files)

    def reads_of(test_file: str) -> FileReads | None:
        checkout = free.get()
        try:
            return recorded(checkout, test_file, commit)
        finally:
            free.put(checkout)

    with checkouts() as free, ThreadPoolExecutor(AT_A_TIME) as pool:
        for test_file, found in zip(todo, pool.map(reads_of, todo)):
            if found is not None:
                files[test_file] = found
                write_record(ROOT, files)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
