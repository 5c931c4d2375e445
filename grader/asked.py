"""What an exercise's tests hand to a fixture: their data and options, read by running them with a stand-in for it.

So a command can compile or time what a test compiles or times, and a test file says everything once.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from grader.inputs import Data


@dataclass
class Asked:
    """One use of a fixture, in the test of this name."""

    test: str
    data: tuple[Data, ...]
    options: dict


def asked(module: ModuleType, fixture: str) -> list[Asked]:
    """In the order of the test file. Tests state their data before anything is drawn, so nothing is run here."""
    found: list[Asked] = []
    for name, test in vars(module).items():
        if name.startswith("test_") and fixture in inspect.signature(test).parameters:

            def note(*data, test=name, **options) -> None:
                found.append(Asked(test, data, options))

            test(**{fixture: note})
    return found
