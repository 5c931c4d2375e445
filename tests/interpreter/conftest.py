"""Calls that a real child records and another interprets, as the tests of the child ask for them."""

from __future__ import annotations

from tests.child.conftest import child  # noqa: F401
