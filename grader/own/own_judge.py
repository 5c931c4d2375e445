"""Judges one's own kernel as a learner's is judged, with the two rules for values of numerics/torchs_rounding.py."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch

from grader.course.exercise import Exercise
from grader.course.folder import Folder
from grader.course.promise import StatedPromise
from grader.course.trial import Trial, trial_of
from grader.explain.causes import Cause
from grader.explain.compiled_code import Expectations
from grader.explain.evidence import Compared
from grader.explain.verdict import FAIL, PASS, Verdict
from grader.gpu.models import DEFAULT_MODEL
from grader.judging.drawn_trials import DrawnTrials
from grader.judging.formula_rule import InterpretedByFormula
from grader.judging.judge import Judge
from grader.judging.run import Run
from grader.judging.uses import CheckUse, CompiledUse, DrawnUse, Use
from grader.judging.work_ahead import Foreseen
from grader.numerics.arguments import Argument
from grader.numerics.data_sets import Data
from grader.numerics.torchs_rounding import FEW, FORMULA, largest, scale_of
from grader.own.open_steps import OpenSteps
from grader.own.own_exercise import OwnExercise
from grader.own.own_reference import OwnReference
from grader.sentences import Sentence
from grader.session.grading import Grading, TestResult
from grader.session.session import THOROUGH
from grader.wire.messages import GpuModel
from grader.wire.reply import Reply

NO_EXPECTATIONS = Expectations(False, False, False, False, False)
OF_VALUES = ("cause", "memory", "guess", "values", "open")  # kinds of failures of calls that came to their end
OF_NUMBERS = ("cause", "guess", "values")  # those in which numbers are looked at
MORE = 7  # calls that are judged after one that failed
TRIES = 75_000  # the work of all edits that are tried: about 0.4 s of a core
THOROUGH_TRIES = 300_000
VALUES, MACHINE_CODE = "values and memory", "machine code"


class OwnFormula(Sentence):
    APPROXIMATES = (
        "If it approximates on purpose, say by how much: here approximates = {share:.0e}, in a file for --promise, "
        "would do."
    )


@dataclass
class OwnInterpreted(InterpretedByFormula):
    """Judges a call by both rules. `approximates`: on purpose, as a share of the largest value; `lost`: the most
    that a wrong call is off, as such a share."""

    approximates: float = 0.0
    open_steps: OpenSteps | None = None
    lost: float = 0.0

    @property
    def share(self) -> float:
        return max(FORMULA, self.approximates)

    def verdict(self, trial: Trial, inputs: list[Argument], twice: bool, **options) -> tuple[Verdict, Reply]:
        verdict, first = super().verdict(trial, inputs, twice, **options)
        if verdict.outcome == FAIL and verdict.kind in OF_NUMBERS:
            found = [one.comparison for one in self._compared(trial, inputs, first)]
            shares = [largest(one.out.double() - one.ref) / (scale_of(inputs, one.ref) or 1.0) for one in found]
            self.lost = max([self.lost, *shares])
        return verdict, first

    def of_formula(self, trial: Trial, inputs: list[Argument], first: Reply) -> Verdict | None:
        verdict = super().of_formula(trial, inputs, first)
        if verdict is not None and verdict.kind == "values":
            share = 2 * float(str(verdict.said[0].evidence["share"]))
            verdict.said.append(OwnFormula.APPROXIMATES(share=share))
        return verdict

    def _compared(self, trial: Trial, inputs: list[Argument], reply: Reply) -> list[Compared]:
        return [
            self._but_for_open_steps(place, one, inputs)
            for place, one in enumerate(super()._compared(trial, inputs, reply))
        ]

    def _but_for_open_steps(self, place: int, evidence: Compared, inputs: list[Argument]) -> Compared:
        """Returns the evidence without wrong whole numbers where rounding decides between the right one and theirs."""
        comparison = evidence.comparison
        if self.open_steps is None or evidence.wanted.dtype.is_floating_point or comparison.right:
            return evidence
        distance = (comparison.out.double() - comparison.ref.double()).abs()
        wrong = comparison.wrong & (distance > self.open_steps(place, comparison.ref, inputs))
        error = torch.where(wrong, comparison.error, 0.0)
        return replace(evidence, comparison=replace(comparison, wrong=wrong, error=error))


@dataclass
class OwnJudge(Judge):
    approximates: float = 0.0
    open_steps: OpenSteps | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.interpreted: OwnInterpreted = OwnInterpreted(
            self.run, approximates=self.approximates, open_steps=self.open_steps
        )


@dataclass(kw_only=True)
class OwnDrawn(DrawnUse):
    """The drawn calls of an exercise in one dtype. They are drawn once: to look for calls toward the branches of the
    file takes up to a third of a verdict's time."""

    exercise: Exercise
    stated: StatedPromise
    _drawn: DrawnTrials | None = field(default=None, init=False, repr=False)

    def drawn_trials(self, judge: Judge) -> DrawnTrials:
        if self._drawn is None:
            self._drawn = DrawnTrials(self.exercise, judge.run, self.test, self.stated)
        return self._drawn

    def foreseen(self, judge: Judge) -> list[Foreseen]:
        """After a wrong call few others are judged."""
        return [replace(one, if_right=True) for one in super().foreseen(judge)]


