"""What right kernels may do without a false report, and the settings of a run."""

import torch

from grader.interpreter.call import InterpretedCall
from grader.wire.messages import InterpretRequest
from grader.wire.recorded_call import RecordedCall

X = torch.randn(1000, generator=torch.Generator().manual_seed(1))


def clean(reply):
    assert reply.error is None and reply.findings == [] and reply.refusals == []
    return reply


def test_two_launches_share_scratch(child):
    child.load("""
        @triton.jit
        def partial_kernel(x_ptr, part_ptr, N, BLOCK: tl.constexpr):
            i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
            tl.store(part_ptr + tl.program_id(0), tl.sum(tl.load(x_ptr + i, mask=i < N, other=0.0), 0))

        @triton.jit
        def total_kernel(part_ptr, z_ptr, parts, BLOCK: tl.constexpr):
            i = tl.arange(0, BLOCK)
            tl.store(z_ptr, tl.sum(tl.load(part_ptr + i, mask=i < parts, other=0.0), 0))

        def total(x):
            parts = triton.cdiv(x.numel(), 128)
            part = torch.empty(16, device=x.device)  # only the first `parts` are ever used
            z = torch.empty(1, device="cuda")
            partial_kernel[(parts,)](x, part, x.numel(), BLOCK=128)
            total_kernel[(1,)](part, z, parts, BLOCK=16)
            return z
    """)
    for order in ("forward", "reverse", 7):
        reply = clean(child.run("total", dict(order=order), x=X))
        torch.testing.assert_close(reply.output, X.sum().reshape(1))
    assert [launch["kernel"] for launch in reply.launches] == ["partial_kernel", "total_kernel"]
    assert [launch["grid"] for launch in reply.launches] == [[8], [1]]
    assert reply.launches[1]["line"] == child.line("total_kernel[(1,)]")
    assert {t["argument"] for t in reply.traffic} == {"x", "scratch part", "z"}


def test_the_last_program_to_arrive_reads_what_the_others_wrote(child):
    child.load("""
        @triton.jit
        def kernel(x_ptr, part_ptr, count_ptr, z_ptr, BLOCK: tl.constexpr):
            i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
            tl.store(part_ptr + tl.program_id(0), tl.sum(tl.load(x_ptr + i), 0))
            if tl.atomic_add(count_ptr, 1) == tl.num_programs(0) - 1:
                tl.store(z_ptr, tl.sum(tl.load(part_ptr + tl.arange(0, 4)), 0))

        def total(x):
            part, z = torch.empty(4, device="cuda"), torch.empty(1, device="cuda")
            count = torch.zeros(1, dtype=torch.int32, device="cuda")
            kernel[(4,)](x, part, count, z, BLOCK=64)
            return z
    """)
    for order in ("forward", "reverse", 7):
        clean(child.run("total", dict(order=order), x=X[:256]))


def test_a_lock_orders_programs(child):
    child.load("""
        @triton.jit
        def kernel(x_ptr, lock_ptr, z_ptr):
            while tl.atomic_cas(lock_ptr, 0, 1) == 1:
                pass
            tl.store(z_ptr, tl.load(z_ptr) + tl.load(x_ptr + tl.program_id(0)))
            tl.atomic_xchg(lock_ptr, 0)

        def total(x):
            lock, z = torch.zeros(1, dtype=torch.int32, device="cuda"), torch.zeros(1, device="cuda")
            kernel[(16,)](x, lock, z)
            return z
    """)
    reply = clean(child.run("total", x=X))
    torch.testing.assert_close(reply.output, X[:16].sum().reshape(1))


def test_loop_over_a_runtime_range(child):
    child.load("""
        @triton.jit
        def kernel(x_ptr, z_ptr, N):
            total = 0.0
            for i in range(N):
                total += tl.load(x_ptr + i)
            tl.store(z_ptr, total)

        def total(x):
            z = torch.empty(1, device="cuda")
            kernel[(1,)](x, z, 10)
            return z
    """)
    torch.testing.assert_close(clean(child.run("total", x=X)).output, X[:10].sum().reshape(1))


AUTOTUNED = """
@triton.autotune([triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 256})], key=["N"])
@triton.jit
def kernel(x_ptr, z_ptr, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(z_ptr + i, tl.load(x_ptr + i, mask=i < N) * 2, mask=i < N)

def double(x):
    z = torch.empty_like(x)
    kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, z, x.numel())
    return z
"""


