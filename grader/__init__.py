"""The names that an exercise's test file uses, and `judge` for a kernel of one's own; nothing else."""

from importlib import import_module

_HOME = dict.fromkeys(("Exercise", "Example", "Result"), "grader.course.exercise")
_HOME |= {"Elements": "grader.explain.cost", "in_pages": "grader.numerics.paged_data"}
_HOME |= {"made": "grader.numerics.arguments", "RoundingModel": "grader.numerics.bounds"}
_HOME |= dict.fromkeys(("FLUSHED", "U32"), "grader.numerics.roundoff")
_HOME |= dict.fromkeys(
    (
        "ATTENTION",
        "LOG_SUM_EXP",
        "PRODUCT",
        "SOFTMAX",
        "by_heads",
        "error_of_scores",
        "error_of_sum",
        "rounding_of_lse",
        "rounding_of_o",
        "scores",
    ),
    "grader.numerics.rounding_models",
)
_HOME |= dict.fromkeys(
    ("a_code_each", "cancelling", "cancelling_down", "cancelling_rows", "codes"), "grader.numerics.exact_data"
)
_HOME |= dict.fromkeys(
    (
        "amid",
        "around_fp16_max",
        "falling",
        "falling_down",
        "far_below_zero",
        "first_row",
        "indices",
        "integers",
        "last",
        "last_row",
        "leading",
        "level",
        "large",
        "lengths",
        "lone",
        "normal",
        "one_hot",
        "output",
        "packed",
        "peaked",
        "slots",
        "some_minus_infinity",
        "special",
        "subnormal",
        "uniform",
        "unusual",
        "whole",
        "with_some",
    ),
    "grader.numerics.data_sets",
)
_HOME |= dict.fromkeys(
    (
        "aligned_rows",
        "any_strides",
        "between",
        "contiguous",
        "into",
        "of_sequences",
        "one_of",
        "only",
        "optional",
        "slots_into",
        "target",
        "upto",
    ),
    "grader.course.promise",
)
_HOME |= {"judge": "grader.own.judgement"}
__all__ = list(_HOME)


def __getattr__(name: str):
    """Imports a name's module at its first use: importing torch takes a second, and a pytest plugin must start fast."""
    if name not in _HOME:
        raise AttributeError(f"module 'grader' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)
