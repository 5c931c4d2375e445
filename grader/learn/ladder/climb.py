"""A climb of a ladder: times each rung on the GPU here, or counts it, and the learner's own kernel if it is right."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path

import click

from grader.course.code_digest import digest_of_code
from grader.course.folder import Folder, load_test_file
from grader.course.resized import fitting
from grader.course.trial import Trial, trial_of
from grader.explain.verdict import PASS
from grader.gpu.device import Device, model_here
from grader.gpu.pool.replays import Replays
from grader.judging.judge import Judge
from grader.judging.run import Run
from grader.judging.uses import CheckUse, ThroughputUse, uses_asked
from grader.learn.ladder.counts import Counts, counts_of
from grader.learn.ladder.figures import Figures, NotTimed, Timed, kept, still_true
from grader.learn.ladder.rungs import Ladder, Rung
from grader.learn.ladder.times import timed
from grader.learn.usable_submission import judge_it, refuse_what_cannot_run
from grader.processes.faults import ChildEnded, MachineFault
from grader.progress.standing import read_progress
from grader.show.curves import CEILINGS, UNITS, YOURS
from grader.wire.reply import DTYPES

COMMAND = "course ladder {} --keep"


def is_open(folder: Folder) -> bool:
    """Returns True if the learner may see the solution: the exercise was passed or given up."""
    record = read_progress(folder.root).of(folder.id)
    return bool(record.passed or record.gave_up)


@dataclass
class Climb:
    """A ladder and a submission to time or to count along with its rungs; None stands for the learner's own file.

    `device`: the GPU, or the reason that there is none. `advance`: is called after each kernel.
    """

    folder: Folder
    ladder: Ladder
    submission: str | None
    device: Device | str
    advance: Callable[[], None]
    asked: ThroughputUse = field(init=False)
    trial: Trial = field(init=False)
    own_note: str = ""  # why the learner's kernel is not among the rungs

    def __post_init__(self) -> None:
        self.module = load_test_file(self.folder)
        self.exercise, self.model = self.module.exercise, model_here(self.device)
        calls = uses_asked(self.module, ThroughputUse)
        if not calls:
            raise click.ClickException(f"No test of {self.folder.id} measures throughput.")
        self.asked = calls[0]
        dtype = self.exercise.dtypes[0]
        data = self.asked.data
        if isinstance(self.device, Device):
            data = fitting(self.exercise, data, DTYPES[dtype], self.model.memory_bytes)
        self.trial = trial_of(self.exercise, self.asked.test, data, dtype)
        self._replays: Replays | None = None
        self._files = tempfile.TemporaryDirectory(prefix="ladder")

    @property
    def anchor(self) -> str:
        return self.asked.anchor

    @property
    def numbers(self) -> dict[str, str]:
        """The numbers of the rungs by name, from 1; the learner's kernel has none."""
        return {rung.name: str(number) for number, rung in enumerate(self.ladder.rungs, 1)}

    @property
    def is_open(self) -> bool:
        return is_open(self.folder)

    def end(self) -> None:
        if self._replays is not None:
            self._replays.end()
        self._files.cleanup()

    # ---- on a GPU -------------------------------------------------------------------------------------------------

    def measure(self, device: Device) -> Figures:
        """Returns the figures of the rungs and of the learner's kernel, all timed on this GPU."""
        unit = UNITS[self.anchor][0]
        figures = Figures(
            COMMAND.format(self.folder.number), device.name, {}, str(date.today()), self.trial.data_label,
            CEILINGS[self.anchor], unit,
        )  # fmt: skip
        replays = self._replays = Replays(device)
        replays.start(1)
        rates: list[float] = []
        rungs: dict[str, Timed | NotTimed] = {}
        for name, run in self._runs():
            rung, of_anchor = timed(run, self.trial, replays, self.anchor)
            if name == YOURS and isinstance(rung, NotTimed):
                self.own_note = f"{run.submission.path.name}: {rung.why}. Next: {judge_it(run)}"
            else:
                rungs[name] = rung
            rates += [of_anchor] if of_anchor else []
            figures.versions = run.process.versions or figures.versions
        figures.rate = sorted(rates)[len(rates) // 2] if rates else None
        figures.rungs = _by_speed({name: at_one_clock(rung, figures.rate) for name, rung in rungs.items()})
        return figures

    def kept(self) -> Figures | None:
        """Returns the figures kept with the ladder, for kernels that are unchanged; None if none are kept."""
        figures = kept(self.folder)
        digests = {rung.name: digest_of_code(rung.text) for rung in self.ladder.rungs if rung.text}
        return still_true(figures, digests) if figures else None

    def without_own(self, figures: Figures) -> Figures:
        return replace(figures, rungs={name: rung for name, rung in figures.rungs.items() if name != YOURS})

    # ---- without a GPU --------------------------------------------------------------------------------------------

    def count(self) -> dict[str, Counts | str]:
        """Returns the counts of each rung, and of the learner's kernel if it is right, or the reason for none."""
        counts: dict[str, Counts | str] = {}
        for name, run in self._runs():
            if name == YOURS and not self._is_right(run):
                continue
            try:
                refuse_what_cannot_run(run)
                counts[name] = counts_of(run, self.trial, self.ladder.counted)
            except click.ClickException as error:
                counts[name] = error.message.partition(" Next:")[0]
            except MachineFault as fault:
                counts[name] = str(fault)
        return counts

    def _is_right(self, run: Run) -> bool:
        """Returns True if the calls that the tests state give right values, without a GPU; else sets `own_note`."""
        judge = Judge(self.exercise, run)
        try:
            refuse_what_cannot_run(run)
            for call in uses_asked(self.module, CheckUse):
                if call.verdict(judge).outcome != PASS:
                    self.own_note = f"{run.submission.path.name} is not right yet. Next: {judge_it(run)}"
                    return False
        except (click.ClickException, ChildEnded) as error:
            self.own_note = str(error)
            return False
        return True

    # ---- the kernels ----------------------------------------------------------------------------------------------

    def _runs(self) -> Iterator[tuple[str, Run]]:
        """Yields name and run of each rung, then of the learner's attempt. A run ends before the next begins."""
        for rung in self.ladder.rungs:
            with self._run(str(self._file(rung))) as run:
                yield rung.name, run
            self.advance()
        with self._run(self.submission) as run:
            if not run.not_attempted:
                yield YOURS, run
        self.advance()

    @contextmanager
    def _run(self, path: str | None) -> Iterator[Run]:
        run = Run(self.folder, path, model=self.model)
        try:
            yield run
        finally:
            run.end()

    def _file(self, rung: Rung) -> Path:
        """Returns the file to judge: the rung's own file, or a new file with its changed text."""
        if not rung.is_changed:
            return rung.path
        path = Path(self._files.name) / rung.name.replace(" ", "_") / f"{self.folder.name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(rung.text, encoding="utf-8")
        return path

    def notes(self, figures: Figures | None, counts: dict[str, Counts | str]) -> list[str]:
        """Returns sentences about rungs without figures or with a note, and about the learner's kernel."""
        measured = figures.rungs.items() if figures else ()
        lines = [f"{name}: not measured, {rung.why}." for name, rung in measured if isinstance(rung, NotTimed)]
        lines += [f"{name}: {rung.note}." for name, rung in measured if isinstance(rung, Timed) and rung.note]
        lines += [f"{name}: not counted. {one.rstrip('.')}." for name, one in counts.items() if isinstance(one, str)]
        if isinstance(self.device, str) and figures is None:
            lines.append("How fast they are is measured on a GPU; no figures are kept with this ladder.")
        return lines + ([self.own_note] if self.own_note else [])


def at_one_clock(rung: Timed | NotTimed, anchor: float | None) -> Timed | NotTimed:
    """Returns the figures with share * `anchor`, the anchor's rate, as the rate; unchanged if there is none.

    Else a change of the GPU's clock between two rungs could make the slower rung look faster.
    """
    return replace(rung, rate=rung.share * anchor) if isinstance(rung, Timed) and anchor is not None else rung


def _by_speed(rungs: dict[str, Timed | NotTimed]) -> dict[str, Timed | NotTimed]:
    """Returns the rungs in their order, with the learner's kernel before the first rung that is faster."""
    own = rungs.pop(YOURS, None)
    if not isinstance(own, Timed):
        return rungs
    placed: dict[str, Timed | NotTimed] = {}
    for name, rung in rungs.items():
        if YOURS not in placed and isinstance(rung, Timed) and rung.rate > own.rate:
            placed[YOURS] = own
        placed[name] = rung
    return {**placed, YOURS: placed.get(YOURS, own)}
