"""The judge of an exercise: one submission, the calls that the tests ask for, and a verdict for each test.

A call is judged in the interpreter, by the machine code that is made of its kernels and, where there is a GPU, on it.
The first mistake found is the reason that a verdict gives; the words for it stand in explain/.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import Any


class _Room(ModuleType):
    """This room. `from grader import judge` gives it once it is imported: when it is called, it judges a kernel of
    one's own, as the function of the same name in grader/own/judgement.py does."""

    def __call__(self, *given: Any, **named: Any) -> Any:
        return import_module("grader.own.judgement").judge(*given, **named)


sys.modules[__name__].__class__ = _Room
