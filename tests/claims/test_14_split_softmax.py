"""Lesson 14: the launch that has a barrier between programs is an option of Triton's."""

from __future__ import annotations

from dataclasses import fields

from triton.backends.nvidia.compiler import CUDAOptions


def test_a_launch_may_be_cooperative_and_is_not_unless_asked():
    (option,) = (field for field in fields(CUDAOptions) if field.name == "launch_cooperative_grid")
    assert option.default is False
