"""NVML of a machine with these GPUs, for a machine without: the functions of pynvml that the grader calls.

It stands in for the package too: with the folder of a copy named pynvml.py on the path of imports.
"""

from __future__ import annotations

from types import SimpleNamespace


class NVMLError(Exception):
    """The error of every call that NVML refuses."""


GPUS = [("GPU-aaa1", "NVIDIA T4", (7, 5), 97), ("GPU-bbb2", "NVIDIA L4", (8, 9), None)]
opened = 0  # by nvmlInit, and not yet closed


def nvmlInit() -> None:
    global opened
    opened += 1


def nvmlShutdown() -> None:
    global opened
    opened -= 1


def nvmlDeviceGetCount() -> int:
    return len(GPUS)


def nvmlDeviceGetHandleByIndex(index: int) -> int:
    return index


def nvmlDeviceGetHandleByUUID(uuid: str) -> int:
    return [found for found, *_ in GPUS].index(uuid)


def nvmlDeviceGetUUID(handle: int) -> str:
    return GPUS[handle][0]


def nvmlDeviceGetName(handle: int) -> str:
    return GPUS[handle][1]


def nvmlDeviceGetCudaComputeCapability(handle: int) -> list[int]:
    return list(GPUS[handle][2])


def nvmlDeviceGetUtilizationRates(handle: int) -> SimpleNamespace:
    if GPUS[handle][3] is None:
        raise NVMLError("Not Supported")
    return SimpleNamespace(gpu=GPUS[handle][3])


def nvmlSystemGetDriverVersion() -> str:
    return "580.65.06"


def nvmlDeviceGetClockInfo(handle: int, kind: int) -> int:
    return 1590


def nvmlDeviceGetMaxClockInfo(handle: int, kind: int) -> int:
    raise NVMLError("Not Supported")


def nvmlDeviceGetCurrentClocksEventReasons(handle: int) -> int:
    return 0x20
