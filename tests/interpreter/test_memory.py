"""Accesses with one mistake each, made by hand: the checker names the argument, the element and the programs."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from grader.interpreter import buffers
from grader.interpreter.buffers import Argument, Buffer, BufferView, base_of
from grader.interpreter.memory import CheckedMemory

sys.path.insert(0, str(Path(__file__).parent))
from memory_model import Bench, Step, access_at, vector  # noqa: E402

RELAXED, ACQUIRE, RELEASE, ACQUIRE_RELEASE = 1, 2, 3, 4


def lanes(program: int, *elements: int, item: int = 4) -> list[tuple[int, int]]:
    return [(program, item * element) for element in elements]


def load(*runs, argument=0, item=4, line=1) -> Step:
    return Step("load", argument, item, line, sum(runs, []))


def store(*runs, values=None, argument=0, item=4, line=2) -> Step:
    flat = sum(runs, [])
    return Step("store", argument, item, line, flat, list(range(len(flat))) if values is None else values)


def atomic(*runs, argument=0, item=4, line=3) -> Step:
    flat = sum(runs, [])
    return Step("atomic", argument, item, line, flat, [1] * len(flat))


def the_finding(bench: Bench):
    (finding,) = bench.end()
    return finding


def test_values_go_to_memory_and_come_back():
    bench = Bench(vector("x", 8))
    bench.batch(0, 1)
    bench.access(store(lanes(0, 3, 1), lanes(1, 5), values=[7, 8, 9]))
    assert bench.access(load(lanes(0, 1, 3, 1), lanes(1, 5, 6))) == [8, 7, 8, 9, 1]
    assert bench.end() == []


def test_what_is_loaded_does_not_change_with_memory():
    bench = Bench(vector("x", 4))
    bench.batch(0)
    pointers, owners = np.arange(4, dtype=np.int64) * 4 + base_of(0), np.zeros(4, np.int32)
    found = bench.memory.load(pointers, 4, access_at(1), owners)
    bench.memory.store(pointers, np.zeros(4, np.uint32), 4, access_at(2), owners)
    assert found.tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize("fill, value", [("poison", 0xFFFFFFFF), ("zero", 0)])
def test_load_past_the_end(fill, value):
    bench = Bench(vector("x", 5), fill=fill)
    bench.batch(2, 3)
    assert bench.access(load(lanes(2, 3, 4), lanes(3, 4, 5, 6))) == [1, 1, 1, value, value]
    finding = the_finding(bench)
    assert (finding.kind, finding.argument, finding.linear, finding.line) == ("out-of-bounds-load", "x", 5, 1)
    assert (finding.element, finding.program, finding.count, finding.programs) == ([], [3], 2, 1)


@pytest.mark.parametrize("step, kind", [(store, "out-of-bounds-store"), (atomic, "out-of-bounds-atomic")])
def test_change_before_the_start(step, kind):
    bench = Bench(vector("z", 5))
    bench.batch(0, 1)
    bench.access(step(lanes(0, -1, 0), lanes(1, -2, 1)))
    finding = the_finding(bench)
    assert (finding.kind, finding.linear, finding.program, finding.programs) == (kind, -1, [0], 2)
    assert bench.arguments[0].buffer.read(BufferView(0, (5,), (1,), 4)).tolist()[2:] == [1, 1, 1]


def test_programs_are_named_with_as_many_numbers_as_the_grid_has():
    for dimensions, name in [(1, [1]), (2, [1, 2]), (3, [1, 2, 3])]:
        bench = Bench(vector("x", 5), grid=(3, 4, 5), dimensions=dimensions)
        bench.batch(1 + 3 * (2 + 4 * 3))
        bench.access(load(lanes(1 + 3 * (2 + 4 * 3), 9)))
        assert the_finding(bench).program == name


def test_pointers_that_belong_to_nothing():
    bench = Bench(vector("x", 5), None, None)
    bench.batch(4)
    owners, place = np.array([4, 4], np.int32), access_at(6)
    for address in (0, 4096, -1, base_of(1), base_of(2), base_of(3)):
        pointers = np.array([address, base_of(0)], np.int64)
        assert bench.memory.load(pointers, 4, place, owners).tolist() == [0xFFFFFFFF, 1]
    finding = the_finding(bench)
    assert (finding.kind, finding.argument, finding.line) == ("wild-pointer", "", 6)
    assert (finding.program, finding.count, finding.programs) == ([4], 6, 1)


def test_one_access_through_pointers_of_two_parameters():
    bench = Bench(vector("x", 4), vector("y", 4))
    bench.batch(0, 1)
    pointers = np.array([base_of(1), base_of(0) + 4, base_of(0) + 16, base_of(1) + 8], np.int64)
    owners = np.array([0, 0, 1, 1], np.int32)
    bench.memory.store(pointers, np.array([5, 6, 7, 8], np.uint32), 4, access_at(1), owners)
    assert bench.memory.load(pointers, 4, access_at(2), owners).tolist() == [5, 6, 0xFFFFFFFF, 8]
    assert [(f.kind, f.argument, f.linear) for f in bench.end()] == [
        ("out-of-bounds-store", "x", 4), ("out-of-bounds-load", "x", 4),
    ]  # fmt: skip


def test_an_element_of_another_size_must_lie_where_such_elements_lie():
    bench = Bench(vector("x", 8, item=2))
    bench.batch(0)
    assert bench.access(load(lanes(0, 1, 2, 3, item=2))) == [0xFFFFFFFF, 0x00010001, 0xFFFFFFFF]
    finding = the_finding(bench)
    assert (finding.kind, finding.argument, finding.element, finding.count) == ("misaligned", "x", [1], 2)


def test_holes_of_a_strided_view_are_outside():
    view = BufferView(8, (4, 10), (15, 1), 4)
    data = np.arange(60, dtype=np.uint32).view(np.uint8)
    bench = Bench(Argument("x_ptr", Buffer("x", 240, data=data, view=view), 8, view))
    bench.batch(0, 1, 2, 3)
    dense = [(program, 8 + 4 * (10 * program + i)) for program in range(4) for i in range(10)]
    found = bench.access(Step("load", 0, 4, 1, dense))
    finding = the_finding(bench)
    assert (finding.kind, finding.argument, finding.between) == ("out-of-bounds-load", "x", True)
    assert (finding.program, finding.linear, finding.count, finding.programs) == ([1], 10, 10, 2)
    assert found[:10] == list(range(2, 12)) and found[10:15] == [0xFFFFFFFF] * 5 and found[15:20] == list(range(17, 22))


def test_holes_of_a_view_too_large_for_a_table():
    view = BufferView(0, (1 << 14, 1000), (5000, 1), 4)
    assert view.span > 1 << 26
    bench = Bench(Argument("x_ptr", Buffer("x", view.high, view=view, content=np.uint32), 0, view))
    bench.batch(0)
    assert bench.access(load(lanes(0, 999, 1000, 5000, 5999, 6000)))[2] == 5000
    finding = the_finding(bench)
    assert (finding.linear, finding.between, finding.count) == (1000, True, 2)


def test_an_address_in_another_buffer():
    x, y = vector("x", 4), vector("y", 4)
    x.buffer.address, y.buffer.address = 1024, 2048
    bench = Bench(x, y)
    bench.batch(0)
    bench.access(load(lanes(0, 256), line=1))
    bench.access(load(lanes(0, 512), line=2))
    assert [finding.neighbour for finding in bench.end()] == ["y", ""]


def test_an_address_in_the_part_of_another_parameter():
    whole = BufferView(0, (20,), (1,), 4)
    buffer = Buffer("x", 80, data=np.zeros(80, np.uint8), view=whole)
    low, high = (
        Argument(name, buffer, 40 * n, BufferView(40 * n, (10,), (1,), 4)) for n, name in enumerate(["a_ptr", "b"])
    )
    bench = Bench(low, high)
    bench.batch(0)
    bench.access(load(lanes(0, 12)))
    bench.access(load(lanes(0, 9), argument=1, line=2))
    assert [(f.argument, f.linear, f.neighbour) for f in bench.end()] == [("x", 12, "b"), ("x", -1, "a")]


def test_findings_name_elements_of_the_whole_argument():
    whole = BufferView(0, (4, 8), (8, 1), 4)
    buffer = Buffer("x", 128, data=np.zeros(128, np.uint8), view=whole, read_only=True)
    bench = Bench(Argument("row_ptr", buffer, 64, BufferView(64, (8,), (1,), 4)))
    bench.batch(0)
    bench.access(store([(0, 64 + 4 * 3)]))
    finding = the_finding(bench)
    assert (finding.kind, finding.argument, finding.element, finding.linear) == ("input-written", "x", [2, 3], 19)


def test_an_input_is_written():
    bench = Bench(vector("x", 8, read_only=True))
    bench.batch(0, 1)
    bench.access(store(lanes(0, 2, 3), lanes(1, 4)))
    finding = the_finding(bench)
    assert (finding.kind, finding.element, finding.count, finding.programs) == ("input-written", [2], 3, 2)
    assert bench.arguments[0].buffer.read(BufferView(0, (8,), (1,), 4)).tolist() == [1, 1, 0, 1, 2, 1, 1, 1]


def test_read_of_what_nothing_filled():
    scratch = vector("", 16, parameter="s_ptr", initialised=False)
    scratch.buffer.write(BufferView(0, (5,), (1,), 4), np.full((), 3, np.uint32))
    bench = Bench(scratch)
    bench.batch(0, 1)
    bench.access(store(lanes(0, 5)))
    assert bench.access(load(lanes(0, *range(8)), lanes(1, 8))) == [3] * 5 + [0] + [0xFFFFFFFF] * 3
    finding = the_finding(bench)
    assert (finding.kind, finding.argument, finding.element) == ("uninitialised-read", "scratch s", [6])
    assert (finding.count, finding.program, finding.programs) == (3, [0], 2)


def test_a_second_launch_reads_what_the_first_one_wrote():
    scratch = vector("", 16, parameter="s_ptr", initialised=False)
    bench = Bench(scratch)
    bench.batch(0, 1)
    bench.access(store(lanes(0, 0, 1), lanes(1, 2)))
    bench.memory.end_launch()
    bench.memory.begin_launch((1, 1, 1), 1, [scratch])
    bench.batch(0)
    bench.access(load(lanes(0, 0, 1, 2)))
    assert bench.end() == []


# ---- races ---------------------------------------------------------------------------------------------------------


def test_two_programs_of_a_batch_write_one_element():
    bench = Bench(vector("z", 12))
    bench.batch(0, 1)
    bench.access(store(lanes(0, *range(8)), lanes(1, *range(4, 12)), values=[5] * 16))
    finding = the_finding(bench)
    assert (finding.kind, finding.element, finding.program) == ("race-write-write", [4], [1])
    assert (finding.other_program, finding.count, finding.programs) == ([0], 4, 1)


def test_three_programs_of_a_batch_write_one_element():
    bench = Bench(vector("z", 4))
    bench.batch(7, 5, 6)
    bench.access(store(lanes(7, 1), lanes(5, 1), lanes(6, 1)))
    finding = the_finding(bench)
    assert (finding.program, finding.other_program, finding.count, finding.programs) == ([5], [7], 2, 2)


def test_two_batches_write_one_element():
    bench = Bench(vector("z", 4))
    for program in (3, 9):
        bench.batch(program)
        bench.access(store(lanes(program, 2)))
    finding = the_finding(bench)
    assert (finding.kind, finding.program, finding.other_program) == ("race-write-write", [9], [3])


def test_the_first_program_in_order_is_named_whichever_instruction_showed_it():
    bench = Bench(vector("x", 4))
    bench.batch(0, 1, 2)
    bench.access(load(lanes(2, 7)))
    bench.access(load(lanes(1, 9), lanes(2, 8)))
    finding = the_finding(bench)
    assert (finding.program, finding.linear, finding.count, finding.programs) == ([1], 9, 3, 2)


def test_a_program_reads_what_another_wrote():
    bench = Bench(vector("z", 4))
    bench.batch(0, 1)
    bench.access(store(lanes(0, 1)))
    bench.access(load(lanes(0, 1), lanes(1, 1)))
    finding = the_finding(bench)
    assert (finding.kind, finding.program, finding.other_program) == ("race-read-after-write", [1], [0])


def test_a_program_writes_what_another_reads_in_an_instruction_before():
    bench = Bench(vector("z", 4))
    bench.batch(0, 1)
    bench.access(load(lanes(0, 0), lanes(1, 3)))
    bench.access(store(lanes(0, 3), lanes(1, 1)))
    finding = the_finding(bench)
    assert (finding.kind, finding.element, finding.program) == ("race-write-after-read", [3], [0])
    assert finding.other_program == [1]


def test_a_program_writes_what_several_read():
    bench = Bench(vector("z", 4))
    bench.batch(0, 1, 2)
    bench.access(load(lanes(0, 2), lanes(1, 2)))
    bench.access(store(lanes(2, 2)))
    finding = the_finding(bench)
    assert (finding.kind, finding.program, finding.other_program) == ("race-write-after-read", [2], None)


def test_readers_of_another_instruction_are_kept():
    bench = Bench(vector("z", 4))
    bench.batch(0, 1)
    bench.access(load(lanes(1, 2)))
    bench.access(load(lanes(0, 2)))
    bench.access(store(lanes(0, 2)))
    assert the_finding(bench).kind == "race-write-after-read"


def test_an_atomic_meets_a_plain_store():
    bench = Bench(vector("z", 4))
    bench.batch(0, 1)
    bench.access(store(lanes(0, 0), values=[5]))
    assert bench.access(atomic(lanes(0, 0), lanes(1, 0))) == [5, 6]
    finding = the_finding(bench)
    assert (finding.kind, finding.program, finding.other_program) == ("race-atomic-after-write", [1], [0])


def test_atomics_of_many_programs_are_no_race():
    bench = Bench(vector("z", 4))
    bench.batch(0, 1, 2)
    assert bench.access(atomic(lanes(0, 0, 0, 1), lanes(1, 0), lanes(2, 1, 0))) == [1, 2, 1, 3, 2, 4]
    assert bench.end() == []
    assert bench.memory.writers_of(bench.arguments[0].buffer, BufferView(0, (4,), (1,), 4)).tolist() == [2, 2, -2, -2]


def test_accesses_of_different_sizes_meet():
    bench = Bench(vector("z", 4))
    bench.batch(0, 1)
    bench.access(store(lanes(0, 0, 1), values=[0x01020304, 5]))
    assert bench.access(load([(0, 0), (0, 1), (1, 4)], item=1)) == [4, 3, 5]
    finding = the_finding(bench)
    assert (finding.kind, finding.element, finding.program) == ("race-read-after-write", [1], [1])


def test_lanes_of_one_store_disagree():
    bench = Bench(vector("z", 4))
    bench.batch(0)
    bench.access(store(lanes(0, *[i % 4 for i in range(16)])))
    finding = the_finding(bench)
    assert (finding.kind, finding.element, finding.count) == ("lane-conflict", [0], 12)


def test_lanes_that_agree_are_no_conflict():
    bench = Bench(vector("z", 4))
    bench.batch(0)
    bench.access(store(lanes(0, 1, 1, 0), values=[3, 3, 4]))
    assert bench.end() == []


# ---- programs that wait for each other -----------------------------------------------------------------------------


def turns(semantics: int, before: bool = True) -> list[str]:
    """Four programs store a part and take a ticket; the last one to arrive reads all parts."""
    part, count = vector("", 4, parameter="part"), vector("", 1, parameter="count")
    bench = Bench(part, count, ordered=True)
    for program in range(4):
        bench.batch(program)
        if before:
            bench.access(store(lanes(program, program)))
        bench.access(atomic(lanes(program, 0), argument=1), semantics=semantics)
        if not before:
            bench.access(store(lanes(program, program)))
        if program == 3:
            bench.access(load(lanes(3, 0, 1, 2, 3)))
    return [finding.kind for finding in bench.end()]


def test_a_ticket_orders_programs():
    assert turns(ACQUIRE_RELEASE) == []


@pytest.mark.parametrize("semantics", [RELAXED, ACQUIRE, RELEASE])
def test_a_ticket_must_acquire_and_release(semantics):
    assert turns(semantics) == ["race-read-after-write"]


def test_what_a_program_does_after_its_ticket_is_not_ordered():
    assert turns(ACQUIRE_RELEASE, before=False) == ["race-read-after-write"]


def test_a_ticket_after_several_have_read_lets_the_last_one_write():
    x, count = vector("x", 1), vector("", 1, parameter="count")
    bench = Bench(x, count, ordered=True)
    for program in range(3):
        bench.batch(program)
        bench.access(load(lanes(program, 0)))
        bench.access(atomic(lanes(program, 0), argument=1))
    bench.access(store(lanes(2, 0)))
    assert bench.end() == []


# ---- counts --------------------------------------------------------------------------------------------------------


def test_findings_are_counted_not_repeated():
    bench = Bench(vector("x", 4))
    for program in range(5):
        bench.batch(program)
        for line in range(100):
            bench.access(load(lanes(program, 9), line=line))
    findings = bench.end()
    assert len(findings) == 64 and findings[0].count == 5 and findings[0].programs == 5


def test_idle_programs():
    bench = Bench(vector("x", 4))
    bench.batch(5, 3, 4)
    bench.access(load(lanes(3, 0), lanes(4, 99)))
    bench.batch(6, 7)
    bench.access(store(lanes(6, 0)))
    bench.access(atomic(lanes(7, 1)))
    bench.batch(8)
    bench.memory.load(np.zeros(0, np.int64), 4, access_at(1), np.zeros(0, np.int32))
    bench.memory.end_launch()
    assert bench.memory.idle_programs() == 2


@pytest.mark.parametrize("grid", [(3, 1, 1), (2, 3, 1), (2, 3, 4)])
def test_writers_count_the_last_axis_fastest(grid):
    x, y, z = grid
    total = x * y * z
    bench = Bench(vector("", total + 2, parameter="z", initialised=False), grid=grid, dimensions=3)
    order = np.random.default_rng(0).permutation(total).astype(np.int32)
    bench.memory.begin_batch(order)
    bench.access(store(*[lanes(int(program), int(program)) for program in order]))
    bench.end()
    buffer = bench.arguments[0].buffer
    expected = np.arange(total).reshape(x, y, z).transpose(2, 1, 0).reshape(-1).tolist()
    assert bench.memory.writers_of(buffer, BufferView(0, (total + 2,), (1,), 4)).tolist() == [*expected, -1, -1]
    assert buffer.last_grid == grid


def test_writers_of_two_launches():
    z = vector("z", 4)
    bench = Bench(z)
    bench.batch(0, 1)
    bench.access(store(lanes(0, 0), lanes(1, 1)))
    bench.memory.end_launch()
    bench.memory.begin_launch((8, 1, 1), 1, [z])
    bench.batch(7)
    bench.access(store(lanes(7, 1)))
    bench.access(atomic(lanes(7, 2)))
    assert bench.end() == []
    transposed = BufferView(0, (2, 2), (1, 2), 4)
    assert bench.memory.writers_of(z.buffer, transposed).tolist() == [[0, 7], [7, -2]]


def test_a_result_gets_its_name_and_shape_at_the_end():
    bench = Bench(vector("", 6, parameter="out_ptr", initialised=False))
    bench.batch(0)
    bench.access(load(lanes(0, 4)))
    bench.memory.name_result(bench.arguments[0].buffer, "z", BufferView(0, (2, 3), (3, 1), 4))
    finding = the_finding(bench)
    assert (finding.argument, finding.element) == ("z", [1, 1])


# ---- virtual memory ------------------------------------------------------------------------------------------------


def test_a_buffer_larger_than_any_machine_is_made_where_it_is_touched():
    count = 1 << 34
    view = BufferView(0, (count,), (1,), 4)
    x = Argument("x", Buffer("x", 4 * count, view=view, read_only=True, content=lambda n: (3 * n).astype(np.uint32)))
    z = Argument("z", Buffer("", 4 * count, view=view, initialised=False))
    bench = Bench(x, z)
    bench.batch(0, 1)
    far = count - 5000
    runs = lanes(0, *range(5000)), lanes(1, *range(far, far + 5000))
    values = bench.access(load(*runs))
    assert values == [3 * offset // 4 % (1 << 32) for _, offset in sum(runs, [])]
    bench.access(store(*runs, values=values, argument=1))
    bench.batch(2)
    assert bench.access(load(lanes(2, 17, far + 4999, far - 1), argument=1, line=9))[:2] == [51, values[-1]]
    found = bench.end()
    assert [(f.kind, f.line, f.element, f.other_program) for f in found] == [
        ("uninitialised-read", 9, [far - 1], None), ("race-read-after-write", 9, [17], [0]),
    ]  # fmt: skip
    assert z.buffer.read(BufferView(4 * far, (3,), (2,), 4)).tolist() == [3 * (far + i) % (1 << 32) for i in (0, 2, 4)]
    assert x.buffer.bytes.nbytes < 1 << 20


def test_virtual_memory_has_an_end(monkeypatch):
    monkeypatch.setattr(buffers, "MOST_PAGED", 4 * buffers.PAGE)
    view = BufferView(0, (1 << 32,), (1,), 4)
    bench = Bench(Argument("x", Buffer("x", 4 << 32, view=view), 0, view))
    bench.batch(0)
    bench.access(load(lanes(0, *[n * buffers.PAGE for n in range(4)])))
    with pytest.raises(buffers.OutOfMemory, match="of x"):
        bench.access(load(lanes(0, 4 * buffers.PAGE)))


def test_an_offset_that_overflowed_is_out_of_bounds():
    bench = Bench(vector("x", 4))
    bench.batch(0)
    bench.access(load(lanes(0, -(1 << 31))))
    finding = the_finding(bench)
    assert (finding.kind, finding.argument, finding.linear) == ("out-of-bounds-load", "x", -(1 << 31))


# ---- traffic -------------------------------------------------------------------------------------------------------


def moved(bench: Bench) -> dict:
    bench.memory.end_launch()
    return {t.argument: (t.read, t.written, t.size, t.used, t.moved, t.asked) for t in bench.memory.traffic()}


def test_traffic_counts_each_element_once_per_instruction_and_program():
    bench = Bench(vector("x", 64), vector("", 64, parameter="z"), count_traffic=True)
    bench.batch(0, 1)
    for _ in range(2):
        bench.access(load(lanes(0, *[i // 4 for i in range(16)]), lanes(1, 3, 2, 1, 0, 3)))
    bench.access(store(lanes(0, 0, 8, 16), lanes(1, 1), argument=1))
    assert moved(bench) == {
        "x": (64, 0, 256, 0, 0, 0), "scratch z": (0, 16, 256, 12, 3 * 32, 12),
    }  # fmt: skip


def test_numbers_that_fit_into_a_sector_move_one_however_they_lie():
    """Four rows' means are no less neighbours than eight: a program that owns few rows scatters nothing."""
    for count, expected in ((4, (0, 0, 0)), (8, (0, 0, 0)), (16, (64, 2 * 32, 64))):
        bench = Bench(vector("x", 64), count_traffic=True)
        bench.batch(0)
        bench.access(load(lanes(0, *range(count))))
        assert moved(bench)["x"][3:] == expected
    bench = Bench(vector("x", 64), count_traffic=True)
    bench.batch(0)
    bench.access(load(lanes(0, 0, 8, 16)))
    assert moved(bench)["x"][3:] == (12, 3 * 32, 12)


