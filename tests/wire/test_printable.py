"""Texts of learners are shown; what would steer a terminal, or begin a line of its own, is not."""

from __future__ import annotations

import pytest

from grader.wire.printable import is_steering, one_line, several_lines

# Colours, a window's title, a bell, C1's own CSI, the direction of writing, a sign without width, half a pair.
STEERING = ["\x1b[2J", "\x1b]0;mine\x07", "\x9b31m", "a\u202eb", "a\u200bb", "\ud800", "\x00", "\x7f"]


@pytest.mark.parametrize("text", STEERING)
@pytest.mark.parametrize("shown", [one_line, several_lines])
def test_what_would_steer_a_terminal_is_a_question_mark(shown, text):
    assert shown(text).isprintable() and "?" in shown(text)


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n", "\v", "\f", "\x1c", "\x85", "\u2028", "\u2029"])
def test_a_text_on_one_line_begins_no_other(end):
    text = one_line(f"softmax{end}  pass  everything")
    assert len(text.splitlines()) == 1 and text.startswith("softmax ") and text.endswith("  pass  everything")


def test_several_lines_end_with_a_line_feed_only():
    assert several_lines("a\nb\r\nc\u2028d\x1b\te") == "a\nb \nc d?\te"


@pytest.mark.parametrize("text", ["", "z = x + y", "größer ≥ 3 · Ωμέγα", "日本語"])
def test_what_can_be_printed_stays_as_it_is(text):
    assert one_line(text) == several_lines(text) == text


@pytest.mark.parametrize("name", ["ada\n", "\x1b[31mEve", "a\x9bb", "a\u2028b", "\x7f"])
def test_a_name_with_control_characters_or_line_ends_steers(name):
    assert is_steering(name)


NOT_UTF_8 = b"J\xfcrgen".decode("utf-8", "surrogateescape")


@pytest.mark.parametrize("name", ["ada", "José Ñ", "می\u200cخواهم", NOT_UTF_8, "a b"])
def test_a_name_of_any_language_or_encoding_steers_nothing(name):
    assert not is_steering(name)
