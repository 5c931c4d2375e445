"""`tox` says what it runs, how long each part took, and which command failed."""

from __future__ import annotations

import os
import re
import shlex
import sys

import pytest

from grader.doctor.doctor import SUPPORTED, TESTED_TRITONS
from grader.learn.notebook_setup import TRITON
from tests import parts
from tests.conftest import ROOT
from tests.parts import Part, main

USES_SLOW = re.compile(r"^from tests(\.slow import|\b.* import .*\bslow$)", re.MULTILINE)


@pytest.fixture
def small(monkeypatch) -> None:
    """Parts of commands that every machine has."""
    mine = {"fine": Part("", ("true", "true")), "broken": Part("", ("true", "false", "true")), "last": Part("", ())}
    monkeypatch.setattr(parts, "PARTS", mine)


def test_each_part_gets_a_line_and_a_failure_names_its_command(small, capfd):
    assert main([]) == 1
    said = re.sub(r" +\d+ s", "  N s", capfd.readouterr().out)
    assert said.endswith(
        "\n\nfine  N s  Triton any    passed\n"
        "broken  N s  Triton any    FAILED: false\n"
        "         alone: tox -- broken\n"
        "last  N s  Triton any    passed\n"
    )
    assert [said.count(one) for one in ("fine    true\n", "broken  true\n", "broken  false\n")] == [2, 1, 1]


def test_what_a_failed_command_printed_last_is_told_again_at_the_end(capfd, monkeypatch):
    """A log is often cut to its end, and other parts print there meanwhile."""
    loud = """sh -c 'printf "FAILED tests/test_it.py\\n...F.. [ 50%%]\\n1 failed\\n"; exit 1'"""
    monkeypatch.setattr(parts, "PARTS", {"loud": Part("", (loud,)), "fine": Part("", ("echo well",))})
    assert main([]) == 1
    last = f"loud: the last lines of {loud}\nFAILED tests/test_it.py\n1 failed\n\nloud "
    assert last in capfd.readouterr().out


def test_parts_on_the_learners_release_run_beside_each_other_and_then_those_on_others():
    groups = [[name for name, _ in group] for group in parts._beside_each_other(list(parts.PARTS.items()))]
    assert groups == [["lint", "tests", "proofs"], ["oldest", "newest", "between"]]


def test_two_parts_run_at_the_same_time(monkeypatch, tmp_path):
    """Each end of a pipe waits for the other: one after the other, neither would end."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    ends = {"one": Part("", (f"cp {ROOT}/tox.ini {pipe}",)), "two": Part("", (f"cp {pipe} {tmp_path}/copy",))}
    monkeypatch.setattr(parts, "PARTS", ends)
    assert main([]) == 0


def test_what_a_part_prints_stands_behind_its_name(capfd, monkeypatch):
    monkeypatch.setattr(parts, "PARTS", {"one": Part("", ("echo a",)), "two": Part("", ("echo b",))})
    assert main([]) == 0
    assert {"one     a", "two     b"} <= set(capfd.readouterr().out.splitlines())


def test_a_part_is_run_alone_by_its_name(small, capfd):
    assert main(["fine"]) == 0 and "broken" not in capfd.readouterr().out


def test_a_name_of_no_part_is_told(small, capfd):
    assert main(["proof"]) == 2
    assert capfd.readouterr().out == "There is no part 'proof': fine, broken, last, slow.\n"


def test_the_slow_part_has_every_file_of_which_a_usual_run_tests_a_part():
    listed = {word for word in parts.SLOW.commands[0].split() if word.startswith("tests/")}
    files = [path for path in (ROOT / "tests").rglob("test_*.py") if re.search(USES_SLOW, path.read_text())]
    assert {str(path.relative_to(ROOT)) for path in files} <= listed


def test_every_release_that_is_supported_has_a_part():
    assert {part.triton for part in parts.PARTS.values()} == {"", *TESTED_TRITONS}
    assert TRITON.removeprefix("triton==") in TESTED_TRITONS


def test_learners_get_the_release_that_all_tests_and_proofs_run_on():
    assert f"triton=={parts.LEARNERS}" in (ROOT / "constraints.txt").read_text().splitlines()
    assert {parts.PARTS[name].triton for name in ("tests", "proofs")} == {parts.LEARNERS} == {parts.SLOW.triton}


def test_the_texts_say_the_same_releases():
    """What contributors, learners and pip are told: the lowest that pip takes is the oldest of the list."""
    text = {name: " ".join((ROOT / name).read_text().split()) for name in ("README.md", "docs/systems.md")}
    listed = f"Triton {', '.join(TESTED_TRITONS[:-1])} and {TESTED_TRITONS[-1]}"
    assert all(listed in one for one in text.values())
    assert f"`constraints.txt` takes {parts.LEARNERS}" in text["docs/systems.md"]
    table = (ROOT / "CONTRIBUTING.md").read_text()
    assert [name for name, part in parts.PARTS.items() if f"\n| `{name}` | {part.triton or 'any'} |" not in table] == []
    lowest = ".".join(map(str, SUPPORTED["triton"]))
    assert f'"triton>={lowest};' in (ROOT / "pyproject.toml").read_text() and TESTED_TRITONS[0].startswith(f"{lowest}.")


def test_a_part_is_run_on_its_release_of_triton(capfd, monkeypatch):
    monkeypatch.setattr(parts, "version", lambda name: "3.6.0")
    assert list(parts._installing("3.6.0")) == [] == list(parts._installing(""))
    (command,) = parts._installing("3.9.0")
    assert command.endswith(f" --target {parts.TRITONS}/3.9.0 triton==3.9.0")


def test_what_a_part_starts_imports_its_release_and_others_what_is_installed(capfd, monkeypatch, tmp_path):
    """The judge's own processes get the import path of the process that starts them."""
    told = "import sys; print([path for path in sys.path if 'tritons' in path])"
    mine = {name: Part(name, (shlex.join([sys.executable, "-c", told]),)) for name in ("3.6.0", parts.LEARNERS)}
    monkeypatch.setattr(parts, "PARTS", mine)
    monkeypatch.setattr(parts, "TRITONS", tmp_path / "tritons")
    monkeypatch.setattr(parts, "_installing", lambda triton: ("true",) if triton != parts.LEARNERS else ())
    assert main([]) == 0
    said = capfd.readouterr().out.splitlines()
    assert {f"3.6.0   ['{tmp_path}/tritons/3.6.0']", f"{parts.LEARNERS:<8}[]"} <= set(said)
