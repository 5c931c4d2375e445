"""The operations that the judge knows: a file for each, found by its name. "softmax" is grader/operations/softmax.py.

The file of an operation has the model of a right kernel's rounding. Each of these may be left out: an operation with
one rounding has the bound "exact", and no file.

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

Code that does not fit into attention.py stands next to it in _attention.py. An operation knows no exercise: an exercise
states the operation's name as the bound of its results. What learners get wrong in it is no matter of the operation:
solutions/NN_name/mistakes.toml states it.
"""

from __future__ import annotations

import functools
from importlib import import_module
from pathlib import Path
from types import ModuleType

_OF_ALL = ("__init__", "bounds", "comparison", "evidence", "hypothesis")


@functools.cache
def names() -> tuple[str, ...]:
    """Returns the names of all operations, sorted."""
    found = (path.stem for path in sorted(Path(__file__).parent.glob("*.py")))
    return tuple(name for name in found if name not in _OF_ALL and not name.startswith("_"))


def named(bound: str) -> ModuleType:
    """Returns the module of a bound's operation, layer_norm for "layer_norm.mean", or the model that a bound brings
    along. Raises ValueError for others."""
    if (model := getattr(bound, "model", None)) is not None:
        return model
    name = bound.partition(".")[0]
    if name not in names():
        raise ValueError(f"{bound!r} is no operation; there are {', '.join(names())}.")
    return import_module(f"grader.operations.{name}")


def is_bound(bound: str) -> bool:
    """Returns whether an operation has this bound: "layer_norm", or with the name of a result "layer_norm.mean"."""
    name, _, result = bound.partition(".")
    return name in names() and hasattr(named(name), f"rounding_of_{result}" if result else "rounding")
