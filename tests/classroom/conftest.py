"""A class's folder that is made anew for a test."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from tests.classroom.instructor import Classroom

EXTRA = ("ipykernel", "nbgrader", "distributed")
collect_ignore_glob = [] if all(map(find_spec, EXTRA)) else ["*"]  # needs the extra classroom


@pytest.fixture
def classroom(tmp_path) -> Classroom:
    return Classroom(tmp_path / "class")
