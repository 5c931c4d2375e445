"""What beginners write first in 23, a matrix product with descriptors: the sentence and the line it sends to."""

from __future__ import annotations

import pytest

from grader import normal
from tests.explain.first_mistakes import told

# ---- 23_descriptor_matmul --------------------------------------------------------------------------------------------

LOADS = "a_desc.load([m, k]), b_desc.load([k, n])"
STORE = "c_desc.store([m, n], acc.to(tl.float16))"
OF_A = "TensorDescriptor.from_tensor(a, [BLOCK_M, BLOCK_K])"
OF_B = "TensorDescriptor.from_tensor(b, [BLOCK_K, columns])"
OF_C = "TensorDescriptor.from_tensor(c, [BLOCK_M, columns])"
NO_POINTER = "The compiler refuses line {}: a descriptor is no pointer and no tile: x.load([row, column]) loads a tile"
PRODUCT = "acc = tl.dot("

OF_DESCRIPTORS = {
    "tl.load": (((LOADS, "tl.load(a_desc + [m, k]), tl.load(b_desc + [k, n])"),), NO_POINTER.format(29), PRODUCT),
    "index": (((LOADS, "a_desc[m, k], b_desc[k, n]"),), NO_POINTER.format(29), PRODUCT),
    "tl.store": (((STORE, "tl.store(c_desc, acc.to(tl.float16))"),), NO_POINTER.format(30), "tl.store(c_desc"),
    "tl.store at a corner": (((STORE, "tl.store(c_desc, [m, n], acc)"),), NO_POINTER.format(30), "tl.store(c_desc"),
    "dtype of a pointer": (
        ((STORE, "c_desc.store([m, n], acc.to(c_desc.dtype.element_ty))"),),
        "The compiler refuses line 30: .element_ty is for the dtype of a pointer: that of a tile, or of a descriptor",
        "c_desc.store([m, n]",
    ),
    "numbers": (
        ((LOADS, "a_desc.load(m, k), b_desc.load(k, n)"),),
        "The compiler refuses line 29: a function gets more arguments than it takes: a descriptor's load has one, the",
        PRODUCT,
    ),
    "lanes": (
        ((LOADS, "a_desc.load([m + tl.arange(0, BLOCK_M), k]), b_desc.load([k, n])"),),
        "The compiler refuses line 29: a corner is two numbers, the row and the column of a tile's first element, and",
        PRODUCT,
    ),
    "mask": (
        ((LOADS, "a_desc.load([m, k], mask=k < K), b_desc.load([k, n])"),),
        "The compiler refuses line 29: a descriptor's load takes no mask: what lies outside of its shape is loaded as",
        PRODUCT,
    ),
    "no corner": (
        ((LOADS, "a_desc.load(), b_desc.load()"),),
        "The compiler refuses line 29: a descriptor's load wants the corner, x.load([row, column])",
        PRODUCT,
    ),
    "tile first": (
        ((STORE, "c_desc.store(acc.to(tl.float16), [m, n])"),),
        "The compiler refuses line 30: a list is expected where a value stands: a descriptor's store gets the corner",
        "c_desc.store(acc",
    ),
    "tensors": (
        ((OF_A, "a"), (OF_B, "b"), (OF_C, "c")),
        "The compiler refuses line 29: .load is a descriptor's, and this is none: the host makes one,",
        PRODUCT,
    ),
    "no block": (
        ((OF_A, "TensorDescriptor.from_tensor(a)"),),
        "matmul raises TypeError in line 65: TensorDescriptor.from_tensor() missing 1 required positional argument:",
        "TensorDescriptor.from_tensor(a)",
    ),
    "no import": (
        (("from triton.tools.tensor_descriptor import TensorDescriptor\n", ""),),
        "matmul raises NameError in line 64: name 'TensorDescriptor' is not defined.",
        OF_A,
    ),
    "steps": (
        (("range(0, K, BLOCK_K)", "range(tl.cdiv(K, BLOCK_K))"),),
        "Tiles along K begin at 0, 1, 2, ...: a step's number stands where its first element belongs.",
        "",
    ),
    "numbers of tiles": (
        (("% rows_in_group) * BLOCK_M", "% rows_in_group)"),),
        "Programs overlap: corners in line 30 lie closer together than a tile is long.",
        "",
    ),
    "column first": (
        (("b_desc.load([k, n])", "b_desc.load([n, k])"),),
        "The corner of b's tiles is given as column, row: the row comes first, as in a tensor's shape.",
        "",
    ),
    "no accumulator": (
        ((f"{LOADS}, acc)", f"{LOADS})"),),
        "Only the last step along K is left, as where each iteration of the loop replaces the sum and none adds to it.",
        "",
    ),
}


@pytest.mark.parametrize("name", OF_DESCRIPTORS)
def test_a_first_mistake_with_descriptors(bench, name):
    changes, said, line = OF_DESCRIPTORS[name]
    blocks = dict(BLOCK_M=32, BLOCK_N=32, BLOCK_K=32, GROUP_M=2)
    sentence, place = told(bench, "23_descriptor_matmul", changes, (normal(40, 72), normal(72, 48)), blocks)
    assert sentence.startswith(said) and place.startswith(line) and bool(place) == bool(line), (sentence, place)
