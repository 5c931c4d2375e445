"""What a submission may name: modules, their members, attributes of values, built-ins.

These are lists of what is allowed. A new release of torch or Triton adds names, and a list of what is refused would not
have them. Triton's own public names are read off its source as text: importing Triton here would cost a second.
"""

from __future__ import annotations

import ast
import builtins
import functools
import sys
from collections import Counter, OrderedDict, defaultdict, deque
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import torch

# Module -> the names that may be imported from it, or used of it. None: see `_members`.
MODULES: dict[str, set[str] | None] = {
    "torch": None,
    "torch.nn": {"functional", "Module", "Parameter"},
    "torch.nn.functional": None,
    "torch.linalg": None,
    "torch.special": None,
    "torch.autograd": {"Function"},
    "torch.cuda": {
        "current_device", "device", "device_count", "get_device_capability", "get_device_name", "get_device_properties",
        "is_available", "set_device", "synchronize",
    },
    "triton": {
        "Config", "autotune", "cdiv", "heuristics", "jit", "language", "next_power_of_2", "set_allocator", "tools",
    },
    "triton.language": None,
    "triton.language.math": None,
    "triton.language.extra": {"libdevice"},
    "triton.language.extra.libdevice": None,
    "triton.tools": {"tensor_descriptor"},
    "triton.tools.tensor_descriptor": {"TensorDescriptor"},
    "math": None,
    "itertools": None,
    "functools": {"cache", "lru_cache", "partial", "reduce"},
    "collections": {"Counter", "OrderedDict", "defaultdict", "deque"},
    "collections.abc": {"Callable", "Iterable", "Iterator", "Mapping", "Sequence"},
    "dataclasses": {"dataclass", "field", "replace"},
    "enum": {"Enum", "IntEnum"},
    "typing": {
        "Any", "Callable", "Dict", "Final", "Generic", "Iterable", "Iterator", "List", "Literal", "NamedTuple",
        "Optional", "Protocol", "Sequence", "Tuple", "TYPE_CHECKING", "TypeVar", "Union",
    },
    "__future__": {"annotations"},
}  # fmt: skip
# Called, these make a class out of texts; as bases of a class they are plain to read.
BASES_ONLY = {"enum.Enum", "enum.IntEnum", "typing.NamedTuple", "typing.Protocol", "typing.Generic"}
# As a decorator only, so that every kernel can be told from its definition.
DECORATORS_ONLY = {"triton.jit", "triton.autotune", "triton.heuristics"}
# Of torch, besides the tensor functions: what describes tensors.
TORCH_ALSO = {
    "Generator", "Size", "Tensor", "device", "dtype", "e", "enable_grad", "finfo", "get_default_dtype", "iinfo",
    "inf", "inference_mode", "is_grad_enabled", "is_tensor", "layout", "memory_format", "nan", "newaxis", "no_grad",
    "pi", "set_grad_enabled", "unique", "unravel_index",
}  # fmt: skip
# Tensor functions whose data come from elsewhere than a tensor.
NOT_OF_TORCH = {"asarray", "as_tensor", "from_file", "from_numpy", "frombuffer"}
NOT_OF_FUNCTIONAL = {"assert_int_or_pair", "boolean_dispatch", "handle_torch_function"}

BUILTINS = {
    "abs", "all", "any", "ascii", "bin", "bool", "bytearray", "bytes", "callable", "chr", "classmethod", "complex",
    "dict", "divmod", "enumerate", "exit", "filter", "float", "format", "frozenset", "hash", "hex", "id", "input",
    "int", "isinstance", "issubclass", "iter", "len", "list", "map", "max", "min", "next", "object", "oct", "ord",
    "pow", "print", "property", "quit", "range", "repr", "reversed", "round", "set", "slice", "sorted",
    "staticmethod", "str", "sum", "super", "tuple", "zip", "Ellipsis", "NotImplemented", "None", "True", "False",
}  # fmt: skip
SPECIAL_NAMES = {"__name__", "__all__", "__doc__"}
SPECIAL_METHODS = {
    "__init__", "__post_init__", "__call__", "__len__", "__iter__", "__next__", "__repr__", "__str__", "__eq__",
    "__hash__", "__getitem__", "__contains__", "__bool__", "__enter__", "__exit__",
}  # fmt: skip

# Attributes of ordinary values that lead to raw memory, to other values, or past what watches torch.
NOT_OF_VALUES = {
    "apply_", "grad_fn", "map_", "map2_", "module_load", "register_hook", "register_post_accumulate_grad_hook",
    "reinforce", "set_", "share_memory_", "storage", "storage_type", "untyped_storage", "format", "format_map",
}  # fmt: skip

