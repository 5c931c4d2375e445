"""Which types of operands and results an operation can have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from grader.ttir.module import BadText, Dense, Type
from grader.ttir.types import is_float, is_integer

Types = tuple[Type, ...]
BIT = Type("i1")


def _require(right: bool, name: str) -> None:
    if not right:
        raise BadText(f"{name} with operands or results of types that it cannot have")


def _any(name: str, attributes: dict[str, Any], operands: Types, results: Types) -> None:
    """What the interpreter looks at itself."""


def _float(name: str, attributes: dict[str, Any], operands: Types, results: Types) -> None:
    _require(is_float(results[0]) and all(type == results[0] for type in operands), name)


def _integer(name: str, attributes: dict[str, Any], operands: Types, results: Types) -> None:
    _require(is_integer(results[0]) and all(type == results[0] for type in operands), name)


def _cast(name: str, attributes: dict[str, Any], operands: Types, results: Types) -> None:
    _require(operands[0].shape == results[0].shape, name)


def _float_cast(name: str, attributes: dict[str, Any], operands: Types, results: Types) -> None:
    _require(operands[0].shape == results[0].shape and is_float(operands[0]) and is_float(results[0]), name)


def _integer_cast(name: str, attributes: dict[str, Any], operands: Types, results: Types) -> None:
    _require(operands[0].shape == results[0].shape and is_integer(operands[0]) and is_integer(results[0]), name)


def _compare(suits: Callable[[Type], bool]) -> Callable[..., None]:
    def rule(name: str, attributes: dict[str, Any], operands: Types, results: Types) -> None:
        first, second = operands
        _require(first == second and suits(first) and results[0] == Type("i1", first.shape), name)

    return rule


def _select(name: str, attributes: dict[str, Any], operands: Types, results: Types) -> None:
    condition, first, second = operands
    _require(first == second == results[0] and condition in (BIT, Type("i1", first.shape)), name)


def _constant(name: str, attributes: dict[str, Any], operands: Types, results: Types) -> None:
    value, type = attributes["value"], results[0]
    lists = isinstance(value, Dense)
    _require(type.kind == "number" and lists == bool(type.shape), name)
    for item in value.values if lists else (value,):
        fits = isinstance(item, float) if is_float(type) else isinstance(item, bool) == (type.element == "i1")
        _require(fits and isinstance(item, (float, int)) and isinstance(item, float) == is_float(type), name)
    _require(not lists or len(value.values) in (1, type.lanes), name)


def _flag(name: str, attributes: dict[str, Any], operands: Types, results: Types) -> None:
    _require(operands[0] == BIT, name)


def _flags(name: str, attributes: dict[str, Any], operands: Types, results: Types) -> None:
    _require(operands[0].element == "i1" and operands[0].kind == "number", name)


def _branch(name: str, attributes: dict[str, Any], operands: Types, results: Types) -> None:
    _require(operands[0] == BIT and attributes["operandSegmentSizes"][0] == 1, name)


def _for(name: str, attributes: dict[str, Any], operands: Types, results: Types) -> None:
    first, last, step, *carried = operands
    _require(first == last == step and is_integer(first) and not first.shape and tuple(carried) == results, name)


def _add_pointer(name: str, attributes: dict[str, Any], operands: Types, results: Types) -> None:
    pointer, offset = operands
    _require(pointer.kind == "pointer" and pointer == results[0], name)
    _require(is_integer(offset) and offset.shape == pointer.shape, name)


def _pointed(pointer: Type, name: str) -> Type:
    """The type of what `pointer` or a tensor of pointers leads to."""
    if pointer.kind == "block pointer":
        return Type(pointer.element, pointer.shape)
    _require(pointer.kind == "pointer", name)
    if pointer.element.startswith("!tt.ptr<"):
        return Type(pointer.element[8:-1], pointer.shape, "pointer")
    return Type(pointer.element, pointer.shape)


def _mask(type: Type, shape: tuple[int, ...], name: str) -> None:
    _require(type == Type("i1", shape), name)


def _load(name: str, attributes: dict[str, Any], operands: Types, results: Types) -> None:
    value = _pointed(operands[0], name)
    _require(results[0] == value, name)
    if len(operands) > 1:
        _mask(operands[1], value.shape, name)
    if len(operands) > 2:
        _require(operands[2] == value, name)


def _store(name: str, attributes: dict[str, Any], operands: Types, results: Types) -> None:
    value = _pointed(operands[0], name)
    _require(operands[1] == value, name)
    if len(operands) > 2:
        _mask(operands[2], value.shape, name)


def _read_modify_write(name: str, attributes: dict[str, Any], operands: Types, results: Types) -> None:
    _store(name, attributes, operands, results)
    _require(results[0] == operands[1], name)


def _compare_and_swap(name: str, attributes: dict[str, Any], operands: Types, results: Types) -> None:
    value = _pointed(operands[0], name)
    _require(operands[1] == operands[2] == results[0] == value, name)


def _broadcast(name: str, attributes: dict[str, Any], operands: Types, results: Types) -> None:
    (source,), (target,) = operands, results
    _require((source.element, source.kind) == (target.element, target.kind), name)
    _require(len(source.shape) == len(target.shape), name)
    _require(all(old in (1, new) for old, new in zip(source.shape, target.shape)), name)


def _splat(name: str, attributes: dict[str, Any], operands: Types, results: Types) -> None:
    (source,), (target,) = operands, results
    _require(not source.shape and source == Type(target.element, (), target.kind) and bool(target.shape), name)


def _same_element(operands: Types, results: Types, name: str) -> None:
    kinds = {(type.element, type.kind) for type in operands + results}
    _require(len(kinds) == 1 and kinds.pop()[1] in ("number", "pointer"), name)


def _axis(attributes: dict[str, Any], rank: int, name: str) -> int:
    axis = attributes["axis"]
    if not 0 <= axis < rank:
        raise BadText(f"{name} along axis {axis} of {rank}")
    return axis


def _expand(name: str, attributes: dict[str, Any], operands: Types, results: Types) -> None:
    _same_element(operands, results, name)
    shape = results[0].shape
    axis = _axis(attributes, len(shape), name)
    _require(shape[axis] == 1 and shape[:axis] + shape[axis + 1 :] == operands[0].shape, name)


def _reshape(name: str, attributes: dict[str, Any], operands: Types, results: Types) -> None:
    _same_element(operands, results, name)
    _require(operands[0].lanes == results[0].lanes and bool(operands[0].shape) and bool(results[0].shape), name)


def _transpose(name: str, attributes: dict[str, Any], operands: Types, results: Types) -> None:
    _same_element(operands, results, name)
    order, shape = attributes["order"], operands[0].shape
    _require(sorted(order) == list(range(len(shape))), name)
    _require(results[0].shape == tuple(shape[axis] for axis in order), name)


def _join(name: str, attributes: dict[str, Any], operands: Types, results: Types) -> None:
    _same_element(operands, results, name)
    _require(operands[0] == operands[1] and results[0].shape == (*operands[0].shape, 2), name)


def _split(name: str, attributes: dict[str, Any], operands: Types, results: Types) -> None:
    _same_element(operands, results, name)
    _require(results[0] == results[1] and operands[0].shape == (*results[0].shape, 2), name)


def _cat(name: str, attributes: dict[str, Any], operands: Types, results: Types) -> None:
    _same_element(operands, results, name)
    first, second, whole = operands[0].shape, operands[1].shape, results[0].shape
    _require(len(first) == len(second) == len(whole) > 0 and first[1:] == second[1:] == whole[1:], name)
    _require(first[0] + second[0] == whole[0], name)


def _range(name: str, attributes: dict[str, Any], operands: Types, results: Types) -> None:
    _require(results[0] == Type("i32", (attributes["end"] - attributes["start"],)), name)


def _gather(name: str, attributes: dict[str, Any], operands: Types, results: Types) -> None:
    source, indices = operands
    axis = _axis(attributes, len(source.shape), name)
    _same_element((source,), results, name)
    _require(is_integer(indices) and indices.shape == results[0].shape, name)
    _require(len(source.shape) == len(indices.shape), name)
    _require(all(a == b for n, (a, b) in enumerate(zip(source.shape, indices.shape)) if n != axis), name)


def _dot(name: str, attributes: dict[str, Any], operands: Types, results: Types) -> None:
    a, b, c = operands
    rank = len(a.shape)
    _require(c == results[0] and rank == len(b.shape) == len(c.shape) and rank in (2, 3), name)
    _require(all(type.kind == "number" for type in operands), name)
    _require(a.shape[-1] == b.shape[-2] and a.shape[:-2] == b.shape[:-2] == c.shape[:-2], name)
    _require(c.shape[-2:] == (a.shape[-2], b.shape[-1]), name)


def _reduce(name: str, attributes: dict[str, Any], operands: Types, results: Types) -> None:
    shape = operands[0].shape
    axis = _axis(attributes, len(shape), name)
    rest = shape[:axis] + shape[axis + 1 :]
    _require(all(type.kind == "number" and type.shape == shape for type in operands), name)
    _require(results == tuple(Type(type.element, rest) for type in operands), name)


def _scan(name: str, attributes: dict[str, Any], operands: Types, results: Types) -> None:
    shape = operands[0].shape
    _axis(attributes, len(shape), name)
    _require(all(type.kind == "number" and type.shape == shape for type in operands) and results == operands, name)


def _histogram(name: str, attributes: dict[str, Any], operands: Types, results: Types) -> None:
    _require(is_integer(operands[0]) and is_integer(results[0]), name)
    _require(len(operands[0].shape) == len(results[0].shape) == 1, name)
    if len(operands) > 1:
        _mask(operands[1], operands[0].shape, name)


def _unsplat(name: str, attributes: dict[str, Any], operands: Types, results: Types) -> None:
    (source,), (target,) = operands, results
    _require(source.lanes == 1 and bool(source.shape) and not target.shape, name)
    _require((source.element, source.kind) == (target.element, target.kind), name)


def _poll(name: str, attributes: dict[str, Any], operands: Types, results: Types) -> None:
    _require(not operands[0].shape and operands[1] == _pointed(operands[0], name) and results[0] == BIT, name)
    _require(operands[2:] in ((), (Type("i64"),)), name)


def _dot_scaled(name: str, attributes: dict[str, Any], operands: Types, results: Types) -> None:
    a, b, c = operands[:3]
    _require(attributes["operandSegmentSizes"][:3] == [1, 1, 1] and max(attributes["operandSegmentSizes"]) == 1, name)
    _require(len(a.shape) == len(b.shape) == len(c.shape) in (2, 3) and c == results[0], name)
    _require(all(type.kind == "number" and len(type.shape) == len(c.shape) for type in operands), name)


def _extern(name: str, attributes: dict[str, Any], operands: Types, results: Types) -> None:
    _require(all(type.shape == results[0].shape for type in operands), name)


def _block(descriptor: Type, name: str) -> Type:
    """The type of the tensors that a descriptor reads and writes."""
    _require(descriptor.kind == "descriptor", name)
    return Type(descriptor.element.replace("si", "i").replace("ui", "i"), descriptor.shape)


def _indices(types: Types, count: int, name: str) -> None:
    _require(types == (Type("i32"),) * count, name)


def _make_descriptor(name: str, attributes: dict[str, Any], operands: Types, results: Types) -> None:
    block = _block(results[0], name)
    rank = len(block.shape)
    _require(operands[0] == Type(block.element, (), "pointer"), name)
    _require(operands[1:] == (Type("i32"),) * rank + (Type("i64"),) * rank, name)


def _descriptor_load(name: str, attributes: dict[str, Any], operands: Types, results: Types) -> None:
    block = _block(operands[0], name)
    _require((results[0].element, results[0].kind, results[0].lanes) == (block.element, "number", block.lanes), name)
    _indices(operands[1:], len(block.shape), name)


def _descriptor_store(name: str, attributes: dict[str, Any], operands: Types, results: Types) -> None:
    _descriptor_load(name, attributes, (operands[0], *operands[2:]), (operands[1],))


def _descriptor_gather(name: str, attributes: dict[str, Any], operands: Types, results: Types) -> None:
    descriptor, rows, column = operands
    block = _block(descriptor, name)
    _require(len(block.shape) == 2 and block.shape[0] == 1 and len(rows.shape) == 1 and is_integer(rows), name)
    _require(results[0] == Type(block.element, (rows.shape[0], block.shape[1])), name)
    _indices((column,), 1, name)


def _descriptor_scatter(name: str, attributes: dict[str, Any], operands: Types, results: Types) -> None:
    _descriptor_gather(name, attributes, operands[:3], operands[3:])


def _make_block_pointer(name: str, attributes: dict[str, Any], operands: Types, results: Types) -> None:
    base, rank = operands[0], len(results[0].shape)
    _require(results[0].kind == "block pointer" and base == Type(results[0].element, (), "pointer"), name)
    _require(operands[1:] == (Type("i64"),) * (2 * rank) + (Type("i32"),) * rank, name)
    _require(sorted(attributes["order"]) == list(range(rank)), name)


def _advance(name: str, attributes: dict[str, Any], operands: Types, results: Types) -> None:
    _require(operands[0].kind == "block pointer" and operands[0] == results[0], name)
    _indices(operands[1:], len(operands[0].shape), name)


RULES: dict[str, Callable[[str, dict[str, Any], Types, Types], None]] = {
    "any": _any,
    "float": _float,
    "integer": _integer,
    "cast": _cast,
    "fcast": _float_cast,
    "icast": _integer_cast,
    "comparef": _compare(is_float),
    "comparei": _compare(is_integer),
    "select": _select,
    "constant": _constant,
    "flag": _flag,
    "flags": _flags,
    "branch": _branch,
    "for": _for,
    "addptr": _add_pointer,
    "load": _load,
    "store": _store,
    "rmw": _read_modify_write,
    "cas": _compare_and_swap,
    "broadcast": _broadcast,
    "splat": _splat,
    "expand": _expand,
    "reshape": _reshape,
    "trans": _transpose,
    "join": _join,
    "split": _split,
    "cat": _cat,
    "range": _range,
    "gather": _gather,
    "dot": _dot,
    "reduce": _reduce,
    "scan": _scan,
    "histogram": _histogram,
    "unsplat": _unsplat,
    "poll": _poll,
    "dotscaled": _dot_scaled,
    "extern": _extern,
    "makedesc": _make_descriptor,
    "descload": _descriptor_load,
    "descstore": _descriptor_store,
    "descgather": _descriptor_gather,
    "descscatter": _descriptor_scatter,
    "makeblock": _make_block_pointer,
    "advance": _advance,
}
