"""Collects what is known about a call that went wrong; each explainer takes what it needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import torch

from grader.course.exercise import Exercise
from grader.course.trial import Trial, short_dtype
from grader.course.wanted_results import Wanted
from grader.numerics.arguments import Argument, exact, tensors_of
from grader.operations.comparison import Comparison, compare
from grader.sentences import Said, Sentence
from grader.submission.lossy_lines import Rounding, line_of_maximum_with_0, line_of_rounding
from grader.submission.text import (
    KernelFacts,
    Submission,
    access_at,
    axes_asked_for,
    has_mask,
    kernel_facts,
    takes_corner,
)
from grader.wire.messages import Launch
from grader.wire.reply import Reply, Writers


@dataclass
class Evidence:
    submission: Submission
    trial: Trial
    inputs: list[Argument]
    reply: Reply
    wanted: Wanted  # the result that the explanation is about
    constants: dict[str, int]  # block sizes in force: the module's own and the trial's
    right_when_contiguous: bool = False  # trials of contiguous arguments alone have passed in this run, and none failed
    right_before: set[str] = field(default_factory=set)  # bounds of the trials that passed in this run
    right_trials: list[Trial] = field(default_factory=list)  # the trials that passed in this run
    right_results: list[str] = field(default_factory=list)  # names of the results of this call that are right

    @property
    def exercise(self) -> Exercise:
        return self.trial.exercise

    @property
    def returns(self) -> str:
        """The name of the result."""
        return self.wanted.name

    @property
    def output(self) -> torch.Tensor | None:
        return self.reply.outputs.get(self.wanted.name)

    @property
    def writers(self) -> Writers | None:
        return self.reply.writers.get(self.wanted.name)

    @property
    def launch(self) -> Launch | None:
        """The last launch of the grid that wrote the result last, else the last launch; None without launches."""
        launches = self.reply.launches
        grid = self.writers.grid if self.writers is not None else []
        wrote = [one for one in launches if [max(1, size) for size in (*one.grid, 1, 1)[:3]] == grid]
        return next(reversed(wrote or launches), None)

    @property
    def tensors(self) -> list[tuple[str, torch.Tensor]]:
        """The arguments that are tensors, by name."""
        return list(tensors_of(self.exercise.arguments, self.inputs))

    def reference(self, arguments: Sequence[Argument]) -> torch.Tensor | None:
        """Returns the right result for these arguments, [result's shape]; None if the reference cannot take them."""
        place = [one.name for one in self.exercise.results].index(self.wanted.name)
        try:
            return self.exercise.expected(arguments)[place]
        except (IndexError, RuntimeError):  # numbers that are no indices, or shapes that do not go together
            return None

    @property
    def kernel_facts(self) -> KernelFacts:
        return kernel_facts(self.submission.tree)

    @property
    def missing_axis_text(self) -> str:
        """Text such as "the kernel uses tl.program_id(1), but the grid has 1 axis"; "" if no axis is missing."""
        axes = max((len(launch.grid) for launch in self.reply.launches), default=3)
        missing = [axis for axis in sorted(self.kernel_facts.axes) if isinstance(axis, int) and axis >= axes]
        plural = "axis" if axes == 1 else "axes"
        return f"the kernel uses tl.program_id({missing[0]}), but the grid has {axes} {plural}" if missing else ""

    @property
    def line_of_missing_axis(self) -> int:
        """The first line in which a launched kernel asks for an axis that no grid has; 0 if there is none."""
        axes = max((len(launch.grid) for launch in self.reply.launches), default=3)
        lines = (axes_asked_for(self.submission.tree, one.kernel) for one in self.reply.launches)
        return min((line for one in lines for axis, line in one.items() if axis >= axes), default=0)

    @property
    def line_of_maximum(self) -> int:
        """The line of the only tl.maximum with 0 that drops NaN; 0 if the text does not tell it."""
        return line_of_maximum_with_0(self.submission.tree)

    def rounding(self, of_a_sum: bool = False) -> Rounding | None:
        """Returns the only place where a kernel rounds to 16 bits what it computes with afterwards; None if unknown."""
        return line_of_rounding(self.submission.tree, short_dtype(self.trial.dtype), of_a_sum)

    def argument(self, name: str) -> torch.Tensor | None:
        """Returns the tensor of an argument or a result by its name; None if there is none."""
        return dict(self.tensors).get(name, self.reply.outputs.get(name))

    def source_line(self, number: int) -> Said | None:
        """Returns the line as it stands in the file, with its number; None if it is unknown."""
        return source_line(self.submission, number)

    def lacks_mask(self, line: int, function: str) -> bool:
        """Returns whether there is a tl.load or tl.store (`function`) at `line`, and it has no mask."""
        call = access_at(self.submission.tree, line, function)
        return call is not None and not has_mask(call) and not takes_corner(call)

    def by_descriptor(self, line: int, function: str) -> bool:
        """Returns whether the load or store at `line` is a descriptor's, which takes a corner and no mask."""
        call = access_at(self.submission.tree, line, function)
        return call is not None and takes_corner(call)


@dataclass(kw_only=True)
class Compared(Evidence):
    """Evidence whose result has been compared with the reference."""

    comparison: Comparison
    exact_run: Callable[[], Reply | None]  # makes the exact run of the call; None where there is none

    @property
    def output(self) -> torch.Tensor:
        return self.reply.outputs[self.wanted.name]

    @cached_property
    def exactly(self) -> Compared | None:
        """The evidence of the exact run: what its formula gives where nothing is rounded; None without such a run."""
        ran = self.exact_run()
        if ran is None:
            return None
        reply = replace(self.reply, outputs=ran.outputs, writers=ran.writers)
        comparison = compare(ran.outputs[self.returns], self.comparison.ref, self.wanted.bound, exact(self.inputs))
        return replace(self, reply=reply, comparison=comparison, exact_run=lambda: None)

    @cached_property
    def formula_is_right(self) -> bool | None:
        """Whether the result is right where nothing is rounded on the way, so that digits, or the range of a dtype, are
        to blame; None where there is no exact run."""
        if self.exactly is None:
            return None
        out, ref = self.exactly.output.to(self.wanted.dtype), self.comparison.ref
        return compare(out, ref, self.wanted.bound, exact(self.inputs)).right


def compared(evidence: Evidence, comparison: Comparison, exact_run: Callable[[], Reply | None]) -> Compared:
    """Returns the evidence together with the comparison of its result."""
    return Compared(**vars(evidence), comparison=comparison, exact_run=exact_run)


class Place(Sentence):
    LINE = "Line {line}:  {code}"


def source_line(submission: Submission, number: int) -> Said | None:
    """Returns "Line 21:  x = tl.load(...)"; None if the line is unknown."""
    code = submission.line(number)
    return Place.LINE(line=number, code=code) if code else None


def in_line(line: int) -> str:
    """Returns " in line 21", to follow a noun; "" if the line is unknown."""
    return f" in line {line}" if line else ""


def number_text(number: torch.Tensor) -> str:
    """Returns the text of a tensor of one element: six digits of a float, all digits of a whole number."""
    return f"{number.item():.6g}" if number.is_floating_point() else str(number.item())
