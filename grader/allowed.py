"""What a submission may import and name, read off its syntax tree. Nothing of it runs for this.

A kernel file needs torch to allocate, triton to launch, tl in kernels, and a little Python. All else could leave the
child's watched torch: another module, a private name, a built-in that runs text. So what is not on a list is refused,
with its line. Below `if __name__ == "__main__":` a learner may do anything; the grader never runs that part.
"""

from __future__ import annotations

import ast
import builtins
import pkgutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType

import torch

ANY = None
# Module -> the names that may be imported from it, or used of it; ANY: all that are public.
MODULES: dict[str, set[str] | None] = {
    "torch": ANY,
    "torch.nn": {"functional", "Module", "Parameter"},
    "torch.nn.functional": ANY,
    "torch.linalg": ANY,
    "torch.special": ANY,
    "torch.autograd": {"Function"},
    "torch.cuda": {
        "current_device", "device", "device_count", "get_device_capability", "get_device_name", "get_device_properties",
        "is_available", "set_device", "synchronize",
    },
    "triton": {
        "Config", "autotune", "cdiv", "constexpr_function", "heuristics", "jit", "language", "next_power_of_2",
        "set_allocator", "tools",
    },
    "triton.language": ANY,
    "triton.language.math": ANY,
    "triton.language.extra": {"libdevice"},
    "triton.language.extra.libdevice": ANY,
    "triton.tools": {"tensor_descriptor"},
    "triton.tools.tensor_descriptor": {"TensorDescriptor"},
    "math": ANY,
    "itertools": ANY,
    "functools": {"cache", "lru_cache", "partial", "reduce", "wraps"},
    "collections": {"Counter", "OrderedDict", "defaultdict", "deque", "namedtuple"},
    "collections.abc": ANY,
    "dataclasses": {"dataclass", "field", "replace"},
    "enum": {"Enum", "IntEnum"},
    "typing": {
        "Any", "Callable", "Dict", "Final", "Generic", "Iterable", "Iterator", "List", "Literal", "NamedTuple",
        "Optional", "Protocol", "Sequence", "Tuple", "TYPE_CHECKING", "TypeVar", "Union",
    },
    "__future__": ANY,
}  # fmt: skip
# Public names of torch that leave what the child watches, or change it for all that comes after.
REFUSED_OF_TORCH = {
    "compile", "load", "save", "from_file", "from_numpy", "frombuffer", "asarray", "as_tensor", "manual_seed", "seed",
    "set_default_device", "set_default_dtype", "set_default_tensor_type", "set_printoptions", "vmap", "typename",
}  # fmt: skip
BUILTINS = {
    "abs", "all", "any", "ascii", "bin", "bool", "bytearray", "bytes", "callable", "chr", "classmethod", "complex",
    "dict", "dir", "divmod", "enumerate", "exit", "filter", "float", "format", "frozenset", "hasattr", "hash",
    "hex", "id", "input", "int", "isinstance", "issubclass", "iter", "len", "list", "map", "max", "min", "next",
    "object", "oct", "ord", "pow", "print", "property", "quit", "range", "repr", "reversed", "round", "set",
    "slice", "sorted", "staticmethod", "str", "sum", "super", "tuple", "type", "zip", "Ellipsis", "NotImplemented",
}  # fmt: skip
SPECIAL_NAMES = {"__name__", "__all__", "__doc__"}
SPECIAL_METHODS = {"__init__", "__post_init__", "__call__", "__len__", "__iter__", "__repr__", "__eq__", "__hash__"}
# Attributes without an underscore that lead into the interpreter of Python, of Triton, or a tensor's raw memory.
INNER = {
    "handle", "untyped_storage", "storage", "share_memory_", "set_", "register_hook", "gi_frame", "gi_code", "cr_frame",
    "ag_frame", "tb_frame", "tb_next", "f_back", "f_builtins", "f_code", "f_globals", "f_locals", "func_globals", "mro",
    "with_traceback",
}  # fmt: skip
MODULES_IN_TL = {"core", "standard", "semantic", "random", "target_info"}


@dataclass(frozen=True)
class Refused:
    """Something in the text that is on no list. `sentence` says what, and what to do in its place."""

    line: int
    sentence: str


def first_refused(tree: ast.Module) -> Refused | None:
    """The first thing in the file that is not allowed, None if all is."""
    found = list(_Reader(tree).refused())
    return min(found, key=lambda refused: refused.line, default=None)


