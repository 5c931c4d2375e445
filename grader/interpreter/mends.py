"""Looks for edits of a call that make its wrong results right: of a kernel's text, or of a launch.

A try takes one to five milliseconds: the kernel is made ready once, and an edit changes a few of its operations. How
many are tried is counted in work and not in seconds, so that what is found is the same on each machine: the operations
that are carried out, each for a batch of programs, and what else takes as long as one, about 10 µs.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import chain, permutations
from types import MappingProxyType
from typing import Any

import numpy as np

from grader.interpreter.batch import MOST_STEPS, Batch
from grader.interpreter.buffers import Buffer
from grader.interpreter.call import InterpretedCall, view_of, view_of_spec
from grader.interpreter.dtypes import Unsupported
from grader.interpreter.findings import Reports
from grader.interpreter.frame import ReadyOperation
from grader.interpreter.known_operations import ACCESSES
from grader.interpreter.launch import run_launch
from grader.interpreter.program import ReadyKernel
from grader.interpreter.wrong_part import ComputedValues, Program, WrongPart, some_of
from grader.ttir.data_flow import reached, sources_of
from grader.ttir.editable import Editable
from grader.ttir.edits import FAIR, LIKELY, RARE, Edit, edits
from grader.ttir.module import BadText, Module, Operation
from grader.ttir.parser import parse
from grader.wire.messages import InterpretRequest, Mend, Mending, TensorSpec
from grader.wire.recorded_call import RecordedCall
from grader.wire.recorded_parts import PlannedLaunch, PlannedView
from grader.wire.recorded_results import results_by_name

EXPONENTIALS, FP32 = ("math.exp", "math.exp2"), np.finfo(np.float32)
LAUNCH = "launch"  # begins the keys of edits of launches
A_TRY, LANES = 40, 1 << 14  # work: of a try, or of making an edit; and elements that take as long as an operation
MOST_SECONDS = 0.1  # of a core for one try, or LONGER than the call takes as it is
LONGER, FEW_STEPS = 4, 1000  # a try may have as many steps as the call LONGER times over, and so many more
NOTED = 4  # times as long an operation takes whose values are noted
NEAR, OFF = 14, 1 << 30  # how many values lie between an access and what it is made of; OFF: all other operations
MOST_FOUND = 24  # of a call that does not tell much
OF_LARGEST, OF_ITSELF = 1e-9, 1e-6  # how far an exact result may be off: constants of fp32 need it
CLOSELY = 1e-8  # OF_ITSELF where 1e-6 is a mistake
NOT_MEANT = (BadText, Unsupported, ArithmeticError, ValueError, LookupError, TypeError, AttributeError, MemoryError)


Tried = tuple[Mend, Callable[[], bool]]  # an edit, and what tells whether it makes the call right


@dataclass
class Mender:
    """A call, and the edits of it. `expected`: its right results, floats in float64, by name."""

    request: InterpretRequest
    recorded: RecordedCall
    kernels: dict[int, PatchedKernel]
    inputs: list[np.ndarray]
    expected: dict[str, np.ndarray]
    spent: int = 0  # work
    most_steps: int = MOST_STEPS  # of a launch
    part: WrongPart | None = None  # with which a try begins
    suspects: list[list[int]] = field(default_factory=list)  # the kernels of the part, the most likely first
    computed: dict[int, ComputedValues] = field(default_factory=dict)  # by kernel, there or else in the whole call
    _known: dict[tuple, bool] = field(default_factory=dict)  # by what edits do there: whether that is right

    def mends(self, asked: Mending) -> dict:
        """Returns the fields of the reply: the edits that make the call right, those first of which there are few."""
        begun, found, out_of_time = time.process_time(), [], False
        call = self._call()
        is_right_already = call.is_right(self.expected, to_its_end=True)
        self._spend(call)
        if is_right_already and asked.keys is None:
            return {"spent": self.spent}  # nothing is to be mended
        taken = time.process_time() - begun
        self.most_steps = FEW_STEPS + LONGER * call.steps
        if asked.keys is None:
            self._choose_part(call)
        self.request = replace(self.request, limit=max(MOST_SECONDS, LONGER * taken))
        accesses = {access for _, access in call.memory.findings()}
        tries = (
            one
            for at, kernels in enumerate(self.suspects or [list(self.kernels)])
            for one in self._tries(asked, accesses, bool(accesses) or call.is_unwritten, kernels, launches=at == 0)
        )
        for mend, is_right in tries:
            if self.spent > asked.work:
                out_of_time = True
                break
            if is_right():
                found.append(mend)
                if len(found) == (1 if asked.first_is_enough else MOST_FOUND):
                    break
        is_cut = len(found) == MOST_FOUND and asked.keys is None
        told = [asdict(one) for one in found]
        return {"mends": told, "out_of_time": out_of_time, "is_cut": is_cut, "spent": self.spent}

    def _tries(
        self, asked: Mending, accesses: set[Operation], may_be_grid: bool, kernels: list[int], launches: bool
    ) -> Iterator[Tried]:
        """Yields the edits that are asked for, of these kernels, and of the `launches`; each with what tells whether it
        makes the call right.

        `accesses`: that the memory checker finds fault with. What leads to one of them comes first, then what is
        likely. `may_be_grid`: whether that includes the grid, which leaves no value wrong that is written once.
        """
        keys = None if asked.keys is None else set(asked.keys)
        sites = None if keys is None else {key.partition(" ")[2].partition("#")[0] for key in keys}
        leading = {number: _leading_to(accesses, one.editable.module) for number, one in self.kernels.items()}

        def is_wanted(mend: Mend) -> bool:
            return (keys is None or mend.key in keys) and (asked.lines is None or mend.line in asked.lines)

        def in_kernels(level: int, rank: int, nearest: float, farthest: float) -> Iterator[Tried]:
            for number in kernels:
                one = self.kernels[number]
                for edit in edits(one.editable, level, chosen(number, nearest, farthest)):
                    mend = Mend(f"{number} {edit.key}", edit.kind, edit.line, edit.words, level)
                    if edit.rank == rank and is_wanted(mend) and not (keys is None and edit.is_idle):
                        yield mend, partial(self._is_right_with, number, edit)

        def chosen(number: int, nearest: float, farthest: float) -> list[str]:
            """Returns the groups of sites that lie so far off, the nearest first."""
            far = {}
            for of, alike in self.kernels[number].editable.groups.items():
                lines = {line for site in alike for line in (site.operation.place.line, *site.operation.place.via)}
                if (sites is None or of in sites) and (asked.lines is None or lines & {*asked.lines}):
                    far[of] = min(leading[number].get(site.operation, OFF) for site in alike)
            return sorted((of for of, one in far.items() if nearest <= one < farthest), key=far.__getitem__)

        def in_launches(kind: str) -> Iterator[Tried]:
            if not launches or keys is not None and not any(key.startswith(LAUNCH) for key in keys):
                return
            meant = {(line, name) for line, name in asked.meant}
            for mend, recorded in _launch_edits(self.recorded, kind):
                if kind == "grid" and self._has_fewer(recorded):
                    continue
                if is_wanted(mend) and not (mend.kind == "argument" and _changed(mend) <= meant):
                    yield mend, partial(self._is_right_launched, recorded)

        def likely(nearest: float, farthest: float) -> Iterator[Tried]:
            for level, rank in ((0, LIKELY), (0, FAIR), (1, LIKELY), (1, FAIR)):
                yield from in_kernels(level, rank, nearest, farthest)

        yield from likely(0, NEAR)
        if may_be_grid:
            yield from in_launches("grid")
            yield from in_launches("pointer")
        yield from in_launches("one")
        for level in (0, 1):
            yield from in_kernels(level, RARE, 0, NEAR)
        yield from likely(NEAR, math.inf)
        if not may_be_grid:
            yield from in_launches("pointer")
        for level in (0, 1):
            yield from in_kernels(level, RARE, NEAR, OFF)
        yield from in_kernels(2, RARE, 0, NEAR)
        yield from in_kernels(2, RARE, NEAR, OFF)
        yield from in_kernels(0, RARE, OFF, math.inf)
        if not may_be_grid:
            yield from in_launches("grid")
        yield from in_launches("number")
        for level in (1, 2):
            yield from in_kernels(level, RARE, OFF, math.inf)

    def _choose_part(self, call: TriedCall) -> None:
        """Chooses the part with which each try begins, and learns which values are equal there."""
        costs = {}
        for part in call.wrong_parts(self.expected):
            alone = self._call(part=part)
            if not alone.is_right(self.expected, to_its_end=True):
                costs[part] = alone.steps + alone.lanes // LANES
            self._spend(alone)
        self.part = min(costs, key=costs.__getitem__, default=None)
        if self.part is not None:
            of_part = {call.ran[number].kernel for number in self.part.launches}
            cleared = call.cleared(self.expected)
            numbers = [number for number, one in self.kernels.items() if one.kernel in of_part]
            by_doubt = [[one for one in numbers if (self.kernels[one].kernel in cleared) == is_cleared]
                        for is_cleared in (False, True)]  # fmt: skip
            self.suspects = [one for one in by_doubt if one]
        self.computed = {number: ComputedValues(one.kernel.module) for number, one in self.kernels.items()}
        noted = self._call(part=self.part)
        noted.computed = {self.kernels[number].kernel: values for number, values in self.computed.items()}
        noted.is_right(self.expected, to_its_end=True)
        self.spent += A_TRY + NOTED * (noted.steps + noted.lanes // LANES)

    def _spend(self, call: TriedCall) -> None:
        self.spent += A_TRY + call.steps + call.lanes // LANES

    def _is_right_with(self, number: int, edit: Edit) -> bool:
        """Returns whether a call with this edit is right. What the wrong part gives with it is asked only once of all
        edits that do the same there."""
        if not self.computed:
            return self._is_right_edited(number, edit)
        self.spent += 1
        done = self.computed[number].done_by(edit)
        if done is None:
            return False
        done = number, done
        if done not in self._known:
            self._known[done] = self._is_right_edited(number, edit, self.part)
        return self._known[done] and (self.part is None or self._is_right_edited(number, edit))

    def _is_right_launched(self, recorded: RecordedCall) -> bool:
        """Returns whether a call with other launches is right."""
        if not self.computed:
            return self._is_right(recorded=recorded)
        self.spent += 1
        if self._keeps_part(recorded):
            return False
        launches = _launches(recorded)
        done = -1, tuple((*one.grid, *((it.value, it.buffer, it.offset) for it in one.parameters)) for one in launches)
        if done not in self._known:
            of_part = self.part is None or self._is_right(recorded=recorded, part=self.part)
            self._known[done] = of_part and self._is_right(recorded=recorded)
        return self._known[done]

    def _has_fewer(self, recorded: RecordedCall) -> bool:
        """Returns whether a kernel that asks for the size of its grid has fewer programs: it is right with any grid, or
        with none, and one program meets no other."""
        return any(
            math.prod(now.grid) < math.prod(was.grid) and now.kernel in self.kernels
            and self.kernels[now.kernel].has_grid_size
            for was, now in zip(_launches(self.recorded), _launches(recorded))
        )  # fmt: skip

    def _keeps_part(self, recorded: RecordedCall) -> bool:
        """Returns whether another grid leaves the programs of the wrong part as they are."""
        part, was, now = self.part, _launches(self.recorded), _launches(recorded)
        if part is None or len(was) != len(recorded.steps) or any(one.has_grid_size for one in self.kernels.values()):
            return False
        is_kept = all(one.parameters == other.parameters for one, other in zip(was, now))
        earlier = all(one.grid == other.grid for one, other in zip(was[: part.launch], now))
        return is_kept and earlier and len(part.numbers(now[part.launch].grid)) == len(part.programs)

    def _is_right_edited(self, number: int, edit: Edit, part: WrongPart | None = None) -> bool:
        self.spent += self.kernels[number].making(edit)
        with self.kernels[number].with_edit(edit) as kernel:
            return kernel is not None and self._is_right({number: kernel}, part=part)

    def _is_right(
        self, edited: dict[int, ReadyKernel] | None = None, recorded: RecordedCall | None = None,
        part: WrongPart | None = None,
    ) -> bool:  # fmt: skip
        call = self._call(edited, recorded, part)
        try:
            return call.is_right(self.expected)
        except (_Reported, *NOT_MEANT):
            return False  # not each edit gives a call that means something
        finally:
            self._spend(call)

    def _call(
        self, edited: dict[int, ReadyKernel] | None = None, recorded: RecordedCall | None = None,
        part: WrongPart | None = None,
    ) -> TriedCall:  # fmt: skip
        kernels = {number: one.kernel for number, one in self.kernels.items()} | (edited or {})
        for kernel in kernels.values():
            kernel.begin_call()
        call = TriedCall(self.request, recorded or self.recorded, kernels, self.inputs)
        call.part, call.most_steps = part, self.most_steps
        return call


def mends(
    request: InterpretRequest, asked: Mending, recorded: RecordedCall, texts: list[str], inputs: list[np.ndarray],
    blob: bytes,
) -> dict:  # fmt: skip
    """Returns the fields of the reply to a request for mends. Raises BadText, Unsupported."""
    expected = {spec.name: _array(spec, blob) for spec in asked.results}
    stages = [int(one.recipe.options.get("num_stages", 1)) for one in recorded.kernels]
    sizes = {step.kernel: _sizes(step) for step in recorded.steps if isinstance(step, PlannedLaunch)}
    if asked.keys == []:  # nothing is to be edited: is it right as it is?
        ready = {n: TriedKernel(parse(text, request.filename), stages[n]) for n, text in enumerate(texts) if text}
        for kernel in ready.values():
            kernel.begin_call()
        call = TriedCall(request, recorded, dict(ready), inputs)
        return {"is_right": call.is_right(expected, to_its_end=True), "spent": A_TRY + call.steps + call.lanes // LANES}
    kernels = {
        n: PatchedKernel(text, request.filename, stages[n], sizes.get(n, {})) for n, text in enumerate(texts) if text
    }
    return Mender(request, recorded, kernels, inputs, expected).mends(asked)


def _array(spec: TensorSpec, blob: bytes) -> np.ndarray:
    view = view_of_spec(spec)
    return np.frombuffer(blob, spec.dtype, spec.size // view.item, spec.start).reshape(spec.shape)


# ---- a try -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Ran:
    """A launch: the buffers that it was given, and those where it stored."""

    kernel: ReadyKernel
    given: set[Buffer]
    stored: set[Buffer]


class TriedCall(InterpretedCall):
    """A call that is carried out to see whether it is right, and for nothing else. `part`: all that is of interest.
    `computed`: notes what kernels compute."""

    is_unwritten = False  # an element of a result, as far as results were looked at
    part: WrongPart | None = None
    most_steps = MOST_STEPS
    computed: Mapping[ReadyKernel, ComputedValues] = MappingProxyType({})

    def is_right(self, expected: dict[str, np.ndarray], to_its_end: bool = False) -> bool:
        """`to_its_end`: also after the memory checker has found fault with it."""
        self._begin()
        self.ran: list[_Ran] = []
        if not to_its_end:
            self.memory.reports = _FirstReport()
        if self._carried_out() is not None or self.broken or self.overflows or self.memory.findings():
            return False
        results = self._results()
        return all(name in results and self._is(one, results[name]) for name, one in expected.items())

    def wrong_parts(self, expected: dict[str, np.ndarray]) -> list[WrongPart]:
        """Returns what may go wrong by itself, of a call that was wrong: programs with the first finding, or one that
        wrote a wrong element; [] where programs add to what others wrote."""
        if any(launch.atomics for launch in self.launches) or len(self.ran) < len(self.launches):
            return []
        if (first := self.memory.reports.first()) is not None:
            named = [one for one in (first.seen.program, first.seen.other_program) if one is not None]
            programs = [(x, y, z) for x, y, z, *_ in ((*one, 0, 0) for one in named)]
            return [self._part(first.turn[0] - 1, *sorted(set(programs)))]
        for name, result in self._results().items():
            buffer, view = self.buffers[result.buffer], view_of(result)
            launches = [number for number, one in enumerate(self.ran) if buffer in one.stored]
            if len(launches) == 1 and name in expected and tuple(view.shape) == expected[name].shape:
                is_wrong = ~self._alike(buffer, result, expected[name])
                wrong = some_of(self.memory.writers_of(buffer, view)[is_wrong], buffer.last_grid)
                if wrong:
                    return [self._part(launches[0], program) for program in wrong]
        return []

    def _part(self, launch: int, *programs: Program) -> WrongPart:
        """Returns these programs of a launch, and the launches whose results it may load."""
        needed, launches = set[Buffer](), [launch]
        for number in range(launch, -1, -1):
            ran = self.ran[number]
            if number == launch or ran.stored & needed:
                needed |= ran.given
                launches.append(number)
        return WrongPart(launch, programs, frozenset(launches))

    def cleared(self, expected: dict[str, np.ndarray]) -> set[ReadyKernel]:
        """Returns the kernels that a right result came from: they are hardly wrong."""
        right = {
            self.buffers[result.buffer] for name, result in self._results().items() if self._is_right(name, expected)
        }
        found = set()
        for at, one in enumerate(self.ran):
            led_to = set(one.stored)
            for later in self.ran[at + 1 :]:
                if later.given & led_to:
                    led_to |= later.stored
            if led_to & right:
                found.add(one.kernel)
        return found

    def _is_right(self, name: str, expected: dict[str, np.ndarray]) -> bool:
        result = self._results()[name]
        return name in expected and self._is(expected[name], result)

    def _results(self) -> dict[str, PlannedView]:
        request = self.request
        return results_by_name(self.recorded.returned, request.arguments, request.returns, request.updates)

    def _is(self, expected: np.ndarray, result: PlannedView) -> bool:
        """Returns whether a result is right; of a part those elements that its programs wrote, where there are any."""
        buffer, view = self.buffers[result.buffer], view_of(result)
        if tuple(view.shape) != expected.shape:
            return False
        writers = self.memory.writers_of(buffer, view)
        if self.part is None:
            self.is_unwritten = bool((writers == -1).any())
            return not self.is_unwritten and bool(self._alike(buffer, result, expected).all())
        if buffer not in self.ran[-1].stored:
            return True
        is_mine = self.part.wrote(writers, buffer.last_grid)
        return bool(self._alike(buffer, result, expected)[is_mine].all())

    def _alike(self, buffer: Buffer, result: PlannedView, expected: np.ndarray) -> np.ndarray:
        mending = self.request.mending
        of_itself = CLOSELY if mending is not None and mending.closely else OF_ITSELF
        return alike(buffer.read(view_of(result)).view(result.dtype), expected, of_itself)

    def _steps(self) -> Iterator[Any]:
        self.number = -1  # of the launch
        for step in super()._steps():
            self.number += isinstance(step, PlannedLaunch)
            if self.part is not None and self.number > self.part.launch:
                return
            if self.part is None or not isinstance(step, PlannedLaunch) or self.number in self.part.launches:
                yield step

    def _run(self, kernel: ReadyKernel, batch: Batch, arguments: list[Any], grid: tuple[int, ...]) -> None:
        part, batch.most_steps, batch.checks_offsets = self.part, self.most_steps, self.part is None
        is_last = part is not None and self.number == part.launch
        programs = part.numbers(grid) if part is not None and is_last else self._order(grid)
        run_launch(kernel, batch, arguments, programs, self.computed.get(kernel))
        given = {one.buffer for one in self.memory.arguments if one is not None}
        self.ran.append(_Ran(kernel, given, set(self.memory.stored)))


class _Reported(Exception):
    """The memory checker finds fault with a try."""


class _FirstReport(Reports):
    def needs(self, *_) -> bool:
        raise _Reported


def alike(out: np.ndarray, expected: np.ndarray, of_itself: float = OF_ITSELF) -> np.ndarray:
    """Returns of each element whether it is right."""
    with np.errstate(all="ignore"):
        if expected.dtype.kind != "f":
            return out.astype(expected.dtype) == expected
        out = out.astype(np.float64)
        largest = np.abs(expected[np.isfinite(expected)]).max(initial=0.0)
        near = np.abs(out - expected) <= of_itself * np.abs(expected) + OF_LARGEST * largest
        return near | (out == expected) | (np.isnan(out) & np.isnan(expected))


class TriedKernel(ReadyKernel):
    """A kernel whose exponentials end where fp32 ends, as those of the submission do. With the range of 64 bits,
    another number in the place of a maximum would make a call right that is infinite, or 0 / 0, in fp32.
    """

    def step(self, operation: Operation) -> ReadyOperation:
        made = super().step(operation)
        if operation.name in EXPONENTIALS:
            run = made.run
            made.run = lambda *operands: _in_range_of_fp32(run(*operands))
        return made


def _in_range_of_fp32(values: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        small = np.where(np.abs(values) < FP32.smallest_normal, 0, values)
        return np.where(small > FP32.max, np.inf, small).astype(values.dtype)


class PatchedKernel:
    """A kernel that is ready to run, with one edit at a time."""

    def __init__(self, text: str, filename: str, stages: int, sizes: dict[str, int]) -> None:
        self.filename, self.stages, self.editable = filename, stages, Editable(text, filename, sizes)
        self.kernel = TriedKernel(self.editable.module, stages)
        self._places = {step.operation: (block, step) for block in self.kernel.blocks for step in block.steps}

    @contextlib.contextmanager
    def with_edit(self, edit: Edit) -> Iterator[ReadyKernel | None]:
        """Gives the kernel with an edit, until the block ends; None where it is no kernel then."""
        steps = self._steps(edit)
        if not isinstance(steps, dict):
            yield steps
            return
        blocks = {id(block): (block, block.steps) for block, _ in map(self._places.__getitem__, steps)}
        for block, old in blocks.values():
            block.steps = [new for step in old for new in steps.get(step.operation, [step])]
        try:
            yield self.kernel
        finally:
            for block, old in blocks.values():
                block.steps = old

    @property
    def has_grid_size(self) -> bool:
        return any(site.name == "tt.get_num_programs" for site in self.editable.sites)

    def making(self, edit: Edit) -> int:
        """Returns the work of making the edit."""
        made = [one for one in edit.changes if self.editable.operands(one) is None]
        return A_TRY * len(made) + sum(len(self.editable.sites) for one in made if one.site.is_read_again)

    def _steps(self, edit: Edit) -> dict[Operation, list[ReadyOperation]] | ReadyKernel | None:
        """Returns what stands for each operation; or the whole kernel made anew; or None."""
        found = {}
        try:
            for change in edit.changes:
                if (operands := self.editable.operands(change)) is not None:
                    found[change.site.operation] = [replace(self._places[change.site.operation][1], operands=operands)]
                    continue
                operations = self.editable.operations(change)
                if operations is None:
                    alone = len(edit.changes) == 1
                    return TriedKernel(parse(self.editable.text(change), self.filename), self.stages) if alone else None
                found[change.site.operation] = [self.kernel.step(one) for one in operations]
        except (BadText, Unsupported):
            return None
        return found


def _leading_to(accesses: set[Operation], module: Module) -> dict[Operation, int]:
    """Returns these accesses, and the operations that make their addresses and masks, each with how far off it is."""
    made, roots, found = {}, [], {}
    for name, function in module.functions.items():
        for operation in function.walk():
            made.update({(name, result): operation for result in operation.results})
            if operation in accesses:
                found[operation] = 0
                roots += [(name, operation.operands[at]) for at in ACCESSES[operation.name].leading(operation)]
    for distance, value in enumerate(reached(roots, sources_of(module, ACCESSES)), 1):
        if value in made:
            found.setdefault(made[value], distance)
    return found


# ---- edits of a launch -----------------------------------------------------------------------------------------------


def _changed(mend: Mend) -> set[tuple[int, str]]:
    """Returns the parameters whose arguments an edit changes, each with the launch's line."""
    *_, name, and_or_is, other = mend.key.split()
    return {(mend.line, one) for one in ((name, other) if and_or_is == "and" else (name,))}


