"""`course watch`: judges an exercise whenever its file is saved, and answers to single keys.

Files are polled: there are few, a look costs microseconds, and it works where file events do not arrive, as on network
drives. A file's state is noted before a run begins, so a file that is saved during the run differs from it afterwards
and is judged next.

The same process judges many saves. It calls pytest.main, so that its verdicts are the same as those of `pytest`, and
imports torch and Triton before the first save.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import click

from grader.course.by_name import EXERCISE, course_root
from grader.course.folder import Folder, all_folders
from grader.learn.hint import show_hint
from grader.learn.key_input import single_keys
from grader.progress.standing import current_exercise, next_after, read_progress
from grader.session.judging_process import JudgeEnded, JudgingProcess

TICK = 0.05  # seconds between two looks at the files
LOOKS = 2  # that find a file the same, before it is judged
LOOKS_AT_A_CUT = 20  # if it is empty or its last line has no end: it may be half written
MOST_RUNS = 200  # of a judge process, so that nothing can pile up
NO_VERDICT = -1  # instead of pytest's exit status
KEYS = "h hint   n next exercise   r run again   q quit"
Stamp = tuple[int, int, int]


@click.command(short_help="judges on every save; keys for hint, next, again, quit")
@click.argument("exercise", type=EXERCISE, required=False, metavar="[NN]")
def watch(exercise: Folder | None) -> None:
    """Judges an exercise now and whenever you save its file; without NN, the one you work on.

    After the first pass it moves on to the next exercise. A file saved during a run is judged after it. Keys: h shows
    the next hint, n goes to the next exercise, r runs again, q quits; h, n and r wait for the end of a run.

    \b
    Example:  course watch 03
    """
    root = course_root()
    exercise = exercise or current_exercise(root, read_progress(root)) or all_folders(root)[-1]
    watcher = Watcher(exercise)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, watcher.leave)
    try:
        watcher.loop()
    except EOFError:  # the terminal is gone
        pass
    finally:
        watcher.end()
    if watcher.left_by == signal.SIGINT:
        click.echo()
    elif watcher.left_by:
        sys.exit(1)


class Watcher:
    def __init__(self, exercise: Folder) -> None:
        self.exercise = exercise
        self.folders = all_folders(exercise.root)
        self.seen: dict[Folder, Stamp | None] = {}  # each file as it was when it was judged last
        self.looked: dict[Folder, tuple[Stamp | None, int]] = {}  # each file at the last look; looks that found it so
        self.judge = _prepared_judge()
        self.is_judging = False
        self.judged = 0  # runs of this judge process
        self.pressed = ""  # the last of the keys h, n and r, until it is answered: a hint speaks of a run's failure
        self.left_by = 0  # the number of the signal; 0: none
        self.was_passed = False  # before this run: a learner who comes back wants to stay

    def loop(self) -> None:
        self.seen = {folder: _stamp(folder.learner_file) for folder in self.folders}
        with single_keys() as read_key:
            self._run(self.exercise)
            while not self.left_by:
                key = read_key(TICK)
                if key == "q":
                    return
                if key in ("h", "n", "r"):
                    self.pressed = key
                if self.is_judging:
                    self._look_at_the_run()
                elif self.pressed:
                    key, self.pressed = self.pressed, ""
                    {"h": self._hint, "n": self._next, "r": lambda: self._run(self.exercise)}[key]()
                elif saved := self._saved():
                    self._run(saved)

    def leave(self, number: int, frame: object) -> None:
        """Notes a signal that ends the watch, for the next look of the loop. An exception could come anywhere, and in
        Popen.poll it would leave a lock that is never released."""
        self.left_by = number

    def end(self) -> None:
        self.judge.end()

    def _saved(self) -> Folder | None:
        """Returns an exercise whose file differs from what was judged last, once the file has stopped changing."""
        for folder in self.folders:
            now = _stamp(folder.learner_file)
            before, looks = self.looked.get(folder, (None, 0))
            looks = looks + 1 if now == before else 1
            self.looked[folder] = now, looks
            is_saved = now is not None and now != self.seen[folder] and looks >= LOOKS
            if is_saved and (looks >= LOOKS_AT_A_CUT or _ends_with_a_line(folder.learner_file)):
                return folder
        return None

    def _run(self, folder: Folder) -> None:
        self.exercise = folder
        self.seen[folder] = _stamp(folder.learner_file)
        self.was_passed = bool(read_progress(folder.root).of(folder.id).passed)
        if sys.stdout.isatty():
            click.clear()
        _dim(f"{folder.id}: judging ...")
        self.judge.begin([os.path.relpath(folder.path)])
        self.is_judging = True

    def _look_at_the_run(self) -> None:
        try:
            status = self.judge.poll()
        except JudgeEnded as error:
            reason = str(error)
            click.echo(f"\n{reason[:1].upper()}{reason[1:]}. Next: save the file again, or: course doctor")
            status = NO_VERDICT
        if status is not None:
            self._ended(status)

    def _ended(self, status: int) -> None:
        self.is_judging, self.judged = False, self.judged + 1
        if status == NO_VERDICT or self.judged == MOST_RUNS:
            self.judge.end()
            self.judge, self.judged = _prepared_judge(), 0
        following = next_after(self.exercise, read_progress(self.exercise.root)) if status == 0 else None
        if status == 0 and following is not None and not self.was_passed:
            self.exercise, self.pressed = following, ""  # which was pressed for the exercise before
            click.echo(f"Watching {following.id} now. Its lesson: course open {following.number}")
        self._prompt()

    def _prompt(self) -> None:
        click.echo(f"\nWaiting for {os.path.relpath(self.exercise.learner_file)} to be saved.")
        if sys.stdin.isatty():
            _dim(KEYS)

    def _hint(self) -> None:
        click.echo()
        try:
            show_hint(self.exercise)
        except click.ClickException as error:
            click.echo(error.format_message())
        self._prompt()

    def _next(self) -> None:
        following = self.exercise.next()
        if following is None:
            click.echo(f"\n{self.exercise.id} is the last exercise.")
            self._prompt()
        else:
            self._run(following)


def _prepared_judge() -> JudgingProcess:
    judge = JudgingProcess()
    judge.prepare()
    return judge


def _dim(text: str) -> None:
    from grader.show.terminal import console

    console().print(text, style="dim", markup=False)


def _ends_with_a_line(path: Path) -> bool:
    """Returns True where the last line has its end, which almost every editor writes; an empty file has no line."""
    try:
        with path.open("rb") as file:
            file.seek(-1, os.SEEK_END)
            return file.read(1) == b"\n"
    except OSError:
        return False


def _stamp(path: Path) -> Stamp | None:
    """Returns a value that every save changes; None while there is no file, as when some editors save."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
