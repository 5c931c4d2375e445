"""Launch plans with real machine code, as the tests of the compiler make them."""

from __future__ import annotations

from tests.compiler.launch_plans import recording  # noqa: F401
