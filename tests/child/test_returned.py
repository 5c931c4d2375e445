"""What an entry returns, and what it keeps: memory of an earlier call is told as such."""

from __future__ import annotations

import pytest
import torch

from grader.wire.recorded_parts import PlannedLaunch
from tests.child.recorded_calls import entry, meta

RETURNED = {
    "None": ("NoneType", "", "", "", "", None),
    "3": ("int", "", "", "", "", None),
    "launch(x, torch.empty_like(x))": ("Tensor", "cuda", "float32", "", "", [8, 6]),
    "torch.empty_like(x).t()": ("Tensor", "cuda", "float32", "", "", [6, 8]),
    "x": ("Tensor", "cuda", "float32", "x", "x", [8, 6]),
    "x.view(8, 6)": ("Tensor", "cuda", "float32", "x", "x", [8, 6]),
    "x[2:]": ("Tensor", "cuda", "float32", "", "x", [6, 6]),
    "x.view(torch.int32)": ("Tensor", "cuda", "int32", "", "x", [8, 6]),
    "torch.empty(5)": ("Tensor", "cpu", "float32", "", "", None),
    "torch.empty(5, dtype=torch.complex64, device='cuda')": ("Tensor", "cuda", "complex64", "", "", None),
    "torch.empty(5, dtype=torch.float8_e5m2, device='cuda')": ("Tensor", "cuda", "float8_e5m2", "", "", [5]),
    "torch.nn.Parameter(torch.empty_like(x))": ("Parameter", "cuda", "float32", "", "", None),
}


@pytest.mark.parametrize("text", RETURNED)
def test_what_is_returned_is_described(recording, text):
    call = recording(entry(f"return {text}"))("entry", x=meta(8, 6))
    assert call.error is None and not call.refusals
    returned, shape = call.returned, RETURNED[text][-1]
    assert (returned.type, returned.device, returned.dtype, returned.same_as, returned.shares_with) == RETURNED[text][
        :-1
    ]
    assert (returned.view and returned.view.shape) == shape and not returned.items


def test_a_view_tells_where_it_lies(recording):
    call = recording(entry("z = torch.empty(5, 8, 6, device=x.device)\nreturn z[3, 1:].t()"))("entry", x=meta(8, 6))
    view = call.returned.view
    assert (view.buffer, view.offset, view.shape, view.strides) == (1, 4 * (3 * 48 + 6), [6, 7], [1, 6])


@pytest.mark.parametrize("x", [meta(0, 6), meta(8, 0)], ids=["no rows", "no columns"])
def test_parts_of_an_empty_allocation_begin_where_it_does(recording, x):
    call = recording(entry("z = torch.empty(3, *x.shape, device=x.device)\nreturn launch(x, z[2])"))("entry", x=x)
    assert call.error is None and call.returned.view.offset == 0 and call.returned.view.shape == list(x.shape)


def test_several_results_are_several_views(recording):
    call = recording(entry("z = torch.empty_like(x)\nreturn x, [launch(x, z), 3], torch.zeros_like(x)"))(
        "entry", x=meta(8, 6)
    )
    returned = call.returned
    assert returned.type == "tuple" and [item.type for item in returned.items] == ["Tensor", "list", "Tensor"]
    assert returned.items[0].same_as == "x" and returned.items[2].view.buffer == 2
    assert [item.type for item in returned.items[1].items] == ["Tensor", "int"]
    assert returned.items[1].items[0].view.buffer == 1


def test_an_argument_filled_in_place_is_the_result(recording):
    call = recording(
        entry("return None").replace("entry(x)", "entry(x, z)") + "def fills(x, z):\n    return launch(x, z)\n"
    )("fills", x=meta(64), z=meta(64))
    assert (call.returned.same_as, call.returned.view.buffer) == ("z", 1)


KEPT = """
    kept = {}

    @triton.jit
    def copy_kernel(x_ptr, z_ptr, N, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(z_ptr + i, tl.load(x_ptr + i, mask=i < N), mask=i < N)

    def entry(x):
        z = WHICH
        kept.setdefault("z", z)
        copy_kernel[(4,)](x, z, x.numel(), BLOCK=256)
        return z
"""
FRESH = "torch.empty_like(x)"


