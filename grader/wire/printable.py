"""Texts from a file, a path or a folder's name, made fit to be shown: they steer no terminal and forge no line."""

from __future__ import annotations

import unicodedata


def one_line(text: str) -> str:
    """Returns the text on one line: a blank for each line end and tab, "?" for other unprintable characters."""
    return text if text.isprintable() else "".join(map(_printable, text))


def several_lines(text: str) -> str:
    """Returns the text as `one_line` would, with its line ends and tabs kept."""
    return text if text.isprintable() else "".join(c if c in "\n\t" else _printable(c) for c in text)


def is_steering(name: str) -> bool:
    """Returns whether control characters or line ends stand in a name, so that it could be shown as another name."""
    return any(unicodedata.category(character) in ("Cc", "Zl", "Zp") for character in name)


def _printable(character: str) -> str:
    if character.isprintable():
        return character
    return " " if character.isspace() else "?"
