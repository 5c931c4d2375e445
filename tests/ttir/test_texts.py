"""What Triton writes is read: every kernel, every operation, values of attributes, lines and names of variables."""

from __future__ import annotations

import math

import pytest

from grader.ttir.module import Dense, Function, Module, Operation, SourcePlace, Type
from grader.ttir.operation_table import HINTS, OPERATIONS
from grader.ttir.parser import parse

FILE = "kernels.py"
# in no text of these kernels in one release or another, or only before the inliner
RARE = {
    "arith.bitcast", "arith.maxui", "arith.minui", "arith.negf", "arith.trunci", "builtin.module", "gpu.barrier",
    "tt.advance", "tt.approx_divf", "tt.atomic_load", "tt.atomic_poll", "tt.atomic_store", "tt.func",
    "tt.grid_dependency_launch_dependents", "tt.grid_dependency_wait", "tt.make_tensor_ptr", "tt.ptr_to_int",
    "tt.split", "tt.unsplat", "ttg.barrier", "ub.poison",
}  # fmt: skip


@pytest.fixture(scope="module")
def modules(texts) -> dict[str, Module]:
    return {name: parse(text, FILE) for name, text in texts.items()}


def named(module: Module, name: str) -> list[Operation]:
    return [
        operation for function in module.functions.values() for operation in function.walk() if operation.name == name
    ]


def check_numbers(function: Function) -> None:
    """Each number is given once, and all below `values` are."""
    given: list[int] = []

    def visit(blocks):
        for block in blocks:
            given.extend(block.arguments)
            assert len(block.arguments) == len(block.types)
            for operation in block.operations:
                assert len(operation.operands) == len(operation.operand_types)
                for region in operation.regions:
                    visit(region)
                given.extend(operation.results)

    visit(function.blocks)
    assert sorted(given) == list(range(function.values))


def test_triton_makes_all_texts(made):
    assert made["errors"] == {}
    assert len(made["texts"]) >= 3 * 20


def test_all_texts_are_read(modules):
    for module in modules.values():
        for function in module.functions.values():
            check_numbers(function)
            assert len(function.names) == len(function.promises) == len(function.blocks[0].arguments)


def test_the_kernels_have_every_operation_of_the_table(modules):
    seen = {
        operation.name
        for module in modules.values()
        for function in module.functions.values()
        for operation in function.walk()
    }
    assert set(OPERATIONS) - seen <= RARE


def test_a_source_text_becomes_the_same_as_its_module(made):
    """make_ttir makes the same, to the byte, of the module and of its text read back: printing changes nothing."""
    assert made["again"] == {name: text for name, text in made["texts"].items() if not name.endswith("source")}


def test_parameters_have_names_types_and_promises(modules):
    entry = modules["masked_sum.source"].entry
    assert entry.name == "masked_sum" and entry.public
    assert entry.names == ("a", "b", "out", "n")
    assert entry.blocks[0].types == (*[Type("f32", (), "pointer")] * 3, Type("i32"))
    assert entry.promises == (*[{"tt.divisibility": 16}] * 3, {})


def test_loads_keep_line_and_variable(modules, line_of):
    loads = named(modules["masked_sum.source"], "tt.load")
    places = [load.place for load in loads]
    assert places == [SourcePlace(line_of("first load"), "first"), SourcePlace(line_of("second load"), "second")]
    assert [len(load.operands) for load in loads] == [2, 3]
    (store,) = named(modules["masked_sum.source"], "tt.store")
    assert store.place.line == line_of("store")
    assert named(modules["masked_sum.source"], "arith.addf")[0].place == SourcePlace(line_of("sum"), "both")


def test_a_place_in_a_helper_is_the_innermost_in_the_file(modules, line_of):
    multiplied = [
        each.place for each in named(modules["helpers.source"], "arith.mulf") if each.place.variable == "twice"
    ]
    assert multiplied == [SourcePlace(line_of("inside the helper"), "twice")] * 2
    assert [place.via for place in multiplied] == [(line_of("from the library") - 1,)] * 2


def test_what_a_loop_carries_has_its_variables(modules):
    loops = [loop for name, module in modules.items() if name.endswith(".source") for loop in named(module, "scf.for")]
    blocks = [loop.regions[0][0] for loop in loops]
    assert blocks and all(len(block.places) == len(block.arguments) for block in blocks)
    assert any(place.variable for block in blocks for place in block.places)


