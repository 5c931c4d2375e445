"""Random accesses of random programs: the checker says what a slow, straightforward model of it says."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grader.interpreter.buffers import Argument, Buffer, BufferView, base_of
from grader.interpreter.memory import CheckedMemory

sys.path.insert(0, str(Path(__file__).parent))
from memory_model import SEVERAL, Bench, Model, Step, access_at  # noqa: E402

from tests.slow import SLOW  # noqa: E402

VIEWS = [  # of buffers of 24 elements
    BufferView(0, (24,), (1,), 2), BufferView(8, (8,), (1,), 2), BufferView(4, (3, 4), (6, 1), 2),
    BufferView(0, (4, 5), (1, 5), 2), BufferView(4, (6,), (3,), 2), BufferView(0, (2, 8), (0, 1), 2),
    BufferView(0, (), (), 2),
]  # fmt: skip
PROGRAMS = 5


def examples(count: int) -> int:
    """So many in `tox -- slow`, and fewer in a usual run, which draws others each time."""
    return count if SLOW else 2 * count // 5


def elements_of(view: BufferView) -> set[int]:
    """Byte offsets of a view's elements."""
    indices = np.ndindex(view.shape)
    return {view.offset + view.item * sum(i * s for i, s in zip(index, view.strides)) for index in indices}


@st.composite
def buffers(draw) -> list[tuple[BufferView, bool, bool]]:
    one = st.tuples(st.sampled_from(VIEWS), st.booleans(), st.booleans())
    return draw(st.lists(one, min_size=1, max_size=2))


@st.composite
def steps(draw, arguments: int, order: list[int], line: int) -> Step:
    kind, argument = draw(st.sampled_from(["load", "store", "atomic"])), draw(st.integers(0, arguments - 1))
    item = draw(st.sampled_from([2, 2, 2, 4]))
    start, stride = draw(st.integers(-1, 8)), draw(st.integers(0, 5))
    runs = []
    for place, program in enumerate(order):
        if draw(st.booleans()):  # as kernels do it: neighbours
            elements = range(start + place * stride, start + place * stride + draw(st.integers(0, 4)))
        else:
            elements = draw(st.lists(st.integers(-1, 24), max_size=4))
        runs += [(program, 2 * element) for element in elements]
    values = draw(st.lists(st.integers(0, 3), min_size=len(runs), max_size=len(runs)))
    return Step(kind, argument, item, line, runs, values)


@st.composite
def calls(draw) -> tuple[list, list]:
    described = draw(buffers())
    order = draw(st.permutations(range(PROGRAMS)))
    cuts = sorted({0, PROGRAMS, *draw(st.lists(st.integers(1, PROGRAMS - 1), max_size=3))})
    batches = []
    for first, end in zip(cuts, cuts[1:]):
        programs = order[first:end]
        count = draw(st.integers(1, 4))
        batches.append((programs, [draw(steps(len(described), programs, 1 + n % 3)) for n in range(count)]))
    return described, batches


def bench_of(described: list, **options) -> Bench:
    data = np.zeros(48, np.uint8)
    made = [
        Buffer(f"x{n}", 48, data=data, view=view, initialised=initialised, read_only=read_only)
        for n, (view, initialised, read_only) in enumerate(described)
    ]
    arguments = [Argument(f"x{n}_ptr", buffer, view.offset, view) for n, (buffer, (view, *_)) in
                 enumerate(zip(made, described))]  # fmt: skip
    return Bench(*arguments, **options)


@given(calls())
@settings(max_examples=examples(400), deadline=None)
def test_the_checker_says_what_the_model_says(call):
    described, batches = call
    bench = bench_of(described)
    model = Model(2, [(bytearray(48), known, fixed, elements_of(view)) for view, known, fixed in described])
    number, loaded = 0, []
    for batch, (programs, instructions) in enumerate(batches, 1):
        bench.batch(*programs)
        for step in instructions:
            number += 1
            model.run(batch, number, programs, step)
            values = bench.access(step)
            if step.kind != "store":
                loaded.append(values)
    found = {(f.kind, int(f.argument[1:]), f.line): f for f in bench.end()}
    assert {key: (f.count, f.programs) for key, f in found.items()} == {
        key: (told.count, len(told.programs)) for key, told in model.told.items()
    }
    for key, finding in found.items():
        view = described[key[1]][0]
        _, program, offset, other = model.told[key].first
        assert finding.program == [program] and finding.linear == (offset - view.offset) // 2
        assert finding.other_program == (None if other in (None, SEVERAL) else [other])
    assert loaded == model.loaded
    assert [argument.buffer.bytes[:48].tolist() for argument in bench.arguments] == list(map(list, model.memory))


@given(calls())
@settings(max_examples=examples(150), deadline=None)
def test_writers_are_those_of_the_model(call):
    described, batches = call
    bench = bench_of(described)
    model = Model(2, [(bytearray(48), known, fixed, elements_of(view)) for view, known, fixed in described])
    for batch, (programs, instructions) in enumerate(batches, 1):
        bench.batch(*programs)
        for number, step in enumerate(instructions):
            model.run(batch, number, programs, step)
            bench.access(step)
    bench.end()
    for n, (_, initialised, _) in enumerate(described):
        nobody = -2 if initialised else -1
        last = [model.writer[n].get(2 * element, (nobody,))[0] for element in range(24)]
        assert bench.memory.writers_of(bench.arguments[n].buffer, BufferView(0, (24,), (1,), 2)).tolist() == last


