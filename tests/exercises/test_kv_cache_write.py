"""Rows into a cache in pages: one mistake is named alike, however the caches lie in memory and wherever it leads."""

from __future__ import annotations

import pytest

from grader import normal, slots
from grader.numerics.data_sets import Data
from tests.conftest import mutant
from tests.slow import in_turn

ID = "39_kv_cache_write"
CACHE = normal(4, 16, 3, 16)
LAYOUTS = {
    "contiguous": CACHE,
    "heads before rows": CACHE.stored_as(0, 2, 1, 3),
    "padded": CACHE.padded(),
    "in turns": CACHE.beside_another(),
}
SAID = {
    "skip_forgotten": "minus-one-stored",
    "page_row_swapped": "page-and-row-swapped",
    "slot_is_token": "slot-ignored",
    "zero_skipped": "zero-skipped",
    "v_into_k": "wrong-tokens",
    "page_forgotten": "page-forgotten",
}


def data(cache: Data) -> tuple[Data, ...]:
    return normal(24, 3, 16), normal(24, 3, 16), cache, cache, slots(24, below=64, nowhere=0.1)


@pytest.mark.parametrize(
    "name, layout", [(name, layout) for place, name in enumerate(SAID) for layout in in_turn([*LAYOUTS], place)]
)
def test_a_mistake_is_named_in_every_layout(bench, name, layout):
    verdict = bench(mutant(f"{ID}/{name}"), ID).check(*data(LAYOUTS[layout]), dtypes=("float16",))
    assert verdict.id == SAID[name], verdict.lines


def test_caches_to_which_nothing_went_are_said_to_be_untouched(bench):
    verdict = bench(mutant(f"{ID}/v_forgotten"), ID).check(*data(CACHE), dtypes=("float16",))
    assert verdict.id == "unwritten" and verdict.lines[0].startswith("Nothing was written to v_cache"), verdict.lines
