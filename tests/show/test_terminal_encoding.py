"""Outputs of any encoding: what they lack is replaced by what comes nearest, and nothing fails."""

from __future__ import annotations

import io
import sys

import pytest

from grader.show.terminal_encoding import PLAIN, prepare


@pytest.fixture
def written(monkeypatch):
    """written(encoding, text): the bytes that an output of this encoding gets."""

    def written(encoding: str, text: str, name: str = "stdout") -> bytes:
        out = io.TextIOWrapper(io.BytesIO(), encoding=encoding, write_through=True)
        with monkeypatch.context() as patched:
            patched.setattr(sys, name, out)
            prepare()
            print(text, end="", file=getattr(sys, name))
        return out.buffer.getvalue()

    return written


@pytest.mark.parametrize("name", ["stdout", "stderr"])
def test_what_ascii_lacks_is_replaced_by_what_comes_nearest(written, name):
    assert written("ascii", "a ≥ b → c … 3 × 4 µs, 2²", name) == b"a >= b -> c ... 3 x 4 us, 2^2"


def test_what_nothing_comes_near_is_a_question_mark(written):
    assert written("ascii", "ключ 😀") == b"???? ?"


def test_what_an_encoding_has_stays(written):
    text = "a ≥ b → 3 × 4 µs 😀"
    assert written("utf-8", text) == text.encode()
    assert written("cp1252", "3 × 4 µs → ≥ … —") == "3 × 4 µs -> >= … —".encode("cp1252")


def test_every_replacement_is_ascii_and_as_wide_as_a_column_of_a_table_where_it_draws_one():
    assert all(text.isascii() and text for text in PLAIN.values())
    assert all(len(text) == 1 for character, text in PLAIN.items() if "─" <= character <= "█")


def test_an_output_without_an_encoding_is_left_as_it_is(monkeypatch):
    monkeypatch.setattr(sys, "stdout", out := io.StringIO())
    prepare()
    print("≥", end="")
    assert out.getvalue() == "≥"


def test_a_text_that_cannot_be_read_is_still_an_error():
    prepare()
    with pytest.raises(UnicodeDecodeError):
        b"\xff".decode("ascii", "course-plain")
