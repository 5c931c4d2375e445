"""Families of mistakes: an id that several operations share is stated once, by its family."""

from __future__ import annotations

from collections import Counter
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from grader import operations
from grader.operations import mistakes

FAMILIES = [import_module(f"{mistakes.__name__}.{path.stem}") for path in Path(mistakes.__path__[0]).glob("[a-z]*.py")]


def stated_by(module: ModuleType) -> list[str]:
    return [id for ids in ("CAUSES", "PLAIN_CAUSES") for id in getattr(module, ids, ())]


def test_a_mistake_belongs_to_one_family():
    counts = Counter(id for family in FAMILIES for id in stated_by(family))
    assert counts and {id for id, count in counts.items() if count > 1} == set()


@pytest.mark.parametrize("name", operations.names())
def test_an_operation_does_not_state_what_a_family_states(name):
    of_families = {id for family in FAMILIES for id in stated_by(family)}
    assert of_families.intersection(stated_by(operations.named(name))) == set()


def test_the_ids_of_families_are_causes():
    assert operations.causes() >= {id for family in FAMILIES for id in stated_by(family)}