@dataclass(kw_only=True)
class OwnCalls(CheckUse):
    """The stated calls of an exercise in one dtype."""

    own: OwnExercise

    def trials(self, judge: Judge) -> list[Trial]:
        return [
            trial_of(self.own.exercise, f"{self.test} {number}", data, self.own.dtype)
            for number, data in enumerate(self.own.calls, 1)
        ]


@dataclass(kw_only=True)
class OwnCompiled(CompiledUse):
    """The machine code of the largest of some calls: it has to exist, and to fit the GPU."""

    calls_of: Use

    def trials(self, judge: Judge) -> list[Trial]:
        return sorted(self.calls_of.trials(judge), key=_elements)[-1:]

    def verdict(self, judge: Judge) -> Verdict:
        (trial,) = self.trials(judge)
        return judge.judged(trial, lambda trial: judge.machine_code(trial, NO_EXPECTATIONS))


def _elements(trial: Trial) -> int:
    return sum(one.elements for one in trial.data if isinstance(one, Data))


@dataclass(frozen=True)
class OwnWay:
    """How a kernel is judged. `thorough`: more calls are drawn, and more edits tried. `sandboxed`: its Python runs in
    bubblewrap's sandbox."""

    seed: int
    model: GpuModel = DEFAULT_MODEL
    thorough: bool = False
    sandboxed: bool = False


@dataclass
class OwnVerdict:
    """What is found of a kernel. `spills`: sentences about machine code that costs and is right."""

    grading: Grading
    judge: OwnJudge
    calls: int
    spills: list[str]


@contextmanager
def judged(
    file: Path, scratch: Path, exercises: Sequence[OwnExercise], reference: OwnReference, approximates: float,
    how: OwnWay,
) -> Iterator[OwnVerdict]:  # fmt: skip
    """Judges the kernel of a file in each dtype, and keeps the processes of its run up to the end of the context, for
    what asks further. `scratch`: a folder that is empty. Raises MachineFault."""
    rounds = THOROUGH if how.thorough else 1
    run = Run(folder_for(file, scratch), str(file), how.seed, how.model, how.sandboxed, rounds=rounds)
    judge = OwnJudge(exercises[0].exercise, run, approximates=approximates, open_steps=OpenSteps(reference))
    grading = Grading(run.folder, run, judge)
    values = [_use_of(own) for own in exercises]
    compiled = [OwnCompiled(f"{MACHINE_CODE}, {own.dtype}", (), calls_of=use) for own, use in zip(exercises, values)]
    spills: list[str] = []
    try:
        judge.begin([*values])  # and compiles nothing ahead: of a wrong kernel nobody asks for machine code
        for use in [*values, *compiled]:
            verdict = use.verdict(judge)
            if verdict.outcome == FAIL and verdict.id == Cause.SPILLS:
                spills += verdict.lines[:1]
                verdict = Verdict(PASS)
            more = _more(judge, use) if verdict.outcome == FAIL and verdict.kind in OF_VALUES else []
            for one in _most_telling(judge, [verdict, *more]):
                grading.results.append(TestResult(use.test, use.item, 1, one, drawn=isinstance(use, OwnDrawn)))
            if verdict.outcome == FAIL:
                break
        grading.right_in_the_open = len(run.history.right_trials)
        grading.tests = len(grading.results)
        grading.conclude()
        grading.mend(THOROUGH_TRIES if how.thorough else TRIES)
        yield OwnVerdict(grading, judge, len(run.history.right_trials) + len(run.history.failures), spills)
    finally:
        run.end()


def _more(judge: OwnJudge, use: Use) -> list[Verdict]:
    """Returns the failures of a few more calls, small and large: an explanation has to fit them, and a mend to mend
    them."""
    trials = sorted(use.trials(judge), key=_elements)
    some = trials[:: max(1, len(trials) // MORE)]
    verdicts = [judge.judged(trial, lambda trial: judge.values(trial, blame=False)[0]) for trial in some]
    return [verdict for verdict in verdicts if verdict.outcome == FAIL]


def _most_telling(judge: OwnJudge, verdicts: list[Verdict]) -> list[Verdict]:
    """Leaves out wrong values of very small calls where larger calls fail: by chance they look like many a mistake."""
    telling = [one for one in verdicts if one.kind not in OF_NUMBERS or _tells(judge.run.history.trial_of(one))]
    return telling or verdicts


def _tells(trial: Trial | None) -> bool:
    """Returns whether a call has several elements in each direction."""
    shapes = [one.shape for one in trial.data if isinstance(one, Data)] if trial is not None else []
    return all(size > 1 for shape in shapes for size in shape) and max(map(math.prod, shapes), default=0) >= FEW


def folder_for(file: Path, scratch: Path) -> Folder:
    """Returns the folder of an exercise that is none: it holds no file."""
    name = "".join(one if one.isascii() and one.isalnum() else "_" for one in file.stem.lower()) or "kernel"
    return Folder(scratch / "exercises" / f"00_{name}")


def _use_of(own: OwnExercise) -> OwnDrawn | OwnCalls:
    name = f"{VALUES}, {own.dtype}"
    if own.promise is not None:
        return OwnDrawn(name, (), exercise=own.exercise, stated=own.promise)
    return OwnCalls(name, (), own=own)
