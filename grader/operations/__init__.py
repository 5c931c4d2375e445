"""What the judge knows of one operation, a file each, found by its name: "softmax" is grader/operations/softmax.py.

Such a file has

    rounding(inputs, ref)      c S of `bounds.tolerance`, [shape of ref]: what a right kernel's arithmetic may add, with
                               its source. `inputs`: the entry's arguments, tensors in float64 or int64. A result with
                               a bound of its own, "layer_norm.mean": rounding_of_mean(inputs, ref).
    conversion(inputs, ref)    R and L of `bounds.tolerance`, [shape of ref] each, where a right kernel converts to the
                               output's dtype on its way; of a result with a bound of its own conversion_of_mean.
    held(shapes)               how many numbers its bounds keep at a time beside the inputs, where that is more than a
                               few copies of these.
    terms(inputs, ref)         what a rounding on the way is relative to, where it is not the result: of a sum that of
                               its |terms|; [shape of ref]. Of a result with a bound of its own it may be terms_of_mean.
    CAUSES, PLAIN_CAUSES       the ids of mistakes that it can name, beside those of any operation (explain/causes.py):
                               each of the first has to be helped with in a hint, of the second the sentence does.
    a table of sentences       what can be said of its mistakes, in words (grader/sentences.py).
    mistakes(evidence, inputs) yields a Hypothesis for each: its id, what is said of it and what a kernel with this
                               mistake computes, in float64: the looked-at result, or all of them as the reference
                               gives them.
    astray(evidence, inputs, finding)
                               a Hypothesis without a result, or None: what makes a kernel store where the memory
                               checker has seen it.
    LOST_DIGITS                what is said as advice where digits are lost and nothing else is known.

All may be left out: an operation with one rounding is "exact" and has none of its own. What does not fit into
attention.py stands next to it in _attention.py. An operation knows no exercise: those that use it state its name, as
their bound or, where that is "exact" or "bits", as their operation.
"""

from __future__ import annotations

import functools
from importlib import import_module
from pathlib import Path
from types import ModuleType

_OF_ALL = ("__init__", "bounds", "comparison", "hypothesis")


@functools.cache
def names() -> tuple[str, ...]:
    """Of all operations that there are."""
    found = sorted(path.stem for path in Path(__file__).parent.glob("*.py"))
    return tuple(name for name in found if name not in _OF_ALL and not name.startswith("_"))


def named(bound: str) -> ModuleType:
    """The operation of a bound: "layer_norm" of "layer_norm.mean". Raises ValueError where there is none."""
    name = bound.partition(".")[0]
    if name not in names():
        raise ValueError(f"{bound!r} is no operation; there are {', '.join(names())}.")
    return import_module(f"grader.operations.{name}")


def is_bound(bound: str) -> bool:
    """Whether an operation has this bound: its name alone, or with that of a result."""
    name, _, result = bound.partition(".")
    return name in names() and hasattr(named(name), f"rounding_of_{result}" if result else "rounding")


def causes() -> frozenset[str]:
    """The ids of all mistakes that operations can name."""
    return _stated("CAUSES") | plain_causes()


def plain_causes() -> frozenset[str]:
    """Those whose sentence says what to change."""
    return _stated("PLAIN_CAUSES")


@functools.cache
def _stated(tuples: str) -> frozenset[str]:
    return frozenset(cause for name in names() for cause in getattr(named(name), tuples, ()))
