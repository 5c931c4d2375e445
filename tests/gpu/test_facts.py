"""What the compiler made of the solutions: the facts that their lessons name, on every Triton release."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import torch

from grader.child.triton_api import Utils
from grader.gpu.compiled_facts import Facts, facts_of
from grader.gpu.models import MODELS
from grader.wire.cubin import read_cubin
from tests.conftest import mutant

SOLUTIONS = Path(__file__).resolve().parent.parent.parent / "solutions"
HALF = torch.float16


def meta(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.empty(shape, dtype=dtype, device="meta")


@pytest.fixture(scope="module")
def known() -> dict[str, Facts]:
    """What is known so far: several tests look at one kernel."""
    return {}


@pytest.fixture
def facts(recording, known):
    """facts(folder, entry, **arguments): what the compiler made of a solution's one kernel."""

    def facts(folder: str, entry: str, target: str = "sm_90", **arguments: torch.Tensor) -> Facts:
        call = f"{folder} {target} {[(name, one.shape, one.dtype) for name, one in arguments.items()]}"
        if call not in known:
            recorded = recording(SOLUTIONS / folder / f"{folder[3:]}.py", target)
            (kernel,) = recorded.plan(entry, "ptx", "ttgir", **arguments).kernels
            known[call] = facts_of(kernel, recorded.filename)
            known[call].line = recorded.line
        return known[call]

    return facts


def widths(facts: Facts) -> dict[tuple[str, int], int]:
    return {(access.kind, access.line): access.bytes for access in facts.accesses}


def test_aligned_rows_are_moved_in_pieces_of_16_bytes(facts):
    found = facts("03_softmax", "softmax", x=meta(64, 4096))
    assert widths(found) == {("load", found.line("tl.load(")): 16, ("store", found.line("tl.store(")): 16}
    assert found.tile_bytes == 4096 * 4 and found.spilled_bytes == 0 and 0 < found.registers < 64


STORED_BY_DESCRIPTOR = """
    @triton.jit
    def kernel(x_ptr, z_ptr, M, N):
        rows = tl.arange(0, 64)
        x = tl.load(x_ptr + rows, mask=rows < M)
        z = tl.make_tensor_descriptor(z_ptr, shape=[M, N], strides=[N, 1], block_shape=[64, 128])
        z.store([0, 0], tl.broadcast_to(x[:, None], [64, 128]))

    def entry(x):
        z = torch.empty((x.numel(), 4096), dtype=x.dtype, device=x.device)
        triton.set_allocator(lambda size, alignment, stream: torch.empty(size, dtype=torch.int8, device=x.device))
        kernel[(1,)](x, z, *z.shape)
        return z
"""


def test_a_tile_that_a_descriptor_moves_is_the_largest_one(recording):
    recorded = recording(STORED_BY_DESCRIPTOR)
    (kernel,) = recorded.plan("entry", "ptx", "ttgir", x=meta(64)).kernels
    found = facts_of(kernel, recorded.filename)
    assert found.tma_copies and found.tile_bytes == 64 * 128 * 4
    assert found.narrowest(found.tile_bytes / 4) is None


NUMBERS_AND_A_TILE_IN_ONE_LINE = """
    @triton.jit
    def kernel(x_ptr, two_ptr, z_ptr, N):
        i = tl.program_id(0) * 1024 + tl.arange(0, 1024)
        x = tl.load(x_ptr + i, mask=i < N, other=0.0)
        tl.store(z_ptr + i, (x - tl.load(two_ptr)) / tl.load(two_ptr + 1), mask=i < N)

    def entry(x, two):
        z = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), 1024),)](x, two, z, x.numel())
        return z
"""


def test_a_number_that_is_loaded_in_the_line_of_a_tile_is_no_tile(recording):
    recorded = recording(NUMBERS_AND_A_TILE_IN_ONE_LINE)
    (kernel,) = recorded.plan("entry", "ptx", "ttgir", x=meta(4096), two=meta(2)).kernels
    found = facts_of(kernel, recorded.filename)
    assert sorted({(access.bytes, access.tile_bytes) for access in found.accesses}) == [(4, 0), (16, 4096)]


def test_rows_that_are_no_multiple_of_16_elements_are_moved_one_by_one(facts):
    found = facts("03_softmax", "softmax", x=meta(64, 4095))
    assert {access.bytes for access in found.accesses} == {4}


def test_a_transposed_source_goes_through_shared_memory(facts):
    found = facts("04_transpose", "transpose", x=meta(4096, 4096))
    assert {access.bytes for access in found.accesses} == {16} and found.shared == 128 * 64 * 4


