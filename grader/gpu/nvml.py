"""The GPUs of this machine as NVML, the management library of NVIDIA's driver, reports them: no context is made.

What NVML does not know, above all what a kernel may use of a GPU, `grader/gpu/device.py` asks the driver itself.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from grader.gpu.models import DEFAULT_TARGET, MODELS

LIBRARY = "libnvidia-ml.so.1"  # it comes with the driver, as nvidia-smi does, which reads it
SM_CLOCK = 1  # NVML_CLOCK_SM: of the multiprocessors
LIMIT = 10.0  # seconds for an answer: a driver may hang. Clocks are read in a process that has a limit of its own
THROTTLED = 0x8 | 0x40 | 0x80 | 0x20  # hardware slowdown, its thermal and power-brake forms, software thermal slowdown

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class NvmlGpu:
    """A GPU of this machine, with its index among them. `uuid`: GPU-xxxxxxxx-xxxx-..."""

    index: int
    uuid: str
    name: str
    compute_capability: tuple[int, int]  # major, minor


def gpus() -> list[NvmlGpu]:
    """Returns the GPUs of this machine, of which CUDA_VISIBLE_DEVICES hides none; [] where NVML does not answer.

    A GPU that NVML counts and tells nothing of, because it is lost or not allowed here, is left out.
    """
    told = [_answer(partial(_gpu, index), None) for index in range(_answer(lambda nvml: nvml.nvmlDeviceGetCount(), 0))]
    return [gpu for gpu in told if gpu is not None]


def gpu_here() -> bool:
    """Returns whether this machine has a GPU."""
    return bool(gpus())


def target_here() -> str:
    """Returns the target of the first GPU in this machine, such as "sm_90".

    Returns DEFAULT_TARGET where there is no GPU, or where MODELS lacks it.
    """
    target = next(("sm_{}{}".format(*gpu.compute_capability) for gpu in gpus()), "")
    return target if target in MODELS else DEFAULT_TARGET


def driver_here() -> str:
    """Returns the version of the GPU's driver; "" where NVML does not answer."""
    return _answer(lambda nvml: nvml.nvmlSystemGetDriverVersion(), "")


def utilization() -> list[int]:
    """Returns the share of the last second in which a kernel ran, in percent, of each GPU that reports it."""
    shares = [_answer(partial(_utilization, gpu.index), None) for gpu in gpus()]
    return [share for share in shares if share is not None]


class Clocks:
    """The clock of a GPU's multiprocessors and the reasons that hold it down.

    Where NVML does not answer, or this GPU does not report a value, the methods return None or "". An instance keeps
    NVML open until its process ends: a reading between two kernels takes microseconds.
    """

    def __init__(self, uuid: str):
        self._nvml = _opened()
        if self._nvml is None:
            return
        try:
            self._handle = self._nvml.nvmlDeviceGetHandleByUUID(uuid)
        except self._nvml.NVMLError:
            self._nvml = None

    def megahertz(self) -> float | None:
        return self._read("nvmlDeviceGetClockInfo", SM_CLOCK)

    def most_megahertz(self) -> float | None:
        """Returns the highest frequency that the clock may reach."""
        return self._read("nvmlDeviceGetMaxClockInfo", SM_CLOCK)

    def complaint(self) -> str:
        """Returns the reason why a time measured now would be worth nothing; "" if there is none."""
        reasons = self._read("nvmlDeviceGetCurrentClocksEventReasons")
        return "the GPU is throttled: too hot, or short of power" if int(reasons or 0) & THROTTLED else ""

    def _read(self, function: str, *arguments: int) -> float | None:
        if self._nvml is None:
            return None
        try:
            return float(getattr(self._nvml, function)(self._handle, *arguments))
        except self._nvml.NVMLError:
            return None


def _answer(question: Callable[[Any], Answer], otherwise: Answer) -> Answer:
    """Returns what `question` gets from the module pynvml; `otherwise` where NVML does not answer in time."""
    answer: Future[Answer] = Future()

    def ask() -> None:
        try:
            answer.set_result(_answer_or(question, otherwise))
        except BaseException as error:  # raised where the answer is waited for
            answer.set_exception(error)

    threading.Thread(target=ask, daemon=True).start()  # Python's end would wait for a thread of an executor
    try:
        return answer.result(LIMIT)
    except TimeoutError:
        return otherwise


def _answer_or(question: Callable[[Any], Answer], otherwise: Answer) -> Answer:
    nvml = _opened()
    if nvml is None:
        return otherwise
    try:
        return question(nvml)
    except nvml.NVMLError:
        return otherwise
    finally:
        nvml.nvmlShutdown()  # NVML counts: it stays open for the Clocks of this process


def _opened() -> Any | None:
    """Opens NVML and returns the module pynvml; None where there is no driver, or NVML is not allowed here.

    Without a driver pynvml is not imported, which takes 40 ms. A notebook's first cell asks before it is installed.
    """
    try:
        ctypes.CDLL(LIBRARY)
        import pynvml
    except (OSError, ImportError):
        return None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return None
    return pynvml


def _gpu(index: int, nvml: Any) -> NvmlGpu | None:
    handle = nvml.nvmlDeviceGetHandleByIndex(index)
    major, minor = nvml.nvmlDeviceGetCudaComputeCapability(handle)
    return NvmlGpu(index, nvml.nvmlDeviceGetUUID(handle), nvml.nvmlDeviceGetName(handle), (major, minor))


def _utilization(index: int, nvml: Any) -> int | None:
    return nvml.nvmlDeviceGetUtilizationRates(nvml.nvmlDeviceGetHandleByIndex(index)).gpu
