"""The picture of a run in the README shows what a run prints today."""

from __future__ import annotations

import html
import importlib.util
import re
from pathlib import Path
from types import SimpleNamespace

from tests.typed_commands import run_pytest

ROOT = Path(__file__).resolve().parents[2]


def lines_of(svg: str) -> list[str]:
    """The picture's lines, numbers left out: other releases of torch may draw other values."""
    rows: dict[str, list[tuple[float, str]]] = {}
    for x, y, text in re.findall(r'<text class="run-r\d+" x="([\d.]+)" y="([\d.]+)"[^>]*>([^<]*)</text>', svg):
        rows.setdefault(y, []).append((float(x), html.unescape(text).replace("\xa0", " ")))
    lines = ["".join(text for _, text in sorted(parts)) for _, parts in sorted(rows.items(), key=lambda i: float(i[0]))]
    return [re.sub(r"[\d.]+", "#", line).rstrip() for line in lines]


def here(command: list[str], cwd: Path, env: dict[str, str], **_) -> SimpleNamespace:
    """Carries out the run in this process."""
    kept = {name: env[name] for name in ("COLUMNS", "PYTEST_DISABLE_PLUGIN_AUTOLOAD", "PYTEST_PLUGINS")}
    return SimpleNamespace(stdout=run_pytest(*command[3:], cwd=cwd, **kept).out)


def test_the_picture_is_in_step_with_the_grader(monkeypatch):
    spec = importlib.util.spec_from_file_location("run_picture", ROOT / "docs" / "run_picture.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    monkeypatch.setattr(script, "subprocess", SimpleNamespace(run=here))
    shown = lines_of(script.PICTURE.read_text(encoding="utf-8"))
    assert "FAIL  columns are not a power of two" in "\n".join(shown)
    assert shown == lines_of(script.picture(script.printed())), "python docs/run_picture.py"


def test_it_fetches_nothing():
    assert "url(" not in re.sub(r"url\(#", "", (ROOT / "docs" / "run.svg").read_text(encoding="utf-8"))
