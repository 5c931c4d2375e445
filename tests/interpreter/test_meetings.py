"""Where one program loads and stores the same bytes: which places, and which lanes meet."""

from __future__ import annotations

import numpy as np
import pytest

from grader.interpreter.buffers import Argument, Buffer, BufferView, base_of
from grader.interpreter.meetings import MOST_PAIRS, Meetings
from grader.interpreter.memory import CheckedMemory
from grader.ttir.module import Operation, SourcePlace

SIZE = 2048
LOAD, STORE = Operation("tt.load", place=SourcePlace(3, via=(8,))), Operation("tt.store", place=SourcePlace(5))


class Program:
    """Runs a program at a time, on whole tiles of numbers of four bytes."""

    def __init__(self, programs: int = 1) -> None:
        self.memory = CheckedMemory()
        self.memory.meetings = Meetings()
        data = np.zeros(4 * SIZE, np.uint8)
        x = Buffer("x", 4 * SIZE, data=data, view=BufferView(0, (SIZE,), (1,), 4))
        self.memory.begin_launch((programs, 1, 1), 1, [Argument("x_ptr", x)])
        self.begin(0)

    def begin(self, number: int) -> None:
        self.number = number
        self.memory.begin_batch(np.array([number], np.int32))

    def load(self, elements: np.ndarray, access: Operation = LOAD) -> None:
        self._access(self.memory.load, elements, access)

    def store(self, elements: np.ndarray, value: int = 1, access: Operation = STORE) -> None:
        self._access(self.memory.store, elements, access, np.full(elements.size, value, np.uint32))

    def _access(self, run, elements: np.ndarray, access: Operation, *values: np.ndarray) -> None:
        programs, whole = np.full(elements.size, self.number, np.int32), (None, (1, elements.size))
        run(4 * elements.astype(np.int64) + base_of(0), *values, 4, access, programs, whole)

    @property
    def met(self) -> list[tuple]:
        found = self.memory.told_meetings()
        return [(one.loads_first, one.in_one_turn, one.load.lanes, one.store.lanes) for one in found]


def test_a_load_meets_the_store_of_the_same_element():
    program = Program()
    program.load(np.arange(0, 4))
    program.store(np.arange(2, 6))
    (told,) = program.memory.told_meetings()
    assert (told.argument, told.launch, told.load.line, told.load.via, told.load.shape) == ("x", 0, 3, [8], [4])
    assert program.met == [(True, True, [2, 3], [0, 1])]


def test_a_store_meets_the_load_after_it_lane_by_lane():
    program = Program()
    program.store(np.arange(4))
    program.load(np.array([3, 0, 0]))
    assert program.met == [(False, True, [1, 2, 0], [0, 0, 3])]


def test_what_keeps_its_value_meets_nothing():
    program = Program()
    program.load(np.arange(4))
    program.store(np.arange(4), value=0)
    assert program.met == []


def test_a_loop_that_leads_back_is_told():
    program = Program()
    program.load(np.array([1]))
    program.load(np.array([2]))
    program.store(np.array([1]))
    assert program.met == [(True, False, [0], [0])]


@pytest.mark.parametrize(("number", "told"), [(0, 1), (1, 0), (2, 1), (3, 0), (4, 1)])
def test_the_first_the_last_and_the_middle_program_are_looked_at(number, told):
    program = Program(programs=5)
    program.begin(number)
    program.load(np.arange(4))
    program.store(np.arange(4))
    assert len(program.met) == told


def test_two_programs_do_not_meet_each_other():
    program = Program(programs=2)
    program.load(np.arange(4))
    program.begin(1)
    program.store(np.arange(4))
    assert program.met == []


def test_of_many_lanes_some_are_told():
    program = Program()
    program.load(np.arange(SIZE))
    program.store(np.arange(SIZE))
    ((_, _, loaded, stored),) = program.met
    assert len(loaded) == MOST_PAIRS and loaded == stored and max(loaded) > SIZE // 2


def test_many_lanes_at_one_address_are_not_told_pair_by_pair():
    """All pairs of 65536 lanes would be four billion."""
    program, lanes = Program(), np.zeros(1 << 16, np.int64)
    program.load(lanes)
    program.store(lanes)
    ((_, _, loaded, stored),) = program.met
    assert sorted(zip(loaded, stored)) == [(0, 0), (0, 65535), (65535, 0), (65535, 65535)]
