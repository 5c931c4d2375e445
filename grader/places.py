"""The folders of the package and of the course. No other module counts the parents of its own path."""

from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
IMPORTED_FROM = PACKAGE.parent  # the entry of the import path under which Python finds this package
INSTALLED = IMPORTED_FROM / "triton_course"  # a wheel's folder next to the package; a clone has none
# exercises/, hints/, solutions/ and tests/ lie here: in a clone next to the package.
COURSE = INSTALLED if INSTALLED.is_dir() else IMPORTED_FROM


def is_installed() -> bool:
    """Returns True where this package came from a wheel: then the files of its course are not to be edited."""
    return COURSE == INSTALLED


def command_for(extra: str) -> str:
    """Returns the command that adds an extra of the package, such as "gpu", as a text."""
    if is_installed():
        return f'python -m pip install "triton-course[{extra}]"'
    return f'python -m pip install -c constraints.txt -e ".[{extra}]" in the course\'s folder'
