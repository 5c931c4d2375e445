"""A launch gives its kernel what it was compiled for: numbers and pointers that are multiples of 16."""

from __future__ import annotations

import copy

import pytest

from grader.wire.recorded_call import accept_multiples, read_recorded
from grader.wire.recorded_parts import BadPlan
from tests.child.recorded_calls import meta

SOURCE = """
    @triton.jit
    def copy_kernel(x_ptr, z_ptr, N, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        tl.store(z_ptr + i, tl.load(x_ptr + i, mask=i < N), mask=i < N)

    def compiled_for(x, z, N):
        return copy_kernel.warmup(x, z, N, BLOCK=64, grid=(1,))

    def others(x):
        z = torch.empty_like(x)
        compiled_for(x, z, 16)[(1, 1, 1)](x, z, x.numel(), 64)
        return z

    def another_place(x):
        z = torch.empty_like(x)
        compiled_for(x, z, 17)[(1, 1, 1)](x[1:], z, 17, 64)
        return z

    def a_part(x):
        z = torch.empty_like(x)
        compiled_for(x, z, 17)[(1, 1, 1)](x[4:], z, 17, 64)
        return z

    tuned_kernel = triton.autotune([triton.Config({"BLOCK": b}) for b in (64, 128)], key=[])(copy_kernel)

    def tuned(x):
        z = torch.empty_like(x)
        tuned_kernel[(1,)](x, z, 48)
        return z
"""


@pytest.mark.parametrize(
    ("entry", "size", "refused"),
    [
        ("others", 48, ""),
        ("others", 47, "multiples of 16 as N, and"),
        ("another_place", 64, "multiples of 16 as x_ptr, and"),
        ("a_part", 64, ""),
        ("tuned", 48, ""),
    ],
)
def test_what_a_kernel_was_compiled_for_is_compared_with_each_launch(recording, entry, size, refused):
    call = recording(SOURCE)(entry, x=meta(size))
    assert call.error is None
    if not refused:
        return accept_multiples(call, ())
    with pytest.raises(BadPlan, match=f"copy_kernel was compiled for {refused} this launch gives it something else"):
        accept_multiples(call, ())
    return None


def test_what_begins_at_the_address_of_another_argument_is_not_known(recording):
    accept_multiples(recording(SOURCE)("another_place", x=meta(64)), {"x"})


def test_the_launches_of_each_configuration_are_looked_at(recording):
    made = recording(SOURCE)
    made("tuned", x=meta(48))
    for number in (0, 1):
        header = copy.deepcopy(made.header)
        (choice,) = [step for step in header["steps"] if "alternatives" in step]
        (launch,) = [step for step in choice["alternatives"][number]["steps"] if step["op"] == "launch"]
        (N,) = [one for one in launch["parameters"] if one["name"] == "N"]
        N["value"] = "49"
        with pytest.raises(BadPlan, match="multiples of 16 as N"):
            accept_multiples(read_recorded(header, made.specs), ())
