"""Operators that a file registers with torch: a call of one becomes a call of the file's function, which is watched.

torch.library.custom_op and triton_op make a host function an operator, so that torch.compile takes it as a whole. On
tensors without memory torch would carry out the operator's fake instead, which launches nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch._library import triton as triton_operators
from torch._library.custom_ops import OPDEFS, CustomOpDef, custom_op
from torch._ops import OpOverload, OpOverloadPacket


def look_through() -> None:
    """Makes each operator of the file call its own function, for the rest of this process."""
    CustomOpDef.__call__ = _watched(CustomOpDef.__call__, lambda operator: operator._qualname)
    OpOverloadPacket.__call__ = _watched(OpOverloadPacket.__call__, lambda packet: packet._qualified_op_name)
    OpOverload.__call__ = _watched(OpOverload.__call__, lambda operation: operation._schema.name)
    for module in (torch.library, triton_operators):
        module.triton_op = custom_op  # without what only torch.compile needs, and imports for a second
        module.wrap_triton = lambda kernel: kernel


def _watched(call: Callable[..., Any], name_of: Callable[[Any], str]) -> Callable[..., Any]:
    def called(operation: Any, /, *args: Any, **kwargs: Any) -> Any:
        own = OPDEFS.get(name_of(operation))
        if own is None or own._init_fn.__module__.startswith("torch."):  # torch defines some of its own like this
            return call(operation, *args, **kwargs)
        return own._init_fn(*args, **kwargs)

    return called
