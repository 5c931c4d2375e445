"""Says in one sentence that pytest runs outside of the course's environment.

With the course's plugin pytest reads no conftest.py of exercises. So this one is read by another environment's pytest
alone, which could only fail at the first import.
"""

import shlex
import sys
from pathlib import Path

import pytest


def pytest_configure() -> None:
    activate = Path(__file__).resolve().parent.parent / ".venv" / "bin" / "activate"
    following = f". {shlex.quote(str(activate))}" if activate.exists() else "set the environment up as README.md says"
    raise pytest.UsageError(f"The course is not installed for {sys.executable}. Next: {following}")
