"""Says in a few lines what can be judged on this machine: the first cell of a notebook. Nothing is measured."""

from __future__ import annotations

import importlib.metadata
import platform

from grader.doctor.doctor import examine_judge, fence_here, judged_here
from grader.doctor.gpu_probe import FoundGpu
from grader.explain.fence_words import is_whole, told
from grader.gpu.device import NO_GPU, Device, device_here


def main() -> int:
    """Prints the versions, the GPU and what can be judged here; returns 0.

    Prints what `course doctor` found and returns 1 where nothing can be judged.
    """
    lines: list[str] = []
    if not examine_judge(lines.append):
        print("\n".join(lines))
        print("Exercises cannot be judged here until the lines marked with ! are mended.")
        return 1
    device, fence = device_here(), fence_here()
    versions = [f"{name} {importlib.metadata.version(name)}" for name in ("torch", "triton", "numpy", "pytest")]
    print(f"Here: Python {platform.python_version()}, {', '.join(versions)}, {_gpu(device)}.")
    if not is_whole(fence):
        print("\n".join(said.text for said in told(fence)))
    gpu = FoundGpu(here=device != NO_GPU, usable=isinstance(device, Device), trusted=True)  # nothing is measured
    print("\n".join(judged_here(gpu)))
    return 0


def _gpu(device: Device | str) -> str:
    if device == NO_GPU:
        return "no GPU"
    return f"a GPU that cannot be used ({device})" if isinstance(device, str) else device.name


if __name__ == "__main__":
    raise SystemExit(main())