def test_autotuned_kernel_takes_the_first_or_the_last_configuration(child):
    child.load(AUTOTUNED)
    for config, programs in [(0, 16), (1, 4), (2, 16)]:
        reply = clean(child.run("double", dict(config=config), x=X))
        assert torch.equal(reply.output, 2 * X)
        assert reply.launches[0]["grid"] == [programs] and len(reply.launches) == 1


def test_descriptors_of_host_and_device(child):
    child.load("""
        from triton.tools.tensor_descriptor import TensorDescriptor

        @triton.jit
        def host_kernel(x_desc, z_desc):
            at = [tl.program_id(0) * 16, tl.program_id(1) * 16]
            z_desc.store(at, x_desc.load(at) * 2)

        @triton.jit
        def device_kernel(x_ptr, z_ptr, M, N):
            x_desc = tl.make_tensor_descriptor(x_ptr, [M, N], [N, 1], [16, 16])
            z_desc = tl.make_tensor_descriptor(z_ptr, [M, N], [N, 1], [16, 16])
            at = [tl.program_id(0) * 16, tl.program_id(1) * 16]
            z_desc.store(at, x_desc.load(at) * 2)

        def host(x):
            z = torch.empty_like(x)
            descriptors = [TensorDescriptor.from_tensor(tensor, [16, 16]) for tensor in (x, z)]
            host_kernel[(3, 2)](*descriptors)
            return z

        def device(x):
            triton.set_allocator(lambda size, align, stream: torch.empty(size, dtype=torch.int8, device="cuda"))
            z = torch.empty_like(x)
            device_kernel[(3, 2)](x, z, *x.shape)
            return z
    """)
    x = torch.randn(40, 28)
    for entry in ("host", "device"):
        reply = clean(child.run(entry, dict(count_traffic=True), x=x))
        assert torch.equal(reply.output, 2 * x)
        assert {t["argument"]: (t["read"], t["written"]) for t in reply.traffic} == {
            "x": (4 * x.numel(), 0), "z": (0, 4 * x.numel()),
        }  # fmt: skip
        assert reply.writer[39, 27] == 5 and reply.writers[0]["grid"] == [3, 2, 1]


def test_views_of_an_argument_are_the_argument(child):
    child.load("""
        @triton.jit
        def kernel(x_ptr, z_ptr):
            tl.store(z_ptr + tl.program_id(0), tl.load(x_ptr + 30 + tl.program_id(0)))
            tl.store(x_ptr + 7, 0.0)

        def entry(x):
            z = torch.empty(2, device="cuda")
            kernel[(1,)](x.view(-1).unsqueeze(0), z)
            return z
    """)
    reply = child.run("entry", x=torch.randn(4, 8))
    assert [(f["kind"], f["argument"], f["element"]) for f in reply.findings] == [("input-written", "x", [0, 7])]


def test_masked_lanes_without_other(child):
    child.load("""
        @triton.jit
        def kernel(x_ptr, z_ptr, N, BLOCK: tl.constexpr):
            i = tl.arange(0, BLOCK)
            x = tl.load(x_ptr + i, mask=i < N)  # no other
            y = tl.load(x_ptr + i, mask=i < N, other=0.0)
            tl.store(z_ptr, tl.sum(x - y, 0))
            tl.store(z_ptr + 1, tl.max(x, 0))

        def entry(x):
            z = torch.empty(2, device="cuda")
            kernel[(1,)](x, z, x.numel(), BLOCK=64)
            return z
    """)
    x = -1 - torch.rand(50)
    zero, poison = (clean(child.run("entry", dict(fill=fill), x=x)) for fill in ("zero", "poison"))
    assert zero.output.tolist() == [0.0, 0.0] and poison.output[1] == float("inf") and poison.output[0].isnan()
    assert zero.launches[0]["unmasked_fills"] == poison.launches[0]["unmasked_fills"] == [child.line("# no other")]
    full = clean(child.run("entry", x=torch.rand(64)))
    assert full.launches[0]["unmasked_fills"] == []


def test_the_order_of_programs_shows(child):
    child.load("""
        @triton.jit
        def kernel(z_ptr):
            tl.atomic_xchg(z_ptr, tl.program_id(0))

        def entry(x):
            z = torch.empty(1, dtype=torch.int32, device="cuda")
            kernel[(10,)](z)
            return z
    """)
    last = {order: child.run("entry", dict(order=order), x=X).output.item() for order in ("forward", "reverse", 1, 2)}
    assert last["forward"] == 9 and last["reverse"] == 0
    assert child.run("entry", dict(order=1), x=X).output.item() == last[1]


