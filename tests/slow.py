"""Tests that `tox -e slow` runs whole and every other run in part: which items are drawn."""

from __future__ import annotations

import os
import random
from collections.abc import Iterable
from typing import Any

SLOW = "SLOW" in os.environ


def drawn(items: Iterable[Any], count: int, text: str) -> list[Any]:
    """Returns `count` of the items, drawn from the text of what is tested with them; all items in `tox -e slow`.

    The same text gets the same items on every machine, the next change of it gets others.
    """
    items = sorted(items)
    return items if SLOW else sorted(random.Random(text).sample(items, min(count, len(items))))
