"""A submission launches the same kernels where it is interpreted and where it is compiled, or it is judged on one
kernel and would run another."""

from __future__ import annotations

from grader.exercise import Exercise
from grader.gpu.plan import Plan, PlannedLaunch
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


def difference(launches: list[Launch], plan: Plan, exercise: Exercise) -> Verdict | None:
    """None if one configuration of the plan launches what the interpreter ran, with the same arguments."""
    alternatives, ran = compiled(plan), interpreted(launches)
    if ran not in alternatives:
        return _differs(f"{exercise.entry} launches {_text(ran)}", _text(alternatives[0]))
    same = [config for config, launched in enumerate(alternatives) if launched == ran]
    differing = [_differing_argument(launches, plan, config) for config in same]
    if not all(differing):
        return None
    kernel, here, there = differing[0]
    return _differs(f"{exercise.entry} launches {kernel} with {here}", f"with {there}")


def differing_constants(interpreted: list[str], compiled: list[str]) -> Verdict | None:
    """Of the module's constants that kernels see."""
    here, there = (sorted(set(one) - set(other)) for one, other in ((interpreted, compiled), (compiled, interpreted)))
    if not here and not there:
        return None
    return _differs(f"the file says {', '.join(here) or 'nothing'}", ", ".join(there) or "nothing")


def _differs(interpreted: str, compiled: str) -> Verdict:
    return failed(
        "other-launches",
        f"For the same data {interpreted} in the interpreter and {compiled} where it is compiled for a GPU.",
        "What is judged has to be what runs: let the file do the same everywhere.",
        kind="error",
    )


def _differing_argument(launches: list[Launch], plan: Plan, config: int) -> tuple[str, str, str] | None:
    """(kernel, argument interpreted, argument compiled) of the first argument that is not the same."""
    ran = [launch for launch in launches if min(launch.grid)]
    for launch, planned in zip(ran, plan.launches(config)):
        there = _passed(planned, plan)
        for argument in launch.arguments:
            name, _, value = argument.partition(" = ")
            if name in there and not _same(value, there[name]):
                return launch.kernel, argument, f"{name} = {there[name]}"
    return None


def _passed(launch: PlannedLaunch, plan: Plan) -> dict[str, str]:
    passed = dict(launch.constants)
    for parameter in launch.parameters:
        if parameter.type != "pointer":
            passed[parameter.name] = parameter.value
        elif parameter.buffer >= 0:
            buffer = plan.buffers[parameter.buffer]
            passed[parameter.name] = f"{buffer.name if buffer.argument else 'allocated'} + {parameter.offset}"
    return passed


def _same(one: str, other: str) -> bool:
    """True, 1 and 1.0 are one number."""
    try:
        a, b = (float({"True": "1", "False": "0"}.get(text, text)) for text in (one, other))
    except ValueError:
        return one == other
    return a == b or (a != a and b != b)


def _text(launched: Launched) -> str:
    if not launched:
        return "nothing"
    kernel, grid = launched[0]
    while len(grid) > 1 and grid[-1] == 1:
        grid = grid[:-1]
    more = f" and {len(launched) - 1} more" if len(launched) > 1 else ""
    return f"{kernel} with the grid {grid if len(grid) > 1 else f'({grid[0]},)'}{more}"
