"""The known operations: their attributes, and the numbers of their operands and results.

They were collected from the texts of Triton 3.6.0, 3.7.1 and 3.9.0, before and after make_ttir. Anything that is in no
table here is refused, so a newer release's operation, attribute or value of an attribute leads to a message and never
to a wrong result. The compiler's own verifier checks that types and regions fit each operation, before there is a text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from grader.ttir.module import BadText, Block, Dense, Type

# name, how many operands, how many results, attributes (? where it may be missing)
_TABLE = """
arith.addf            2    1    fastmath
arith.addi            2    1    overflowFlags
arith.andi            2    1
arith.bitcast         1    1
arith.cmpf            2    1    fastmath predicate
arith.cmpi            2    1    predicate
arith.constant        0    1    value
arith.divf            2    1    fastmath
arith.divsi           2    1    isExact?
arith.divui           2    1    isExact?
arith.extf            1    1    fastmath?
arith.extsi           1    1
arith.extui           1    1    nonNeg?
arith.fptosi          1    1
arith.fptoui          1    1
arith.maximumf        2    1    fastmath
arith.maxnumf         2    1    fastmath
arith.maxsi           2    1
arith.maxui           2    1
arith.minimumf        2    1    fastmath
arith.minnumf         2    1    fastmath
arith.minsi           2    1
arith.minui           2    1
arith.mulf            2    1    fastmath
arith.muli            2    1    overflowFlags
arith.negf            1    1    fastmath
arith.ori             2    1    isDisjoint?
arith.remf            2    1    fastmath
arith.remsi           2    1
arith.remui           2    1
arith.select          3    1    fastmath?
arith.shli            2    1    overflowFlags
arith.shrsi           2    1    isExact?
arith.shrui           2    1    isExact?
arith.sitofp          1    1
arith.subf            2    1    fastmath
arith.subi            2    1    overflowFlags
arith.truncf          1    1    fastmath?
arith.trunci          1    1    overflowFlags?
arith.uitofp          1    1    nonNeg?
arith.xori            2    1
builtin.module        0    0
cf.br                 *    0
cf.cond_br            1+   0    operandSegmentSizes branch_weights?
gpu.barrier           0    0
llvm.intr.assume      1    0    op_bundle_sizes?
math.absf             1    1    fastmath
math.absi             1    1
math.ceil             1    1    fastmath
math.cos              1    1    fastmath
math.erf              1    1    fastmath
math.exp              1    1    fastmath
math.exp2             1    1    fastmath
math.floor            1    1    fastmath
math.fma              3    1    fastmath
math.log              1    1    fastmath
math.log2             1    1    fastmath
math.rsqrt            1    1    fastmath
math.sin              1    1    fastmath
math.sqrt             1    1    fastmath
scf.condition         1+   0
scf.for               3+   *    tt.num_stages? tt.flatten? tt.warp_specialize? tt.loop_unroll_factor? \
    tt.disallow_acc_multi_buffer? llvm.loop_annotation?
scf.if                1    *
scf.while             *    *
scf.yield             *    0
tt.addptr             2    1
tt.advance            2+   1
tt.approx_divf        2    1
tt.assert             1    0    message
tt.atomic_cas         3    1    scope sem
tt.atomic_load        1-2  1    scope sem
tt.atomic_poll        2-3  1    scope sem
tt.atomic_rmw         2-3  1    atomic_rmw_op scope sem
tt.atomic_store       2-3  0    scope sem
tt.bitcast            1    1
tt.broadcast          1    1
tt.call               *    *    callee
tt.cat                2    1
tt.clampf             3    1    propagateNan
tt.descriptor_gather  3    1
tt.descriptor_load    2+   1    cache? evict? cachePolicy?
tt.descriptor_reduce  3+   0    kind
tt.descriptor_scatter 4    0
tt.descriptor_store   3+   0
tt.dot                3    1    inputPrecision maxNumImpreciseAcc
tt.dot_scaled         3+   1    a_elem_type b_elem_type fastMath lhs_k_pack operandSegmentSizes rhs_k_pack
tt.elementwise_inline_asm *    1+   asm_string constraints packed_element pure
tt.expand_dims        1    1    axis
tt.extern_elementwise *    1    libname libpath pure symbol
tt.fp_to_fp           1    1    rounding?
tt.func               0    0    sym_name function_type sym_visibility? arg_attrs? noinline?
tt.gather             2    1    axis efficient_layout?
tt.get_num_programs   0    1    axis
tt.get_program_id     0    1    axis
tt.grid_dependency_launch_dependents 0    0
tt.grid_dependency_wait 0    0
tt.histogram          1-2  1
tt.int_to_ptr         1    1
tt.join               2    1
tt.load               1-3  1    isVolatile operandSegmentSizes boundaryCheck? cache? evict? padding? \
    cachePolicy?
