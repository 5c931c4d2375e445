"""Kernels with one mistake each: the checker names the argument, the element, the program and the line."""

import pytest
import torch

N = 1000
X = torch.arange(N, dtype=torch.float32)

COPIES = """
BLOCK = 256

@triton.jit
def unmasked_load_kernel(x_ptr, z_ptr, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    tl.store(z_ptr + i, x, mask=i < N)

def unmasked_load(x):
    z = torch.empty_like(x)
    unmasked_load_kernel[(triton.cdiv(x.numel(), BLOCK),)](x, z, x.numel(), BLOCK=BLOCK)
    return z

@triton.jit
def unmasked_store_kernel(x_ptr, z_ptr, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < N, other=0.0)
    tl.store(z_ptr + i - 1, x, mask=i <= N)  # one to the left

def unmasked_store(x):
    z = torch.empty_like(x)
    unmasked_store_kernel[(triton.cdiv(x.numel(), BLOCK),)](x, z, x.numel(), BLOCK=BLOCK)
    return z

@triton.jit
def atomic_outside_kernel(x_ptr, z_ptr, N):
    tl.atomic_add(z_ptr + tl.program_id(0), 1.0)

def atomic_outside(x):
    z = torch.zeros(4, device='cuda')
    atomic_outside_kernel[(6,)](x, z, 4)
    return z

@triton.jit
def wild_kernel(x_ptr, z_ptr, N):
    p = tl.cast(tl.program_id(0).to(tl.int64) + 4096, tl.pointer_type(tl.float32))
    tl.store(z_ptr, tl.load(p))

def wild(x):
    z = torch.empty_like(x)
    wild_kernel[(1,)](x, z, 4)
    return z
"""


def test_load_past_the_end(child):
    child.load(COPIES)
    reply = child.run("unmasked_load", x=X)
    finding = reply.finding
    assert (finding.kind, finding.argument, finding.linear) == ("out-of-bounds-load", "x", 1000)
    assert (finding.element, finding.program, finding.count, finding.programs) == ([], [3], 24, 1)
    assert finding.line == child.line("x = tl.load(x_ptr + i)\n".strip())
    assert torch.equal(reply.output, X)  # the rest went on


def test_store_before_the_start(child):
    child.load(COPIES)
    reply = child.run("unmasked_store", x=X)
    finding = reply.finding
    assert (finding.kind, finding.argument, finding.linear) == ("out-of-bounds-store", "z", -1)
    assert (finding.program, finding.count) == ([0], 1)
    assert finding.line == child.line("one to the left")


def test_atomic_past_the_end(child):
    child.load(COPIES)
    reply = child.run("atomic_outside", x=X)
    finding = reply.finding
    assert (finding.kind, finding.argument, finding.linear) == ("out-of-bounds-atomic", "z", 4)
    assert (finding.program, finding.count, finding.programs) == ([4], 2, 2)
    assert reply.launches[0]["atomics"] and reply.writer.tolist() == [0, 1, 2, 3]


def test_pointer_that_belongs_to_nothing(child):
    child.load(COPIES)
    finding = child.run("wild", x=X).finding
    assert (finding.kind, finding.argument) == ("wild-pointer", "")
    assert finding.line == child.line("tl.load(p)")


def test_address_in_another_argument(child):
    child.load("""
        @triton.jit
        def kernel(x_ptr, y_ptr, z_ptr, distance):
            tl.store(z_ptr, tl.load(x_ptr + distance))

        def entry(x, y):
            z = torch.empty(1, device='cuda')
            kernel[(1,)](x, y, z, (y.data_ptr() - x.data_ptr()) // 4 + 7)
            return z
    """)
    finding = child.run("entry", x=X, y=X).finding
    assert (finding.kind, finding.argument) == ("out-of-bounds-load", "x")


