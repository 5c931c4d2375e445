"""Repairs of Triton's interpreter. Each replaces a private function; `apply_fixes` returns the names of those that a
release has no place for: without them a verdict would be wrong."""

from __future__ import annotations

from triton.runtime import interpreter
from triton.runtime.autotuner import Autotuner


class AutotuneChoice:
    """Nothing is timed here, so which configuration an autotuned kernel gets is a choice."""

    index = 0  # modulo the number of configurations
    most = 1  # configurations of any kernel that ran since this was reset


def apply_fixes() -> list[str]:
    missing = []
    for fix in (fix_index, pick_autotune_config, device_assert_fires):
        try:
            fix()
        except Exception:
            missing.append(fix.__name__)
    return missing


def replace(owner: object, name: str, value: object) -> None:
    getattr(owner, name)  # raises where this release of Triton has no such name
    setattr(owner, name, value)


def fix_index() -> None:
    """Triton up to 3.6 indexes with a one-element array; numpy from 2.4 refuses, and no `range(runtime value)` runs."""
    original = interpreter._patch_lang_tensor

    def patch_lang_tensor(tensor, scope):
        original(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda self: int(self.handle.data.item()))

    replace(interpreter, "_patch_lang_tensor", patch_lang_tensor)


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

    replace(Autotuner, "_bench", bench)
    replace(Autotuner, "run", run)


def device_assert_fires() -> None:
    """Without `debug` tl.device_assert does nothing. The overflow checks, asserts too, would only take time."""
    options = interpreter.InterpreterOptions(debug=True, sanitize_overflow=False)
    replace(interpreter.interpreter_builder, "options", options)
