"""A judge's process that does not start leaves nothing."""

from __future__ import annotations

import subprocess
import tempfile

import pytest

from grader.classroom.cluster.warm_judge import WarmJudge, request_of
from grader.classroom.result_store import Text
from grader.course.folder import Folder
from grader.processes.bubblewrap import LIMITS
from tests.classroom.instructor import ROOT


@pytest.fixture
def no_process(tmp_path, monkeypatch):
    """No process can be started; temporary folders are made in `tmp_path`."""

    def failing(*arguments, **options):
        raise OSError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(subprocess, "Popen", failing)


def test_a_judge_that_cannot_be_started_is_a_fault_and_leaves_no_folder(tmp_path, no_process, monkeypatch):
    request = request_of(Text(Folder(ROOT / "exercises/01_masked_add"), "x\n", None), LIMITS)
    with monkeypatch.context() as ended:  # as if the process that was started ahead had ended
        ended.setattr(WarmJudge, "_start", lambda self: None)
        judge = WarmJudge(LIMITS)
    for _ in range(2):
        assert "no judge could be started" in judge.judge(request)["fault"]
    assert list(tmp_path.iterdir()) == []


def test_a_judge_that_cannot_be_started_ahead_leaves_no_folder(tmp_path, no_process):
    with pytest.raises(OSError, match="temporarily unavailable"):
        WarmJudge(LIMITS)
    assert list(tmp_path.iterdir()) == []
