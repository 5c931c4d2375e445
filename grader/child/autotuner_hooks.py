"""An autotuned kernel's trial runs: the key under which Triton keeps the choice, and the hooks that it calls.

A configuration is chosen in the first call with a key, by running each on the call's own tensors; later calls with this
key run the chosen configuration at once, and no hook but the configuration's own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from grader.child.triton_api import Autotuner, Config
from grader.wire.frames import JsonObject

MOST_VALUE = 100  # characters of a value in a key


def described(
    autotuner: Autotuner,
    config: Config,
    kwargs: dict[str, Any],
    steps_of: Callable[[Callable[[], None]], list[JsonObject]],
) -> JsonObject:
    """Returns what Triton does around the trial runs, as wire.recorded_parts.Tuning reads it.

    `steps_of`: returns the steps that some work leads to.
    """
    named = {**autotuner.nargs, **kwargs, **config.all_kwargs()}
    arguments = {**autotuner.nargs, **kwargs}
    own_hook = autotuner.user_defined_pre_hook

    def clear() -> None:
        for name in autotuner.reset_to_zero:
            if named.get(name) is not None:
                named[name].zero_()

    def after() -> None:
        if autotuner.user_defined_post_hook:
            autotuner.post_hook(named, exception=None)
        autotuner.pre_hook(named, reset_only=True) if own_hook else clear()

    # If the file sets a pre_hook, Triton keeps no copies to put back.
    return {
        "key": [_part(name, autotuner, arguments) for name in autotuner.keys],
        "listed": len(autotuner.configs),
        "restored": [] if own_hook or autotuner.user_defined_post_hook else list(autotuner.restore_value),
        "zeroed": [] if own_hook else list(autotuner.reset_to_zero),
        "before": steps_of(lambda: autotuner.pre_hook(named)) if own_hook else steps_of(clear),
        "after": steps_of(after),
        "fixed_grid": not callable(kwargs.get("grid")),
    }


def admitted_before(autotuner: Autotuner, kwargs: dict[str, Any], configs: list[Config]) -> list[Config]:
    """Returns configurations that pruning left to an earlier call with this key, and takes away from this one.

    Had that call been the first with its key, its choice, which may be any of these, would be run now.
    """
    arguments = {name: value for name, value in {**autotuner.nargs, **kwargs}.items() if name in autotuner.arg_names}
    values = [arguments[name] for name in autotuner.keys if name in arguments]
    dtypes = [str(value.dtype) for value in arguments.values() if hasattr(value, "dtype")]
    by_key = vars(autotuner).setdefault("admitted_by_key", {})
    admitted = by_key.setdefault((*values, *dtypes), [])
    left_over = [config for config in admitted if config not in configs]
    admitted += [config for config in configs if config not in admitted]
    return left_over


def _part(name: str, autotuner: Autotuner, arguments: dict[str, Any]) -> JsonObject:
    if name not in autotuner.arg_names:
        return {"name": name, "kind": "unknown"}
    value = arguments.get(name)
    if isinstance(value, torch.Tensor):
        return {"name": name, "kind": "tensor"}
    return {"name": name, "kind": "value", "value": repr(value)[:MOST_VALUE]}
