"""The first call of an autotuned kernel with a key: a trial run on the call's own memory, then the run that counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from grader.wire.recorded_parts import Choice, Fill, PlannedLaunch, PlannedView, PythonNumbers, Step, steps_with

Read = Callable[[PlannedView], np.ndarray]
Write = Callable[[PlannedView, np.ndarray], None]


def with_a_trial(
    steps: list[Step], config: int, kept: list[str], read: Read, write: Write
) -> Iterator[PlannedLaunch | Fill | PythonNumbers]:
    """Yields the steps; a tuned choice is carried out once more before it counts, between its hooks.

    `kept`: a kernel's arguments that are restored after the trial, besides the arguments that its file names. `read`
    and `write` access a view's memory; they are called between two of the steps.
    """
    for step in steps:
        if not isinstance(step, Choice) or step.tuning is None:
            yield from steps_with([step], config)
            continue
        tuning = step.tuning
        yield from steps_with(tuning.before, config)
        views = list(_views(step, config, [*tuning.restored, *kept]))
        copies = [read(view) for view in views]
        yield from steps_with([step], config)
        for view, copy in zip(views, copies):
            write(view, copy)
        yield from steps_with(tuning.after, config)
        yield from steps_with([step], config)


def _views(choice: Choice, config: int, names: list[str]) -> Iterator[PlannedView]:
    """Yields the views of the tensors that the configuration's kernel gets under these names."""
    for step in steps_with([choice], config):
        if isinstance(step, PlannedLaunch):
            yield from (one.view for one in step.parameters if one.name in names and one.view is not None)
