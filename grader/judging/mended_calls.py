"""The line of a mistake that nobody foresaw: that where one edit makes every wrong call of a run right.

An edit changes the text that the compiler made of a kernel: one operation, an operand, a number, a mask. Each try is an
exact run, so that rounding hides nothing and pretends nothing. No author has to know the mistake, and no verdict rests
on what is found.
"""

from __future__ import annotations

import ast
import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache

import torch

from grader.course.trial import Trial
from grader.course.wanted_results import wanted_of
from grader.judging.run import Run
from grader.numerics.arguments import Argument, exact
from grader.numerics.data_sets import Data
from grader.numerics.roundoff import UNJUDGED
from grader.processes.faults import ChildEnded, MachineFault
from grader.submission.source_edits import source_edits
from grader.submission.text import factors, lines_that_add_little
from grader.submission.tuning_lines import line_of_grid
from grader.ttir.exact_text import NoExactRun
from grader.ttir.module import BadText
from grader.ttir.parser import parse
from grader.wire.messages import Mend
from grader.wire.recorded_parts import PlannedLaunch

WORK = 300_000  # for all tries of a run: at most about two seconds of a core
OF_FIRST = 0.8  # of the work that is left, for the first call of a structure
ENOUGH = 2 / 3  # of the wrong calls have to be mended: an edit may not do for all structures
COMPILED = 3000  # work of making a kernel's text
FIRSTS = 2  # wrong calls of a structure whose edits are all tried: many an edit makes a small one right
TELLING = 256  # elements of a call's tensors
BY_NO_CHANCE = 3  # calls of one structure, wrong or right: fewer are right with many an edit
MOST_CALLS = 16  # that fail, and as many that are right
MOST_ELEMENTS = 1 << 18  # of a call's tensors
MOST_TOLD = 2  # edits of a line


@dataclass(frozen=True)
class Mended:
    """A line that holds all mends of a run. `kinds`: what the mends change. `calls`: how many wrong calls they make
    right, `of` how many that were tried. `edits`: words for the simplest of those that make most of these calls right,
    which are `by_edit`: calls with other operations may need another edit."""

    line: int
    kinds: frozenset[str]
    calls: int
    of: int
    edits: tuple[str, ...]
    by_edit: int


@lru_cache(64)
def _structure(text: str, filename: str) -> tuple:
    """Returns the operations of a text and their places."""
    functions = parse(text, filename).functions.values()
    return tuple((one.name, one.place) for function in functions for one in function.walk())


def _elements(trial: Trial) -> int:
    return sum(math.prod(one.shape) for one in trial.data if isinstance(one, Data))


@dataclass
class _Call:
    run: Run
    trial: Trial
    inputs: list[Argument]
    has_finding: bool = False  # of the memory checker: what leads to it is a part of the kernel

    @cached_property
    def structure(self) -> tuple:
        """The operations of its kernels: calls of one structure have the same edits. Raises BadText."""
        kernels = self.run.recorded_call(self.trial, self.inputs).call.kernels
        return tuple(_structure(kernel.source, self.run.filename) for kernel in kernels if kernel.source)

    @property
    def order(self) -> tuple[bool, bool, bool, int]:
        """The key that sorts calls: many an edit makes one program, or few elements, right; then what is found soonest
        comes first."""
        elements = _elements(self.trial)
        return self._programs < 2, not self.has_finding, elements < TELLING, elements

    @property
    def _programs(self) -> int:
        steps = self.run.recorded_call(self.trial, self.inputs).call.steps
        return sum(math.prod(step.grid) for step in steps if isinstance(step, PlannedLaunch))

    @cached_property
    def ones(self) -> set[str]:
        """The parameters of kernels that are 1 in this call: the compiler leaves out products with them."""
        launches = self.run.recorded_call(self.trial, self.inputs).call.launches(self.trial.config)
        constants = [launch.constants for launch in launches]
        return {name for by_name in constants for name, value in by_name.items() if value == "1"}

    @cached_property
    def results(self) -> dict[str, torch.Tensor]:
        refs = zip(wanted_of(self.trial), self.trial.exercise.expected(exact(self.inputs)))
        return {one.name: ref for one, ref in refs if one.bound != UNJUDGED}


class _NoTime(Exception):
    """The work for all tries of a run is done."""


