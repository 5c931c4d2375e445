"""What leaves a quarter to seven tenths of the time of Triton's interpreter (benchmarks/interpreter_shortcuts.py). Each
replaces functions of Triton's by some that give the same; a release that lacks one, or has it with other parameters, is
only slower."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable
from types import SimpleNamespace

import triton.language as tl
from triton.language.semantic import TritonSemantic
from triton.runtime import interpreter

from grader.child.interpreter import replace

SCALARS = frozenset((tl.dtype, tl.pointer_type))
INTEGERS = frozenset(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)) | {"int1"}
USUAL = INTEGERS | {"fp16", "bf16", "fp32", "fp64"}


def take_shortcuts() -> list[str]:
    """The names of those that were taken."""
    taken = []
    for shortcut in (fast_device_calls, known_types, known_members, plain_values_stay, alike_operands_stay):
        with contextlib.suppress(Exception):
            shortcut()
            taken.append(shortcut.__name__)
    return taken


def _has_parameters(function: Callable, *names: str) -> None:
    if list(inspect.signature(function).parameters) != [*names]:
        raise TypeError(f"{function.__name__} has other parameters")


def fast_device_calls() -> None:
    """Every call of a device function (tl.max, tl.cdiv ...) patches all of triton.language; once a launch is enough."""
    original_patch, original_call = interpreter._patch_lang, interpreter.GridExecutor.__call__
    _has_parameters(original_patch, "fn")
    launch = SimpleNamespace(depth=0, patched=set(), scopes=[])
    modules_in = {}  # id of a function's globals -> (the globals, kept alive; the language modules among them)

    def language_modules(names: dict) -> frozenset[str]:
        if id(names) not in modules_in:
            found = frozenset(module.__name__ for module in (tl, tl.core) if any(v is module for v in names.values()))
            modules_in[id(names)] = (names, found)
        return modules_in[id(names)][1]

    def patch_once(function):
        modules = language_modules(function.__globals__)
        if not modules or not modules <= launch.patched:
            launch.scopes.append(original_patch(function))
            launch.patched |= modules
        return SimpleNamespace(restore=lambda: None)

    def call(executor, *args, **kwargs):
        launch.depth += 1
        try:
            return original_call(executor, *args, **kwargs)
        finally:
            launch.depth -= 1
            if launch.depth == 0:
                while launch.scopes:  # the last patched first, so that the true originals end up in place
                    launch.scopes.pop().restore()
                launch.patched.clear()

    replace(interpreter, "_patch_lang", patch_once)
    replace(interpreter.GridExecutor, "__call__", call)


def known_types() -> None:
    """Each operation works out the shape, name and dtype of its result anew: a quarter of a small program's time. What
    is the same for every tensor of an element type and a shape is worked out once, and copied: a kernel that changed
    the list in a tensor's `shape` would change it for all of them."""
    numpy_dtype, describe, wrap = interpreter._get_np_dtype, tl.block_type.__init__, tl.tensor.__init__
    relative = tl.block_type.with_element_ty
    _has_parameters(numpy_dtype, "tt_dtype")
    _has_parameters(describe, "self", "element_ty", "shape")
    _has_parameters(relative, "self", "scalar_ty")
    _has_parameters(wrap, "self", "handle", "type")
    numpy_dtypes, of_blocks, of_scalars = {}, {}, {}

    def known_numpy_dtype(tt_dtype):
        element = tt_dtype.element_ty if isinstance(tt_dtype, tl.block_type) else tt_dtype
        if element.name not in numpy_dtypes:
            numpy_dtypes[element.name] = numpy_dtype(element)
        return numpy_dtypes[element.name]

    def known_description(block, element_ty, shape):
        usual = isinstance(element_ty, tl.dtype) and isinstance(shape, (list, tl.tuple))
        sizes = [size.value if type(size) is tl.constexpr else size for size in shape] if usual else [None]
        if not {int}.issuperset(map(type, sizes)):
            return describe(block, element_ty, shape)  # which says what is wrong with it
        key = element_ty.name, *sizes
        if key not in of_blocks:
            describe(block, element_ty, shape)
            of_blocks[key] = {**vars(block), "sizes": sizes, "of_tensors": {}}
        vars(block).update(of_blocks[key], element_ty=element_ty)

    def known_relative(block, scalar_ty):
        known = of_blocks.get((scalar_ty.name, *block.__dict__.get("sizes", [None])))
        if known is None:
            return relative(block, scalar_ty)
        made = object.__new__(tl.block_type)
        made.__dict__.update(known, element_ty=scalar_ty)
        return made

    def known_wrapping(tensor, handle, type):
        kind = type.__class__
        if kind is tl.block_type:
            known, dtype = type.__dict__.get("of_tensors"), type.element_ty
        else:
            known, dtype = of_scalars if kind in SCALARS else None, type
        if known:
            fields = tensor.__dict__
            fields.update(known)
            fields["handle"], fields["type"], fields["dtype"] = handle, type, dtype
            return
        wrap(tensor, handle, type)
        if known is not None:
            known.update({**vars(tensor), "handle": None})  # else the first one's data would stay

    replace(interpreter, "_get_np_dtype", known_numpy_dtype)
    replace(tl.block_type, "__init__", known_description)
    replace(tl.block_type, "with_element_ty", known_relative)
    replace(tl.tensor, "__init__", known_wrapping)


