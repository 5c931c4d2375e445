"""The console of the commands."""

from __future__ import annotations

import pytest

from grader.show.terminal import WIDEST, console


@pytest.mark.parametrize(
    ("columns", "width"), [("60", 60), ("wide", WIDEST), ("", WIDEST), ("0", WIDEST), ("-5", WIDEST)]
)
def test_a_pipe_is_as_wide_as_a_number_in_columns(columns, width, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", columns)
    assert console().width == width
