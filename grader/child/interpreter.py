"""Repairs of Triton's interpreter. Each replaces a private function; where a release has moved it, the repair is
missing, not fatal: `apply_fixes` returns the names of the missing ones."""

from __future__ import annotations

from types import SimpleNamespace

import triton.language as tl
from triton.language.semantic import TritonSemantic
from triton.runtime import interpreter
from triton.runtime.autotuner import Autotuner


class AutotuneChoice:
    """Nothing is timed here, so which configuration an autotuned kernel gets is a choice."""

    index = 0  # modulo the number of configurations
    most = 1  # configurations of any kernel that ran since this was reset


def apply_fixes() -> list[str]:
    missing = []
    for fix in (
        fix_index,
        fast_device_calls,
        known_types,
        equal_shapes_stay,
        pick_autotune_config,
        device_assert_fires,
    ):
        try:
            fix()
        except Exception:
            missing.append(fix.__name__)
    return missing


def _replace(owner: object, name: str, value: object) -> None:
    getattr(owner, name)  # raises where this release of Triton has no such name
    setattr(owner, name, value)


def fix_index() -> None:
    """Triton up to 3.6 indexes with a one-element array; numpy from 2.4 refuses, and no `range(runtime value)` runs."""
    original = interpreter._patch_lang_tensor

    def patch_lang_tensor(tensor, scope):
        original(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda self: int(self.handle.data.item()))

    _replace(interpreter, "_patch_lang_tensor", patch_lang_tensor)


def fast_device_calls() -> None:
    """Every call of a device function (tl.max, tl.cdiv ...) patches all of triton.language; once a launch is enough."""
    original_patch, original_call = interpreter._patch_lang, interpreter.GridExecutor.__call__
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

    _replace(interpreter, "_patch_lang", patch_once)
    _replace(interpreter.GridExecutor, "__call__", call)


def known_types() -> None:
    """Each operation works out the shape, name and dtype of its result anew: a quarter of a small program's time. What
    is the same for every tensor of an element type and a shape is worked out once, and copied."""
    numpy_dtype, describe, wrap = interpreter._get_np_dtype, tl.block_type.__init__, tl.tensor.__init__
    numpy_dtypes, of_blocks = {}, {}

    def identity(element) -> tuple:
        return element.name, getattr(element, "address_space", None), getattr(element, "const", None)

    def known_numpy_dtype(type_):
        element = type_.element_ty if isinstance(type_, tl.block_type) else type_
        key = identity(element)
        if key not in numpy_dtypes:
            numpy_dtypes[key] = numpy_dtype(element)
        return numpy_dtypes[key]

    def known_description(block, element, shape):
        sizes = tuple([getattr(size, "value", size) for size in shape])
        if not {int}.issuperset(map(type, sizes)):
            return describe(block, element, shape)  # which says what is wrong with it
        key = identity(element), sizes
        if key not in of_blocks:
            describe(block, element, shape)
            of_blocks[key] = {**vars(block), "of_tensors": {}}
        vars(block).update(of_blocks[key])

    def known_wrapping(tensor, handle, type_):
        of_tensors = vars(type_).get("of_tensors", {})  # a scalar's type has none
        if not of_tensors:
            wrap(tensor, handle, type_)
            of_tensors.update(vars(tensor))
        vars(tensor).update(of_tensors, handle=handle, type=type_)

    _replace(interpreter, "_get_np_dtype", known_numpy_dtype)
    _replace(tl.block_type, "__init__", known_description)
    _replace(tl.tensor, "__init__", known_wrapping)


def equal_shapes_stay() -> None:
    """Before each operation the shapes of both operands are compared element by element, then with the result's. Blocks
    of the same shape, which most are, are returned as they are."""
    broadcast = TritonSemantic.broadcast_impl_value

    def broadcast_if_needed(semantic, lhs, rhs):
        if lhs.type.is_block() and rhs.type.is_block() and [*lhs.type.shape] == [*rhs.type.shape]:
            return lhs, rhs
        return broadcast(semantic, lhs, rhs)

    _replace(TritonSemantic, "broadcast_impl_value", broadcast_if_needed)


def pick_autotune_config() -> None:
    """@triton.autotune with several configurations asks for a GPU to time them on."""
    original_run = Autotuner.run

    def bench(autotuner, *args, config, **meta):
        AutotuneChoice.most = max(AutotuneChoice.most, len(autotuner.configs))
        chosen = autotuner.configs[AutotuneChoice.index % len(autotuner.configs)]
        return [0.0 if config is chosen else 1.0] * 3

    def run(autotuner, *args, **kwargs):
        autotuner.cache.clear()  # the choice may differ from that of the call before
        return original_run(autotuner, *args, **kwargs)

    _replace(Autotuner, "_bench", bench)
    _replace(Autotuner, "run", run)


def device_assert_fires() -> None:
    """Without `debug` tl.device_assert does nothing. The overflow checks, asserts too, would only take time."""
    options = interpreter.InterpreterOptions(debug=True, sanitize_overflow=False)
    _replace(interpreter.interpreter_builder, "options", options)
