"""Tables for spreadsheets and learning platforms: CSV with every text quoted."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator

from grader.wire.printable import one_line

FORMULA = ("=", "+", "-", "@")  # the first character of a formula; names come from students


def csv_of(rows: Iterable[list]) -> str:
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_NONNUMERIC).writerows([_cell(value) for value in row] for row in rows)
    return text.getvalue()


def canvas_rows(possible: dict[str, float | None], scores: Iterable[tuple[list, list]]) -> Iterator[list]:
    """Yields the rows of Canvas' gradebook import; the second row holds the points possible, by column.

    `scores`: for each student, the name, Canvas' own number, the id and the login; and the scores, a score per column.
    """
    yield ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", *possible]
    yield ["    Points Possible", "", "", "", "", *possible.values()]
    for who, row in scores:
        yield [*who, "", *row]


def _cell(value: object) -> object:
    """Returns the content of a cell: "" for None, and a text on one line.

    An apostrophe marks a text that a spreadsheet would take for a formula.
    """
    if not isinstance(value, str):
        return "" if value is None else value
    text = one_line(value)
    return f"'{text}" if text.lstrip()[:1] in FORMULA else text
