"""Lanes that are lost: they go where an operation carries them, and are forgotten with their array."""

from __future__ import annotations

import numpy as np

from grader.interpreter.lost_offsets import Lost, hand_on
from grader.ttir.module import Operation, SourcePlace

ORIGIN, ANOTHER = ("int32", SourcePlace(3)), ("int8", SourcePlace(5))


def an_array(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.int32)


def lost_in(*rows: list[bool]) -> tuple[Lost, np.ndarray]:
    lost, value = Lost(), an_array(len(rows), len(rows[0]))
    lost.note(value, ORIGIN, np.array(rows))
    return lost, value


def test_what_is_lost_is_forgotten_with_its_array():
    lost, value = lost_in([True, False])
    assert lost.of(value)[ORIGIN].tolist() == [[True, False]] and lost.of(an_array(1, 2)) == {}
    del value
    assert not lost


def test_an_array_without_a_lost_lane_is_not_kept():
    lost, _ = lost_in([False, False])
    assert not lost


def test_losses_are_told_apart_and_added_up():
    lost, value = lost_in([True, False])
    lost.note(value, ORIGIN, np.array([[False, True]]))
    lost.note(value, ANOTHER, np.array([[False, True]]))
    assert [bad.tolist() for bad in lost.of(value).values()] == [[[True, True]], [[False, True]]]


def test_where_programs_part_each_keeps_its_own():
    lost, new = lost_in([True, False], [True, False], [True, True])
    old, out = an_array(3, 2), an_array(3, 2)
    lost.note(old, ORIGIN, np.array([[False, True]]))
    lost.merge(out, np.array([True, False, False]), new, old)
    assert lost.of(out)[ORIGIN].tolist() == [[True, False], [False, True], [False, True]]


def test_a_sum_has_the_lanes_of_both_and_another_shape_those_of_whole_programs():
    lost, value = lost_in([True, False], [False, False])
    row, out, other = an_array(2, 1), an_array(2, 2), an_array(2, 4, 4)
    lost.note(row, ORIGIN, np.array([[False], [True]]))
    hand_on(lost, Operation("arith.addi"), np.add, (value, row), out)
    assert lost.of(out)[ORIGIN].tolist() == [[True, False], [True, True]]
    hand_on(lost, Operation("tt.gather"), np.add, (value, an_array(2, 2)), other)
    assert lost.of(other)[ORIGIN].tolist() == [[[True]], [[False]]]


def test_one_of_two_values_hands_on_what_was_chosen():
    lost, value = lost_in([True, True, False])
    condition, out = np.array([[True, False, True]]), an_array(1, 3)
    hand_on(lost, Operation("arith.select"), np.where, (condition, value, an_array(1, 3)), out)
    assert lost.of(out)[ORIGIN].tolist() == [[True, False, False]]


def test_what_is_taken_apart_has_its_lanes_on_each_side():
    lost, value = lost_in([True, False])
    out = an_array(1), an_array(1)
    hand_on(lost, Operation("tt.split"), lambda x: (x[..., 0], x[..., -1]), (value,), out)
    assert lost.of(out[0])[ORIGIN].tolist() == [True] and lost.of(out[1]) == {}
