"""A pytest plugin that prints each test's exercise, rubric item and points: `pytest NN_name --collect-only -p THIS`."""

from __future__ import annotations

import pytest

from grader.course.folder import Folder
from grader.session.rubric_items import points_of, rubric_item


def pytest_collection_finish(session: pytest.Session) -> None:
    for item in session.items:
        folder = Folder.containing(item.path)
        if folder is not None and isinstance(item, pytest.Function):
            print(f"\nitem\t{folder.id}\t{rubric_item(item)}\t{points_of(item)}")