def _launches(recorded: RecordedCall) -> list[PlannedLaunch]:
    return [step for step in recorded.steps if isinstance(step, PlannedLaunch)]


def _launch_edits(recorded: RecordedCall, kind: str) -> Iterator[tuple[Mend, RecordedCall]]:
    """Yields the edits of launches, and the call with each. `kind`: "grid", or "pointer", "one" or "number" for
    arguments."""
    for at, step in enumerate(recorded.steps):
        if isinstance(step, PlannedLaunch):
            found = (
                _grids(step)
                if kind == "grid"
                else _ones(step)
                if kind == "one"
                else _arguments(step, kind == "pointer")
            )
            if kind == "pointer":
                found = chain(_other_tensors(step, recorded), found)
            for key, words, other in found:
                is_grid = kind == "grid"
                mend = Mend(
                    f"{LAUNCH} {at} {key}", kind if is_grid else "argument", step.line, words, 0 if is_grid else 1
                )
                yield mend, replace(recorded, steps=[*recorded.steps[:at], other, *recorded.steps[at + 1 :]])


def _grids(step: PlannedLaunch) -> Iterator[tuple[str, str, PlannedLaunch]]:
    """Yields keys, words, and launches: the grid with its axes exchanged, and with blocks of a constant's size along a
    number that is passed.

    Also where that changes nothing in this call: in another it does.
    """
    blocks = {name: size for name, size in _sizes(step).items() if size > 1}
    sizes = {one.name: int(one.number) for one in step.parameters if one.type.startswith("i") and int(one.number) > 0}
    for axis, size in enumerate(step.grid):
        for other in range(axis):
            grid = list(step.grid)
            grid[axis], grid[other] = grid[other], size
            yield f"axes {axis} {other}", f"axes {other} and {axis} of the grid exchanged", replace(step, grid=grid)
        by_block = {
            f"triton.cdiv({n}, {b})": -(-whole // block) for n, whole in sizes.items() for b, block in blocks.items()
        }
        # Masked programs do no harm: of the grids that are large enough the smallest is likely to be meant.
        for name, number in sorted((sizes | by_block).items(), key=lambda one: one[1]):
            grid = [*step.grid[:axis], number, *step.grid[axis + 1 :]]
            yield f"axis {axis} {name}", f"`{name}` programs along axis {axis} of the grid", replace(step, grid=grid)
    # Two blocks exchanged: each axis has as many programs as the other's block would need.
    for (n, b), (m, c) in permutations([(n, b) for n in sizes for b in blocks], 2):
        if b != c and step.grid[:2] == [-(-sizes[n] // blocks[c]), -(-sizes[m] // blocks[b])]:
            grid = [-(-sizes[n] // blocks[b]), -(-sizes[m] // blocks[c]), *step.grid[2:]]
            words = f"the blocks `{b}` and `{c}` of the grid exchanged"
            yield f"blocks {n} {b} {m} {c}", words, replace(step, grid=grid)


def _sizes(step: PlannedLaunch) -> dict[str, int]:
    """Returns the whole numbers that were compiled into a kernel, by name."""
    return {name: int(value) for name, value in step.constants.items() if value.isdecimal()}


def _ones(step: PlannedLaunch) -> Iterator[tuple[str, str, PlannedLaunch]]:
    """Yields keys, words, and launches: a 1 for a number, the stride that is no argument of the kernel where others
    give it too."""
    for at, one in enumerate(step.parameters):
        if one.type.startswith("i") and one.number != 1:
            changed = [*step.parameters[:at], replace(one, value="1"), *step.parameters[at + 1 :]]
            yield f"{one.name} is 1", f"for `{one.name}` the number 1", replace(step, parameters=changed)


def _arguments(step: PlannedLaunch, pointers: bool) -> Iterator[tuple[str, str, PlannedLaunch]]:
    """Yields keys, words, and launches: two arguments of a type exchanged, or one in the other's place as well."""
    for at, one in enumerate(step.parameters):
        for other_at, other in enumerate(step.parameters):
            if (
                one.type != other.type
                or one.type == "descriptor"
                or at == other_at
                or pointers != (one.type == "pointer")
            ):
                continue
            mine, theirs = replace(other, name=one.name), replace(one, name=other.name)
            changed = [mine if place == at else given for place, given in enumerate(step.parameters)]
            words = f"for `{one.name}` the argument that `{other.name}` gets"
            yield f"{one.name} is {other.name}", words, replace(step, parameters=changed)
            if at < other_at:
                changed = [theirs if place == other_at else given for place, given in enumerate(changed)]
                words = f"the arguments for `{one.name}` and `{other.name}` exchanged"
                yield f"{one.name} and {other.name}", words, replace(step, parameters=changed)


def _other_tensors(step: PlannedLaunch, recorded: RecordedCall) -> Iterator[tuple[str, str, PlannedLaunch]]:
    """Yields keys, words, and launches: for a pointer a result of the call that the launch is not given."""
    given = {one.buffer for one in step.parameters}
    results = [one.view for one in (recorded.returned, *recorded.returned.items) if one.view is not None]
    for number, view in enumerate(results):
        for at, one in enumerate(step.parameters):
            if view.buffer not in given and one.view is not None and one.view.dtype == view.dtype:
                new = replace(one, buffer=view.buffer, offset=view.offset, view=view)
                changed = [*step.parameters[:at], new, *step.parameters[at + 1 :]]
                words = f"for `{one.name}` a tensor that is returned"
                yield f"{one.name} is returned.{number}", words, replace(step, parameters=changed)