@dataclass
class _Search:
    """`work`: that is left for tries. `launches`: their lines, by those in which their grids are made."""

    run: Run
    work: int
    launches: dict[int, int] = field(default_factory=dict)
    lines: set[int] = field(default_factory=set)  # of what was found
    is_cut: bool = False  # the last call did not tell much, and more edits may mend it

    def mended(self, wrong: dict[tuple, list[_Call]], right: dict[tuple, list[_Call]]) -> Mended | None:
        mends: list[Mend] = []
        kinds: set[str] = set()
        counts: Counter[tuple[int, int, str]] = Counter()  # calls, by an edit's line, level and words
        words: dict[str, str] = {}  # by an edit's key
        mended = tried = 0
        ones: set[str] = set()  # of the calls whose edits are all tried
        known = {structure: len(calls) + len(right.get(structure, [])) for structure, calls in wrong.items()}
        if max(known.values(), default=0) < BY_NO_CHANCE:
            return None
        groups = sorted(
            wrong.items(),
            key=lambda one: (
                known[one[0]] < BY_NO_CHANCE,
                not one[1][0].has_finding,
                -len(one[1]),
                _elements(one[1][0].trial),
            ),
        )
        for structure, calls in groups:
            try:
                found = self._of_group(calls, right.get(structure, []), mends)
            except _NoTime:
                break
            if mends and not found and calls[0].ones - ones:
                continue  # what the edits change is a number in this text: whether they mend it is not known
            tried += len(calls)
            # The words for one edit differ where a parameter of 1 is a number of the text: the first ones stay.
            counts.update({(one.line, one.level, words.setdefault(one.key, one.words)): len(calls) for one in found})
            if tried == len(calls):
                mends, ones = found, calls[0].ones
            here = {one.line for one in found} & {one.line for one in mends}
            if here:
                mends = [one for one in mends if one.line in here]
                kinds, mended = kinds | {one.kind for one in found if one.line in here}, mended + len(calls)
            if not mends:
                return None
        total = sum(map(len, wrong.values()))
        self.lines = lines = {one.line for one in mends}
        if len(lines) != 1 or 0 in lines or mended < ENOUGH * total:
            return None
        line = lines.pop()
        return Mended(line, frozenset(kinds), mended, tried, *_simplest(counts, line))

    def mends_of_source(self, wrong: dict[tuple, list[_Call]], right: dict[tuple, list[_Call]]) -> list[Mended]:
        """Returns the mends of lines among the edits of the file that are compiled, one for each line."""
        groups = sorted(wrong.values(), key=lambda calls: (not calls[0].has_finding, -len(calls), calls[0].order))
        calls = [call for group in groups for call in group]
        others = [call for group in right.values() for call in group]
        source, found = self.run.submission.source, dict[int, Mended]()
        if not calls or len(calls) + len(others) < BY_NO_CHANCE:
            return []
        for edit in source_edits(self.run.submission.tree, source):
            if self.work <= 0:
                return []  # an edit that was not tried may be in another line
            if edit.line not in self.run.given_lines and edit.line not in found:
                edited = edit.edited(source)
                if all(self._is_right(call, edited) for call in (*calls, *others)):
                    kinds, of = frozenset({edit.kind}), len(calls)
                    found[edit.line] = Mended(edit.line, kinds, of, of, (edit.words,), of)
        return list(found.values())

    def _is_right(self, call: _Call, edited: bytes) -> bool:
        """Returns whether a call is right with the kernels of another file."""
        self.work -= COMPILED
        try:
            reply = self.run.mends(call.trial, call.inputs, call.results, WORK, keys=[], edited=edited)
        except (NoExactRun, ChildEnded):
            return False
        self.work -= reply.spent
        return reply.is_right

    def with_nothing_added(self, wrong: dict[tuple, list[_Call]]) -> Mended | None:
        """Returns the line that adds a small number, where all wrong calls are right without an operation there. Fewer
        calls do than elsewhere: they are those of few terms, and the line is known before an edit is tried."""
        lines = lines_that_add_little(self.run.submission.tree)
        calls = [call for alike in wrong.values() for call in alike]
        if len(lines) != 1 or not calls:
            return None
        try:
            found = [self._mends(call, lines=lines, closely=True) for call in calls]
        except _NoTime:
            return None
        mends = [[one for one in of_call if one.kind == "less"] for of_call in found]
        words = tuple(dict.fromkeys(one.words for of_call in mends for one in of_call))[:MOST_TOLD]
        return Mended(lines[0], frozenset({"less"}), len(calls), len(calls), words, len(calls)) if all(mends) else None

    def _of_group(self, wrong: list[_Call], right: list[_Call], known: list[Mend]) -> list[Mend]:
        """Returns the mends of calls of one structure, in the lines of those that are known of another, or in any."""
        lines = sorted({one.line for one in known}) or None
        refuted = wrong  # the first one tells the edits
        for _ in range(FIRSTS):
            first, *others = refuted
            found, self.is_cut = self._of(first, known), False
            if not found:
                found = self._mends(
                    first, int(OF_FIRST * self.work), lines=lines, first_is_enough=len(lines or ()) == 1
                )
            telling, is_cut = first, self.is_cut
            for call in others:
                before, found = found, self._of(call, found)
                telling = call if len(found) < len(before) else telling
                if before and not found:
                    break
            else:
                if not is_cut:
                    for call in right:
                        found = self._of(call, found)
                    return self._of(first, found, order="reverse", fill="zero")
            refuted = [telling, *(one for one in refuted if one is not telling)]  # this one tells more
        return []

    def _of(self, call: _Call, mends: list[Mend], **options) -> list[Mend]:
        """Returns those of these mends that make a call right, or leave it right."""
        return self._mends(call, keys=[one.key for one in mends], **options) if mends else []

    def _mends(self, call: _Call, most: int = WORK, **asked) -> list[Mend]:
        if self.work <= 0:
            raise _NoTime
        if lines := asked.get("lines"):
            asked["lines"] = sorted({*lines, *(self.launches[one] for one in lines if one in self.launches)})
        reply = self.run.mends(call.trial, call.inputs, call.results, min(most, self.work), **asked)
        self.work -= reply.spent
        self.is_cut = reply.is_cut
        if reply.out_of_time and "keys" in asked:  # those that were not tried are neither mends nor none
            raise _NoTime
        # Operations more come last: one less, or a number as 0, may do for one that was not tried.
        doubtful = ("less", "number") if reply.out_of_time else ()
        counted = (
            mend
            for mend in reply.mends
            if mend.kind not in doubtful or mend.kind == "number" and self._has_number(mend.line)
        )
        mends = [replace(mend, line=self._line_of(mend, call)) for mend in counted]
        return [mend for mend in mends if mend.line not in self.run.given_lines and (not lines or mend.line in lines)]

    def _has_number(self, line: int) -> bool:
        """Returns whether a line writes a number, which another may stand for."""
        nodes = (node for node in ast.walk(self.run.submission.tree) if isinstance(node, ast.Constant))
        return any(node.lineno == line and type(node.value) in (int, float) for node in nodes)

    def _line_of(self, mend: Mend, call: _Call) -> int:
        """Returns the line of a mend; 0 where it is not known.

        That of a grid is where the grid is made, which need not be the launch. Where the line has a product with a
        parameter already, and the launch gives a 1 for it, the launch may be to blame.
        """
        tree = self.run.submission.tree
        if mend.kind == "grid" and (line := line_of_grid(tree, mend.line)):
            self.launches[line] = mend.line
            return line
        if mend.kind == "more":
            named, brought = factors(tree, mend.line, call.ones), mend.key.split()[-1]
            if mend.words.rpartition(" ")[2].strip("`") in named or named and "stride" not in brought:
                return 0
        return mend.line


