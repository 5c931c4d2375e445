"""Where things lie. The only module that counts the parents of its own path."""

from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
COURSE = PACKAGE.parent  # exercises/, solutions/ and hints/ lie beside the package
