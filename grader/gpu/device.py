"""The GPU that kernels run on: its model, as the driver reports it, and the peak rates of its datasheet."""

from __future__ import annotations

from dataclasses import dataclass

from grader.gpu.cards import Card, card_named
from grader.gpu.models import MODELS
from grader.gpu.nvml import gpu_here, target_here
from grader.places import command_for
from grader.wire.messages import GpuModel

INSTALL = command_for("gpu")
NO_GPU = "no GPU"


@dataclass(frozen=True)
class Device:
    """A GPU of this machine. `uuid` is written as NVML writes it: GPU-xxxxxxxx-xxxx-..."""

    uuid: str
    model: GpuModel

    @property
    def name(self) -> str:
        return self.model.name

    @property
    def card(self) -> Card | None:
        """The peak rates that NVIDIA states for the GPU; None where they are not known."""
        return card_named(self.name)

    def is_impossible(self, bytes_per_second: float = 0.0, flops: float = 0.0) -> bool:
        """Returns whether the rates exceed what the card can do: then some work was not done, or not timed.

        False where the card's peak rates are not known.
        """
        return self.card is not None and self.card.is_impossible(bytes_per_second, flops)


_told: Device | str | None = None


def use_device(device: Device | str) -> None:
    """Sets the GPU of this process from now on, or the reason why there is none.

    It is for a GPU that other processes own, perhaps on another machine.
    """
    global _told
    _told = device


def device_here() -> Device | str:
    """Returns the first GPU that CUDA shows this process and torch can use; or, in words, why there is none."""
    import torch

    device = driver_device()
    if isinstance(device, Device) and torch.version.cuda is None:
        return f"torch {torch.__version__} is built without CUDA (install torch's CUDA build)"
    return device


def driver_device() -> Device | str:
    """Returns the first GPU that the driver reports, without making a context and without torch.

    Returns the reason, in words, where there is none. A GPU or a reason that `use_device` has set comes first.
    """
    if _told is not None:
        return _told
    try:
        from cuda.bindings import driver
    except ImportError:
        return f"the package cuda-bindings is missing ({INSTALL})" if gpu_here() else NO_GPU
    try:
        error, *_ = driver.cuInit(0)
        count = driver.cuDeviceGetCount()[1] if error == driver.CUresult.CUDA_SUCCESS else 0
    except RuntimeError:  # no driver is installed
        return NO_GPU
    if not count:
        nothing = error in (driver.CUresult.CUDA_SUCCESS, driver.CUresult.CUDA_ERROR_NO_DEVICE)
        return NO_GPU if nothing else f"the driver says {error.name}"
    handle = driver.cuDeviceGet(0)[1]

    def attribute(name: str) -> int:
        constant = getattr(driver.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
        return driver.cuDeviceGetAttribute(constant, handle)[1]

    name = driver.cuDeviceGetName(128, handle)[1].split(b"\0")[0].decode()
    bits = bytes(driver.cuDeviceGetUuid(handle)[1].bytes).hex()
    uuid = "GPU-" + "-".join((bits[:8], bits[8:12], bits[12:16], bits[16:20], bits[20:]))
    model = GpuModel(
        name,
        10 * attribute("COMPUTE_CAPABILITY_MAJOR") + attribute("COMPUTE_CAPABILITY_MINOR"),
        attribute("MULTIPROCESSOR_COUNT"),
        attribute("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"),
        attribute("MAX_SHARED_MEMORY_PER_MULTIPROCESSOR"),
        attribute("L2_CACHE_SIZE"),
        driver.cuDeviceTotalMem(handle)[1],
    )
    return Device(uuid, model)


def model_here(device: Device | str) -> GpuModel:
    """Returns the model to compile for: the device, or for a reason why there is none the model of `target_here`."""
    return device.model if isinstance(device, Device) else MODELS[target_here()]
