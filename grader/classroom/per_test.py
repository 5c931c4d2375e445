"""Results for programs that show a line per test: Gradescope's results.json, JUnit's XML.

Control characters are replaced in all texts: they might steer a terminal, and XML has no way to write them.
"""

from __future__ import annotations

import xml.etree.ElementTree as xml
from collections.abc import Iterator

from grader.classroom.json_text import json_text
from grader.classroom.rubric import is_decided
from grader.explain.verdict import FAIL, PASS
from grader.wire.printable import one_line, several_lines


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
            "name": _title(test),
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
        case = xml.SubElement(suite, "testcase", {"name": _title(test), "classname": result["exercise"]})
        message = "" if test["hidden"] else several_lines(test["message"])
        if test["outcome"] == FAIL:
            xml.SubElement(case, "failure", {"message": message.partition("\n")[0]}).text = message
        elif test["outcome"] != PASS:
            xml.SubElement(case, "skipped", {"message": message or test["outcome"]})
    return suite


def _title(test: dict) -> str:
    return one_line(test["name"] if test["hidden"] else test["name"].removeprefix("test_").replace("_", " "))
