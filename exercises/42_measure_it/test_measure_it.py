"""42 · Measure it: what a function that measures must tell of kernels on simulated GPUs, within 2 %."""

import pytest

from grader import Exercise

exercise = Exercise.that_measures("seconds_of", minutes=40, presumes=("07_row_sum",))


@pytest.mark.core
def test_a_kernel_of_about_25_ms(measures):
    measures(20e-3, 30e-3)


@pytest.mark.core
def test_a_kernel_of_about_1_ms(measures):
    measures(0.7e-3, 1.5e-3, copy=1 << 32)


@pytest.mark.core
def test_a_kernel_of_about_30_us(measures):
    measures(20e-6, 50e-6)


@pytest.mark.core
def test_a_kernel_of_about_4_us(measures):
    measures(3e-6, 5e-6)


@pytest.mark.points(2)
def test_kernels_of_any_length(measures):
    measures(3e-6, 30e-3, devices=3)


@pytest.mark.points(2)
def test_short_kernels_on_several_gpus(measures):
    measures(3e-6, 10e-6, devices=3)
