"""The operations that the judge knows: a file for each, found by its name. "softmax" is grader/operations/softmax.py.

The file of an operation may have

    rounding(inputs, ref)      returns c S of `bounds.tolerance`, [shape of ref]: how much a right kernel's arithmetic
                               may add to the error, with the source of the formula. `inputs` are the entry's arguments,
                               tensors in float64 (float32 for `comparison.quick_error`) or int64. A result with its own
                               bound, "layer_norm.mean", has rounding_of_mean(inputs, ref).
    conversion(inputs, ref)    returns R and L of `bounds.tolerance`, [shape of ref] each, where a right kernel converts
                               to the output's dtype on its way. A result with its own bound has conversion_of_mean.
    held(shapes)               returns how many numbers the bounds keep at a time besides the inputs, where that is more
                               than a few copies of the inputs.
    terms(inputs, ref)         returns what a rounding on the way is relative to, [shape of ref], where that is not the
                               result: for a sum it is the sum of its |terms|. A result with its own bound may have
                               terms_of_mean.
    CAUSES, PLAIN_CAUSES       are the ids of mistakes that are this operation's alone. Mistakes that kernels of several
                               operations share have their ids in mistakes/, and those of any operation in
                               explain/causes.py. A hint has to help with each of CAUSES; for PLAIN_CAUSES the sentence
                               itself says what to change.
    DIGITS                     are the ids of mistakes that leave the formula right and lose digits: the exact run of
                               such a kernel is right. RANGE are those of numbers that get too large or too small on
                               the way, which may be right in the exact run or not. All others are wrong there.
    a table of sentences       says in words what a mistake is (grader/sentences.py).
    mistakes(evidence, inputs) yields a Hypothesis for each mistake: its id, its sentence, and what a kernel with this
                               mistake computes, in float64: the result that is looked at, or all results in the order
                               in which the reference gives them.
    astray(evidence, inputs, finding)
                               returns a Hypothesis without a result, or None: the mistake that makes a kernel access
                               memory where the memory checker has seen it.
    LOST_DIGITS                is the sentence given as advice where digits are lost and nothing else is known.

Each of these may be left out: an operation with one rounding has the bound "exact", and no function for it. Code that
does not fit into attention.py stands next to it in _attention.py. An operation knows no exercise: an exercise states
the operation's name as the bound of its results or, where their bounds are "exact" or "bits", as its operation.
"""

from __future__ import annotations

import functools
from importlib import import_module
from pathlib import Path
from types import ModuleType

from grader.operations import mistakes

_OF_ALL = ("__init__", "bounds", "comparison", "evidence", "hypothesis")


@functools.cache
def names() -> tuple[str, ...]:
    """Returns the names of all operations, sorted."""
    found = (path.stem for path in _files(Path(__file__).parent))
    return tuple(name for name in found if name not in _OF_ALL and not name.startswith("_"))


def named(bound: str) -> ModuleType:
    """Returns the module of a bound's operation, layer_norm for "layer_norm.mean". Raises ValueError for others."""
    name = bound.partition(".")[0]
    if name not in names():
        raise ValueError(f"{bound!r} is no operation; there are {', '.join(names())}.")
    return import_module(f"grader.operations.{name}")


def is_bound(bound: str) -> bool:
    """Returns whether an operation has this bound: "layer_norm", or with the name of a result "layer_norm.mean"."""
    name, _, result = bound.partition(".")
    return name in names() and hasattr(named(name), f"rounding_of_{result}" if result else "rounding")


def causes() -> frozenset[str]:
    """Returns the ids of all mistakes that operations and families of mistakes can name."""
    return _stated("CAUSES") | plain_causes()


def plain_causes() -> frozenset[str]:
    """Returns the ids of the mistakes whose sentence says what to change."""
    return _stated("PLAIN_CAUSES")


def digits() -> frozenset[str]:
    """Returns the ids of the mistakes that lose digits, and leave the formula right."""
    return _stated("DIGITS")


def of_range() -> frozenset[str]:
    """Returns the ids of the mistakes by which numbers get too large or too small on the way."""
    return _stated("RANGE")


@functools.cache
def _stated(tuples: str) -> frozenset[str]:
    families = [import_module(f"{mistakes.__name__}.{path.stem}") for path in _files(mistakes.__path__[0])]
    stating = [*map(named, names()), *families]
    return frozenset(cause for module in stating for cause in getattr(module, tuples, ()))


def _files(folder: str | Path) -> list[Path]:
    return sorted(Path(folder).glob("*.py"))
