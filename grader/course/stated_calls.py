"""The data and options that an exercise's tests hand to a fixture, read by running the tests with a stand-in for it.

So a command can compile or time what a test compiles or times, and a test file states everything once.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from grader.numerics.arguments import Recipe

# The fixtures of the plugin: what a test file may ask for.
FIXTURES = CHECK, DRAWN, TRAFFIC, COMPILED, TUNED, ON_GPU, THROUGHPUT, RAISES = (
    "check", "drawn", "traffic", "compiled", "tuned", "on_gpu", "throughput", "raises",
)  # fmt: skip


@dataclass
class Asked:
    """One use of a fixture, in the test of this name."""

    test: str
    fixture: str
    data: tuple[Recipe, ...]
    options: dict

    @property
    def constants(self) -> dict[str, int]:
        """The constants of the module to replace: their names are written in capitals."""
        return {name: value for name, value in self.options.items() if name.isupper()}


def asked(module: ModuleType, *fixtures: str) -> list[Asked]:
    """Returns the uses of these fixtures, in the order of the test file. Tests state their data before anything is
    drawn, so no call is run here.

    A test with other parameters, such as a parametrized test, is left out: only pytest can call it.
    """
    found: list[Asked] = []
    for name, test in vars(module).items():
        parameters = list(inspect.signature(test).parameters) if name.startswith("test_") else []
        if len(parameters) == 1 and parameters[0] in fixtures:

            def note(*data, test=name, fixture=parameters[0], **options) -> None:
                found.append(Asked(test, fixture, data, options))

            test(note)
    return found
