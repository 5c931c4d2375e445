"""What is laid out for people is still the same to a program."""

from __future__ import annotations

import json

import pytest

from grader.classroom.json_text import json_text


@pytest.mark.parametrize(
    "content",
    [
        {},
        {"none": None, "empty": [], "text": "Gül\n\"'\\", "figures": {"seconds": 1.5}},
        {"tests": [{"name": "test_one", "points": 1}, {"name": "test_two", "tags": ["a", "b"]}], "deep": [[1], []]},
    ],
)
def test_a_program_reads_what_was_written(content):
    assert json.loads(json_text(content)) == content


def test_a_person_finds_a_line_for_each_entry_and_for_each_element():
    text = json_text({"exercise": "03_softmax", "tests": [{"name": "a"}, {"name": "ü"}], "points": 2})
    assert text == (
        '{\n "exercise": "03_softmax",\n "tests": [\n  {"name": "a"},\n  {"name": "ü"}\n ],\n "points": 2\n}\n'
    )
