"""Right: the matrix is one long vector; row and column of an element are found by division. Generated pointwise kernels
do it so."""

import triton
import triton.language as tl


@triton.jit
def swiglu_backward_kernel(
    dz_ptr, gate_ptr, up_ptr, z_ptr, dgate_ptr, dup_ptr, count, N, sdm, sdn, sgm, sgn, sum_, sun, BLOCK: tl.constexpr
):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = place < count
    row, col = place // N, place % N
    dz = tl.load(dz_ptr + row * sdm + col * sdn, mask).to(tl.float32)
    gate = tl.load(gate_ptr + row * sgm + col * sgn, mask).to(tl.float32)
    up = tl.load(up_ptr + row * sum_ + col * sun, mask).to(tl.float32)
    s = 1.0 / (1.0 + tl.exp(-gate))
    tl.store(z_ptr + place, gate * s * up, mask)
    tl.store(dgate_ptr + place, dz * up * (s + gate * s - gate * s * s), mask)
    tl.store(dup_ptr + place, dz * gate * s, mask)


def swiglu_backward(dz, gate, up):
    M, N = gate.shape
    z, dgate, dup = (gate.new_empty((M, N)) for _ in range(3))
    swiglu_backward_kernel[lambda meta: (triton.cdiv(M * N, meta["BLOCK"]),)](
        dz, gate, up, z, dgate, dup, M * N, N, *dz.stride(), *gate.stride(), *up.stride(), BLOCK=512
    )
    return z, dgate, dup
