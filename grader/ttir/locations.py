"""Reads the locations of operations in the learner's file."""

from __future__ import annotations

import re
from dataclasses import replace

from grader.ttir.attributes import STRING, string_of
from grader.ttir.module import BadText, SourcePlace

MOST_DEPTH = 64  # of locations in locations
MOST_CALLS = 16  # of functions inlined into each other; the innermost are kept
_MOST_STEPS = 2 * MOST_DEPTH  # each depth takes a name and the location itself

_REFERENCE = r"\#\w++"
_LOCATION = re.compile(
    rf"""
      (?P<reference>{_REFERENCE})
    | (?P<file>{STRING}):(?P<line>\d{{1,9}}):(?P<column>\d{{1,9}})(?:\ to\ [\d:]*+)?
    | (?P<name>{STRING})(?:\((?P<inner>.*)\))?
    | callsite\((?P<callee>{_REFERENCE})\ at\ (?P<caller>{_REFERENCE})\)
    | fused(?:<[^<>]*+>)?\[(?P<parts>{_REFERENCE}(?:,\ {_REFERENCE})*+)\]
    | unknown
    """,
    re.VERBOSE | re.ASCII,
)


class Locations:
    """The places of `loc(...)`, each worked out once.

    aliases: the module's `#loc12 = loc(...)`, from the name without `#` to the text between the parentheses.
    filename: base name of the learner's file; frames in other files are passed over.
    """

    def __init__(self, aliases: dict[str, str], filename: str) -> None:
        self._aliases = aliases
        self._filename = filename
        self._places: dict[str, SourcePlace] = {}

    def place(self, text: str) -> SourcePlace:
        """Returns the innermost frame in the learner's file, and the variable that it is assigned to there.

        Raises BadText.
        """
        place = self._places.get(text)
        return place if place is not None else self._resolve(text, 0)

    def _resolve(self, text: str, depth: int) -> SourcePlace:
        place = self._places.get(text)
        if place is None:
            if depth > _MOST_STEPS:
                raise BadText("locations in locations in locations")
            match = _LOCATION.fullmatch(text)
            if match is None:
                raise BadText(f"a location that cannot be read: {text[:60]!r}")
            place = self._places[text] = self._place_of(match, depth + 1)
        return place

    def _place_of(self, match: re.Match[str], depth: int) -> SourcePlace:
        if match["reference"]:
            alias = self._aliases.get(match["reference"][1:])
            if alias is None:
                raise BadText(f"{match['reference']} is not defined")
            return self._resolve(alias, depth)
        if match["file"]:
            base = string_of(match["file"]).rpartition("/")[2]
            here = SourcePlace(int(match["line"]), column=int(match["column"]))
            return here if base == self._filename else SourcePlace()
        if match["name"]:
            inner = self._resolve(match["inner"], depth) if match["inner"] else SourcePlace()
            return replace(inner, variable=string_of(match["name"]))
        if match["callee"]:
            callee, caller = self._resolve(match["callee"], depth), self._resolve(match["caller"], depth)
            via = (*callee.via, caller.line, *caller.via)[:MOST_CALLS] if caller.line else callee.via
            return replace(callee, via=via) if callee.line else caller
        places = [self._resolve(part, depth) for part in (match["parts"] or "").split(", ") if part]
        return next((place for place in places if place.line), SourcePlace())
