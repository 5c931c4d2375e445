"""Data sets whose results are known to the last digit: sums that cancel, and codes whose products are whole numbers."""

from __future__ import annotations

from grader.numerics.data_sets import Data


def cancelling(M: int, K: int, N: int) -> tuple[Data, Data]:
    """Returns a [M, K] and b [K, N] of small integers whose running sums pass 2048 and cancel to at most 8.

    fp32 holds every running sum exactly (it stays below 2**24), fp16 holds only even numbers above 2048.
    """
    return Data((M, K), (("cancelling a",),)), Data((K, N), (("cancelling b",),))


def cancelling_rows(*shape: int) -> Data:
    """Returns rows of whole numbers from 1025 to 2000, then their negatives, the last number changed by at most 2.

    fp16 holds each of them, and no odd sum of two, which is above 2048. fp32 holds every sum of up to 16384 of them, in
    any order.
    """
    return Data(shape, (("cancelling rows",),))


def cancelling_down(*shape: int) -> Data:
    """Returns columns of whole numbers from 1 to 3, then their negatives, the last number changed by at most 2.

    Sums of 8192 of them pass 2048, where fp16 holds only even numbers, and come back to at most 2.
    """
    return Data(shape, (("cancelling down",),))


def codes(*shape: int) -> Data:
    """Returns rows that are codes of 1 and -1, the n-th row the n-th code: the product of two codes is 0, or less.

    The length of a row is a power of two, and there are at most twice as many rows: the second half are the negatives.
    """
    return Data(shape, (("codes",),), about="codes")


def a_code_each(*shape: int, below: int) -> Data:
    """Returns rows that are each one of the first `below` codes: the product of a row with its own code is the length
    of a row, with other codes 0 or less."""
    return Data(shape, (("a code each", below),), about="a code each")
