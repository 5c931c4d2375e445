"""Collects what is known about a call that went wrong; each explainer takes what it needs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import torch

from grader.course.exercise import Exercise
from grader.course.mistakes import Advice
from grader.course.trial import Trial
from grader.course.wanted_results import Wanted
from grader.explain.hypothesis import Hypothesis
from grader.numerics.arguments import Argument, exact, tensors_of
from grader.numerics.comparison import Comparison, compare
from grader.sentences import Said, Sentence
from grader.submission.text import Submission
from grader.ttir.kernel_facts import KernelFacts, Rounding
from grader.wire.messages import Finding, Launch
from grader.wire.reply import Reply, Writers

ExactRun = Callable[[], Reply | None]  # makes the exact run of a call; None where there is none
# Carries the exercise's mistakes out on a call: for a result by its name, and whether the formula is right, if known.
CarriedOut = Callable[[str, bool | None], Iterable[Hypothesis]]


@dataclass
class Evidence:
    submission: Submission
    trial: Trial
    inputs: list[Argument]
    reply: Reply
    wanted: Wanted  # the result that the explanation is about
    constants: dict[str, int]  # block sizes in force: the module's own and the trial's
    right_before: bool = False  # whether a call was right before, in this run
    right_results: list[str] = field(default_factory=list)  # names of the results of this call that are right
    texts: Callable[[], list[KernelFacts]] = list  # reads the text of the kernel of each launch
    line_without_strides: Callable[[str], int] = lambda name: 0  # the line that addresses an argument so; 0: none
    right_with_plain_layouts: Callable[[], bool] = bool  # with contiguous tensors, each with memory of its own
    # Finds the mistake of the exercise that leads to a finding of the memory checker; None without any.
    led_astray: Callable[[Reply, Finding], Hypothesis | None] = lambda reply, finding: None
    advice: Callable[[], Advice] = Advice  # reads what the exercise says where nothing else is known

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
    def may_hold_poison(self) -> bool:
        """True if a kernel has read memory that holds nothing: then NaN and infinities may come from there.

        What masked lanes hold is asked by itself: a call with other contents is made before a mistake is told.
        """
        return bool(self.reply.findings)

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

    @cached_property
    def needs_plain_layouts(self) -> bool:
        """True if the same values are right in contiguous tensors of their own, and not in the layouts of this call."""
        odd = self.trial.begins or any(not tensor.is_contiguous() for _, tensor in self.tensors)
        return bool(odd) and self.right_with_plain_layouts()

    @cached_property
    def kernels(self) -> list[KernelFacts]:
        """The facts of the kernel of each launch, in the order of the launches."""
        return self.texts()

    def kernel_of(self, launch: Launch) -> KernelFacts | None:
        """Returns the facts of a launch's kernel; None where they are not known."""
        places = (place for place, one in enumerate(self.reply.launches) if one is launch)
        place = next(places, len(self.kernels))
        return self.kernels[place] if place < len(self.kernels) else None

    @property
    def missing_axis(self) -> tuple[int, int, int] | None:
        """The first axis that a launched kernel uses and its grid lacks, the line, and how many the grid has; or
        None."""
        found = [
            (axis, line, len(launch.grid))
            for launch, kernel in zip(self.reply.launches, self.kernels)
            for axis, line in kernel.axes.items() if axis >= len(launch.grid)
        ]  # fmt: skip
        return min(found, default=None)

    @property
    def missing_axis_text(self) -> str:
        """Text such as "the kernel uses tl.program_id(1), but the grid has 1 axis"; "" if no axis is missing."""
        if self.missing_axis is None:
            return ""
        axis, _, axes = self.missing_axis
        plural = "axis" if axes == 1 else "axes"
        return f"the kernel uses tl.program_id({axis}), but the grid has {axes} {plural}"

    @property
    def roundings(self) -> list[Rounding]:
        """The lines that round to 16 bits what a kernel computes with afterwards."""
        found = {one.line: one for kernel in self.kernels for one in kernel.roundings}
        return [found[line] for line in sorted(found)]

    def argument(self, name: str) -> torch.Tensor | None:
        """Returns the tensor of an argument or a result by its name; None if there is none."""
        return dict(self.tensors).get(name, self.reply.outputs.get(name))

    def source_line(self, number: int) -> Said | None:
        """Returns the line as it stands in the file, with its number; None if it is unknown."""
        return source_line(self.submission, number)


@dataclass(kw_only=True)
class Compared(Evidence):
    """Evidence whose result has been compared with the reference."""

    comparison: Comparison
    exact_run: ExactRun
    carried_out: CarriedOut

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


def compared(evidence: Evidence, comparison: Comparison, exact_run: ExactRun, carried_out: CarriedOut) -> Compared:
    """Returns the evidence together with the comparison of its result."""
    return Compared(**vars(evidence), comparison=comparison, exact_run=exact_run, carried_out=carried_out)


class Place(Sentence):
    LINE = "Line {line}:  {code}"


def source_line(submission: Submission, number: int) -> Said | None:
    """Returns "Line 21:  x = tl.load(...)"; None if the line is unknown."""
    code = submission.line(number)
    return Place.LINE(line=number, code=code) if code else None


def the_only(lines: Iterable[int]) -> int:
    """Returns the only line among these; 0 if there is none, or several. 0 stands for no line."""
    found = {*lines} - {0}
    return found.pop() if len(found) == 1 else 0


def in_line(line: int) -> str:
    """Returns " in line 21", to follow a noun; "" if the line is unknown."""
    return f" in line {line}" if line else ""


def number_text(number: torch.Tensor) -> str:
    """Returns the text of a tensor of one element: six digits of a float, all digits of a whole number."""
    return f"{number.item():.6g}" if number.is_floating_point() else str(number.item())
