"""The names that an exercise's test file uses, and `judge` for a kernel of one's own; nothing else."""

from importlib import import_module

_OF_MODULES = {
    "grader.course.exercise": "Exercise Example Result",
    "grader.explain.cost": "Elements",
    "grader.numerics.paged_data": "in_pages",
    "grader.numerics.arguments": "made",
    "grader.numerics.bounds": "RoundingModel",
    "grader.numerics.roundoff": "FLUSHED U32",
    "grader.numerics.rounding_models": """
        ATTENTION LOG_SUM_EXP PRODUCT SOFTMAX by_heads error_of_scores error_of_sum rounding_of_lse
        rounding_of_o scores
    """,
    "grader.numerics.exact_data": "a_code_each cancelling cancelling_down cancelling_rows codes",
    "grader.numerics.data_sets": """
        amid around_fp16_max falling falling_down far_below_zero first_row indices integers last last_row
        leading level large lengths lone normal one_hot output packed peaked slots some_minus_infinity special
        subnormal uniform unusual whole with_some
    """,
    "grader.course.promise": """
        aligned_rows any_strides between contiguous into of_sequences one_of only optional slots_into target
        upto
    """,
    "grader.own.judgement": "judge",
}
_HOME = {name: module for module, names in _OF_MODULES.items() for name in names.split()}
__all__ = list(_HOME)


def __getattr__(name: str):
    """Imports a name's module at its first use: importing torch takes a second, and a pytest plugin must start fast."""
    if name not in _HOME:
        raise AttributeError(f"module 'grader' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)
