"""A class's folder that is made anew for a test, and judges: one that is shared, and what stands in for others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.util import find_spec

import pytest

from tests.classroom.instructor import Classroom

EXTRA = ("ipykernel", "nbgrader", "distributed")
collect_ignore_glob = [] if all(map(find_spec, EXTRA)) else ["*"]  # needs the extra classroom


@pytest.fixture
def classroom(tmp_path) -> Classroom:
    return Classroom(tmp_path / "class")


@pytest.fixture
def judged_by(monkeypatch) -> Callable[[Callable[[dict], dict]], None]:
    """judged_by(judge): judge(request) stands in for the judges of this machine's workers."""
    from grader.classroom.cluster import engine
    from grader.classroom.cluster.worker_plugin import Judges

    def use(judge: Callable[[dict], dict]) -> None:
        monkeypatch.setattr(Judges, "setup", lambda self, worker: None)
        monkeypatch.setattr(Judges, "teardown", lambda self, worker: None)
        monkeypatch.setattr(Judges, "judge", lambda self, request: judge(request))
        monkeypatch.setattr(engine, "PAUSE", 0.3)

    return use


@pytest.fixture(scope="session")
def shared_judge() -> Iterator:
    """A judge that all tests share, as each takes seconds of a core to start. It sees no GPU.

    It was started where the environment asks for other things than it needs; test_cluster.py looks at that.
    """
    from grader.classroom.cluster.warm_judge import WarmJudge
    from grader.processes.bubblewrap import LIMITS

    with pytest.MonkeyPatch.context() as asked:
        asked.setenv("PYTEST_PLUGINS", "a_plugin_that_is_not_installed_there")
        asked.setenv("PYTEST_ADDOPTS", "--an-option-of-it")
        asked.setenv("OMP_NUM_THREADS", "8")
        asked.setenv("CUDA_VISIBLE_DEVICES", "")
        judge = WarmJudge(LIMITS)
    yield judge
    judge.end()
