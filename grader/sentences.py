"""Sentences about a failure: the words stand in tables, and what is found fills them in.

A table is an enumeration; a member is a sentence with fields in braces. Called with what was found it is `Said`: which
sentence, and its evidence as data. Nobody but `Said.text` puts the two together.

    class Memory(Sentence):
        NO_MASK = "The tl.{function} in line {line} has no mask: {count:#lane} past the end of {name} take part in it."

    Memory.NO_MASK(function="load", line=12, count=3, name="x")
"""

from __future__ import annotations

import math
import re
import string
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

Value = str | int | float | Sequence  # of numbers and texts: what JSON can say
Fields = dict[str, Value]  # what fills a sentence in, by the names of its fields


class Sentence(Enum):
    """Base of the tables. As format specifications "#element" counts (1 element, 2 elements), "," joins a list, and "_"
    puts blanks between thousands."""

    @property
    def id(self) -> str:
        """ "memory.no-mask", as `--result` calls it."""
        table = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", type(self).__name__).lower()
        return f"{table}.{self.name.lower().replace('_', '-')}"

    @cached_property
    def fields(self) -> frozenset[str]:
        """The names of its evidence."""
        return frozenset(field for _, field, _, _ in string.Formatter().parse(self.value) if field)

    def __call__(self, **evidence: Value) -> Said:
        """Raises TypeError where the evidence is not that of the sentence."""
        if evidence.keys() != self.fields:
            raise TypeError(f"{self.id} takes {sorted(self.fields)}, and was given {sorted(evidence)}")
        if strange := [name for name, value in evidence.items() if not _is_data(value)]:
            raise TypeError(f"{self.id}: {strange} are no texts, numbers or lists of these")
        return Said(self, evidence)


@dataclass(frozen=True)
class Said:
    """One sentence of a finding: `evidence` is what it was made of, by the names of its fields."""

    sentence: Sentence
    evidence: dict[str, Value]

    @property
    def text(self) -> str:
        return _WORDS.vformat(self.sentence.value, (), self.evidence)

    def to_json(self) -> dict:
        """Numbers that JSON has no word for, NaN and infinities, are texts."""
        return {"sentence": self.sentence.id, "evidence": {name: _as_json(one) for name, one in self.evidence.items()}}


class _Words(string.Formatter):
    def format_field(self, value: Value, specification: str) -> str:
        if isinstance(value, int | float) and specification.startswith("#"):
            return count_text(value, specification[1:])
        if specification == "," and isinstance(value, tuple | list):
            return ", ".join(map(str, value))
        if specification == "_":
            return f"{value:_}".replace("_", " ")
        return super().format_field(value, specification)


_WORDS = _Words()


def _is_data(value: object) -> bool:
    if isinstance(value, tuple | list):
        return all(map(_is_data, value))
    return isinstance(value, str | int | float)


def _as_json(value: Value) -> Value:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return list(map(_as_json, value)) if isinstance(value, tuple | list) else value


def count_text(count: float, noun: str) -> str:
    """ "1 element", "2 elements", "2 processes", "2 bytes" """
    plural = f"{noun}es" if noun.endswith("ss") else noun if noun.endswith("s") else f"{noun}s"
    return f"{count} {noun if count == 1 else plural}"
