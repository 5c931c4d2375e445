"""A submission launches the same kernels where it is interpreted and where it is compiled, or it is judged on one
kernel and would run another."""

from __future__ import annotations

from grader.exercise import Exercise
from grader.gpu.plan import Plan
from grader.protocol import Launch
from grader.verdict import Verdict, failed

Launched = list[tuple[str, tuple[int, ...]]]  # kernel and grid, in order


def interpreted(launches: list[Launch]) -> Launched:
    padded = [(launch.kernel, (*launch.grid, 1, 1)[:3]) for launch in launches]
    return [(kernel, grid) for kernel, grid in padded if min(grid)]


def compiled(plan: Plan) -> list[Launched]:
    """What the plan launches with each configuration of an autotuned kernel."""
    return [
        [(plan.kernels[launch.kernel].name, tuple(launch.grid)) for launch in plan.launches(config)]
        for config in range(plan.configs)
    ]


def difference(interpreted: Launched, plan: Plan, exercise: Exercise) -> Verdict | None:
    """None if one configuration of the plan launches what the interpreter ran."""
    alternatives = compiled(plan)
    if interpreted in alternatives:
        return None
    return failed(
        "other-launches",
        f"For the same data {exercise.entry} launches {_text(interpreted)} in the interpreter and "
        f"{_text(alternatives[0])} where it is compiled for a GPU.",
        "What is judged has to be what runs: let the host function do the same everywhere.",
        kind="error",
    )


def _text(launched: Launched) -> str:
    if not launched:
        return "nothing"
    kernel, grid = launched[0]
    while len(grid) > 1 and grid[-1] == 1:
        grid = grid[:-1]
    more = f" and {len(launched) - 1} more" if len(launched) > 1 else ""
    return f"{kernel} with the grid {grid if len(grid) > 1 else f'({grid[0]},)'}{more}"
