"""Terminals that cannot show every character: missing characters are replaced, and nothing fails."""

from __future__ import annotations

import codecs
import sys

PLAIN = {
    "\N{BULLET}": "*", "\N{MIDDLE DOT}": "*", "\N{HORIZONTAL ELLIPSIS}": "...", "\N{MINUS SIGN}": "-",
    "\N{EN DASH}": "-", "\N{EM DASH}": "-", "\N{MULTIPLICATION SIGN}": "x", "\N{RIGHTWARDS ARROW}": "->",
    "\N{GREATER-THAN OR EQUAL TO}": ">=", "\N{LESS-THAN OR EQUAL TO}": "<=", "\N{MICRO SIGN}": "u",
    "\N{SUPERSCRIPT TWO}": "^2", "\N{LEFT DOUBLE QUOTATION MARK}": '"', "\N{RIGHT DOUBLE QUOTATION MARK}": '"',
    "\N{BOX DRAWINGS LIGHT HORIZONTAL}": "-", "\N{BOX DRAWINGS LIGHT VERTICAL}": "|",
    "\N{BOX DRAWINGS HEAVY HORIZONTAL}": "=", "\N{LEFT ONE QUARTER BLOCK}": "|", "\N{FULL BLOCK}": "#",
}  # fmt: skip


def prepare() -> None:
    """Makes this process's output accept every character, whatever its encoding."""
    codecs.register_error("course-plain", _plain)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="course-plain")


def _plain(error: UnicodeError):
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(PLAIN.get(character, "?") for character in error.object[error.start : error.end]), error.end
