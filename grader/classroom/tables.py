"""Tables for spreadsheets: CSV with every text quoted."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable


def csv_of(rows: Iterable[list]) -> str:
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_NONNUMERIC).writerows([_cell(value) for value in row] for row in rows)
    return text.getvalue()


def _cell(value: object) -> object:
    """A spreadsheet takes a text for a formula by its first character; names come from students."""
    if value is None:
        return ""
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r") else value