def test_a_place_in_the_library_is_the_line_that_calls_it(modules, line_of):
    (reduce,) = named(modules["helpers.source"], "tt.reduce")
    assert reduce.place.line == line_of("from the library")
    (maximum,) = named(modules["helpers.source"], "arith.maxnumf")
    assert maximum.place.line == line_of("from the library")


def test_another_file_has_no_lines(texts):
    module = parse(texts["masked_sum.source"], "other.py")
    assert {operation.place.line for operation in module.entry.walk()} == {0}


def test_the_loop_has_its_region_and_its_hints(modules, line_of):
    outer = named(modules["loops.source"], "scf.for")[0]
    (block,) = outer.regions[0]
    assert block.types == (Type("i32"), *outer.result_types)
    assert any(each.place.line == line_of("in the loop") for each in block.operations)
    hinted = [each.attributes for each in named(modules["loops.source"], "scf.for") if each.attributes]
    assert hinted[0] == {"tt.num_stages": 3}
    assert hinted[1]["tt.flatten"] is True and "licm" in hinted[1]["llvm.loop_annotation"]


def test_blocks_lead_to_one_another(modules):
    blocks = modules["leaves_early.source"].entry.blocks
    first = blocks[0].operations[-1]
    assert first.name == "cf.cond_br" and len(first.successors) == 2
    assert all(blocks[successor.block].types == () for successor in first.successors)
    (joined,) = {each.successors[0].block for each in named(modules["helpers.source"], "cf.br")}
    entry = modules["helpers.source"].entry
    for each in named(modules["helpers.source"], "cf.br"):
        assert each.successors[0].operands == each.operands
        assert entry.blocks[joined].types == each.operand_types


def test_constants_are_python_values(modules):
    values = [each.attributes["value"] for each in named(modules["masked_sum.source"], "arith.constant")]
    assert Dense((-1.5,)) in values and 128 in values
    assert all(type(value) in (int, Dense) for value in values)
    odd = [each.attributes["value"] for each in named(modules["conversions.source"], "arith.constant")]
    whole = [value.values[0] for value in odd if isinstance(value, Dense)]
    assert math.inf in whole and any(isinstance(value, float) and math.isnan(value) for value in whole)
    assert any(isinstance(value, float) and 0.9e-7 < abs(value) < 1.2e-7 for value in whole)


def test_strings_are_whole(modules):
    (assembly,) = named(modules["assembly.source"], "tt.elementwise_inline_asm")
    assert assembly.attributes["asm_string"] == 'add.s32 $0, $1, 1; // } "in", \\ it'
    assert assembly.attributes["pure"] is True and assembly.attributes["packed_element"] == 1
    messages = [each.attributes["message"] for each in named(modules["said.source"], "tt.assert")]
    assert 'not "positive": {x} \\ // -> : loc("x")' in messages
    printed = [each.attributes for each in named(modules["said.source"], "tt.print")]
    assert [each["prefix"] for each in printed] == [" x is: ", " hello"]
    assert [each["isSigned"] for each in printed] == [[0, 1], []]


def test_promises_stay_on_their_operation(modules):
    hinted = [each.attributes for each in named(modules["promises.source"], "arith.remsi")]
    assert len(hinted) == 1 and hinted[0].keys() == HINTS
    assert hinted[0]["tt.divisibility"] == Dense((64,))


def test_numbers_that_stand_for_words(modules):
    kinds = [each.attributes["atomic_rmw_op"] for each in named(modules["atomics.source"], "tt.atomic_rmw")]
    assert set(kinds) >= {1, 2, 3, 4, 5, 6, 7, 9}
    assert [each.attributes["inputPrecision"] for each in named(modules["products.source"], "tt.dot")][:3] == [0, 1, 2]
    assert {each.attributes["axis"] for each in named(modules["promises.source"], "tt.get_program_id")} == {1}


def test_descriptors_and_block_pointers(modules):
    entry = modules["host_descriptor.source"].entry
    assert entry.blocks[0].types[0] == Type("f16", (32, 64), "descriptor")
    (load,) = named(modules["host_descriptor.source"], "tt.descriptor_load")
    assert load.result_types == (Type("f16", (32, 64)),)
    if "block_pointers.source" in modules:
        (block,) = named(modules["block_pointers.source"], "tt.make_tensor_ptr")
        assert block.result_types == (Type("f32", (16, 16), "block pointer"),)
        assert block.attributes["order"] == [1, 0]
