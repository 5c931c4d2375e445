"""What torch puts around the file's functions: a call of it becomes a call of the function itself, which is watched.

torch.compile makes faster code of a host function, which gives the same results. torch.library.custom_op and triton_op
make a host function an operator, so that torch.compile takes it as a whole; on tensors without memory torch would carry
out the operator's fake instead, which launches nothing. What torch does beside that is done here as it does it: an
operator's formula becomes a function of torch's autograd, and a fake is called where an exercise asks for it.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch._library import triton as triton_operators
from torch._library.custom_ops import OPDEFS, CustomOpDef, custom_op
from torch._library.utils import is_functional_schema
from torch._ops import OpOverload, OpOverloadPacket
from torch.overrides import _get_current_function_mode_stack

from grader.child.learner import Rejected
from grader.child.triton_api import Autotuner
from grader.front_end.triton_text_api import JITFunction
from grader.wire.messages import FAKE_OF

NAME_OF: dict[type, Callable[[Any], str]] = {  # the name of an operator of each kind
    CustomOpDef: lambda operator: operator._qualname,
    OpOverloadPacket: lambda packet: packet._qualified_op_name,
    OpOverload: lambda operation: operation._schema.name,
}
NO_FORMULA = (
    "Trying to backward through {name} but no autograd formula was registered. Please use register_autograd to add one."
)


def look_through() -> None:
    """Makes each operator and each compiled function call the file's own function, for the rest of this process."""
    torch.compile = _not_compiled
    for kind, name_of in NAME_OF.items():
        kind.__call__ = _watched(kind.__call__, name_of)  # type: ignore[method-assign]  # torch's own is replaced
    for module in (torch.library, triton_operators):
        # Without what only torch.compile needs, and imports for a second.
        vars(module).update(triton_op=_triton_op, wrap_triton=_Wrapped)


def operator_entry(name: str, arguments: int) -> Callable[..., Any]:
    """Returns what calls the operator of this name, or its fake where FAKE_OF begins it. Raises Rejected.

    With an argument more than the operator needs, the first is the gradient of its result: then the gradients of its
    arguments come behind the result, by the operator's formula.
    """
    operator = OPDEFS.get(name.removeprefix(FAKE_OF))
    if operator is None:
        raise Rejected("no-operator", name.removeprefix(FAKE_OF))
    schema = operator._opoverload._schema
    if not is_functional_schema(schema, allow_valid_view=True):
        raise Rejected("declared-mutation", str(schema))
    needed = [one for one in schema.arguments if not one.has_default_value()]
    differentiated = arguments == len(needed) + 1
    if differentiated and operator._backward_fn is None:
        raise Rejected("no-formula", operator._qualname)
    called = _with_gradients(operator) if differentiated else operator
    return _Fakes.instead_in(called) if name.startswith(FAKE_OF) else called


def _with_gradients(operator: CustomOpDef) -> Callable[..., Any]:
    def called(gradient: torch.Tensor, *args: Any) -> Any:
        leaves = [one.detach().requires_grad_() if isinstance(one, torch.Tensor) else one for one in args]
        tensors = [one for one in leaves if isinstance(one, torch.Tensor)]
        result = operator(*leaves)
        if not isinstance(result, torch.Tensor):
            return result
        if len(tensors) == len(leaves) and len({one.shape for one in tensors}) == 1:
            operator(*[leaves[0] for _ in leaves])  # as a model calls it again before it goes back: each keeps its own
        gradients = torch.autograd.grad(result, tensors, gradient, allow_unused=_Fakes.are_called)
        return result.detach(), *(_Fakes.gradients if _Fakes.are_called else gradients)

    return called


