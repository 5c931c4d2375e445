"""What the regions of an operation take and give."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from grader.ttir.module import BadText, Block, Type

Types = tuple[Type, ...]
Regions = Sequence[tuple[Block, ...]]


def _need(right: bool, name: str) -> None:
    if not right:
        raise BadText(f"{name} with a region that takes or gives something else than it needs")


def _only(region: tuple[Block, ...], name: str) -> Block:
    _need(len(region) == 1, name)
    return region[0]


def _given(block: Block) -> Types:
    return block.operations[-1].operand_types


def _if_regions(regions: Regions, operands: Types, results: Types) -> None:
    _need(len(regions) == 2 and bool(regions[0]) and (bool(regions[1]) or not results), "scf.if")
    for region in regions:
        if region:
            block = _only(region, "scf.if")
            _need(not block.types and _given(block) == results, "scf.if")


def _for_regions(regions: Regions, operands: Types, results: Types) -> None:
    _need(len(regions) == 1, "scf.for")
    block = _only(regions[0], "scf.for")
    _need(block.types == (operands[0], *results) and _given(block) == results, "scf.for")


def _while_regions(regions: Regions, operands: Types, results: Types) -> None:
    _need(len(regions) == 2, "scf.while")
    before, after = (_only(region, "scf.while") for region in regions)
    _need(before.operations[-1].name == "scf.condition" and after.operations[-1].name == "scf.yield", "scf.while")
    _need(before.types == operands and _given(before)[1:] == results, "scf.while")
    _need(after.types == results and _given(after) == operands, "scf.while")


def _fold_regions(name: str) -> Callable[[Regions, Types, Types], None]:
    def rule(regions: Regions, operands: Types, results: Types) -> None:
        _need(len(regions) == 1, name)
        block, elements = _only(regions[0], name), tuple(Type(type.element) for type in operands)
        _need(block.types == elements + elements and _given(block) == elements, name)

    return rule


def _map_regions(regions: Regions, operands: Types, results: Types) -> None:
    name = "tt.map_elementwise"
    _need(len(regions) == 1 and bool(regions[0]), name)
    _need(all(type.kind == "number" and type.shape == operands[0].shape for type in operands + results), name)
    taken = regions[0][0].types
    pack = len(taken) // len(operands)
    _need(taken == tuple(Type(type.element) for type in operands for _ in range(pack)) != (), name)
    given = tuple(Type(type.element) for type in results for _ in range(pack))
    for block in regions[0]:
        _need(block.operations[-1].name != "tt.map_elementwise.return" or _given(block) == given, name)


REGION_RULES: dict[str, Callable[[Regions, Types, Types], None]] = {
    "scf.if": _if_regions,
    "scf.for": _for_regions,
    "scf.while": _while_regions,
    "tt.reduce": _fold_regions("tt.reduce"),
    "tt.scan": _fold_regions("tt.scan"),
    "tt.map_elementwise": _map_regions,
}