def known_members() -> None:
    """Each launch searches all of triton.language for what to patch, and each call of what was patched copies its named
    arguments and passes Triton's own check that there is a `_semantic`. The search is done once; the check is known."""
    _has_parameters(interpreter._patch_builtin, "pkg", "builder", "scope")
    checked = tl.core.builtin(lambda: None).__code__
    semantic = getattr(interpreter, "interpreter_semantic", None) or TritonSemantic(interpreter.interpreter_builder)
    members_of = {}  # module or class -> names of its builtins, each with what it is and what it becomes

    def patched(member):
        function = member.__wrapped__ if getattr(member, "__code__", None) is checked else member

        def call(*args, **kwargs):
            kwargs["_semantic"] = semantic
            return function(*args, **kwargs)

        return call

    def patch_builtin(pkg, builder, scope):
        if pkg not in members_of:
            builtins = [(name, member) for name, member in inspect.getmembers(pkg) if tl.core.is_builtin(member)]
            members_of[pkg] = [(name, member, patched(member)) for name, member in builtins]
        for name, member, becomes in members_of[pkg]:
            if getattr(pkg, name) is member:
                scope.set_attr(pkg, name, becomes)

    replace(interpreter, "_patch_builtin", patch_builtin)


def plain_values_stay() -> None:
    """What may be a constexpr is asked four times what it is, each dtype by its name even where it is the same."""
    unwrap, equal = tl.core._unwrap_if_constexpr, tl.dtype.__eq__
    _has_parameters(unwrap, "o")
    _has_parameters(equal, "self", "other")
    plain = frozenset((tl.tensor, tl.dtype, tl.block_type, tl.pointer_type, int, float, bool, str, type(None)))

    def quick_unwrap(o):
        kind = type(o)
        if kind is tl.constexpr:
            return o.value
        return o if kind in plain else unwrap(o)

    replace(tl.core, "_unwrap_if_constexpr", quick_unwrap)
    replace(tl.dtype, "__eq__", lambda self, other: self is other or equal(self, other))


def alike_operands_stay() -> None:
    """Before each operation both operands are cast to the dtype of the result, and their shapes compared element by
    element. Blocks of one dtype and shape, which most are, are returned as they are; a number in a block's company
    fills one."""
    check, broadcast = TritonSemantic.binary_op_type_checking_impl, TritonSemantic.broadcast_impl_value
    rules = "allow_lhs_ptr", "allow_rhs_ptr", "arithmetic_check", "div_or_mod"
    _has_parameters(check, "self", "lhs", "rhs", *rules)
    _has_parameters(broadcast, "self", "lhs", "rhs")
    _has_parameters(interpreter.InterpreterBuilder.create_splat, "self", "ret_ty", "arg")
    divided_in_float32 = ("fp16", "bf16")

    def stays(left, right, left_may_point, right_may_point, divided):
        if left.name == right.name:
            return left.name in USUAL and not (divided and left.name in divided_in_float32)
        if left.is_ptr():
            return left_may_point and right.name in INTEGERS
        return right.is_ptr() and right_may_point and left.name in INTEGERS

    def is_like(number, dtype):
        if dtype.name == "fp32":
            return type(number) is float or -(2**31) <= number < 2**31
        return dtype.name == "int32" and type(number) is int and -(2**31) <= number < 2**31

    def check_if_needed(
        semantic, lhs, rhs, allow_lhs_ptr=False, allow_rhs_ptr=False, arithmetic_check=True, div_or_mod=False
    ):
        left, right = type(lhs), type(rhs)
        if left is tl.tensor and right is tl.tensor:
            if stays(lhs.dtype, rhs.dtype, allow_lhs_ptr, allow_rhs_ptr, div_or_mod):
                return semantic.broadcast_impl_value(lhs, rhs)
        elif left is tl.tensor and right in (int, float) and arithmetic_check and is_like(rhs, lhs.dtype):
            return semantic.broadcast_impl_value(lhs, semantic.scalar_constant(rhs, dtype=lhs.dtype))
        elif right is tl.tensor and left in (int, float) and arithmetic_check and is_like(lhs, rhs.dtype):
            return semantic.broadcast_impl_value(semantic.scalar_constant(lhs, dtype=rhs.dtype), rhs)
        return check(semantic, lhs, rhs, allow_lhs_ptr, allow_rhs_ptr, arithmetic_check, div_or_mod)

    def sizes_of(block):
        return block.__dict__.get("sizes") or [*block.shape]

    def is_usual(dtype):
        return getattr(dtype, "element_ty", dtype).name in USUAL

    def filled(semantic, number, block):
        like = block.type.with_element_ty(number.type)
        return semantic.tensor(semantic.builder.create_splat(like, number.handle), like)

    def broadcast_if_needed(semantic, lhs, rhs):
        left, right = lhs.type, rhs.type
        if left.is_block():
            if right.is_block():
                return (lhs, rhs) if sizes_of(left) == sizes_of(right) else broadcast(semantic, lhs, rhs)
            if is_usual(right):
                return lhs, filled(semantic, rhs, lhs)
        elif right.is_block() and is_usual(left):
            return filled(semantic, lhs, rhs), rhs
        return broadcast(semantic, lhs, rhs)

    replace(TritonSemantic, "binary_op_type_checking_impl", check_if_needed)
    replace(TritonSemantic, "broadcast_impl_value", broadcast_if_needed)
