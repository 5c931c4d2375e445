"""Tables for spreadsheets and learning platforms: CSV with every text quoted."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator


def csv_of(rows: Iterable[list]) -> str:
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_NONNUMERIC).writerows([_cell(value) for value in row] for row in rows)
    return text.getvalue()


def canvas_rows(possible: dict[str, float | None], scores: Iterable[tuple[list, list]]) -> Iterator[list]:
    """Canvas' gradebook import; the second row holds the points possible, by column.

    scores: of each student name, Canvas' own number, id and login; then what stands in the columns.
    """
    yield ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", *possible]
    yield ["    Points Possible", "", "", "", "", *possible.values()]
    for who, row in scores:
        yield [*who, "", *row]


def _cell(value: object) -> object:
    """A spreadsheet takes a text for a formula by its first character; names come from students."""
    if value is None:
        return ""
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r") else value