def test_the_order_of_billions_of_programs_is_a_range():
    call = InterpretedCall(InterpretRequest([], [], "", [], order=3), RecordedCall(), [], [])
    assert isinstance(call._order(((1 << 31) - 1, 2, 1)), range)
    assert sorted(call._order((5, 2, 1))) == list(range(10))


def test_constants_are_replaced_and_restored(child):
    loaded = child.load("""
        BLOCK, SCALE = 64, 1.5

        @triton.jit
        def kernel(z_ptr, BLOCK: tl.constexpr):
            tl.store(z_ptr, BLOCK)

        def entry(x):
            z = torch.empty(1, device="cuda")
            kernel[(1,)](z, BLOCK=BLOCK)
            return z
    """)
    assert loaded.constants == {"BLOCK": 64}
    assert child.run("entry", dict(constants=dict(BLOCK=16, OTHER=3)), x=X).output.item() == 16
    assert child.run("entry", x=X).output.item() == 64


def test_device_assert_fires(child):
    child.load("""
        @triton.jit
        def kernel(x_ptr):
            tl.device_assert(tl.load(x_ptr) > 5, "x is too small")

        def entry(x):
            kernel[(1,)](x, debug=True)
            return x

        def without_debug(x):
            kernel[(1,)](x)
            return x
    """)
    error = child.run("entry", x=torch.zeros(1)).error
    assert (error["kind"], error["message"]) == ("assert", "x is too small")
    assert error["line"] == child.line("tl.device_assert")
    assert child.run("entry", x=torch.ones(1) * 6).error is None
    assert child.run("without_debug", x=torch.zeros(1)).error is None  # Triton leaves the check out


TRAFFIC = """
@triton.jit
def twice_kernel(x_ptr, z_ptr, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x_ptr + i, mask=i < N)
    b = tl.load(x_ptr + i, mask=i < N)
    tl.store(z_ptr + i, a + b, mask=i < N)

def twice(x):
    z = torch.empty_like(x)
    twice_kernel[(4,)](x, z, 1000, BLOCK=256)
    return z

@triton.jit
def same_kernel(x_ptr, z_ptr):
    i = tl.arange(0, 64)
    tl.store(z_ptr + tl.program_id(0), tl.sum(tl.load(x_ptr + i // 16), 0))

def same(x):
    z = torch.empty(8, device="cuda")
    same_kernel[(8,)](x, z)
    return z
"""


def traffic(reply):
    return {t["argument"]: (t["read"], t["written"], t["size"]) for t in clean(reply).traffic}


def test_traffic_counts_each_load(child):
    child.load(TRAFFIC)
    assert traffic(child.run("twice", dict(count_traffic=True), x=X)) == {"x": (8000, 0, 4000), "z": (0, 4000, 4000)}


def test_lanes_with_one_address_count_once(child):
    child.load(TRAFFIC)
    assert traffic(child.run("same", dict(count_traffic=True), x=X[:4])) == {"x": (128, 0, 16), "z": (0, 32, 32)}
    assert traffic(child.run("same", x=X[:4]))["x"] == (8 * 64 * 4, 0, 16)


def test_programs_at_once_share_what_they_read(child):
    child.load(TRAFFIC)
    options = dict(count_traffic=True, at_once=4)
    assert traffic(child.run("same", options, x=X[:4]))["x"] == (32, 0, 16)
    assert traffic(child.run("twice", options, x=X))["x"] == (4000, 0, 4000)


def test_an_expanded_argument_is_as_large_as_its_memory(child):
    child.load("""
        @triton.jit
        def kernel(x_ptr, z_ptr):
            i = tl.program_id(0) * 8 + tl.arange(0, 8)
            tl.store(z_ptr + i, tl.load(x_ptr + tl.arange(0, 8)))

        def entry(x):
            z = torch.empty(x.shape, device="cuda")
            kernel[(5,)](x, z)
            return z
    """)
    reply = child.run("entry", dict(count_traffic=True), x=torch.arange(8.0).expand(5, 8))
    assert traffic(reply) == {"x": (160, 0, 32), "z": (0, 160, 160)}


def test_idle_programs_are_counted(child):
    child.load("""
        @triton.jit
        def kernel(x_ptr, z_ptr, N, BLOCK: tl.constexpr):
            i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
            tl.store(z_ptr + i, tl.load(x_ptr + i, mask=i < N), mask=i < N)

        def entry(x):
            z = torch.empty_like(x)
            kernel[(6,)](x, z, x.numel(), BLOCK=256)
            kernel[(4,)](x, z, x.numel(), BLOCK=256)
            return z
    """)
    reply = clean(child.run("entry", dict(order="reverse"), x=X))
    assert [launch["idle"] for launch in reply.launches] == [2, 0]
