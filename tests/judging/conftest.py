"""Recorded calls, as the tests of the child make them."""

from __future__ import annotations

from tests.child.recorded_calls import recording  # noqa: F401
