"""Small kernels that together use the language: what is read here are the texts that Triton makes of them.

A comment `#: NAME` names the line that it stands on; the tests of places look for it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import triton
import triton.language as tl
from triton.language.extra import libdevice


@dataclass(frozen=True)
class Case:
    kernel: Any
    signature: dict[str, Any]  # parameter to type: "*fp32", "i32", "constexpr" ...
    constants: dict[str, Any]
    options: dict[str, Any] = field(default_factory=dict)


CASES: dict[str, Case] = {}


def case(types: str, options: dict[str, Any] | None = None, name: str = "", only_if: bool = True, **constants: Any):
    """Registers the kernel below; `types` are those of its parameters without constants, in their order."""

    def register(kernel: Any) -> Any:
        if only_if:
            kinds = iter(types.split("; "))
            names = kernel.arg_names
            signature = {each: "constexpr" if each in constants else next(kinds) for each in names}
            assert next(kinds, None) is None, f"types without a parameter in {kernel.__name__}"
            by_path = {(names.index(each),): value for each, value in constants.items()}
            CASES[name or kernel.__name__] = Case(kernel, signature, by_path, options or {})
        return kernel

    return register


@case("*fp32; *fp32; *fp32; i32", BLOCK=128)
@triton.jit
def masked_sum(a, b, out, n, BLOCK: tl.constexpr):
    lanes = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = lanes < n
    first = tl.load(a + lanes, mask=inside)  #: first load
    second = tl.load(b + lanes, mask=inside, other=-1.5, eviction_policy="evict_first")  #: second load
    both = first + second  #: sum
    tl.store(out + lanes, both, mask=inside, cache_modifier=".cs")  #: store


@triton.jit
def doubled(value):
    twice = value * 2  #: inside the helper
    return twice


@triton.jit
def towards(value, n):
    if n > 0:
        return value + 1
    return value - 1


@triton.jit(noinline=True)
def apart(value, other):
    return value * other + 1


@triton.jit(noinline=True)
def apart_too(target, value):
    tl.store(target, apart(value, value))


@case("*fp32; i32", BLOCK=64)
@triton.jit
def helpers(x, n, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    large = doubled(doubled(tl.load(x + lanes)))
    largest = tl.max(large, axis=0)  #: from the library
    tl.store(x + lanes, towards(large, n) + apart(n, 3))
    apart_too(x, largest)


@case("*fp32; *i32; i32; i64", BLOCK=32)
@triton.jit
def loops(x, count, n, start, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float32)
    for i in range(n):
        total += tl.load(x + i * BLOCK + lanes)  #: in the loop
        for j in range(i, n, 2):
            total += j
    for i in tl.range(start, 7, 3, num_stages=3):
        total += i
    for _ in tl.range(n, disallow_acc_multi_buffer=True, disable_licm=True, flatten=True, loop_unroll_factor=2):
        total *= 0.5
    for _ in range(n, 0, -1):
        n -= 1
    steps = 0
    while tl.max(total) > 1.0:
        total = total / 2
        steps += 1
    while steps < n and n > 2:
        steps += 1
    tl.store(count, steps)
    tl.store(x + lanes, total)


@case("*fp32; i32; i1", BLOCK=32)
@triton.jit
def branches(x, n, flag, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    value = tl.load(x + lanes)
    if n > 3:
        value, k = value + 1, 1
    elif flag:
        value, k = value - 1, 2
    else:
        k = 3
    if n == 5:
        tl.store(x + lanes, value)
    other = value if n < 2 else value * 3
    tl.store(x + lanes + k, tl.where(flag, value, other))


@case("*fp32; i32; i32", BLOCK=32)
@triton.jit
def leaves_early(x, n, m, BLOCK: tl.constexpr):
    if tl.program_id(0) >= n:
        return
    lanes = tl.arange(0, BLOCK)
    value = tl.load(x + lanes)
    if m == 7:
        tl.store(x + lanes, value)
        return
    for _ in range(m):
        value += 1
    tl.store(x + lanes, value)


@case("*fp32; i32; i32", name="device_descriptors", BM=16, BN=32)
@triton.jit
def device_descriptors(x, rows, columns, BM: tl.constexpr, BN: tl.constexpr):
    here = tl.make_tensor_descriptor(x, [rows, columns], [columns, 1], [BM, BN])
    again = tl.make_tensor_descriptor(x, [rows, columns], [columns, 1], [BM, BN], padding_option="nan")
    tile = here.load([0, BN]) + again.load([BM, 0])
    here.store([BM, BN], tile)
    here.atomic_add([0, 0], tile)


@case("tensordesc<fp16[32,64]>; i32", name="host_descriptor")
@triton.jit
def host_descriptor(descriptor, n):
    for i in range(n):
        descriptor.store([i, 0], descriptor.load([0, i]) * 2)


@case("*fp32; *i32", COUNT=32)
@triton.jit
def descriptor_rows(x, index, COUNT: tl.constexpr):
    table = tl.make_tensor_descriptor(x, [100, 32], [32, 1], [1, 32])
    rows = tl.load(index + tl.arange(0, COUNT))
    table.scatter(table.gather(rows, 0), rows, 0)


@case("*fp32; i32; i32", only_if=triton.__version__ < "3.8", SIZE=16)
@triton.jit
def block_pointers(x, rows, columns, SIZE: tl.constexpr):
    block = tl.make_block_ptr(x, (rows, columns), (columns, 1), (0, 0), (SIZE, SIZE), (1, 0))
    for _ in range(3):
        value = tl.load(block, boundary_check=(0, 1), padding_option="zero")
        tl.store(block, value + 1, boundary_check=(0,))
        block = tl.advance(block, (0, SIZE))


@case("*i32; *fp32; *i32", BLOCK=32)
@triton.jit
def atomics(whole, real, lock, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    mask = lanes < 20
    old = tl.atomic_add(whole + lanes, lanes, mask=mask, sem="relaxed", scope="cta")
    old += tl.atomic_max(whole + lanes, lanes) + tl.atomic_min(whole, 3) + tl.atomic_xchg(whole + lanes, old)
    old += tl.atomic_and(whole + lanes, lanes) | tl.atomic_or(whole, 1) ^ tl.atomic_xor(whole + lanes, 7)
    tl.atomic_add(real + lanes, old * 1.0, scope="sys")
    tl.atomic_max(real, 2.0)
    tl.atomic_xchg(lock, 0, sem="release")


@triton.jit
def keep_larger(a, at, b, bt):
    better = (a > b) | ((a == b) & (at < bt))
    return tl.where(better, a, b), tl.where(better, at, bt)


@triton.jit
def chained(a, b, c, d):
    return a * c, b * c + d


@case("*fp32; *i32", ROWS=8, COLUMNS=16)
@triton.jit
def folds(x, places, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    across, down = tl.arange(0, COLUMNS), tl.arange(0, ROWS)
    lanes = down[:, None] * COLUMNS + across[None, :]
    value = tl.load(x + lanes)
    best, at = tl.reduce((value, tl.broadcast_to(across[None, :], (ROWS, COLUMNS))), 1, keep_larger)
    tl.store(places + down, at + tl.argmin(value, 1) + tl.argmax(value, 1, tie_break_left=False))
    gains, running = tl.associative_scan((value, value), 1, chained, reverse=True)
    sums = tl.sum(value, 0) + tl.xor_sum(lanes, 0) + tl.max(tl.cumsum(value, 0), 0) + tl.cumprod(value, 1)
    tl.store(x + lanes, gains + running + sums + best[:, None] + tl.sort(value))
    tl.store(x, tl.sum(value))


@case("*fp16; *fp16; *fp32", SIZE=32)
@triton.jit
def products(a, b, c, SIZE: tl.constexpr):
    lanes = tl.arange(0, SIZE)[:, None] * SIZE + tl.arange(0, SIZE)[None, :]
    left, right = tl.load(a + lanes), tl.load(b + lanes)
    out = tl.dot(left, right, tl.load(c + lanes))
    out = tl.dot(out, out.trans(), out, input_precision="tf32x3")
    out = tl.dot(out, out, input_precision="ieee")
    whole = tl.dot(left.to(tl.int8), right.to(tl.int8))
    fine = tl.dot(left.to(tl.float8e5), right.to(tl.float8e5), max_num_imprecise_acc=32)
    tl.store(c + lanes, out + whole + fine)


@case("*u8; *u8; *u8; *fp32", K=64)
@triton.jit
def scaled_products(a, b, scales, c, K: tl.constexpr):
    wide = tl.arange(0, 128)
    packed = tl.load(a + wide[:, None] * (K // 2) + tl.arange(0, K // 2)[None, :])
    other = tl.load(b + tl.arange(0, K // 2)[:, None] * 128 + wide[None, :])
    scale = tl.load(scales + wide[:, None] * (K // 32) + tl.arange(0, K // 32)[None, :])
    out = tl.dot_scaled(packed, scale, "e2m1", other, scale, "e2m1")
    tl.store(c + wide[:, None] * 128 + wide[None, :], out)


@case("*i32; *i32", BLOCK=64)
@triton.jit
def assembly(x, out, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    text: tl.constexpr = 'add.s32 $0, $1, 1; // } "in", \\ it'
    more = tl.inline_asm_elementwise(text, "=r,r", [tl.load(x + lanes)], dtype=tl.int32, is_pure=True, pack=1)
    tl.store(out + lanes, more)


@case("*fp32; i32", options={"debug": True}, BLOCK=64)
@triton.jit
def said(x, n, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    value = tl.load(x + lanes)
    tl.assume(n > 0)
    tl.device_assert(value > 0, 'not "positive": {x} \\ // -> : loc("x")')
    tl.device_print("x is", value, n, hex=True)
    tl.device_print("hello")
    tl.debug_barrier()
    tl.store(x + lanes, value + n * n)


@case("*fp32; *fp64; *i32", BLOCK=64)
@triton.jit
def functions(x, d, i, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    a, b, k = tl.load(x + lanes), tl.load(d + lanes), tl.load(i + lanes)
    a = libdevice.tanh(a) + libdevice.pow(a, a) + libdevice.fast_expf(a)
    b = libdevice.log1p(b) + tl.exp(b)
    k = libdevice.popc(k) + tl.umulhi(k.to(tl.uint32), 77).to(tl.int32)
    a += tl.sin(a) + tl.cos(a) + tl.exp2(a) + tl.log(a) + tl.log2(a) + tl.sqrt(a) + tl.rsqrt(a) + tl.erf(a)
    a += tl.floor(a) + tl.ceil(a) + tl.abs(a) + tl.fma(a, a, a) + tl.sqrt_rn(a) + tl.div_rn(a, 3.0) + tl.fdiv(a, a)
    a += tl.clamp(a, 0.0, 1.0) + tl.maximum(a, 2.0) + tl.minimum(a, 3.0, propagate_nan=tl.PropagateNan.ALL)
    a += tl.minimum(a, 5.0) + tl.maximum(a, -5.0, propagate_nan=tl.PropagateNan.ALL) - (-a)
    a += tl.sigmoid(a) + tl.softmax(a)
    tl.store(x + lanes, a % 3.0)
    tl.store(d + lanes, b)
    tl.store(i + lanes, tl.abs(k) + tl.cdiv(k, 3))


@case("*i32; *u16; *i64; *i1; i8", BLOCK=64)
@triton.jit
def integers(x, u, w, f, n, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    a, b, c = tl.load(x + lanes), tl.load(u + lanes), tl.load(w + lanes)
    tl.store(x + lanes, (a // 3 + a % 5 - (a >> 2) + (a << 3) * ~a) ^ (a & 12 | 3) | -a)
    tl.store(u + lanes, b // 3 + b % 7 + (b >> 1) + tl.maximum(b, 9) + tl.minimum(b, 4))
    tl.store(w + lanes, c * a + b + n + tl.maximum(c, 1) - tl.minimum(c, -1))
    tl.store(f + lanes, (a < b) | (c >= 3) & (a != 2) ^ (b > 3))
    tl.store(f, not (n > 3 and n < 7 or n == 9))


@case("*fp32; *fp16; *bf16; *fp8e5; *i8; *u32", BLOCK=64)
@triton.jit
def conversions(single, half, brain, small, byte, word, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    value = tl.load(single + lanes)
    tl.store(half + lanes, value.to(tl.float16, fp_downcast_rounding="rtz"))
    tl.store(brain + lanes, value + tl.load(half + lanes))
    tl.store(small + lanes, value.to(tl.float8e5))
    tl.store(byte + lanes, tl.load(small + lanes).to(tl.float32).to(tl.int8))
    bits = value.to(tl.uint32, bitcast=True) + value.to(tl.uint32)
    tl.store(word + lanes, bits + tl.load(byte + lanes).to(tl.uint8).to(tl.uint32))
    tl.store(single + lanes, bits.to(tl.float32) + lanes.to(tl.float32).to(tl.float64) + float("inf"))
    tl.store(half + lanes, (lanes < 3).to(tl.float16) * float("nan") - 1e-7)
    address = single.to(tl.int64) + 16
    tl.store(address.to(tl.pointer_type(tl.float32)), 1.0)


@case("*fp32; *fp32; *i32", ROWS=16, COLUMNS=32)
@triton.jit
def shapes(x, out, counts, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    lanes = tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    value = tl.load(x + lanes)
    one, two = tl.split(tl.join(value, value * 2))
    turned = tl.permute(one.reshape([4, 4, COLUMNS]), 2, 0, 1).reshape([COLUMNS, ROWS]).trans()
    flat = tl.ravel(two, can_reorder=True)
    both = tl.cat(flat, flat, can_reorder=True)
    woven = tl.interleave(value, value).reshape([2, ROWS, COLUMNS])
    mixed = tl.gather(value, lanes % ROWS, 0) + tl.flip(value, 1) + tl.sum(woven, 0)
    tl.store(out + lanes, turned + mixed)
    tl.store(out + tl.arange(0, 2 * ROWS * COLUMNS), both)
    whole = tl.ravel(lanes)
    tl.store(counts + tl.arange(0, 16), tl.histogram(whole, 16) + tl.histogram(whole, 16, mask=whole < 9))
    tl.store(out + tl.arange(0, 1), tl.full([1], 2.5, tl.float32) + tl.rand(3, tl.arange(0, 1)))


@case("*fp32; i32; *i64", BLOCK=64)
@triton.jit
def promises(x, n, table, BLOCK: tl.constexpr):
    lanes = tl.max_contiguous(tl.multiple_of((tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)) % n, BLOCK), BLOCK)
    lanes = tl.max_constancy(lanes, 1)
    where = tl.load(table + tl.num_programs(2)).to(tl.pointer_type(tl.float32))
    tl.store(x + lanes, tl.load(where + lanes, volatile=True))


@triton.jit
def lower(a, b):
    if a < b:
        return a, b
    return b, a


@case("*i32; *i32", only_if=hasattr(tl, "map_elementwise"), BLOCK=32)
@triton.jit
def mapped(x, y, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    small, large = tl.map_elementwise(lower, tl.load(x + lanes), tl.load(y + lanes))
    tl.store(x + lanes, small)
    tl.store(y + lanes, large)
