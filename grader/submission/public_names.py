"""The modules of Triton that a kernel may name, and the names that each of them lists as public."""

from __future__ import annotations

import ast
import functools
from importlib.util import find_spec
from pathlib import Path

# Module -> the names that a body may use of it; None: what its source lists as public.
MODULES: dict[str, frozenset[str] | None] = {
    "triton": frozenset({"cdiv", "next_power_of_2", "language"}),
    "triton.language": None,
    "triton.language.math": None,
    "triton.language.extra": frozenset({"libdevice", "cuda"}),
    "triton.language.extra.libdevice": None,
    "triton.language.extra.cuda": None,
    "triton.language.extra.cuda.libdevice": None,
}


@functools.cache
def members(module: str) -> frozenset[str]:
    """Returns the names of one of MODULES that a body may use, inner modules included."""
    listed = MODULES[module]
    inner = {name.rpartition(".")[2] for name in MODULES if name.rpartition(".")[0] == module}
    return (_public(module) if listed is None else listed) | inner


def _public(module: str) -> frozenset[str]:
    """Returns the names that the module's source lists in __all__; if it has none, the names of its functions.

    The source is read: importing Triton would take a second.
    """
    path = _file_of(module)
    tree = ast.parse(path.read_text(encoding="utf-8") if path.exists() else "")
    for node in tree.body:
        if isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == ["__all__"]:
            items = getattr(node.value, "elts", [])
            names = [item.value for item in items if isinstance(item, ast.Constant) and isinstance(item.value, str)]
            return frozenset(name for name in names if not _file_of(f"{module}.{name}").exists())
    return frozenset(n.name for n in tree.body if isinstance(n, ast.FunctionDef) and not n.name.startswith("_"))


def _file_of(module: str) -> Path:
    """Returns the path of the source of a module of Triton; a path without a file if Triton is not installed."""
    spec = find_spec("triton")
    folders = spec.submodule_search_locations if spec else None
    folder = Path(folders[0] if folders else "/nowhere")
    path = folder.joinpath(*module.split(".")[1:])
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