@pytest.mark.parametrize("which", ["kept.get('z')", "kept.get('z')[:3]"])
def test_memory_kept_from_an_earlier_call_is_not_to_be_launched_on(recording, which):
    again = f"{FRESH} if not kept else {which}"
    recorded = recording(KEPT.replace("WHICH", again))
    first, second = (recorded("entry", x=meta(1000)) for _ in range(2))
    assert first.error is None and isinstance(first.steps[0], PlannedLaunch)
    line = recorded.line("copy_kernel[(4,)]")
    assert (second.error.kind, second.error.message, second.error.line) == ("foreign-memory", "z", line)


def test_memory_of_the_files_own_is_not_to_be_launched_on(recording):
    source = entry("return launch(x, TABLE)") + "TABLE = torch.zeros(1000, device='cuda')\n"
    call = recording(source)("entry", x=meta(1000))
    assert (call.error.kind, call.error.message) == ("foreign-memory", "z")


def test_a_result_of_an_earlier_call_is_recognised(recording):
    source = """
        kept = []

        def entry(x):
            kept.append(torch.empty_like(x))
            return kept[0]

        def item(x):
            return (kept[0][2:],)

        def fresh(x):
            return torch.empty_like(x)
    """
    recorded = recording(source)
    first = recorded("entry", x=meta(100)).returned
    assert (first.shares_with, first.view.buffer) == ("", 1)
    for _ in range(3):
        assert recorded("fresh", x=meta(100)).returned.shares_with == ""
        again = recorded("entry", x=meta(100)).returned
        assert (again.shares_with, again.view) == ("the result of an earlier call", None)
    (part,) = recorded("item", x=meta(100)).returned.items
    assert (part.type, part.shares_with, part.view) == ("Tensor", "the result of an earlier call", None)


def test_the_views_of_a_launch_are_those_of_the_tensors_passed(recording):
    body = """
        z = torch.empty(5, 6, device=x.device)
        launch(x[2:, ::2], z.t())
        scale_kernel[(0,)](z, z, 2.0, 5, BLOCK=256)
        return z
    """
    call = recording(entry(body))("entry", x=meta(8, 6))
    launch, empty = call.steps
    assert empty.grid == [0, 1, 1] and empty.dimensions == 1
    x, z = (parameter.view for parameter in launch.parameters[:2])
    assert (x.buffer, x.offset, x.shape, x.strides, x.dtype) == (0, 48, [6, 3], [6, 2], "float32")
    assert (z.buffer, z.offset, z.shape, z.strides) == (1, 0, [6, 5], [1, 6])


def test_a_view_without_elements_may_begin_behind_its_memory(recording):
    body = """
        z = torch.empty((12, 0), device=x.device)
        scale_kernel[(0,)](z[5:], z, 2.0, 0, BLOCK=256)
        return z[7:]
    """
    call = recording(entry(body))("entry", x=meta(12))
    assert call.error is None and not call.refusals
    assert call.returned.view.shape == [5, 0] and call.returned.view.offset == 0


def test_an_argument_that_is_none_is_a_null_pointer_or_a_constant(recording):
    source = """
        @triton.jit
        def kernel(x_ptr, y_ptr, pair):
            if y_ptr is not None:
                tl.store(y_ptr, 1.0)
            tl.store(pair[0], tl.load(x_ptr) + pair[1])

        def entry(x):
            kernel[(1,)](x, None, (x, 3))
            return x
    """
    call = recording(source)("entry", x=meta(16))
    (launch,) = call.steps
    assert [(one.name, one.type, one.value) for one in launch.parameters] == [
        ("x_ptr", "pointer", ""), ("pair.0", "pointer", ""), ("pair.1", "i32", "3")
    ]  # fmt: skip
    assert launch.constants == {"y_ptr": "None"}


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.int8, torch.bool])
def test_each_dtype_of_arguments_is_recorded(recording, dtype):
    source = """
        @triton.jit
        def kernel(x_ptr, z_ptr):
            tl.store(z_ptr + tl.arange(0, 16), tl.load(x_ptr + tl.arange(0, 16)))

        def entry(x):
            z = torch.empty_like(x)
            kernel[(1,)](x, z)
            return z
    """
    call = recording(source)("entry", x=meta(16, dtype=dtype))
    assert call.returned.view.dtype == str(dtype).removeprefix("torch.")
