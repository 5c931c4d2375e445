"""Where things lie. The only module that counts the parents of its own path."""

from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
IMPORTED_FROM = PACKAGE.parent  # the entry of the import path under which Python finds this package
INSTALLED = IMPORTED_FROM / "triton_course"  # what a wheel lays next to the package; a clone has none
# exercises/, hints/, solutions/ and tests/ lie here: in a clone next to the package.
COURSE = INSTALLED if INSTALLED.is_dir() else IMPORTED_FROM


def is_installed() -> bool:
    """Tells if this package came from a wheel, and its course's files are nobody's to edit."""
    return COURSE == INSTALLED


def command_for(extra: str) -> str:
    """The command that adds one of the package's extras, such as "gpu"."""
    if is_installed():
        return f'python -m pip install "triton-course[{extra}]"'
    return f'python -m pip install -c constraints.txt -e ".[{extra}]" in the course\'s folder'
