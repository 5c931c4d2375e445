"""course doctor on the versions that are installed: made up here."""

from __future__ import annotations

import importlib.metadata

import pytest

from grader.doctor import doctor


def told_of(triton: str, monkeypatch) -> tuple[bool, str]:
    """Returns whether all is well with this release of Triton, and the line about it."""
    monkeypatch.setattr(importlib.metadata, "version", lambda name: triton if name == "triton" else "99.0")
    said: list[str] = []
    fine = doctor._versions(said.append)
    return fine, next(line for line in said if line.startswith("triton"))


@pytest.mark.parametrize("release", [*doctor.TESTED_TRITONS, "3.7.1+git1234"])
def test_a_tested_release_of_triton_gets_no_note(release, monkeypatch):
    assert told_of(release, monkeypatch) == (True, f"triton         {release}")


@pytest.mark.parametrize("release", ["3.7.0", "3.10.0"])
def test_a_release_that_no_test_ran_on_is_told_with_those_that_were_tested(release, monkeypatch):
    line = f"triton         {release}  tests ran on 3.6.0, 3.7.1, 3.8.0, 3.9.0"
    assert told_of(release, monkeypatch) == (True, line)


def test_an_older_release_is_not_enough(monkeypatch):
    assert told_of("3.5.1", monkeypatch) == (False, "triton         3.5.1  !  at least 3.6 is needed")
