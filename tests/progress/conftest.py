"""Copies of the course, as the tests of its commands make them."""

from __future__ import annotations

from tests.learn.conftest import course, history, tried  # noqa: F401
