"""course watch in a pseudo-terminal: saves, keys, and that nothing stays behind."""

from __future__ import annotations

import re
import signal
import subprocess
from pathlib import Path

import pexpect
import pytest

from grader.course.folder import all_folders
from grader.learn import watch as watch_module
from grader.learn.watch import LOOKS, LOOKS_AT_A_CUT, Watcher
from tests.learn.conftest import ROOT
from tests.waiting import NEVER, is_in, until

KEYS = "q quit"
HANGS = "open('begun', 'w')\nwhile True: pass\n"  # begun: in the folder of its process


def hears_ctrl_c() -> None:
    """In the new process: whoever runs the tests in the background may have told them to ignore it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Screen:
    """A watch in a terminal of its own."""

    def __init__(self, course, command: str, *arguments: str) -> None:
        self.temporary = course.path / "temporary"
        self.temporary.mkdir(exist_ok=True)
        environment = course.environment(TMPDIR=str(self.temporary), TERM="xterm")
        self.terminal = pexpect.spawn(command, list(arguments), cwd=str(course.path), env=environment, timeout=NEVER,
                                      encoding="utf-8", dimensions=(60, 120), preexec_fn=hears_ctrl_c)  # fmt: skip

    def until(self, text: str) -> str:
        """What appeared up to and with `text`, without colours."""
        self.terminal.expect_exact(text)
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self.terminal.before + text)

    def press(self, key: str) -> None:
        self.terminal.send(key)

    def until_gone(self) -> int | None:
        self.terminal.expect(pexpect.EOF)
        self.terminal.close()
        return self.terminal.exitstatus


def processes(temporary: Path) -> list[str]:
    """The command lines of what still runs for a watch: by the temporary folder in their environment."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if str(temporary).encode() in (path / "environ").read_bytes():
                found.append((path / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue
    return found


def assert_nothing_left(temporary: Path) -> None:
    until(
        lambda: not processes(temporary) and not list(temporary.iterdir()),
        lambda: (processes(temporary), list(temporary.rglob("*"))),
    )


@pytest.fixture
def watching(course):
    """watching(*arguments): a watch on the learner's copy, ended after the test."""
    screens: list[Screen] = []

    def watching(*arguments: str) -> Screen:
        from tests.learn.conftest import COURSE

        screens.append(Screen(course, COURSE, "watch", *arguments))
        return screens[-1]

    yield watching
    for screen in screens:
        screen.terminal.close(force=True)


def report_of(text: str) -> list[str]:
    """The report's lines, without what differs between two runs: seeds, values, seconds."""
    lines = [line.rstrip() for line in text.replace("\r", "").splitlines()]
    start = next(i for i, line in enumerate(lines) if line.startswith("01 masked_add   "))
    end = next(i for i, line in enumerate(lines) if line.startswith("  Next: "))
    return [re.sub(r"-?\d[\d.e+-]*", "#", line) for line in lines[start : end + 1]]


def test_it_judges_every_save_gives_hints_moves_on_after_a_pass_and_leaves_nothing(course, watching):
    course.write("01_masked_add", "x_ptr + offsets, mask=mask", "x_ptr + offsets")
    bare = report_of(course.pytest("exercises/01_masked_add").out)
    screen = watching("01")
    assert report_of(screen.until(KEYS)) == bare
    course.write("01_masked_add", "offsets, x + y", "offsets, x - y")
    assert "z holds x - y: the operation is another." in screen.until(KEYS)
    assert "opens when it is passed" not in course.here("hint", "01").err
    screen.press("h")
    assert "Hint 2 of 3 for 01_masked_add" in screen.until(KEYS)
    screen.press("r")
    screen.until("judging ...")
    screen.press("h")  # answered after the run
    assert "z holds x - y" in screen.until(KEYS)
    assert "Hint 3 of 3 for 01_masked_add" in screen.until(KEYS)
    slow = "for number in range(10_000_000):\n    pass\n"  # half a second, at each import
    course.save("01_masked_add", course.solution("01_masked_add") + slow)
    screen.until("one full block")  # the first test's line: the file has been read by then
    course.write("01_masked_add", "offsets, x + y", "offsets, x - y")  # judged after this run
    passed = screen.until(KEYS)
    assert "Passed, judged in" in passed
    assert "Watching 02_strided_blocks now. Its lesson: course open 02" in passed
    shown = screen.until(KEYS)
    assert "z holds x - y: the operation is another." in shown, shown
    course.save("02_strided_blocks", HANGS)
    until(lambda: is_in(screen.temporary, "begun"), lambda: screen.terminal.before)
    screen.press("q")
    assert screen.until_gone() == 0
    assert_nothing_left(screen.temporary)


@pytest.mark.parametrize(
    ("text", "looks"),
    [("x = 1\n", LOOKS), ("x = 1", LOOKS_AT_A_CUT), ("", LOOKS_AT_A_CUT)],
    ids=["whole", "cut in a line", "emptied"],
)
def test_a_file_that_may_still_be_written_is_looked_at_longer(course, monkeypatch, text, looks):
    monkeypatch.setattr(watch_module, "_prepared_judge", lambda: None)
    folder = next(one for one in all_folders(course.path) if one.number == "01")
    watcher = Watcher(folder)
    watcher.seen = {one: watch_module._stamp(one.learner_file) for one in watcher.folders}
    assert watcher._saved() is None
    folder.learner_file.write_text(text)
    assert [watcher._saved() for _ in range(looks)] == [None] * (looks - 1) + [folder]
    folder.learner_file.write_text("x = 12\n")  # as a writer goes on that had no core between two of its steps
    assert [watcher._saved() for _ in range(LOOKS)] == [None] * (LOOKS - 1) + [folder]


def test_keys_next_and_again_and_the_terminal_is_put_back(course):
    from tests.learn.conftest import COURSE

    *_, before, last = all_folders(ROOT)
    screen = Screen(course, "/bin/sh")
    screen.press("stty -a | grep -o -- '-\\?icanon' | sed s/^/before:/\n")
    screen.until("before:icanon")
    screen.press(f"{COURSE} watch {before.number}\n")
    assert f"{before.number} {before.name}   not attempted" in screen.until(KEYS)
    screen.press("n")
    assert f"{last.number} {last.name}   not attempted" in screen.until(KEYS)
    screen.press("n")
    assert f"{last.id} is the last exercise." in screen.until(KEYS)
    course.write("01_masked_add")  # saved while another exercise is watched: judged all the same
    assert "01 masked_add   exercises" in screen.until(KEYS)
    screen.press("r")  # of what follows the exercise that passed
    assert "02 strided_blocks   not attempted" in screen.until(KEYS)
    screen.press("q")
    screen.press("echo ended:$?; stty -a | grep -o -- '-\\?icanon' | sed s/^/after:/\n")
    screen.until("ended:0")
    screen.until("after:icanon")
    screen.terminal.close(force=True)


def test_leaving_at_once_leaves_nothing_behind(course, watching):
    screen = watching("01")
    screen.until("judging ...")
    screen.press("\x03")
    assert screen.until_gone() == 0
    assert "KeyboardInterrupt" not in screen.terminal.before
    assert_nothing_left(screen.temporary)


def test_without_a_terminal_it_watches_all_the_same_and_a_hangup_during_a_run_leaves_nothing(course):
    from tests.learn.conftest import COURSE

    temporary = course.path / "temporary"
    temporary.mkdir()
    watch = subprocess.Popen([COURSE, "watch", "05"], cwd=course.path, text=True,
                             env=course.environment(TMPDIR=str(temporary)),
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)  # fmt: skip
    try:
        lines = []
        while not (lines and lines[-1].startswith("Waiting for ")):
            lines.append(watch.stdout.readline())
            assert lines[-1], lines
        course.save("01_masked_add", HANGS)
        until(lambda: is_in(temporary, "begun"))
        watch.send_signal(signal.SIGHUP)
        rest, _ = watch.communicate(timeout=NEVER)
        assert watch.returncode == 1
    finally:
        watch.kill()
    assert_nothing_left(temporary)
    out = "".join(lines) + rest
    assert (
        "05 grouped_matmul   not attempted" in out and "\x1b" not in out and "Traceback" not in out and KEYS not in out
    )
