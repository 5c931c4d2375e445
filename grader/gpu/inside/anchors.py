"""The anchors, with which a kernel's speed is compared: a copy of the same bytes, or the vendor's matrix product."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from cuda.bindings import driver

from grader.gpu.inside.launcher import checked

VECTOR_BYTES, COPY_THREADS = 16, 256

# Each thread moves one vector of 16 bytes. Of 24 such kernels (1 to 8 vectors, 128 to 1024 threads) none was faster on
# an H200 by more than 0.2 %, nor were torch's element-wise kernels, nor the driver's own copy: 4266 GB/s for 1 GiB.
# It is PTX because the driver compiles PTX for the GPU at hand.
COPY_PTX = b"""
.version 7.0
.target sm_70
.address_size 64
.visible .entry copy(.param .u64 x, .param .u64 z, .param .u64 vectors)
{
  .reg .pred %outside;
  .reg .u32 %block, %size, %thread, %a, %b, %c, %d;
  .reg .u64 %x, %z, %vectors, %i, %lane;
  ld.param.u64 %x, [x];
  ld.param.u64 %z, [z];
  ld.param.u64 %vectors, [vectors];
  cvta.to.global.u64 %x, %x;
  cvta.to.global.u64 %z, %z;
  mov.u32 %block, %ctaid.x;
  mov.u32 %size, %ntid.x;
  mov.u32 %thread, %tid.x;
  mul.wide.u32 %i, %block, %size;
  cvt.u64.u32 %lane, %thread;
  add.u64 %i, %i, %lane;
  setp.ge.u64 %outside, %i, %vectors;
  @%outside ret;
  shl.b64 %i, %i, 4;
  add.u64 %x, %x, %i;
  add.u64 %z, %z, %i;
  ld.global.v4.b32 {%a, %b, %c, %d}, [%x];
  st.global.v4.b32 [%z], {%a, %b, %c, %d};
  ret;
}
\0"""


@dataclass
class Anchor:
    """The work that a kernel's speed is compared with.

    `calls`: each works on its own set of buffers. `inputs`: the tensors of all sets, which a round fills anew.
    """

    calls: list[Callable[[], object]]
    inputs: list[torch.Tensor]
    bytes: int  # read and written by a call
    flops: int


def copy_of(total_bytes: int, slots: int) -> Anchor:
    """Returns copies on `slots` sets of buffers. A call reads and writes `total_bytes` together, a multiple of 32."""
    size = max(total_bytes // 2 // VECTOR_BYTES, 1) * VECTOR_BYTES
    function = _copy_function()
    calls: list[Callable[[], object]] = []
    inputs = []
    for _ in range(slots):
        x, z = (torch.empty(size, dtype=torch.uint8, device="cuda") for _ in range(2))
        calls.append(partial(_copy, function, x, z))
        inputs.append(x[: size // 4 * 4].view(torch.float32))
    return Anchor(calls, inputs, 2 * size, 0)


@functools.cache  # a process takes many samples
def _copy_function():
    return checked(driver.cuModuleGetFunction(checked(driver.cuModuleLoadData(COPY_PTX)), b"copy"))


def _copy(function, x: torch.Tensor, z: torch.Tensor) -> None:
    vectors = x.numel() // VECTOR_BYTES
    values = (x.data_ptr(), z.data_ptr(), vectors), (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64)
    stream = torch.cuda.current_stream().cuda_stream
    checked(
        driver.cuLaunchKernel(function, -(-vectors // COPY_THREADS), 1, 1, COPY_THREADS, 1, 1, 0, stream, values, 0)
    )


def matmul_of(M: int, K: int, N: int, dtype: torch.dtype, slots: int) -> Anchor:
    """Returns products [M, K] @ [K, N] by cuBLAS, through torch, on `slots` sets of buffers."""
    calls: list[Callable[[], object]] = []
    inputs = []
    for _ in range(slots):
        a, b, c = (torch.empty(size, dtype=dtype, device="cuda") for size in ((M, K), (K, N), (M, N)))
        calls.append(partial(torch.mm, a, b, out=c))
        inputs += [a, b]
    return Anchor(calls, inputs, (M * K + K * N + M * N) * dtype.itemsize, 2 * M * N * K)