def test_the_most_that_one_program_of_a_launch_reads_is_told():
    bench = Bench(vector("x", 64), count_traffic=True)
    for programs in ((0, 1), (2, 3)):
        bench.batch(*programs)
        for _ in range(2):
            bench.access(load(lanes(programs[0], 0, 1, 2), lanes(programs[1], *range(8 * programs[1]))))
    bench.memory.end_launch()
    (x,) = bench.memory.traffic()
    assert x.by_one == 4 * 2 * 24  # of program 3


def test_traffic_without_counting_tells_lanes():
    bench = Bench(vector("x", 64))
    bench.batch(0, 1)
    bench.access(load(lanes(0, *[i // 4 for i in range(16)]), lanes(1, 3, 2, 1, 0, 3)))
    assert moved(bench) == {"x": (84, 0, 256, 0, 0, 0)}


def test_programs_at_once_share_what_they_read():
    bench = Bench(vector("x", 64), count_traffic=True, at_once=2)
    for first in (0, 3):  # 0 1 | 2 and 3 | 4 5: the second pair is in two batches
        bench.batch(*range(first, first + 3))
        for _ in range(2):
            bench.access(load(*[lanes(program, 0, 1, 2, program) for program in range(first, first + 3)]))
    assert moved(bench)["x"][0] == 4 * (3 + 4 + 5)


def test_an_expanded_argument_is_as_large_as_its_memory():
    view = BufferView(0, (5, 8), (0, 1), 4)
    buffer = Buffer("x", 32, data=np.zeros(32, np.uint8), view=view)
    bench = Bench(Argument("x", buffer, 0, view))
    assert moved(bench) == {"x": (0, 0, 32, 0, 0, 0)}


# ---- the log of accesses
# --------------------------------------------------------------------------------------------------------


def test_the_access_log_tells_each_lane_program_by_program():
    view = BufferView(4, (2, 4), (5, 1), 4)
    x = Argument("x", Buffer("x", 44, data=np.zeros(44, np.uint8), view=view), 4, view)
    bench = Bench(x, grid=(1, 2, 1), dimensions=2, log=True)
    bench.batch(0, 1)
    mask = np.array([[True, False, True], [False, False, False]])
    bench.access(load([(0, 8), (0, 28)]), lanes=(mask, (2, 3)))
    bench.access(store([(0, 4), (0, 20), (0, 24), (1, 4), (1, 36), (1, 8)], values=[1] * 6), lanes=(None, (2, 3)))
    bench.access(atomic([(0, 4), (1, 12)]), lanes=(None, (2,)))
    bench.end()
    logged = [(t.kind, t.line, t.program, t.launch, t.elements) for t in bench.memory.logged_accesses()]
    assert logged == [
        ("load", 1, [0, 0], 0, [1, -1, 5]),
        ("store", 2, [0, 0], 0, [0, -1, 4]),  # the second lane lies between the elements
        ("atomic", 3, [0, 0], 0, [0]),
        ("store", 2, [0, 1], 0, [0, 7, 1]),
        ("atomic", 3, [0, 1], 0, [2]),
    ]
    assert bench.memory.logged_accesses()[0].argument == "x"


def test_of_a_tile_with_more_lanes_than_the_log_tells_the_active_ones_are_told():
    bench = Bench(vector("x", 4), log=True)
    bench.batch(0)
    mask = np.zeros((1, 1000), bool)
    mask[0, [0, 900]] = True
    bench.access(load([(0, 4), (0, 12)]), lanes=(mask, (1, 1000)))
    bench.end()
    (logged,) = bench.memory.logged_accesses()
    assert logged.elements == [1, 3]


def test_no_access_log_unless_asked():
    bench = Bench(vector("x", 4))
    bench.batch(0)
    bench.access(load(lanes(0, 1)), lanes=(None, (1,)))
    assert bench.memory.logged_accesses() == []


def test_memory_knows_buffers_that_no_launch_uses():
    memory = CheckedMemory()
    x, y = vector("x", 4).buffer, vector("y", 4).buffer
    memory.register(x)
    memory.register(y)
    memory.register(x)
    assert memory.buffers == [x, y] and x.address + x.nbytes < y.address
