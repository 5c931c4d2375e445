"""Makes docs/run.svg, the picture of a run in the README, from what pytest really prints: python docs/run_picture.py"""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import CONSOLE_SVG_FORMAT, Console
from rich.text import Text

from grader.learn.demo import SEED, wrong_softmax

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "run.svg"
COMMAND = "pytest exercises/03_softmax"
WIDTH = 120


def printed() -> str:
    """The output, colours included, for a softmax that loads the lanes past the end of a row as 0."""
    with tempfile.TemporaryDirectory() as folder:
        course = Path(folder)
        for name in ("exercises", "solutions", "hints"):
            shutil.copytree(ROOT / name, course / name, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "pyproject.toml", course)
        (course / "exercises/03_softmax/softmax.py").write_text(wrong_softmax())
        arguments = [*COMMAND.split()[1:], "--color=yes", "--seed", str(SEED)]
        return subprocess.run(
            [sys.executable, "-m", "pytest", *arguments],
            cwd=course,
            capture_output=True,
            text=True,
            # Of pytest's plugins ours alone: what others have to say is no part of a run.
            env={**os.environ, "COLUMNS": str(WIDTH), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
                 "PYTEST_PLUGINS": "grader.session.plugin"},
        ).stdout  # fmt: skip


def picture(text: str) -> str:
    """The output as an SVG terminal, which fetches no font from anywhere."""
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    console.print(f"$ {COMMAND}", style="bold")
    console.print(Text.from_ansi(text.strip("\n")), soft_wrap=True)
    console.print()  # the frame would cut off the lower parts of the last line's letters
    form = re.sub(r"@font-face \{\{.*?\}\}\s*", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    return console.export_svg(title=COMMAND, code_format=form, unique_id="run")


if __name__ == "__main__":
    PICTURE.write_text(picture(printed()), encoding="utf-8")
    print(f"{PICTURE.relative_to(ROOT)}: {PICTURE.stat().st_size / 1000:.0f} kB")
