"""What torch tells of a tensor when a call ends is what its plan has of it, and no work passes by torch's modes."""

from __future__ import annotations

import pytest
import torch

COPY = """
@triton.jit
def copy_kernel(x_ptr, z_ptr, N, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(z_ptr + i, tl.load(x_ptr + i, mask=i < N), mask=i < N)

def copied(x, z):
    copy_kernel[(1,)](x, z, x.numel(), BLOCK=8)
    return z

def entry(x):
    z = torch.empty_like(x)
    {body}
    return z
"""
NEGATED = "is a view that gives other numbers than its memory holds: torch negates them"
OF_X = "the host function changes the argument x in a way that cannot be recorded"
OF_Z = "the host function changes memory that it allocated in a way that cannot be recorded"
CHANGES = {
    "a negated result": ("z = torch._neg_view(copied(x, z))", f"the result {NEGATED}"),
    "a negated part of a result": ("z = [torch._neg_view(copied(x, z))]", f"the result {NEGATED}"),
    "an imaginary part": (
        "z = torch.empty(8, dtype=torch.complex64, device=x.device).conj().imag",
        f"the result {NEGATED}",
    ),
    "a negated argument of a launch": ("copied(torch._neg_view(x), z)", f"the argument x_ptr {NEGATED}"),
    "an argument that is negated in place": ("copied(x, z); torch._C._set_neg(x, True)", OF_X),
    "a result that is negated in place": ("torch._C._set_neg(copied(x, z), True)", f"the result {NEGATED}"),
    "an argument that another takes the place of": (
        "copied(x, z); torch.utils.swap_tensors(x, torch.empty_like(x))",
        f"{OF_X}: it shows other memory, or in another order",
    ),
    "memory that is given back": ("z.untyped_storage().resize_(0); copied(x, z)", "resize_ of torch hides"),
    "memory behind an older name": ("z.storage().resize_(0); copied(x, z)", "resize_ of torch hides"),
    "memory that is exchanged": (
        "copied(x, z); z.untyped_storage()._swap_data_ptr_(torch.empty_like(z).untyped_storage())",
        "_swap_data_ptr_ of torch hides",
    ),
    "memory that is filled": ("copied(x, z); z.untyped_storage().fill_(0)", "fill_ of torch hides"),
    "a thread": (
        "__import__('threading').Thread(target=copied(x, z).neg_).start()",
        "starts a thread, which torch does not watch",
    ),
    "a thread of the lowest kind": (
        "__import__('_thread').start_new_thread(copied(x, z).neg_, ())",
        "starts a thread, which torch does not watch",
    ),
    "modes that are left out": (
        "copied(x, z); torch._C._dispatch_tls_set_dispatch_key_excluded(torch._C.DispatchKey.Python, True)",
        "_dispatch_tls_set_dispatch_key_excluded of torch hides",
    ),
    "modes that are switched off": ("torch._C._DisableTorchDispatch()", "_DisableTorchDispatch of torch hides"),
    "modes that are taken off": (
        "torch.utils._python_dispatch._disable_current_modes()",
        "_disable_current_modes of torch hides",
    ),
    "an argument without memory": (
        "copied(x, z); torch._C.StorageBase.resize_(x.untyped_storage(), 0)",
        f"{OF_X}: its memory has 0 bytes, and had 32",
    ),
    "a larger result": (
        "torch._C.StorageBase.resize_(copied(x, z).untyped_storage(), 4096)",
        f"{OF_Z}: its memory has 4096 bytes, and had 32",
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_another_view_or_size_of_memory_is_refused_in_each_call(child, name):
    body, said = CHANGES[name]
    child.load(COPY.format(body=body))
    for _ in range(2):  # the second call might get the tensor that the first has changed
        error = child.run("entry", x=torch.ones(8)).error
        assert error and error["kind"] == "not-recordable" and said in error["message"], error


RIGHT = (
    "copied(x, z); z = z.view(2, 4)",
    "z = copied(x, torch.empty(16, device=x.device)[:8])",
    "assert z.untyped_storage().nbytes() == len(z.untyped_storage()) == 32; copied(x, z)",
    "copied(x, z); t = x.view(2, 4).t()",
    "z = torch._neg_view(torch._neg_view(copied(x, z)))",
)


def test_what_changes_nothing_is_recorded(child):
    for body in RIGHT:
        child.load(COPY.format(body=body))
        reply = child.run("entry", x=torch.ones(8))
        assert reply.error is None and reply.refusals == [] and reply.output.flatten().tolist() == [1.0] * 8, body
