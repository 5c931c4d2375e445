"""The calls of a run so far: which were right, what the right calls launched, and which failed.

It explains the failures of later calls, and says what is not asked for any more.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import torch

from grader.course.trial import Trial
from grader.explain.causes import Cause
from grader.explain.verdict import Verdict
from grader.wire.messages import Launch

OUT_OF_TIME = (Cause.TIME_LIMIT, Cause.ENDLESS, Cause.GRID)  # ids of verdicts
MOST_ENDED = 3  # calls that end their process before no other call is tried
Kernels = tuple[str, ...]  # the names of a call's kernels, in launch order


@dataclass
class History:
    """The calls of a run so far, and what they showed.

    The run's judge adds to it; the thread that works ahead reads `values_are_wrong`.
    """

    right_trials: list[Trial] = field(default_factory=list)
    launches: list[list[Launch]] = field(default_factory=list)  # of each right call
    right_samples: set[str] = field(default_factory=set)  # large calls of which a sample of programs was right
    # How many calls of each dtype were right with the module's own block sizes.
    right_with_own_blocks: Counter[torch.dtype] = field(default_factory=Counter)
    wrong_with_own_blocks: bool = False
    values_are_wrong: bool = False  # of some call: what only right calls need is not recorded ahead any more
    explained: int = 0  # wrong answers of an entry that measures
    failures: list[tuple[Trial, Verdict]] = field(default_factory=list)  # of values, and of whatever a test asks for

    def add_right(self, trial: Trial, launches: list[Launch]) -> None:
        """Adds a call with right values, and what it launched."""
        self.right_trials.append(trial)
        self.launches.append(launches)
        self.right_with_own_blocks[trial.dtype] += not trial.constants

    def add_wrong(self, trial: Trial) -> None:
        """Adds a call with wrong values."""
        self.values_are_wrong = True
        self.wrong_with_own_blocks |= not trial.constants

    def trial_of(self, verdict: Verdict) -> Trial | None:
        """Returns the trial of a failure; None for a verdict that is none."""
        return next((trial for trial, failure in self.failures if failure is verdict), None)

    @property
    def kernels(self) -> set[Kernels]:
        """The kernels that right calls have launched."""
        return {tuple(launch.kernel for launch in launches) for launches in self.launches}

    @property
    def atomics(self) -> bool:
        """True if a right call has added by atomics, or if nothing is known of any launch."""
        seen = [launch for launches in self.launches for launch in launches]
        return not seen or any(launch.atomics for launch in seen)

    @property
    def not_tried(self) -> str:
        """The reason why no other call is tried: a call ran out of time, or several ended their process.

        "" while calls are tried.
        """
        if any(verdict.id in OUT_OF_TIME for _, verdict in self.failures):
            return "not tried: a call before it ran out of time"
        if sum(verdict.kind == "ended" for _, verdict in self.failures) >= MOST_ENDED:
            return f"not tried: {MOST_ENDED} calls before it ended their process"
        return ""
