"""The names that an exercise's test file uses; nothing else."""

from importlib import import_module

_HOME = {"Exercise": "grader.exercise", "Example": "grader.exercise"} | dict.fromkeys(
    (
        "cancelling",
        "falling",
        "far_below_zero",
        "integers",
        "leading",
        "large",
        "normal",
        "one_hot",
        "output",
        "some_minus_infinity",
        "special",
        "subnormal",
        "uniform",
        "unusual",
        "with_some",
    ),
    "grader.inputs",
)
_HOME |= dict.fromkeys(("any_strides", "contiguous", "target", "upto"), "grader.drawn")
__all__ = list(_HOME)


def __getattr__(name: str):
    """Imports a name's module when it is first asked for: torch takes a second, and a pytest plugin must not."""
    if name not in _HOME:
        raise AttributeError(f"module 'grader' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)
