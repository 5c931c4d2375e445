"""NVML reports the GPUs of this machine: the target to compile for, how busy they are, and their clocks."""

from __future__ import annotations

import sys
import threading

import pytest

from grader.gpu import nvml
from tests.gpu import fake_nvml
from tests.waiting import NEVER, until


@pytest.fixture
def two_gpus(monkeypatch):
    """A machine with a T4 and an L4."""
    monkeypatch.setattr(nvml, "LIBRARY", None)  # the program itself, which is always there
    monkeypatch.setitem(sys.modules, "pynvml", fake_nvml)
    return fake_nvml


@pytest.fixture
def refused(two_gpus, monkeypatch):
    """A machine whose NVML opens, and refuses every question."""

    def refuse(*_):
        raise fake_nvml.NVMLError("Unknown Error")

    for name in [name for name in vars(fake_nvml) if name.startswith(("nvmlDevice", "nvmlSystem"))]:
        monkeypatch.setattr(fake_nvml, name, refuse)


@pytest.mark.parametrize(
    "capability, target",
    [((8, 0), "sm_80"), ((9, 0), "sm_90"), ((10, 0), "sm_100"), ((7, 5), "sm_75"), ((6, 1), "sm_90")],
)
def test_the_target_is_that_of_the_first_gpu(two_gpus, monkeypatch, capability, target):
    monkeypatch.setattr(fake_nvml, "GPUS", [("GPU-ccc3", "a GPU", capability, 0), *fake_nvml.GPUS])
    assert nvml.target_here() == target


def test_gpus_are_told_in_their_order(two_gpus):
    first, second = nvml.gpus()
    assert (first.name, first.compute_capability) == ("NVIDIA T4", (7, 5))
    assert (second.index, second.uuid) == (1, "GPU-bbb2")
    assert nvml.gpu_here() and nvml.driver_here() == "580.65.06"


def test_a_gpu_that_does_not_report_how_busy_it_is_is_left_out(two_gpus):
    assert nvml.utilization() == [97]


def test_a_clock_that_is_not_reported_is_not_known(two_gpus):
    clocks = nvml.Clocks("GPU-aaa1")
    assert clocks.megahertz() == 1590.0 and clocks.most_megahertz() is None
    assert clocks.complaint() == "the GPU is throttled: too hot, or short of power"


def test_nvml_is_closed_after_each_question(two_gpus):
    before = fake_nvml.opened
    nvml.gpus(), nvml.driver_here(), nvml.utilization()
    assert fake_nvml.opened == before


def is_unknown() -> bool:
    clocks = nvml.Clocks("GPU-aaa1")
    told = (nvml.gpus(), nvml.utilization(), nvml.driver_here(), clocks.complaint())
    return not any(told) and clocks.megahertz() is clocks.most_megahertz() is None and nvml.target_here() == "sm_90"


def test_where_nvml_refuses_no_gpu_is_known(refused):
    assert is_unknown()


def test_a_clock_that_is_refused_later_is_not_known(two_gpus, monkeypatch):
    clocks = nvml.Clocks("GPU-aaa1")

    def lost(*_):
        raise fake_nvml.NVMLError("GPU is lost")

    monkeypatch.setattr(fake_nvml, "nvmlDeviceGetClockInfo", lost)
    monkeypatch.setattr(fake_nvml, "nvmlDeviceGetCurrentClocksEventReasons", lost)
    assert clocks.megahertz() is None and clocks.complaint() == ""


def test_where_nvml_does_not_open_no_gpu_is_known(two_gpus, monkeypatch):
    def no_driver():
        raise fake_nvml.NVMLError("Driver Not Loaded")

    monkeypatch.setattr(fake_nvml, "nvmlInit", no_driver)
    assert is_unknown()


def test_a_driver_that_hangs_is_not_waited_for(two_gpus, monkeypatch):
    before, goes_on = fake_nvml.opened, threading.Event()
    monkeypatch.setattr(nvml, "LIMIT", 0.1)
    monkeypatch.setattr(fake_nvml, "nvmlDeviceGetCount", lambda: goes_on.wait(NEVER) and 2)
    assert nvml.gpus() == []
    goes_on.set()
    until(lambda: fake_nvml.opened == before)


def test_without_a_driver_pynvml_is_not_imported(monkeypatch):
    monkeypatch.setattr(nvml, "LIBRARY", "libnvidia-ml.so.none")
    monkeypatch.setitem(sys.modules, "pynvml", None)  # an import would fail
    assert is_unknown()


def test_without_pynvml_no_gpu_is_known(monkeypatch):
    monkeypatch.setattr(nvml, "LIBRARY", None)
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert is_unknown()


@pytest.mark.skipif(not nvml.gpu_here(), reason="needs a GPU")
def test_the_driver_and_nvml_tell_of_the_same_gpu():
    from grader.gpu.device import Device, driver_device

    device, gpu = driver_device(), nvml.gpus()[0]
    assert isinstance(device, Device)
    assert (device.uuid, device.name) == (gpu.uuid, gpu.name)
    assert device.model.target == nvml.target_here()
    clocks = nvml.Clocks(device.uuid)
    assert (clocks.megahertz() or 0) > 100 and clocks.complaint() == ""
