"""A report of a hostile file, at a hostile path, in front of a person: nothing steers a terminal or forges a line."""

from __future__ import annotations

import io
import json
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from grader import cli
from grader.show import terminal
from tests.typed_commands import run_pytest

ROOT = Path(__file__).resolve().parents[2]
STEERING = "\x1b[31m\x1b]0;owned\x07\x9b1A\u202e"
FORGED = "\n  pass  everything\n"


def is_plain(text: str) -> bool:
    return all(c.isprintable() or c == "\n" for c in text)


def test_the_report_of_a_hostile_file_at_a_hostile_path_is_plain(tmp_path):
    folder = tmp_path / f"of {STEERING}{FORGED}"
    folder.mkdir()
    path = folder / "masked_add.py"
    raised = f"raise ValueError('{STEERING}\\n  pass  all')  # {STEERING}"
    path.write_text(f"def masked_add(x, y):\n    print('{STEERING}\\x1b[2J')\n    {raised}\n", encoding="utf-8")
    result = tmp_path / "result.json"
    done = run_pytest("exercises/01_masked_add", "--submission", path, "--result", result, cwd=ROOT)
    assert done.status == 1 and is_plain(done.out) and is_plain(done.err), done.out
    assert not any(line.strip().startswith("pass") for line in done.out.splitlines()), done.out
    assert "Line 3:  raise ValueError('?[31m" in done.out
    told = json.loads(result.read_text())
    assert is_plain(told["message"]) and all(is_plain(test["message"]) for test in told["tests"])


def test_settings_in_a_hostile_folder_are_refused_in_plain_words(tmp_path):
    folder = tmp_path / STEERING
    folder.mkdir()
    (folder / "masked_add.py").write_text("x = 1\n")
    (folder / "pytest.ini").write_text("[pytest]\n")
    done = run_pytest("-c", folder / "pytest.ini", "exercises/01_masked_add", "--submission", folder, cwd=ROOT)
    assert done.status != 0 and "settings next to an exercise" in done.out + done.err
    assert is_plain(done.out + done.err)


@pytest.mark.parametrize("shown", [f"a{STEERING}b", f"a\tb{FORGED}"])
def test_the_console_of_the_commands_gives_no_orders(shown, monkeypatch):
    out = terminal.console()
    out.file = io.StringIO()
    out.print(shown, markup=False, soft_wrap=True)
    out.print(terminal.shown(Path(shown)), markup=False)
    assert is_plain(out.file.getvalue()) and "a" in out.file.getvalue()


def test_a_command_that_ends_in_a_sentence_prints_it_plain(monkeypatch):
    @click.command()
    def refuses() -> None:
        raise click.ClickException(f"{STEERING} is not there.")

    monkeypatch.setattr(cli.LazyGroup, "get_command", lambda *_: refuses)
    done = CliRunner().invoke(cli.main, ["status"])
    assert done.exit_code == 1 and is_plain(done.output) and "is not there." in done.output
