"""The GPUs that a submission can be compiled for where no GPU is present."""

from __future__ import annotations

from dataclasses import dataclass

from grader.wire.messages import GpuModel

# Limits: CUDA C++ Programming Guide, table of technical specifications per compute capability. Multiprocessors, L2 and
# memory: the vendor's datasheets and architecture papers.
_100, _164, _228 = (101376, 102400), (166912, 167936), (232448, 233472)  # bytes of shared memory: per block, in all
MODELS = {
    "sm_75": GpuModel("NVIDIA T4", 75, 40, 65536, 65536, 4 << 20, 16 << 30),
    "sm_80": GpuModel("NVIDIA A100", 80, 108, *_164, 40 << 20, 80 << 30),
    "sm_86": GpuModel("NVIDIA A10", 86, 72, *_100, 6 << 20, 24 << 30),
    "sm_89": GpuModel("NVIDIA L4", 89, 58, *_100, 48 << 20, 24 << 30),
    "sm_90": GpuModel("NVIDIA H200", 90, 132, *_228, 60 << 20, 141 << 30),
    "sm_100": GpuModel("NVIDIA B200", 100, 148, *_228, 126 << 20, 180 << 30),
    "sm_103": GpuModel("NVIDIA B300", 103, 160, *_228, 126 << 20, 288 << 30),
    "sm_120": GpuModel("NVIDIA GeForce RTX 5090", 120, 170, *_100, 96 << 20, 32 << 30),
}


@dataclass(frozen=True)
class AmdModel:
    """An AMD GPU that kernels can be compiled for.

    `lanes`: of a wavefront, which is to it what a warp is to NVIDIA. `shared`: bytes of LDS that a program may use.
    """

    target: str
    name: str
    lanes: int
    shared: int


# Lanes and LDS: the instruction set manuals of CDNA3, CDNA4, RDNA3 and RDNA4. A work-group of RDNA may use 64 KiB of
# the 128 that two compute units share.
AMD = {
    model.target: model
    for model in (
        AmdModel("gfx942", "AMD Instinct MI300X", 64, 64 << 10),
        AmdModel("gfx950", "AMD Instinct MI355X", 64, 160 << 10),
        AmdModel("gfx1100", "AMD Radeon RX 7900 XTX", 32, 64 << 10),
        AmdModel("gfx1201", "AMD Radeon RX 9070 XT", 32, 64 << 10),
    )
}
DEFAULT_TARGET = "sm_90"
DEFAULT_MODEL = MODELS[DEFAULT_TARGET]
