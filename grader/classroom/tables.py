"""Tables for spreadsheets and learning platforms: CSV with every text quoted."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator

from grader.wire.printable import one_line

FORMULA = ("=", "+", "-", "@")  # what one begins with; names come from students


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
    """Returns what stands in a cell: a text on one line, marked where a spreadsheet would take it for a formula."""
    if not isinstance(value, str):
        return "" if value is None else value
    text = one_line(value)
    return f"'{text}" if text.lstrip()[:1] in FORMULA else text
