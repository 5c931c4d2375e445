"""Data sets of a cache in pages: the four of one call fit together, and say nothing about any other."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from grader import in_pages, normal, of_sequences
from grader.course.resized import resized
from grader.course.trial import Trial
from grader.numerics.arguments import from_json, to_json
from grader.numerics.data_sets import Data, generator_for, seed_place
from grader.numerics.drawn_pages import entries_in
from grader.numerics.paged_data import lengths_stated, paged
from grader.numerics.paged_draws import NO_PAGES
from tests.conftest import exercise_of


def drawn(data: tuple[Data, ...], seed: int = 1, dtype: torch.dtype = torch.float32) -> list[torch.Tensor]:
    return [one.tensor(dtype, generator_for(seed, seed_place(one, place))) for place, one in enumerate(data)]


def is_key(table: torch.Tensor, lengths: torch.Tensor, P: int, page: int) -> torch.Tensor:
    """Returns for each row of the caches whether a sequence has a key there; [P, page]."""
    found = torch.zeros(P, page, dtype=torch.bool)
    for b, length in enumerate(lengths.tolist()):
        n = torch.arange(length)
        found[table[b, n // page].long(), n % page] = True
    return found


@pytest.mark.parametrize("seed", range(4))
def test_all_rows_but_those_of_keys_are_nan(seed):
    k, v, table, lengths = drawn(in_pages(20, 16, 2, 8, lengths=(77, 130)), seed)
    assert lengths.tolist() == [77, 130] and table.shape == (2, 9) and table.dtype == lengths.dtype == torch.int32
    keys = is_key(table, lengths, 20, 16)
    assert int(keys.sum()) == 207
    for cache in (k, v):
        assert torch.equal(cache.isnan(), ~keys[..., None, None].expand_as(cache))
    assert not bool((k == v).any())
    taken = torch.cat([table[0, :5], table[1]])
    assert taken.unique().numel() == 14 and 0 not in taken and 19 in taken
    assert set(table[0, 5:].tolist()) <= set(NO_PAGES)


def test_another_seed_gives_other_pages():
    tables = [drawn(in_pages(20, 16, 2, 8, lengths=(77, 130)), seed)[2][1].tolist() for seed in range(4)]
    assert all(one != other for one, other in zip(tables, tables[1:]))


def test_sequences_share_pages_where_there_are_too_few():
    k, _, table, lengths = drawn(in_pages(3, 4, 1, 8, lengths=(9, 12)))
    assert torch.equal(k.isnan()[..., 0, 0], ~is_key(table, lengths, 3, 4))


def test_columns_to_spare_and_sequences_without_keys():
    _, _, table, lengths = drawn(in_pages(6, 4, 1, 8, lengths=(0, 9), spare=2))
    assert table.shape == (2, 5) and set(table[0].tolist()) <= set(NO_PAGES)
    k, _, table, _ = drawn(in_pages(2, 4, 1, 8, lengths=(0,)))
    assert table.shape == (1, 1) and bool(k.isnan().all())


def test_one_key_that_takes_all():
    k, v, table, _ = drawn(in_pages(5, 4, 1, 8, lengths=(9,), sink=True))
    first = int(table[0, 0])
    assert bool((k[first, 0] == 1.75).all()) and bool((v[first, 0] == 0).all())
    assert float(v[v == v].min()) >= 0 and float(k[k == k].max()) == 1.75


@pytest.mark.parametrize("seed", range(6))
def test_drawn_lengths_need_the_last_column_once(seed):
    _, _, table, lengths = drawn(paged((12, 5, 1, 4), 4, 3), seed)
    assert int(lengths.max()) > 2 * 5 and int(lengths.max()) <= 3 * 5 and int(lengths.min()) >= 0
    assert drawn(paged((12, 5, 1, 4), 0, 3), seed)[2].shape == (0, 3)


def test_kinds_of_values_know_the_sizes_of_a_call():
    sizes = dict(B=4, T=3, P=12, page=5)
    *kinds, heavy_end = of_sequences("B", "T", "P", "page")
    shapes = (12, 5, 2, 8), (12, 5, 2, 8), (4, 3), (4,)
    data = tuple(kind.within(sizes)(*shape) for kind, shape in zip(kinds, shapes))
    assert [one.shape for one in data] == list(shapes) and lengths_stated(data[3]) == ()
    k, _, table, lengths = drawn(data)
    assert torch.equal(k.isnan()[..., 0, 0], ~is_key(table, lengths, 12, 5))
    known = tuple(replace(kind, lengths=(7, 0, 15, 3)) for kind in (*kinds, heavy_end))
    data = tuple(kind.within(sizes)(*shape) for kind, shape in zip(known, (*shapes, shapes[1])))
    _, _, table, lengths, v = drawn(data)
    assert lengths.tolist() == [7, 0, 15, 3]
    assert [v[table[b, (n - 1) // 5], (n - 1) % 5].unique().item() for b, n in ((0, 7), (2, 15), (3, 3))] == [8000] * 3


def test_a_trial_and_its_json_draw_the_same():
    data = normal(2, 4, 8), *in_pages(9, 4, 2, 8, lengths=(9, 12))
    trial = Trial(exercise_of("28_paged_decoding"), "a test", data, torch.float16, "exact")
    again = replace(trial, data=tuple(from_json(to_json(one)) for one in data))
    for one, other in zip(trial.inputs(3), again.inputs(3)):
        assert torch.equal(one.nan_to_num(), other.nan_to_num())
    assert lengths_stated(again.data[4]) == (9, 12)


def test_fewer_sequences_are_a_smaller_call():
    data = resized((normal(4, 8, 16), *in_pages(40, 16, 2, 32, lengths=(70, 80, 90, 100))), 2)
    k, _, table, lengths = drawn(data[1:])
    assert lengths.tolist() == [70, 80] and table.shape == (2, 7)
    assert torch.equal(k.isnan()[..., 0, 0], ~is_key(table, lengths, 40, 16))


@pytest.mark.parametrize(
    "layout",
    [
        torch.arange(12).view(3, 4),
        torch.arange(24)[::2].view(3, 4),
        torch.arange(30).view(3, 10)[:, 1:9:2],
        torch.arange(12).view(4, 3).t(),
        torch.arange(24).view(4, 6)[:, 1::2].t(),
        torch.arange(3)[:, None].expand(3, 1),
    ],
    ids=["in order", "every second", "rows apart", "transposed", "transposed, every second", "a column"],
)
def test_a_table_in_full_has_an_entry_for_each_element(layout):
    view, first = layout, int(layout.flatten()[0])
    places = view.flatten().numpy()
    found = entries_in(view.numel(), places, view.shape, view.stride(), first)
    assert found.tolist() == list(range(view.numel()))


def test_a_hole_has_the_entry_of_an_element():
    view = torch.arange(30).view(3, 10)[:, 1:9:2]
    entries = entries_in(12, torch.arange(30).numpy(), view.shape, view.stride(), 1)
    assert entries.min() == 0 and entries.max() == 11
