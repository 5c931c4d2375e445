"""The formats of all exports: CSV, Canvas, Moodle, and with a line per test Gradescope's results.json and JUnit's XML.

Nothing here knows where scores come from: nbgrader's gradebook is read by grader.classroom.nbgrader.exports, a folder
of submissions by grader.classroom.plain_folder.result_files. Control characters are replaced in all texts: they might
steer a terminal, and XML has no way to write them.
"""

from __future__ import annotations

import csv
import io
import xml.etree.ElementTree as xml
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from grader.classroom.json_text import json_text
from grader.classroom.rubric import is_decided, title_of
from grader.explain.verdict import FAIL, PASS
from grader.files import write_whole
from grader.wire.printable import one_line, several_lines

FORMULA = ("=", "+", "-", "@")  # the first character of a formula; names come from students


def write_changed(path: Path, text: str) -> None:
    """Writes a text to a file that does not hold it yet; removes the file for ""."""
    if not text:
        path.unlink(missing_ok=True)
    elif not path.exists() or path.read_bytes() != text.encode("utf-8", "surrogateescape"):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, text)


# ---- a row per student -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Scores:
    """A student's scores that count, a score per column; None is an empty cell.

    `platform_id`: the student's number on the learning platform. `login`: the name by which the platform knows who
    logs in.
    """

    name: str
    platform_id: str | None
    id: str
    login: str
    scores: list[float | None]
    email: str | None = None


def csv_of(rows: Iterable[list], for_people: bool = False) -> str:
    """Returns a table as CSV with every text quoted.

    `for_people`: with the mark by which Excel knows UTF-8, and without which it shows other letters.
    """
    text = io.StringIO()
    text.write("\ufeff" if for_people else "")
    csv.writer(text, quoting=csv.QUOTE_NONNUMERIC).writerows([_cell(value) for value in row] for row in rows)
    return text.getvalue()


def canvas_rows(possible: Mapping[str, float | None], students: Iterable[Scores]) -> Iterator[list]:
    """Yields the rows of Canvas' gradebook import; the second row holds the points possible, by column."""
    yield ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", *possible]
    yield ["    Points Possible", "", "", "", "", *possible.values()]
    for one in students:
        yield [one.name, one.platform_id, one.id, one.login, "", *one.scores]


def moodle_rows(columns: Iterable[str], students: Iterable[Scores], emails: bool) -> Iterator[list]:
    """Yields the rows of Moodle's grade import; `ID number` or `Email address` names the user.

    `emails`: whether there is a column of addresses.
    """
    yield ["ID number", *(["Email address"] if emails else []), *columns]
    for one in students:
        yield [one.platform_id or one.id, *([one.email] if emails else []), *one.scores]


def totals_rows(possible: Mapping[str, float | None], students: Iterable[Scores]) -> Iterator[list]:
    """Yields a row per student: the scores by column, their sum, and how many of them there are not.

    The sum is None where there is no score, as a score is. `possible`: the most points, by column.
    """
    yield ["student", "name", *possible, "total", "of", "without a score"]
    for one in students:
        known = [score for score in one.scores if score is not None]
        total = [round(sum(known), 2) if known else None, sum(points or 0 for points in possible.values())]
        yield [one.id, one.name, *one.scores, *total, len(one.scores) - len(known)]


def _cell(value: object) -> object:
    """Returns the content of a cell: "" for None, and a text on one line.

    An apostrophe marks a text that a spreadsheet would take for a formula.
    """
    if not isinstance(value, str):
        return "" if value is None else value
    text = one_line(value)
    return f"'{text}" if text.lstrip()[:1] in FORMULA else text


# ---- a line per test -------------------------------------------------------------------------------------------------


def gradescope_text(results: list[dict], output: str, score: float | None) -> str:
    """Returns Gradescope's JSON, an entry per test. A test that is not decided has no score.

    The hand-in has no score either where `score` is None. `output`: a text about the hand-in.
    """
    tests = [entry for result in results for entry in _entries(result)]
    content: dict = {"output": several_lines(output), "tests": tests}
    if score is not None:
        content["score"] = score
    return json_text(content)


def _entries(result: dict) -> Iterator[dict]:
    for test in result["tests"]:
        entry = {
            "name": one_line(title_of(test)),
            "max_score": test["points"],
            "output": "" if test["hidden"] else several_lines(test["message"]),
            "visibility": "after_published" if test["hidden"] else "visible",
            "tags": [result["exercise"], test["item"]],
        }
        if is_decided(test):
            entry["score"] = test["points"] if test["outcome"] == PASS else 0
            entry["status"] = "passed" if test["outcome"] == PASS else "failed"
        yield entry


def junit_text(results: list[dict]) -> str:
    """Returns JUnit's XML: a suite per exercise, a case per test."""
    root = xml.Element("testsuites")
    root.extend(map(_suite, results))
    xml.indent(root)
    return xml.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _suite(result: dict) -> xml.Element:
    tests = result["tests"]
    counts = {"tests": len(tests), "failures": sum(test["outcome"] == FAIL for test in tests)}
    counts["skipped"] = sum(test["outcome"] not in (PASS, FAIL) for test in tests)
    suite = xml.Element("testsuite", {"name": result["exercise"], **{k: str(v) for k, v in counts.items()}})
    for test in tests:
        case = xml.SubElement(suite, "testcase", {"name": one_line(title_of(test)), "classname": result["exercise"]})
        message = "" if test["hidden"] else several_lines(test["message"])
        if test["outcome"] == FAIL:
            xml.SubElement(case, "failure", {"message": message.partition("\n")[0]}).text = message
        elif test["outcome"] != PASS:
            xml.SubElement(case, "skipped", {"message": message or test["outcome"]})
    return suite
