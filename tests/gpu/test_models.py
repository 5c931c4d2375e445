"""The GPUs that kernels are compiled for where there is none."""

from __future__ import annotations

from grader.gpu.models import MODELS


def test_models_are_named_by_their_architecture():
    assert all(model.target == name for name, model in MODELS.items())