OF_CONFIGS = {"all_kwargs", "kwargs", "maxnreg", "num_ctas", "num_stages", "num_warps"}
OF_GPUS = {
    "L2_cache_size", "major", "max_threads_per_multi_processor", "minor", "multi_processor_count", "name",
    "regs_per_multiprocessor", "shared_memory_per_block", "shared_memory_per_block_optin",
    "shared_memory_per_multiprocessor", "total_memory", "warp_size",
}  # fmt: skip
OF_OTHERS = {
    "apply", "args", "base", "block_shape", "bits", "cache_clear", "cache_info", "eps", "from_tensor",
    "mark_non_differentiable", "max", "min", "needs_input_grad", "padding", "resolution", "save_for_backward",
    "saved_tensors", "setter", "smallest_normal", "tiny", "value",
}  # fmt: skip
# Methods of tiles and of tensor descriptors, callable in a kernel.
OF_TILES = {
    "abs", "advance", "argmax", "argmin", "associative_scan", "atomic_add", "atomic_and", "atomic_cas", "atomic_load",
    "atomic_max", "atomic_min", "atomic_or", "atomic_poll", "atomic_store", "atomic_xchg", "atomic_xor",
    "broadcast_to", "cast", "cdiv", "ceil", "cos", "cumprod", "cumsum", "erf", "exp", "exp2", "expand_dims", "flip",
    "floor", "gather", "histogram", "item", "load", "log", "log2", "logical_and", "logical_or", "max", "min",
    "permute", "ravel", "reduce", "reduce_or", "reshape", "rsqrt", "scatter", "sigmoid", "sin", "softmax", "sort",
    "split", "sqrt", "sqrt_rn", "store", "sum", "to", "trans", "view", "xor_sum",
}  # fmt: skip
OF_TYPES = {
    "T", "dtype", "element_ty", "int_bitwidth", "is_block", "is_bf16", "is_floating", "is_fp16", "is_fp32", "is_fp64",
    "is_int", "is_ptr", "itemsize", "name", "numel", "primitive_bitwidth", "scalar", "shape", "strides", "type",
    "value",
}  # fmt: skip
# Words that a submission must not give to its own attributes: elsewhere they lead into Python, torch or Triton.
LEADS_ELSEWHERE = (
    set(sys.stdlib_module_names)
    | NOT_OF_VALUES
    | {
        "ASTSource", "add_pre_run_hook", "ag_frame", "asm", "backends", "builder", "cache", "cache_hooks", "compiler",
        "core", "cr_frame", "create_binder", "data", "device_caches", "driver", "exec", "f_back", "f_builtins",
        "f_code", "f_globals", "f_locals", "fn", "func", "func_globals", "get_capture_scope", "gi_code", "gi_frame",
        "handle", "hook", "knobs", "language", "libdevice", "module", "modules", "mro", "np", "numpy", "obj", "parse",
        "pre_run_hooks", "rewriter", "runtime", "semantic", "src", "standard", "target_info", "tb_frame", "tb_next",
        "testing", "tools", "torch", "triton", "used_global_vals", "with_traceback",
    }
)  # fmt: skip


@functools.cache
def members(module: str) -> frozenset[str]:
    """The names of an allowed module that a submission may use, allowed modules in it included."""
    listed = MODULES[module]
    inner = {name.rpartition(".")[2] for name in MODULES if name.rpartition(".")[0] == module}
    return frozenset((_members(module) if listed is None else listed) | inner)


def _members(module: str) -> set[str]:
    if module == "torch":
        return _of_torch()
    if module.startswith("triton"):
        return _of_triton(module)
    loaded = sys.modules.get(module) or __import__(module)
    for part in module.split(".")[1:]:
        loaded = getattr(loaded, part, loaded)
    if module == "torch.nn.functional":
        return {name for name in _functions_of(loaded) - NOT_OF_FUNCTIONAL if not name.startswith("has_torch")}
    if module.startswith("torch."):
        return _functions_of(loaded)
    return {name for name in dir(loaded) if not name.startswith("_")}  # math, itertools: C, no modules in them


def _functions_of(module: ModuleType) -> set[str]:
    found = {name: value for name, value in vars(module).items() if not name.startswith("_")}
    return {name for name, value in found.items() if callable(value) and not isinstance(value, type)}


def _of_torch() -> set[str]:
    """The functions of tensors, which all pass torch's dispatcher, and the words that describe tensors."""
    kinds = (torch.dtype, torch.layout, torch.memory_format)
    described = {name for name, value in vars(torch).items() if isinstance(value, kinds)}
    functions = set(dir(torch._C._VariableFunctions)) | set(torch.functional.__all__)
    return {name for name in functions | described | TORCH_ALSO if not name.startswith("_")} - NOT_OF_TORCH


def _of_triton(module: str) -> set[str]:
    """What the module's source lists in __all__, or else defines as functions."""
    tree = _source_of(module)
    for node in tree.body:
        if isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == ["__all__"]:
            names = {item.value for item in getattr(node.value, "elts", []) if isinstance(item, ast.Constant)}
            return {name for name in names if not _file_of(f"{module}.{name}").exists()}
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")}


def _source_of(module: str) -> ast.Module:
    path = _file_of(module)
    return ast.parse(path.read_text(encoding="utf-8") if path.exists() else "")


def _file_of(module: str) -> Path:
    """Where a module of Triton has its source; a path without a file if Triton is not installed."""
    spec = find_spec("triton")
    folder = Path(*(spec.submodule_search_locations if spec else ["/nowhere"])[:1])
    path = folder.joinpath(*module.split(".")[1:])
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


@functools.cache
def attributes() -> frozenset[str]:
    """What may stand behind a dot, whatever stands before it: the public words of plain values and of tensors."""
    kinds = (
        str, bytes, bytearray, list, dict, tuple, set, frozenset, int, float, complex, range, slice, torch.Tensor,
        torch.Size, torch.device, torch.dtype, Counter, OrderedDict, defaultdict, deque, functools.partial,
    )  # fmt: skip
    names = {name for kind in kinds for name in dir(kind) if not name.startswith("_")}
    return frozenset(names - NOT_OF_VALUES | OF_CONFIGS | OF_GPUS | OF_OTHERS | OF_TILES | OF_TYPES)


def is_harmless_builtin(name: str) -> bool:
    value = vars(builtins)[name]
    return name in BUILTINS or isinstance(value, type) and issubclass(value, Exception)
