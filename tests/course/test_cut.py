"""The part of each input that a part of a result depends on."""

from __future__ import annotations

import pytest
import torch

from grader.course.cut import Cut


def test_an_input_that_a_cut_leaves_out_has_no_part_in_a_result_s_shape():
    inputs = {"table": torch.empty(7), "a": torch.empty(2, 3), "b": torch.empty(3, 5)}
    assert Cut.of("a[m, :], b[:, n] -> c[m, n]").shape("c", inputs) == (2, 5)


def test_a_dimension_that_no_input_has_is_told():
    with pytest.raises(ValueError, match="the cut of c has a dimension 'n' that no input has"):
        Cut.of("a[m, :] -> c[m, n]").shape("c", {"a": torch.empty(2, 3)})


def test_heads_that_share_keys_say_how_many_neighbours_do():
    cut = Cut.of("q[b, h, :], k[b, h/, :] -> o[b, h, :]")
    assert cut.shared({"q": (2, 6, 4), "k": (2, 3, 5)}) == {"h/": 2}
    assert cut.shared({"q": (2, 0, 4), "k": (2, 0, 5)}) == {"h/": 1}


def test_a_whole_cut_takes_of_a_table_the_rows_that_an_index_picks():
    cut = Cut.of("table[index, n], index[k], x[k, :] -> z[k, n]").whole(
        {"table": 2, "index": 1, "x": 2, "y": 1}, {"z": 2}
    )
    assert cut.inputs == {"table": ["index", ":"], "index": [":"], "x": [":", ":"], "y": [":"]}
    assert cut.results == {"z": [":", ":"]}
