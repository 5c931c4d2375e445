"""What is known about one call that went wrong; each explainer takes what it needs."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch

from grader.comparison import Comparison
from grader.exercise import Exercise
from grader.reply import Reply
from grader.run import Trial
from grader.submission import KernelText, Submission, access_at, has_mask, kernel_text


@dataclass
class Evidence:
    exercise: Exercise
    submission: Submission
    trial: Trial
    inputs: list[torch.Tensor]
    reply: Reply
    constants: dict[str, int]  # block sizes in force: the module's own and the trial's
    comparison: Comparison | None = None
    right_when_contiguous: bool = False  # a trial with contiguous arguments only has passed in this run
    right_before: set[str] = field(default_factory=set)  # bounds of the trials that passed in this run

    @property
    def returns(self) -> str:
        return self.exercise.returns

    @property
    def kernel_text(self) -> KernelText:
        return kernel_text(self.submission.tree)

    @property
    def missing_axis_text(self) -> str:
        """ "the kernel uses tl.program_id(1), but the grid has 1 axis", or "" """
        axes = max((len(launch.grid) for launch in self.reply.launches), default=3)
        missing = [axis for axis in sorted(self.kernel_text.axes) if isinstance(axis, int) and axis >= axes]
        plural = "axis" if axes == 1 else "axes"
        return f"the kernel uses tl.program_id({missing[0]}), but the grid has {axes} {plural}" if missing else ""

    def argument(self, name: str) -> torch.Tensor | None:
        """An argument of the entry, or the output where `name` is the result's."""
        if name in self.exercise.arguments:
            return self.inputs[self.exercise.arguments.index(name)]
        return self.reply.output if name == self.returns else None

    def source_line(self, number: int) -> str:
        """ "Line 21:  x = tl.load(...)", or "" when the line is unknown."""
        text = self.submission.line(number)
        return f"Line {number}:  {text}" if text else ""

    def lacks_mask(self, line: int, function: str) -> bool:
        """Whether the tl.load or tl.store at `line` is there and has no mask."""
        call = access_at(self.submission.tree, line, function)
        return call is not None and not has_mask(call)


def index_text(index: list[int] | tuple[int, ...]) -> str:
    return ", ".join(map(str, index))


def program_text(program: list[int] | tuple[int, ...]) -> str:
    """(3,) or (0, 1): a program as Python writes a tuple, so that 1-D grids read like tl.program_id."""
    return f"program {tuple(program)}"


def count_text(count: int, noun: str) -> str:
    plural = noun if noun.endswith("s") else f"{noun}s"
    return f"{count} {noun if count == 1 else plural}"
