"""Tests that `tox -- slow` runs whole and every other run in part: which items are drawn."""

from __future__ import annotations

import os
import random
from collections.abc import Iterable, Sequence
from typing import Any

SLOW = "SLOW" in os.environ


def drawn(items: Iterable[Any], count: int, text: str) -> list[Any]:
    """Returns `count` of the items, drawn from the text of what is tested with them; all items in `tox -- slow`.

    The same text gets the same items on every machine, the next change of it gets others.
    """
    items = sorted(items)
    return items if SLOW else sorted(random.Random(text).sample(items, min(count, len(items))))


def in_turn(items: Sequence[Any], place: int) -> list[Any]:
    """Returns the item whose turn it is at this place of a list, so that all come up equally often; all items in
    `tox -- slow`."""
    return list(items) if SLOW else [items[place % len(items)]]