def _simplest(counts: Mapping[tuple[int, int, str], int], line: int) -> tuple[tuple[str, ...], int]:
    """Returns the words for a few of the edits in a line that make most calls right, and how many calls these are."""
    here = {(level, words): calls for (of, level, words), calls in counts.items() if of == line}
    most = max(here.values())
    best = [one for one, calls in here.items() if calls == most]
    least = min(level for level, _ in best)
    return tuple(words for level, words in best if level == least)[:MOST_TOLD], most


def mended(run: Run, wrong: Sequence[tuple[Trial, bool]], right: Sequence[Trial], work: int = WORK) -> Mended | None:
    """Returns the line of the mends of a run's calls; None where there is none, or more than one, or no time.

    Calls of one structure have the same edits. The line has to hold an edit that makes all wrong calls of the most
    telling structure right, and leaves the right ones right; and one for most others. A line that the course gave is
    no such line, whatever an edit there does. `wrong`: each with whether the memory checker found fault with it.
    `work`: see grader/interpreter/mends.py.
    """
    search = _Search(run, work)
    try:
        of_wrong, of_right = _by_structure(run, wrong), _by_structure(run, [(one, False) for one in right])
        written = search.mends_of_source(of_wrong, of_right)
        found = search.mended(of_wrong, of_right)
        if not written:
            return found or search.with_nothing_added(of_wrong)
        if len(written) > 1 or found is not None and found.line != written[0].line:
            return None
        return found or (None if search.lines - {0} else written[0])  # 0: the kernel or its launch is to blame
    except (NoExactRun, BadText, ChildEnded, MachineFault):  # it only explains: without it the report stands
        return None


def _by_structure(run: Run, trials: Sequence[tuple[Trial, bool]]) -> dict[tuple, list[_Call]]:
    """Returns the calls of each structure, in their order."""
    found: dict[tuple, list[_Call]] = defaultdict(list)
    for trial, has_finding in [one for one in trials if _elements(one[0]) <= MOST_ELEMENTS][:MOST_CALLS]:
        call = _Call(run, trial, run.inputs(trial), has_finding)
        found[call.structure].append(call)
    return {one: sorted(calls, key=lambda call: call.order) for one, calls in found.items()}
