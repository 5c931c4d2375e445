"""Lesson 19: what the autotuner keeps, and where."""

from __future__ import annotations

import inspect

import triton
from triton.runtime.autotuner import Autotuner


def test_choices_are_kept_on_disk_only_where_that_is_asked_for():
    assert inspect.signature(triton.autotune).parameters["cache_results"].default is False


def test_a_configuration_with_a_pre_hook_is_tried_anew():
    """The tuner runs its trials (`bench_fn`), and looks for no file."""
    hooked = triton.Config({}, pre_hook=lambda arguments: None)
    tried = []
    kept = Autotuner.check_disk_cache(None, ("a key",), [hooked], lambda: tried.append(1))
    assert tried == [1] and kept is False