class _Fakes:
    """The state of a call that goes as torch.compile looks at it, with fakes in the place of operators.

    are_called: such a call is under way. gradients: what a formula gave in it, before autograd makes it fit.
    """

    are_called = False
    gradients: tuple[Any, ...] = ()

    @staticmethod
    def instead_in(call: Callable[..., Any]) -> Callable[..., Any]:
        """Returns the same call with fakes in the place of all operators."""

        def called(*args: Any) -> Any:
            _Fakes.are_called, _Fakes.gradients = True, ()
            try:
                return call(*args)
            finally:
                _Fakes.are_called = False

        return called


def _body(operator: CustomOpDef) -> Callable[..., Any]:
    """Returns what a call of the operator carries out. Raises Rejected for a fake that nobody has registered."""
    if not _Fakes.are_called:
        return operator._init_fn
    if operator._abstract_fn is None:
        raise Rejected("no-fake", operator._qualname)
    return operator._abstract_fn


def _not_compiled(model: Any = None, **options: Any) -> Any:
    """Replaces torch.compile, as a function and as a decorator with options."""
    return (lambda function: function) if model is None else model


def _triton_op(name: str, fn: Callable[..., Any] | None = None, /, *, mutates_args: Any, **options: Any) -> Any:
    """Replaces torch.library.triton_op: the function is its own fake, as there."""

    def decorated(function: Callable[..., Any]) -> CustomOpDef:
        operator: CustomOpDef = custom_op(name, function, mutates_args=mutates_args, **options)
        operator._abstract_fn = function
        return operator

    return decorated if fn is None else decorated(fn)


class _Wrapped:
    """Replaces torch.library.wrap_triton: a kernel that torch.compile knows, which a fake does not launch."""

    def __init__(self, kernel: Any) -> None:
        if not isinstance(kernel, JITFunction | Autotuner):
            raise RuntimeError("wrap_triton only works on functions annotated with triton.jit or triton.autotune")
        self._kernel = kernel

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        return (lambda *args, **kwargs: None) if _Fakes.are_called else self._kernel[grid]


def _watched(call: Callable[..., Any], name_of: Callable[[Any], str]) -> Callable[..., Any]:
    def called(operation: Any, /, *args: Any, **kwargs: Any) -> Any:
        own = OPDEFS.get(name_of(operation))
        if own is None or own._init_fn.__module__.startswith("torch."):  # torch defines some of its own like this
            return call(operation, *args, **kwargs)
        bound = inspect.signature(own._init_fn).bind(*args, **kwargs)
        bound.apply_defaults()  # as torch hands arguments on: by position
        if torch.is_grad_enabled() and torch._C._any_requires_grad(*bound.args, **bound.kwargs):
            return _differentiable(own).apply(*bound.args, **bound.kwargs)
        return _body(own)(*bound.args, **bound.kwargs)

    return called


def _differentiable(operator: CustomOpDef) -> type[torch.autograd.Function]:
    """Returns the function of autograd that torch makes of an operator and its formula.

    While torch.autograd.grad runs, torch has its function modes off; a formula is the file's, and sees what they show.
    """
    modes = _get_current_function_mode_stack()

    def forward(ctx: Any, *args: Any) -> Any:
        result = _body(operator)(*args)
        if operator._setup_context_fn is not None:
            operator._setup_context_fn(ctx=ctx, inputs=args, output=result)
        return result

    def backward(ctx: Any, *gradients: Any) -> Any:
        if operator._backward_fn is None:
            raise RuntimeError(NO_FORMULA.format(name=operator._qualname))
        with contextlib.ExitStack() as stack:
            for mode in () if _get_current_function_mode_stack() else modes:
                stack.enter_context(mode)
            given = operator._backward_fn(ctx, *gradients)
        if not _Fakes.are_called:
            return given
        several = given if isinstance(given, tuple) else (given,)
        _Fakes.gradients = tuple(one for one, needed in zip(several, ctx.needs_input_grad) if needed)
        return tuple(None for _ in ctx.needs_input_grad)

    name = f"GeneratedBackwardFor_{operator._namespace}_{operator._name}"
    return type(
        name, (torch.autograd.Function,), {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    )