def test_holes_of_a_strided_view_are_outside(child):
    child.load("""
        @triton.jit
        def kernel(x_ptr, z_ptr, N, BLOCK: tl.constexpr):
            row, i = tl.program_id(0), tl.arange(0, BLOCK)
            x = tl.load(x_ptr + row * N + i, mask=i < N)  # takes the rows to be dense
            tl.store(z_ptr + row * N + i, x, mask=i < N)

        def entry(x):
            z = torch.empty(x.shape, device='cuda')
            kernel[(x.shape[0],)](x, z, x.shape[1], BLOCK=16)
            return z
    """)
    x = torch.randn(4, 15)[:, :10]
    reply = child.run("entry", x=x)
    finding = reply.finding
    assert (finding.kind, finding.argument, finding.between) == ("out-of-bounds-load", "x", True)
    assert (finding.program, finding.linear, finding.line) == ([1], 10, child.line("rows to be dense"))
    assert finding.count == 10 and finding.programs == 2  # 10..14 and 25..29; 30..39 is a row again


def test_holes_of_a_strided_output(child):
    child.load("""
        @triton.jit
        def kernel(x_ptr, z_ptr):
            i = tl.arange(0, 16)
            tl.store(z_ptr + i, tl.load(x_ptr + i))

        def entry(x, z):
            kernel[(1,)](x, z)
            return z
    """)
    z = torch.zeros(64)[::4]
    finding = child.run("entry", dict(writable=["z"]), x=X, z=z).finding
    assert (finding.kind, finding.argument, finding.between) == ("out-of-bounds-store", "z", True)
    assert finding.count == 12


@pytest.mark.parametrize(
    "allocation",
    [
        "torch.empty(16, device='cuda')",
        "torch.empty_like(x)",
        "x.new_empty(16)",
        "torch.empty_strided((16,), (1,), device='cuda')",
    ],
)
def test_read_of_what_nothing_filled(child, allocation):
    child.load(
        """
        @triton.jit
        def kernel(s_ptr, z_ptr):
            i = tl.arange(0, 16)
            s = tl.load(s_ptr + i)
            tl.store(z_ptr + i, s)

        def entry(x):
            s, z = ALLOCATION, torch.empty(16, device='cuda')
            s[:5].fill_(1.0)
            kernel[(1,)](s, z)
            return z
    """.replace("ALLOCATION", allocation)
    )
    finding = child.run("entry", x=X[:16].clone()).finding
    assert (finding.kind, finding.argument, finding.element) == ("uninitialised-read", "scratch s", [5])
    assert (finding.count, finding.program, finding.line) == (11, [0], child.line("s = tl.load"))


RACES = """
@triton.jit
def write_write_kernel(x_ptr, z_ptr):
    i = tl.program_id(0) * 4 + tl.arange(0, 8)
    tl.store(z_ptr + i, tl.load(x_ptr + i))

def write_write(x):
    z = torch.empty(12, device='cuda')
    write_write_kernel[(2,)](x, z)
    return z

@triton.jit
def read_after_write_kernel(x_ptr, z_ptr):
    x = tl.load(x_ptr + tl.program_id(0))
    tl.store(z_ptr, tl.load(z_ptr) + x)

def read_after_write(x):
    z = torch.zeros(1, device='cuda')
    read_after_write_kernel[(3,)](x, z)
    return z

@triton.jit
def write_after_read_kernel(z_ptr):
    i = tl.program_id(0)
    tl.store(z_ptr + i, tl.load(z_ptr + (i + 3) % 4))

def write_after_read(x):
    z = torch.zeros(2, 2, device='cuda')
    write_after_read_kernel[(4,)](z)
    return z

@triton.jit
def atomic_after_write_kernel(z_ptr):
    if tl.program_id(1) == 0:
        tl.store(z_ptr, 0.0)
    tl.atomic_add(z_ptr, 1.0)

def atomic_after_write(x):
    z = torch.empty(1, device='cuda')
    atomic_after_write_kernel[(1, 2)](z)
    return z

@triton.jit
def lanes_kernel(x_ptr, z_ptr):
    i = tl.arange(0, 16)
    tl.store(z_ptr + i % 4, tl.load(x_ptr + i))

def lanes(x):
    z = torch.empty(4, device='cuda')
    lanes_kernel[(1,)](x, z)
    return z

@triton.jit
def input_kernel(x_ptr, z_ptr):
    i = tl.arange(0, 16)
    tl.store(x_ptr + i + 2, 1.0)
    tl.store(z_ptr + i, 1.0)

def write_input(x):
    z = torch.empty(16, device='cuda')
    input_kernel[(1,)](x, z)
    return z
"""