tt.make_range         0    1    start end
tt.make_tensor_descriptor 3+   1    padding
tt.make_tensor_ptr    4+   1    order
tt.map_elementwise    1+   1+   pack
tt.map_elementwise.return *    0
tt.mulhiui            2    1
tt.precise_divf       2    1
tt.precise_sqrt       1    1
tt.print              *    0    prefix hex isSigned
tt.ptr_to_int         1    1
tt.reduce             1+   1+   axis
tt.reduce.return      1+   0
tt.reshape            1    1    allow_reorder? efficient_layout?
tt.return             *    0
tt.scan               1+   1+   axis reverse
tt.scan.return        1+   0
tt.splat              1    1
tt.split              1    2
tt.store              2-3  0    boundaryCheck? cache? evict? cachePolicy?
tt.trans              1    1    order
tt.unsplat            1    1
ttg.barrier           0    0    addrSpace
ub.poison             0    1    value?
"""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


HINTS = _words("tt.divisibility tt.contiguity tt.constancy")  # promises that any operation may carry
TERMINATORS = _words(
    """cf.br cf.cond_br scf.condition scf.yield tt.map_elementwise.return tt.reduce.return tt.return tt.scan.return"""
)
# what a block may end with, by the operation that its region belongs to
_ENDS = {
    "tt.func": ("tt.return", "cf.br", "cf.cond_br"),
    "tt.map_elementwise": ("tt.map_elementwise.return", "cf.br", "cf.cond_br"),
    "scf.if": ("scf.yield",),
    "scf.for": ("scf.yield",),
    "scf.while": ("scf.condition", "scf.yield"),
    "tt.reduce": ("tt.reduce.return",),
    "tt.scan": ("tt.scan.return",),
}
_INTEGERS = _words(
    """predicate axis scope sem atomic_rmw_op start end cache evict padding kind inputPrecision maxNumImpreciseAcc
    rounding pack packed_element propagateNan a_elem_type b_elem_type addrSpace tt.num_stages tt.loop_unroll_factor"""
)
_STRINGS = _words(
    """message callee asm_string constraints libname libpath symbol prefix sym_name sym_visibility function_type
    cachePolicy llvm.loop_annotation"""
)
_FLAGS = _words(
    """isVolatile reverse pure hex fastMath lhs_k_pack rhs_k_pack noinline allow_reorder efficient_layout tt.flatten
    tt.warp_specialize tt.disallow_acc_multi_buffer isExact isDisjoint nonNeg"""
)
_LISTS = _words("operandSegmentSizes boundaryCheck order isSigned op_bundle_sizes branch_weights")


@dataclass(frozen=True)
class Known:
    operands: tuple[int, int]  # the fewest and the most
    results: tuple[int, int]
    needed: frozenset[str]  # attributes that stand there always
    allowed: frozenset[str]


def _range(text: str) -> tuple[int, int]:
    if text == "*":
        return 0, 1 << 30
    if text.endswith("+"):
        return int(text[:-1]), 1 << 30
    first, _, last = text.partition("-")
    return int(first), int(last or first)


def _read_table() -> dict[str, Known]:
    operations = {}
    for line in _TABLE.replace("\\\n", "").strip().splitlines():
        name, operands, results, *attributes = line.split()
        needed = frozenset(attribute for attribute in attributes if not attribute.endswith("?"))
        allowed = frozenset(attribute.rstrip("?") for attribute in attributes) | HINTS
        operations[name] = Known(_range(operands), _range(results), needed, allowed)
    return operations


OPERATIONS = _read_table()


def check_form(
    name: str, attributes: dict[str, Any], operand_types: tuple[Type, ...], result_types: tuple[Type, ...]
) -> None:
    """Raises BadText unless an operation with these attributes and numbers of operands and results is known."""
    known = OPERATIONS.get(name)
    if known is None:
        raise BadText(f"the operation {name[:60]} is not known here yet")
    for attribute, value in attributes.items():
        if attribute not in known.allowed:
            raise BadText(f"the attribute {attribute[:60]} of {name} is not known here yet")
        _check_value(name, attribute, value)
    for attribute in known.needed:
        if attribute not in attributes:
            raise BadText(f"{name} without its attribute {attribute}")
    for types, (fewest, most), what in (
        (operand_types, known.operands, "operands"),
        (result_types, known.results, "results"),
    ):
        if not fewest <= len(types) <= most:
            raise BadText(f"{name} with {len(types)} {what}")
    sizes = attributes.get("operandSegmentSizes")
    if sizes is not None and (len(sizes) != _SEGMENTS[name] or min(sizes) < 0 or sum(sizes) != len(operand_types)):
        raise BadText(f"{name} with {len(operand_types)} operands and parts of {sizes}")


_SEGMENTS = {"tt.load": 3, "cf.cond_br": 3, "tt.dot_scaled": 5}


def _check_value(name: str, attribute: str, value: Any) -> None:
    if attribute in _INTEGERS:
        right = type(value) is int
    elif attribute in _STRINGS:
        right = isinstance(value, str)
    elif attribute in _FLAGS:
        right = isinstance(value, bool)
    elif attribute in _LISTS:
        right = isinstance(value, list) and all(isinstance(item, int) for item in value)
    elif attribute in HINTS:
        right = type(value) is int or isinstance(value, Dense) and all(type(item) is int for item in value.values)
    elif attribute in ("fastmath", "overflowFlags"):
        right = value == "none"
    elif attribute == "arg_attrs":
        right = isinstance(value, list) and all(_is_promise(item) for item in value)
    else:
        return  # the value of a constant
    if not right:
        raise BadText(f"{name} with {attribute} = {str(value)[:60]!r} is not known here yet")


def _is_promise(value: Any) -> bool:
    return isinstance(value, dict) and all(name in HINTS and type(item) is int for name, item in value.items())


def check_regions(name: str, regions: Sequence[tuple[Block, ...]]) -> None:
    """Raises BadText unless the operation may have regions whose blocks end with these terminators."""
    ends = _ENDS.get(name)
    if ends is None:
        raise BadText(f"{name[:60]} with a region")
    for region in regions:
        for block in region:
            if block.operations[-1].name not in ends:
                raise BadText(f"a block of {name} ends with {block.operations[-1].name}")