class _Reader:
    def __init__(self, tree: ast.Module):
        self.nodes = list(_nodes(tree))
        self.modules = self._imported_modules()  # name in the file -> module

    def refused(self) -> Iterator[Refused]:
        bases = {id(node.value) for node in self.nodes if isinstance(node, ast.Attribute)}
        for node in self.nodes:
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                yield from self._import(node)
            elif isinstance(node, ast.Attribute):
                yield from self._attribute(node, is_base=id(node) in bases)
            elif isinstance(node, ast.Name):
                yield from self._name(node, is_base=id(node) in bases)
            elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                yield from self._definition(node)
            elif isinstance(node, (ast.AsyncFunctionDef, ast.Await)):
                yield _refused(node, "async", "Kernels and what launches them need no coroutines.")

    # ---- imports ----------------------------------------------------------------------------------------

    def _imported_modules(self) -> dict[str, str]:
        found = {}
        for node in self.nodes:
            if isinstance(node, ast.Import):
                for name in node.names:
                    found[name.asname or name.name.partition(".")[0]] = (
                        name.name if name.asname else name.name.partition(".")[0]
                    )
            elif isinstance(node, ast.ImportFrom) and node.module:
                for name in node.names:
                    if f"{node.module}.{name.name}" in MODULES:
                        found[name.asname or name.name] = f"{node.module}.{name.name}"
        return found

    def _import(self, node: ast.Import | ast.ImportFrom) -> Iterator[Refused]:
        if isinstance(node, ast.Import):
            for name in node.names:
                if name.name not in MODULES:
                    yield _not_importable(node, f"import {name.name}", name.name)
            return
        module = node.module or "."
        for name in node.names:
            written = f"from {module} import {name.name}"
            if node.level or module not in MODULES:
                yield _not_importable(node, written, module)
            elif name.name == "*":
                yield _refused(node, written, "Import the names that you use, one by one.")
            elif not _is_public(module, name.name):
                yield _not_importable(node, written, f"{module}.{name.name}")

    # ---- names ------------------------------------------------------------------------------------------

    def _name(self, node: ast.Name, is_base: bool) -> Iterator[Refused]:
        name = node.id
        if name in self.modules and not isinstance(node.ctx, ast.Load):
            yield _refused(node, f"a new value for {name}", "Choose another name: this one is a module's.")
        elif name in self.modules and not is_base:
            yield _refused(node, f"{name} as a value", "Use what you need of a module, as in torch.empty.")
        elif name.startswith("__") and name not in SPECIAL_NAMES:
            yield _refused(node, name, "Names with two underscores belong to Python itself.")
        elif name in SPECIAL_NAMES and not isinstance(node.ctx, ast.Load) and name != "__all__":
            yield _refused(node, f"a new value for {name}", "It belongs to Python itself.")
        elif name in vars(builtins) and not _is_harmless(name):
            yield _refused(node, f"{name}()", "The host function needs torch to allocate and a kernel to launch.")

    def _attribute(self, node: ast.Attribute, is_base: bool) -> Iterator[Refused]:
        name = node.attr
        if name.startswith("_") or name in INNER:
            yield _refused(
                node, f".{name}", "It reaches behind the tensors and functions that a kernel file works with."
            )
            return
        path = self._path(node.value)
        if path is None:
            return
        written = f"{path}.{name}"
        if not isinstance(node.ctx, ast.Load):
            yield _refused(node, f"a new value for {written}", "Modules stay as they are.")
        elif path not in MODULES or not _is_public(path, name):
            yield _refused(node, written, _instead_of(written))
        elif written in MODULES and not is_base:
            yield _refused(node, f"{written} as a value", "Use what you need of a module, as in torch.empty.")

    def _path(self, node: ast.expr) -> str | None:
        """The module that an expression names: "torch.nn.functional"; None if it names none."""
        if isinstance(node, ast.Name):
            return self.modules.get(node.id)
        if isinstance(node, ast.Attribute) and (path := self._path(node.value)):
            return f"{path}.{node.attr}" if f"{path}.{node.attr}" in MODULES else None
        return None

    def _definition(self, node: ast.FunctionDef | ast.ClassDef) -> Iterator[Refused]:
        special = node.name.startswith("__") and node.name.endswith("__")
        if special and node.name not in SPECIAL_METHODS:
            yield _refused(node, f"a definition of {node.name}", "It changes how Python itself treats a value.")
        if isinstance(node, ast.ClassDef) and node.keywords:
            yield _refused(node, f"class {node.name} with a metaclass", "A plain class will do.")


def _nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes but those below `if __name__ == "__main__":`."""
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.If) and ast.unparse(child.test) in (
            "__name__ == '__main__'",
            "'__main__' == __name__",
        ):
            continue
        yield child
        yield from _nodes(child)


def _is_harmless(name: str) -> bool:
    value = vars(builtins)[name]
    return (
        name in BUILTINS or value in (None, True, False) or (isinstance(value, type) and issubclass(value, Exception))
    )


def _is_public(module: str, name: str) -> bool:
    """Whether a module's name is one that a submission may use."""
    if f"{module}.{name}" in MODULES:
        return True
    allowed = MODULES[module]
    if allowed is not ANY:
        return name in allowed
    if name.startswith("_") or name in MODULES_IN_TL:
        return False
    if module.partition(".")[0] == "torch":
        return not (name in REFUSED_OF_TORCH or name.endswith("Storage") or _is_module(module, name))
    return True


def _is_module(module: str, name: str) -> bool:
    """Modules have modules in them: torch.nn.functional.math, and torch itself once more."""
    named = sys.modules.get(f"{module}.{name}") or getattr(sys.modules.get(module), name, None)
    submodules = {found.name for found in pkgutil.iter_modules(torch.__path__)} if module == "torch" else set()
    return isinstance(named, ModuleType) or name in submodules


def _not_importable(node: ast.stmt, written: str, module: str) -> Refused:
    if module.startswith(("exercises", "solutions", "grader", "tests")):
        return _refused(node, written, "A submission is one file, and all that it uses stands in it.")
    listed = "torch, triton, triton.language, math and a few more of Python's own"
    return _refused(
        node, written, f'It may import {listed}; for trying things out, import below `if __name__ == "__main__":`.'
    )


def _instead_of(written: str) -> str:
    if written == "torch.compile":
        return "It would write the kernel that you are to write."
    if written.startswith("triton.language."):
        return "Kernels use the public functions of tl, as in tl.load."
    if written.startswith("triton."):
        return "Host functions need triton.jit, cdiv, next_power_of_2, autotune and Config."
    return "Torch may allocate, fill and view here; the kernel has to compute."


def _refused(node: ast.AST, what: str, advice: str) -> Refused:
    return Refused(node.lineno, f"Line {node.lineno}: {what} is not allowed in a submission. {advice}")
