"""What torch puts around the file's functions: a call of it becomes a call of the function itself, which is watched.

torch.compile makes faster code of a host function, which gives the same results. torch.library.custom_op and triton_op
make a host function an operator, so that torch.compile takes it as a whole; on tensors without memory torch would carry
out the operator's fake instead, which launches nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch._library import triton as triton_operators
from torch._library.custom_ops import OPDEFS, CustomOpDef, custom_op
from torch._ops import OpOverload, OpOverloadPacket

NAME_OF: dict[type, Callable[[Any], str]] = {  # the name of an operator of each kind
    CustomOpDef: lambda operator: operator._qualname,
    OpOverloadPacket: lambda packet: packet._qualified_op_name,
    OpOverload: lambda operation: operation._schema.name,
}


def look_through() -> None:
    """Makes each operator and each compiled function call the file's own function, for the rest of this process."""
    torch.compile = _not_compiled
    for kind, name_of in NAME_OF.items():
        kind.__call__ = _watched(kind.__call__, name_of)  # type: ignore[method-assign]  # torch's own is replaced
    for module in (torch.library, triton_operators):
        # Without what only torch.compile needs, and imports for a second.
        vars(module).update(triton_op=custom_op, wrap_triton=lambda kernel: kernel)


def _not_compiled(model: Any = None, **options: Any) -> Any:
    """Replaces torch.compile, as a function and as a decorator with options."""
    return (lambda function: function) if model is None else model


def _watched(call: Callable[..., Any], name_of: Callable[[Any], str]) -> Callable[..., Any]:
    def called(operation: Any, /, *args: Any, **kwargs: Any) -> Any:
        own = OPDEFS.get(name_of(operation))
        if own is None or own._init_fn.__module__.startswith("torch."):  # torch defines some of its own like this
            return call(operation, *args, **kwargs)
        return own._init_fn(*args, **kwargs)

    return called
