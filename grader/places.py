"""The folders of the package and of the course. No other module counts the parents of its own path."""

import sys
from importlib.util import find_spec
from pathlib import Path

NEEDED = ("torch", "triton", "numpy", "pytest")  # to judge; all are installed with the package

PACKAGE = Path(__file__).resolve().parent
IMPORTED_FROM = PACKAGE.parent  # the entry of the import path under which Python finds this package
INSTALLED = IMPORTED_FROM / "triton_course"  # a wheel's folder next to the package; a clone has none
# exercises/, hints/, solutions/, stories/ and tests/ lie here: in a clone next to the package.
COURSE = INSTALLED if INSTALLED.is_dir() else IMPORTED_FROM


def is_installed() -> bool:
    """Returns True where this package came from a wheel: then the files of its course are not to be edited."""
    return COURSE == INSTALLED


def command_for(extra: str = "") -> str:
    """Returns the command that installs the package, with an extra such as "gpu", as a text."""
    if is_installed():
        return f'python -m pip install "triton-course[{extra}]"' if extra else "python -m pip install triton-course"
    editable = f'".[{extra}]"' if extra else "."
    return f"python -m pip install -c constraints.txt -e {editable} in the course's folder"


def missing() -> str:
    """Returns a sentence about what this environment lacks for judging, with the command that helps; or ""."""
    names = [name for name in NEEDED if find_spec(name) is None]
    if not names:
        return ""
    are = "is" if len(names) == 1 else "are"
    return f"{' and '.join(names)} {are} not installed for {sys.executable}. Next: {command_for()}"
