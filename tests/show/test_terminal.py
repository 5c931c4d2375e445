"""The console of the commands: its width, its colours, and what it makes of texts from elsewhere.

tests/session/test_hostile_texts.py shows it hostile ones.
"""

from __future__ import annotations

import io
import sys
from datetime import datetime, timedelta
from pathlib import Path

import click
import pytest
from rich.table import Table

from grader.show.terminal import NARROW, WIDEST, ago, busy, console, say, shown

ESCAPE = "\x1b["


class Terminal(io.StringIO):
    """An output that says that a person looks at it."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def output(monkeypatch):
    """output(file): makes it the output of this process, in the environment of a terminal of 80 columns.

    A test sets it while it runs: pytest sets its own between this fixture and the test.
    """
    for name in ("NO_COLOR", "FORCE_COLOR", "COLORTERM", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "80")

    def output(made: io.StringIO) -> io.StringIO:
        monkeypatch.setattr(sys, "stdout", made)
        return made

    return output


@pytest.fixture
def terminal(output):
    return lambda: output(Terminal())


@pytest.fixture
def pipe(output):
    return lambda: output(io.StringIO())


@pytest.mark.parametrize(
    ("columns", "width"), [("60", 60), ("wide", WIDEST), ("", WIDEST), ("0", WIDEST), ("-5", WIDEST), ("300", 300)]
)
def test_a_pipe_is_as_wide_as_a_number_in_columns(columns, width, monkeypatch, pipe):
    monkeypatch.setenv("COLUMNS", columns)
    pipe()
    assert console().width == width


@pytest.mark.parametrize(("columns", "width"), [("40", 40), ("80", 80), ("100", 100), ("300", WIDEST)])
def test_a_terminal_is_as_wide_as_it_is_and_no_wider_than_prose_can_be_read(columns, width, monkeypatch, terminal):
    monkeypatch.setenv("COLUMNS", columns)
    terminal()
    assert console().width == width and NARROW < 80 < WIDEST


def test_prose_and_tables_fit_80_columns(terminal):
    out, table = terminal(), Table("Exercise", "What is said of it")
    table.add_row("01_masked_add", "243 lanes lie past the end of each row. " * 4)
    console().print("Each program has a block of its own. " * 9)
    console().print(table)
    lines = click.unstyle(out.getvalue()).splitlines()
    assert len(lines) > 8 and max(map(len, lines)) <= 80 and "…" not in out.getvalue()


def test_colours_are_for_terminals(terminal):
    out = terminal()
    console().print("[red]wrong[/red]")
    assert ESCAPE in out.getvalue() and "wrong" in out.getvalue()


def test_a_pipe_has_no_colours(pipe):
    out = pipe()
    console().print("[red]wrong[/red] and [bold]loud[/bold]")
    assert out.getvalue() == "wrong and loud\n"


def test_nobody_has_colours_who_wants_none(terminal, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    out = terminal()
    console().print("[red]wrong[/red]")
    assert out.getvalue() == "wrong\n"


def test_numbers_and_names_are_left_as_they_are(terminal):
    """rich would colour the one and make pictures of the other."""
    out = terminal()
    console().print("2048 'x' :smile: True")
    assert out.getvalue() == "2048 'x' :smile: True\n"


def test_what_takes_a_moment_is_told_on_a_terminal_only(pipe, terminal):
    for output, told in ((pipe, False), (terminal, True)):
        out = output()
        with busy("Judging"):
            pass
        assert ("Judging" in out.getvalue()) == told == bool(out.getvalue())


def test_what_is_said_is_one_line(pipe):
    out = pipe()
    say("a\nb\tc\x1b[2J\u202e")
    assert out.getvalue() == "a b c?[2J?\n"


def test_a_path_is_shown_from_here_where_that_is_shorter(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert shown(tmp_path / "a" / "b.py") == "a/b.py" and shown(tmp_path) == "."
    assert shown(Path("/b.py")) == "/b.py"
    assert shown(tmp_path / "a\nb") == "a b"


NOW = datetime(2026, 1, 2, 12)


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (0, "just now"), (59.9, "just now"), (-5, "just now"), (60, "1 minute ago"), (119, "1 minute ago"),
        (3599, "59 minutes ago"), (3600, "1 hour ago"), (7200, "2 hours ago"), (86399, "23 hours ago"),
        (86400, "1 day ago"), (30 * 86400, "30 days ago"),
    ],
)  # fmt: skip
def test_time_is_told_in_its_largest_unit(seconds, told):
    assert ago(NOW - timedelta(seconds=seconds), NOW) == told and ago(None, NOW) == ""
