"""What the parts of a notebook are called: those who write one and those who read one have to agree."""

from __future__ import annotations

SOLUTION_CELL, CHECK_CELL = "submission", "check"


def magic_of(name: str) -> str:
    """The first line of the solution cell; it saves the cell as a file."""
    return f"%%writefile {name}.py"
