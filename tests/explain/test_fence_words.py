"""What is said of a fence: whole, or which part of it is missing."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from grader.explain.fence_words import is_whole, told
from grader.session import result_file, terminal_report
from grader.submission.text import Submission
from grader.wire.fence import Fence
from grader.wire.fields import build
from grader.wire.frames import ProtocolError
from tests.conftest import ROOT
from tests.typed_commands import run_pytest

WHOLE = Fence(landlock=7, seccomp=True, capabilities=True)


@pytest.mark.parametrize(
    ("fence", "words"),
    [
        (WHOLE, ["A submission is kept to Python and its own folder (Landlock 7, seccomp, no capabilities)."]),
        (Fence(0, True, True), ["read and write all files"]),
        (Fence(3, True, True), ["Landlock 3, which is here, keeps no signals in"]),
        (Fence(7, False, True), ["open sockets"]),
        (Fence(7, True, False), ["root's power"]),
        (Fence(0, False, False), ["read and write all files", "open sockets", "root's power"]),
    ],
)
def test_each_missing_part_has_its_sentence(fence, words):
    said = [one.text for one in told(fence)]
    assert len(said) == len(words) and all(word in text for word, text in zip(words, said))
    assert is_whole(fence) == (fence == WHOLE)


@pytest.mark.parametrize(
    "sent",
    [None, [], {}, {"landlock": 7, "seccomp": True}, {"landlock": "7", "seccomp": True, "capabilities": True},
     {"landlock": 7, "seccomp": 1, "capabilities": True}, {"landlock": True, "seccomp": True, "capabilities": True}],
)  # fmt: skip
def test_each_field_is_checked(sent):
    with pytest.raises(ProtocolError):
        build(Fence, sent)


def test_the_result_has_it_as_fields_and_in_words(tmp_path):
    result = tmp_path / "result.json"
    run_pytest(
        "exercises/01_masked_add", "--submission", "solutions", "-k", "one_full_block", "--result", result, cwd=ROOT
    )
    fence = json.loads(result.read_text())["fence"]
    assert fence.pop("says") == " ".join(said.text for said in told(build(Fence, fence)))
    assert result_file._fence(None) is None


def test_the_report_tells_of_a_missing_part_alone(monkeypatch):
    def lines(fence: Fence | None) -> str:
        run = SimpleNamespace(fence=fence, regions=1, printed="", printed_bytes=0, submission=Submission(Path()))
        grading = SimpleNamespace(
            run=run, unjudged=None, diagnosis=None, outcome="incomplete", fault=None, results=[], tests=3, unkept=""
        )
        said: list[str] = []
        terminal_report.end(SimpleNamespace(write_line=said.append), grading, alone=False, why=False, is_stopped=False)
        return " ".join(said)

    assert "Landlock" not in lines(WHOLE) + lines(None)
    assert "Without Landlock, which is missing here" in lines(Fence(0, True, True))


def test_the_doctor_says_it(monkeypatch):
    from grader.doctor import doctor
    from grader.processes.child import ChildProcess

    monkeypatch.setattr(ChildProcess, "__init__", lambda self, model: setattr(self, "fence", Fence(0, False, True)))
    monkeypatch.setattr(ChildProcess, "end", lambda self: None)
    said: list[str] = []
    doctor._fence(said.append)
    assert said[0].startswith("fence          Without Landlock") and said[1].startswith(
        "               Without seccomp"
    )
