"""Block pointers: a corner that is taken along, and ends that are looked at only where the kernel says so."""

from __future__ import annotations

import pytest
import torch
import triton

pytestmark = pytest.mark.skipif(
    tuple(map(int, triton.__version__.split(".")[:2])) >= (3, 9), reason="Triton 3.9 has no block pointers"
)
COPY = """
    @triton.jit
    def copy_kernel(x_ptr, z_ptr, M, N, B: tl.constexpr):
        top = tl.program_id(0) * B
        x_block = tl.make_block_ptr(x_ptr, (M, N), (N, 1), (top, 0), (B, B), (1, 0))
        z_block = tl.make_block_ptr(z_ptr, (M, N), (N, 1), (top, 0), (B, B), (1, 0))
        for _ in range(0, N, B):
            tl.store(z_block, LOAD, boundary_check=(0, 1))
            x_block, z_block = tl.advance(x_block, (0, B)), tl.advance(z_block, (0, B))

    def copy(x):
        M, N = x.shape
        z = torch.empty_like(x)
        copy_kernel[(triton.cdiv(M, 16),)](x, z, M, N, B=16)
        return z
"""
X = torch.randn(37, 45, generator=torch.Generator().manual_seed(1))


def copy_with(load: str) -> str:
    return COPY.replace("LOAD", load)


def test_a_walk_along_rows_is_a_copy(child):
    child.load(copy_with("tl.load(x_block, boundary_check=(0, 1))"))
    for order in ("forward", "reverse", 7):
        reply = child.run("copy", dict(order=order), x=X)
        assert reply.error is None and reply.findings == [] and torch.equal(reply.output, X)


@pytest.mark.parametrize(("padding", "value"), [("zero", 0.0), ("nan", float("nan"))])
def test_what_lies_outside_is_padded(child, padding, value):
    child.load(f"""
        @triton.jit
        def pad_kernel(x_ptr, z_ptr, N, B: tl.constexpr):
            block = tl.make_block_ptr(x_ptr, (N,), (1,), (0,), (B,), (0,))
            tl.store(z_ptr + tl.arange(0, B), tl.load(block, boundary_check=(0,), padding_option="{padding}"))

        def pad(x):
            z = torch.empty(32, device=x.device)
            pad_kernel[(1,)](x, z, x.numel(), B=32)
            return z
    """)
    reply = child.run("pad", x=X[0, :20].clone())
    expected = torch.cat([X[0, :20], torch.full((12,), value)])
    assert reply.findings == [] and torch.equal(reply.output.nan_to_num(7), expected.nan_to_num(7))


def test_a_dimension_that_is_not_checked_is_read_past_its_end(child):
    child.load(copy_with("tl.load(x_block, boundary_check=(1,))"))
    found = child.run("copy", x=X).finding
    assert found.kind == "out-of-bounds-load" and found.line == child.line("tl.load(x_block")


def test_programs_that_walk_different_distances_keep_their_own_corner(child):
    child.load("""
        @triton.jit
        def sum_kernel(x_ptr, counts_ptr, z_ptr, N, B: tl.constexpr):
            row = tl.program_id(0)
            block = tl.make_block_ptr(x_ptr + row * N, (N,), (1,), (0,), (B,), (0,))
            for _ in range(tl.load(counts_ptr + row)):
                block = tl.advance(block, (B,))
            if row > 0:
                block = tl.advance(block, (1,))
            tl.store(z_ptr + row, tl.sum(tl.load(block, boundary_check=(0,), padding_option="zero"), 0))

        def sums(x, counts):
            z = torch.empty(x.shape[0], device=x.device)
            sum_kernel[(x.shape[0],)](x, counts, z, x.shape[1], B=8)
            return z
    """)
    counts = torch.tensor([2, 0, 5, 1], dtype=torch.int32)
    reply = child.run("sums", x=X[:4].clone(), counts=counts)
    starts = [16, 1, 41, 9]
    expected = torch.stack([X[row, start : start + 8].sum() for row, start in enumerate(starts)])
    assert reply.error is None and reply.findings == []
    torch.testing.assert_close(reply.output, expected)
