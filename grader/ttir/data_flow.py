"""The ways of values through a kernel: what each value is made of, through loops, branches and calls."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator

from grader.ttir.module import Block, Function, Module, Operation

Value = tuple[str, int]  # a function and the number of a value in it
Edges = dict[Value, list[Value]]  # a value -> the values that it is made of
CONTROL = ("scf.for", "scf.if", "scf.while")  # hand values on to their regions and results, one to one


def sources_of(module: Module, ends: Collection[str] = ()) -> Edges:
    """Returns of each value the values that it is made of directly; `ends`: names of operations that no way leads
    through, from their operands to their results."""
    edges: Edges = defaultdict(list)
    for function in module.functions.values():
        _in_blocks(function.name, function.blocks, edges)
        for op in function.walk():
            if op.name == "tt.call":
                _in_call(function, op, module, edges)
            elif op.name in CONTROL:
                _in_regions(function.name, op, edges)
            elif op.name not in ends:
                _join(function.name, op.results, [op.operands] * len(op.results), edges)
            for region in op.regions:
                _in_blocks(function.name, region, edges)
    return edges


def reached(roots: Iterable[Value], edges: Edges) -> Iterator[Value]:
    """Yields the values that these are made of, the nearest first."""
    waiting = list(dict.fromkeys(roots))
    seen = set(waiting)
    for value in waiting:
        yield value
        fresh = [source for source in edges.get(value, ()) if source not in seen]
        seen.update(fresh)
        waiting += fresh


def _join(name: str, values: tuple[int, ...], sources: list[tuple[int, ...]], edges: Edges) -> None:
    """Adds edges from each of `values` to its entry in `sources`, the values of the same function it is made of."""
    for value, own in zip(values, sources):
        edges[name, value] += [(name, source) for source in own]


def _one_each(values: tuple[int, ...]) -> list[tuple[int, ...]]:
    return [(value,) for value in values]


def _in_blocks(name: str, blocks: tuple[Block, ...], edges: Edges) -> None:
    for block in blocks:
        for way in block.operations[-1].successors:
            _join(name, blocks[way.block].arguments, _one_each(way.operands), edges)


def _in_call(function: Function, op: Operation, module: Module, edges: Edges) -> None:
    callee = module.functions[str(op.attributes["callee"]).lstrip("@").strip('"')]
    for number, operand in zip(callee.blocks[0].arguments, op.operands):
        edges[callee.name, number].append((function.name, operand))
    for block in callee.blocks:
        if block.operations[-1].name == "tt.return":
            for result, returned in zip(op.results, block.operations[-1].operands):
                edges[function.name, result].append((callee.name, returned))


def _in_regions(name: str, op: Operation, edges: Edges) -> None:
    ends = [region[-1].operations[-1].operands for region in op.regions if region]
    if op.name == "scf.for":
        (body,) = op.regions
        low, _, step, *carried = op.operands
        _join(name, body[0].arguments[:1], [(low, step)], edges)
        for values in (body[0].arguments[1:], op.results):
            _join(name, values, list(zip(carried, ends[0])), edges)
    elif op.name == "scf.while":
        before, after = op.regions
        _join(name, before[0].arguments, list(zip(op.operands, ends[1])), edges)
        for values in (after[0].arguments, op.results):
            _join(name, values, _one_each(ends[0][1:]), edges)
    elif op.name == "scf.if":
        for end in ends:
            _join(name, op.results, _one_each(end), edges)
