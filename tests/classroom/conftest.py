"""A class's folder that is made anew for a test."""

from __future__ import annotations

import pytest

from tests.classroom.instructor import Classroom


@pytest.fixture
def classroom(tmp_path) -> Classroom:
    return Classroom(tmp_path / "class")