def test_two_programs_write_one_element(child):
    child.load(RACES)
    reply = child.run("write_write", x=X)
    finding = reply.finding
    assert (finding.kind, finding.argument, finding.element) == ("race-write-write", "z", [4])
    assert (finding.program, finding.other_program, finding.count) == ([1], [0], 4)
    assert reply.writer.tolist() == [0] * 4 + [1] * 8


def test_a_program_reads_what_another_wrote(child):
    child.load(RACES)
    kinds = {f["kind"]: f for f in child.run("read_after_write", x=X).findings}
    assert "race-write-write" in kinds and kinds.keys() & {"race-read-after-write", "race-write-after-read"}
    assert all(f["element"] == [0] and f["program"] != f["other_program"] for f in kinds.values())


def test_a_program_writes_what_another_read(child):
    child.load(RACES)
    found = child.run("write_after_read", x=X).findings
    finding = next(f for f in found if f["kind"] == "race-write-after-read")
    assert (finding["element"], finding["program"], finding["other_program"]) == ([0, 0], [0], [1])


def test_an_atomic_meets_a_plain_store(child):
    child.load(RACES)
    finding = child.run("atomic_after_write", x=X).finding
    assert (finding.kind, finding.program, finding.other_program) == ("race-atomic-after-write", [0, 1], [0, 0])


def test_lanes_of_one_store_disagree(child):
    child.load(RACES)
    finding = child.run("lanes", x=X).finding
    assert (finding.kind, finding.argument, finding.element, finding.count) == ("lane-conflict", "z", [0], 12)


def test_an_input_is_written(child):
    child.load(RACES)
    reply = child.run("write_input", x=X)
    finding = reply.finding
    assert (finding.kind, finding.argument, finding.element) == ("input-written", "x", [2])
    reply = child.run("write_input", dict(writable=["x"]), x=X)
    assert reply.findings == []


def test_the_host_function_fills_an_input(child):
    child.load("""
        def entry(x):
            x[2:].fill_(1.0)
            return x
    """)
    assert child.run("entry", x=X).changed == ["x"]
    assert child.run("entry", dict(writable=["x"]), x=X).changed == []


def test_elements_that_no_program_wrote(child):
    child.load("""
        @triton.jit
        def kernel(z_ptr):
            tl.store(z_ptr + tl.program_id(0), 1.0)

        def empty(x):
            z = torch.empty(2, 3, device='cuda')
            kernel[(4,)](z)
            return z

        def zeros(x):
            z = torch.zeros(2, 3, device='cuda')
            kernel[(4,)](z)
            return z.t()

        def never(x):
            return torch.empty(3, device='cuda')
    """)
    assert child.run("empty", x=X).writer.tolist() == [[0, 1, 2], [3, -1, -1]]
    assert child.run("zeros", x=X).writer.tolist() == [[0, 3], [1, -2], [2, -2]]
    assert child.run("never", x=X).writer.tolist() == [-1, -1, -1]


def test_findings_are_counted_not_repeated(child):
    lines = "\n".join(f"    tl.store(x_ptr + {2000 + i}, 1.0)" for i in range(100))
    child.load(f"@triton.jit\ndef kernel(x_ptr):\n{lines}\n\ndef entry(x):\n    kernel[(5,)](x)\n    return x\n")
    findings = child.run("entry", x=X).findings
    assert len(findings) == 64 and findings[0]["count"] == 5 and findings[0]["programs"] == 5