@given(calls(), st.sampled_from([1, 2, 3]))
@settings(max_examples=examples(200), deadline=None)
def test_traffic_is_counted_program_by_program(call, at_once):
    described, batches = call
    whole = [(BufferView(0, (24,), (1,), 2), True, False) for _ in described]
    bench = bench_of(whole, count_traffic=True, at_once=at_once)
    ascending = sorted(range(PROGRAMS))
    renamed = dict(zip([program for programs, _ in batches for program in programs], ascending))
    counts = {n: [0, 0, 0, 0, 0] for n in range(len(described))}
    seen: set[tuple[int, int, int]] = set()  # argument, group, unit
    units = {2: 1, 4: 2}
    for programs, instructions in batches:
        bench.batch(*[renamed[program] for program in programs])
        for step in instructions:
            step.lanes = [(renamed[program], offset % 44 // 4 * 4) for program, offset in step.lanes]
            bench.access(step)
            for program in dict.fromkeys(owner for owner, _ in step.lanes):
                offsets = [offset for owner, offset in step.lanes if owner == program]
                count, different = counts[step.argument], set(offsets)
                touched = {(offset + 2 * unit) for offset in different for unit in range(units[step.item])}
                fresh = {(step.argument, program // at_once, unit) for unit in touched} - seen
                if step.kind != "load":
                    count[1] += step.item * len(different)
                elif at_once == 1:
                    count[0] += step.item * len(different)
                else:
                    count[0] += 2 * len(fresh)
                    seen |= fresh
                if max(offsets) - min(offsets) + step.item > 32:
                    count[2] += step.item * len(different)
                    count[3] += 32 * len({offset // 32 for offset in different})
                    count[4] += step.item * len(offsets)
    bench.memory.end_launch()
    told = {t.argument: [t.read, t.written, t.used, t.moved, t.asked] for t in bench.memory.traffic()}
    assert told == {f"x{n}": count for n, count in counts.items()}


@given(st.data())
@settings(max_examples=examples(200), deadline=None)
def test_pages_are_as_good_as_whole_buffers(data):
    """The same accesses to a buffer in one piece, and to a virtual one in which they lie far apart."""
    count = 64
    near, far = BufferView(0, (count,), (1,), 4), BufferView(0, (1 << 28,), (1,), 4)
    stretch = (1 << 20) + 4
    dense = Argument("x", Buffer("x", 4 * count, view=near, initialised=False), 0, near)
    paged = Argument("x", Buffer("x", 4 << 28, view=far, initialised=False), 0, far)
    benches = [Bench(dense), Bench(paged)]
    for bench in benches:
        bench.batch(0, 1, 2)
    for number in range(data.draw(st.integers(1, 5))):
        kind = data.draw(st.sampled_from(["load", "store", "atomic"]))
        elements = data.draw(st.lists(st.tuples(st.integers(0, 2), st.integers(0, count - 1)), max_size=8))
        elements.sort(key=lambda lane: lane[0])
        values = list(range(len(elements)))
        places = [(p, 4 * e) for p, e in elements], [(p, stretch * e) for p, e in elements]
        answers = [
            bench.access(Step(kind, 0, 4, number, lanes, values)) for bench, lanes in zip(benches, places)
        ]  # fmt: skip
        assert answers[0] == answers[1]
    told = [[(f.kind, f.line, f.program, f.other_program, f.count) for f in bench.end()] for bench in benches]
    assert told[0] == told[1]


@given(st.sampled_from(VIEWS), st.integers(-3, 60))
def test_views_know_their_elements(view, offset):
    elements = {
        view.offset + view.item * sum(i * s for i, s in zip(index, view.strides)): list(index)
        for index in reversed(list(np.ndindex(view.shape)))
    }
    start = view.offset + view.linear(offset) * view.item
    inside = view.low <= offset < view.high
    assert view.holds(offset) == (start in elements)
    assert view.is_between(offset) == (inside and start not in elements)
    if inside and view.shape:
        assert view.element(offset) == elements.get(start, [])
    assert view.distinct == len(elements)


@pytest.mark.parametrize("together", [False, True])
def test_an_atomic_of_many_lanes_on_few_elements(together):
    view = BufferView(0, (3,), (1,), 4)
    buffer = Buffer("x", 12, data=np.zeros(12, np.uint8), view=view)
    memory = CheckedMemory()
    memory.begin_launch((1, 1, 1), 1, [Argument("x", buffer, 0, view)])
    memory.begin_batch(np.zeros(1, np.int32))
    index = np.random.default_rng(0).integers(0, 4, 500)  # the last one is out of bounds
    amounts = np.arange(500, dtype=np.uint32)

    def add(words, places, numbers):
        np.add.at(words, places, amounts[numbers])

    old = memory.atomic(
        base_of(0) + 4 * index, 4, access_at(1), np.zeros(500, np.int32), lambda old, which: old + amounts[which], 1,
        None, add if together else None,
    )  # fmt: skip
    assert buffer.read(view).tolist() == np.bincount(index, amounts)[:3].tolist()
    for element in range(3):
        before = np.cumsum(amounts[index == element]) - amounts[index == element]
        assert together or old[index == element].tolist() == before.tolist()
    assert (old[index == 3] == 0xFFFFFFFF).all()
