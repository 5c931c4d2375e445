"""`course trace --exact`: the values of the exact run, in which nothing is rounded, beside those of the usual run."""

from __future__ import annotations

from dataclasses import dataclass, replace

from grader.wire.reply import Reply
from grader.wire.traced_program import TracedProgram, TracedStep

FLOATS = ("fp64", "fp32", "fp16", "bf16")


@dataclass
class StepWithExact(TracedStep):
    exactly: TracedStep | None = None  # the same step of the exact run, where its numbers are others


def with_exact(usual: Reply, exact: Reply) -> Reply:
    """Returns the usual run's reply, its steps with those of the exact run."""
    return replace(usual, traced=[_program(one, other) for one, other in zip(usual.traced, exact.traced, strict=True)])


def _program(usual: TracedProgram, exact: TracedProgram) -> TracedProgram:
    """Returns the program with the exact steps, up to where the two part ways: a condition may depend on rounding."""
    steps, together = [], True
    others = iter(exact.steps)
    for step in usual.steps:
        other = next(others, None)
        together = together and other is not None and _place(step) == _place(other)
        differs = together and other is not None and step.dtype in FLOATS and _shown(step) != _shown(other)
        steps.append(StepWithExact(**vars(step), exactly=other if differs else None))
    return replace(usual, steps=list(steps))


def _place(step: TracedStep) -> tuple:
    return step.kind, step.line, step.variable, step.operation, tuple(step.calls), step.iteration, step.iterations


def _shown(step: TracedStep) -> tuple:
    return step.numbers, step.low, step.high, step.nans