@pytest.mark.parametrize("target, instruction", [("sm_80", "mma"), ("sm_90", "wgmma"), ("sm_100", "tcgen05")])
def test_products_run_on_the_tensor_cores_of_the_target(facts, target, instruction):
    a = meta(1024, 1024, dtype=HALF)
    folder = "05_grouped_matmul"
    found = facts(folder, "matmul", target, a=a, b=a)
    assert found.shared <= MODELS[target].shared_per_block  # with 4 stages, with 3 on an A100
    assert found.tensor_cores == instruction and (found.async_copies or found.tma_copies)


@pytest.mark.parametrize("target, stages, ahead", [("sm_90", 1, False), ("sm_90", 3, True), ("sm_100", 3, True)])
def test_loads_of_descriptors_run_ahead_where_several_places_are_filled_by_turns(recording, target, stages, ahead):
    text = (SOLUTIONS / "22_persistent_matmul" / "persistent_matmul.py").read_text()
    recorded = recording(text.replace("num_stages=3", f"num_stages={stages}"), target)
    a = meta(1024, 1024, dtype=HALF)
    (kernel,) = recorded.plan("matmul", "ptx", "ttgir", a=a, b=a).kernels
    found = facts_of(kernel, recorded.filename)
    assert found.tma_copies and bool(found.tma_loads_ahead) == ahead


@pytest.mark.parametrize(
    "target, name, multiplied",
    [
        ("sm_80", "solution", {"f16"}), ("sm_90", "solution", {"f16"}), ("sm_100", "solution", {"f16"}),
        ("sm_90", "p_in_fp32", {"f16", "f32"}),
    ],
)  # fmt: skip
def test_what_products_multiply_is_told(recording, target, name, multiplied):
    folder = "25_flash_attention"
    source = (
        (SOLUTIONS / folder / "flash_attention.py").read_text() if name == "solution" else mutant(f"{folder}/{name}")
    )
    one = meta(1, 2, 256, 64, dtype=HALF)
    recorded = recording(source, target)
    (kernel,) = recorded.plan("attention", "ptx", "ttgir", q=one, k=one, v=one).kernels
    assert facts_of(kernel, recorded.filename).multiplied == multiplied


def test_two_blocks_of_the_matmul_do_not_fit_one_multiprocessor(facts):
    a = meta(1024, 1024, dtype=HALF)
    found = facts("05_grouped_matmul", "matmul", a=a, b=a)
    assert found.blocks_per_multiprocessor(MODELS["sm_90"].shared_per_multiprocessor) == 1


def test_a_cubin_says_what_cuobjdump_says(recording, tmp_path):
    """Our reader against the vendor's."""
    import triton

    a = meta(1024, 1024, dtype=HALF)
    source = (SOLUTIONS / "05_grouped_matmul/grouped_matmul.py").read_text().replace("num_warps=8", "num_warps=4")
    recorded = recording(source)
    (kernel,) = recorded.plan("matmul", a=a, b=a).kernels
    path = tmp_path / "kernel.cubin"
    path.write_bytes(kernel.code)
    tool = Path(triton.__file__).parent / "backends/nvidia/bin/cuobjdump"
    said = subprocess.run([tool, "-res-usage", path], capture_output=True, text=True).stdout
    cubin = read_cubin(kernel.code)
    assert f"REG:{cubin.registers} STACK:{cubin.stack_bytes} " in said
    assert facts_of(kernel, recorded.filename).spilled_bytes == cubin.stack_bytes > 0


@pytest.mark.parametrize("spilled, spills", [(0, False), (8, False), (24, False), (32, False), (36, True), (400, True)])
def test_a_few_bytes_are_no_spill(spilled, spills):
    """For sm_120, Triton 3.6 spills 8 bytes of 23's 128 x 256 tile, and 24 bytes of 27's loop to dk and dv."""
    assert Facts("kernel", 8, 3, 255, spilled, 0).spills == spills


def test_machine_code_that_cannot_be_read_is_not_the_learners_fault():
    """The child passes it on; the parent reads it too, and refuses the plan."""
    assert Utils(MODELS["sm_90"]).load_binary("kernel", b"\x7fELF of a later release", 0, 0)[2:] == (0, 0, 1024)


PRINTING = """
    @triton.jit
    def kernel(x_ptr, z_ptr, N: tl.constexpr):
        i = tl.arange(0, N)
        x = tl.load(x_ptr + i)
        tl.device_print("x", x)
        tl.store(z_ptr + i, tl.sin(x))

    def entry(x):
        z = torch.empty_like(x)
        kernel[(1,)](x, z, N=128)
        return z
"""


def test_what_is_spilled_is_told_from_the_arrays_of_printf_and_sin(recording):
    recorded = recording(PRINTING)
    (kernel,) = recorded.plan("entry", x=meta(128)).kernels
    assert kernel.cubin.stack_bytes > 0 == facts_of(kernel, recorded.filename).spilled_bytes
