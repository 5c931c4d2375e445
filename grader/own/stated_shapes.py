"""The line of --shapes: the shape of each argument, and how large each size may become.

"M,K K,N; M=1..300 K=1..200 N=1..300" states a matrix product. What a word may be, argument by argument:

    M,K            a tensor of the run's dtype; a number stands for itself, as in M,64
    M,K:fp32       a tensor with a dtype of its own
    M:int64<V      whole numbers from 0 to V - 1; V is a size or a number
    =0.5   =N      no tensor: this number (or True, False, None), or the size of this name
    =0.1..4.0      no tensor: any number of this range

and behind the semicolon, size by size:

    M=1..300       anything from 1 to 300; 0 lets it be empty
    M=64..512/64   multiples of 64, from 64 to 512
    M=64|128       these alone
"""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass

from grader.course.promise import Sizes, only, upto
from grader.own.cannot_judge import CannotJudge

DTYPES = {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16", "fp64": "float64"}  # short names
WHOLE = ("int8", "int16", "int32", "int64", "uint8")
LARGEST = (1 << 31) - 1
NAME, DIMENSION = re.compile(r"[A-Za-z_]\w*"), re.compile(r"(?:\d+|[A-Za-z_]\w*)(?:\*(?:\d+|[A-Za-z_]\w*))*")
WORD = re.compile(r"(?P<shape>[\w*]+(?:,[\w*]+)*),?(?::(?P<dtype>\w+))?(?:<(?P<below>[\w*]+))?")
RANGE = re.compile(r"(\d+)\.\.(\d+)(?:/(\d+))?")
SOME = 6  # sizes of a range that does not begin at 1
EXAMPLE = '--shapes "M,K K,N; M=1..300 K=1..200 N=1..300"'


@dataclass(frozen=True)
class StatedArgument:
    """What the line says of an argument: a tensor's shape, or a number."""

    shape: tuple[str, ...] = ()
    dtype: str = ""  # the argument's own; "": the run's
    below: str = ""  # whole numbers are smaller than this
    is_number: bool = False
    number: bool | int | float | str | None = None  # a text: the size of this name
    between: tuple[float, float] | None = None

    @property
    def names(self) -> list[str]:
        """The sizes that it names."""
        dimensions = [*self.shape, self.below, self.number if isinstance(self.number, str) else ""]
        return [name for one in dimensions for name in one.split("*") if NAME.fullmatch(name)]


def arguments_of(line: str) -> list[StatedArgument]:
    """Returns what the part before the semicolon states, in order. Raises CannotJudge."""
    return [_argument(word) for word in line.partition(";")[0].split()]


def _argument(word: str) -> StatedArgument:
    if word.startswith("="):
        return _number(word)
    match = WORD.fullmatch(word)
    if match is None or not all(DIMENSION.fullmatch(one) for one in match["shape"].split(",")):
        raise _no_word(word)
    dtype = DTYPES.get(match["dtype"] or "", match["dtype"] or "")
    if dtype and dtype not in (*DTYPES.values(), *WHOLE):
        known = ", ".join([*DTYPES, *WHOLE])
        raise CannotJudge(
            f"--shapes: {match['dtype']} in {word!r} is no dtype that can be judged.", f"use one of {known}."
        )
    if match["below"] and dtype not in WHOLE:
        raise CannotJudge(
            f"--shapes: {word!r} bounds no whole numbers.", f"write {match['shape']}:int64<{match['below']}."
        )
    return StatedArgument(tuple(match["shape"].split(",")), dtype, match["below"] or "")


def _number(word: str) -> StatedArgument:
    text = word[1:]
    low, dots, high = text.partition("..")
    try:
        if dots:
            between = float(ast.literal_eval(low)), float(ast.literal_eval(high))
            if between[0] < between[1]:
                return StatedArgument(is_number=True, between=between)
            raise _no_word(word)
        if NAME.fullmatch(text) and text not in ("True", "False", "None"):
            return StatedArgument(is_number=True, number=text)
        number = ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError):
        raise _no_word(word) from None
    if number is not None and not isinstance(number, bool | int | float):
        raise _no_word(word)
    return StatedArgument(is_number=True, number=number)


def _no_word(word: str) -> CannotJudge:
    return CannotJudge(
        f"--shapes: {word!r} states no argument.",
        f"write a tensor as M,K, whole numbers as M:int64<V, a number as =0.5: {EXAMPLE}",
    )


def sizes_of_line(
    line: str, arguments: Sequence[StatedArgument], usual: dict[str, int], block: int
) -> dict[str, Sizes]:
    """Returns how large each size may become. `usual`: the largest, by name, where the line says nothing. `block`: how
    many elements a program handles, as far as is known. Raises CannotJudge."""
    stated: dict[str, Sizes] = {}
    for word in line.partition(";")[2].split():
        name, _, text = word.partition("=")
        if not NAME.fullmatch(name) or not text:
            raise CannotJudge(f"--shapes: {word!r} states no size.", f"write M=1..300, or M=64|128: {EXAMPLE}")
        stated[name] = _sizes(word, text, block)
    used = list(dict.fromkeys(name for one in arguments for name in one.names))
    if unknown := sorted(stated.keys() - set(used)):
        raise CannotJudge(f"--shapes: {unknown[0]} is the size of no argument.", f"use it in a shape: {EXAMPLE}")
    return {name: stated.get(name) or upto(usual[name], block=block) for name in used}


def _sizes(word: str, text: str, block: int) -> Sizes:
    if match := RANGE.fullmatch(text):
        least, most, step = int(match[1]), int(match[2]), int(match[3] or 1)
        if not least <= most <= LARGEST or not step:
            raise CannotJudge(f"--shapes: {word!r} is no range.", f"write the smaller number first, up to {LARGEST}.")
        if step == 1 and least <= 1 < most:
            return upto(most, least=least, block=block)
        return only(*_some(least, most, step, block))
    sizes = text.split("|")
    if not all(one.isdecimal() and int(one) <= LARGEST for one in sizes):
        raise CannotJudge(f"--shapes: {word!r} states no size.", f"write M=1..300, or M=64|128: {EXAMPLE}")
    return only(*sorted({int(one) for one in sizes}))


def _some(least: int, most: int, step: int, block: int) -> list[int]:
    """Returns a few sizes of a range, its ends among them, and those next to multiples of a block."""
    first = -(-least // step) * step
    ends = [first, most // step * step]
    if first > most:
        raise CannotJudge(
            f"--shapes: no multiple of {step} lies from {least} to {most}.", "state a range that has one."
        )
    around = [size for size in (block - 1, block, block + 1, 2 * block + step) if least <= size <= most]
    drawn = random.Random(0).sample(range(first, most + 1, step), min(SOME, (most - first) // step + 1))
    found = [size for size in (*ends, *around, *drawn) if size % step == 0]
    return sorted(dict.fromkeys(found))[: 2 * SOME]
