"""The compiler's front end alone: a launch needs a kernel's text, and the rest is compiled when someone asks for it.

Triton compiles a kernel to machine code before its first launch, for a tenth to a third of a second. What is judged is
the text that the front end makes, in ten milliseconds. So a kernel here is its text; registers, shared memory, machine
code and whatever else a compiled kernel has are there when a host function asks.
"""

from __future__ import annotations

import ast
import contextlib
import json
from collections.abc import Callable, Iterator
from functools import cache, cached_property
from types import SimpleNamespace
from typing import Any

import triton
from triton import compiler
from triton._C.libtriton import ir
from triton.backends.compiler import GPUTarget
from triton.backends.nvidia.compiler import CUDABackend
from triton.compiler.compiler import ASTSource, CompiledKernel, filter_traceback, make_backend
from triton.language import constexpr, dtype
from triton.runtime import JITFunction, _allocation
from triton.runtime.errors import OutOfResources
from triton.runtime.jit import JITCallable

from grader.child.ttir_text import source_of

WARP_SIZE, MOST_THREADS = 32, 1024  # threads of a warp, of a block
SCRATCH_BYTES, FIRST_WITH_TENSOR_MAPS = 128, 90  # of a descriptor that a kernel makes; the arch that needs it
# What changes the machine code made of a text; any other option that a launch changes is told as well.
OPTIONS = (
    "num_warps", "num_stages", "num_ctas", "maxnreg", "enable_fp_fusion", "debug", "sanitize_overflow",
    "launch_cooperative_grid", "launch_pdl", "default_dot_input_precision", "max_num_imprecise_acc_default",
)  # fmt: skip
MOST_TEXT = 200  # characters of a constant
MOST_GLOBALS = 256

_compile_in_full = compiler.compile
_trees: dict[str, ast.Module] = {}  # by the text of a function


@contextlib.contextmanager
def dots_of_any_size() -> Iterator[None]:
    """Within, the front end takes tiles in tl.dot that are too small for the units of a GPU."""
    before = CUDABackend.get_codegen_implementation
    loose = {"min_dot_size": lambda left, right: (1, 1, 1)}
    CUDABackend.get_codegen_implementation = lambda backend, options: before(backend, options) | loose
    try:
        yield
    finally:
        CUDABackend.get_codegen_implementation = before


@cache
def _context(target: GPUTarget) -> Any:
    """One for all texts: loading the dialects takes as long as a quarter of a text."""
    context = ir.context()
    ir.load_dialects(context)
    make_backend(target).load_dialects(context)
    return context


class Kernel:
    """What Triton keeps of one specialization of a JIT function, in place of its own CompiledKernel.

    `on_launch(kernel, grid, dimensions, arguments)` is told of each launch: three numbers of programs, how many of them
    the learner wrote, and the arguments in the order of the signature, constexpr arguments included.
    """

    function, packed_metadata = None, ()  # what Triton hands from a compiled kernel to its launcher

    def __init__(self, source: ASTSource, target: GPUTarget, options: dict, on_launch: Callable[..., None]):
        self.src, self._target, self._given, self._on_launch = source, target, options, on_launch

    @cached_property
    def text(self) -> bytes:
        """The module in MLIR's generic form, as the front end makes it; without what only assertions would look at."""
        backend, context = make_backend(self._target), _context(self._target)
        options = backend.parse_options(dict(self._given))
        if not options.debug:  # sums that only its assertions look at: an eighth of the front end's time
            options = backend.parse_options({**self._given, "sanitize_overflow": False})
        codegen, modules = backend.get_codegen_implementation(options), backend.get_module_map()
        try:
            module = self.src.make_ir(self._target, options, codegen, modules, context)
        except Exception as error:
            filter_traceback(error)
            raise
        return source_of(module).encode()

    @cached_property
    def compiled(self) -> CompiledKernel:
        return _compile_in_full(self.src, target=self._target, options=self._given)

    def __getattr__(self, name: str) -> Any:
        if name == "result":  # Triton asks whether the kernel is still being compiled
            raise AttributeError(name)
        return getattr(self.compiled, name)

    # ---- launching --------------------------------------------------------------------------------------

    def launch_metadata(self, grid: tuple, stream: int, *arguments: Any) -> tuple:
        """The grid as it was written; `run` gets it back."""
        return grid

    def run(self, x: int, y: int, z: int, stream, function, packed, written, enter, exit, *arguments: Any) -> None:
        self._on_launch(self, (x, y, z), len(written), arguments)

    def __getitem__(self, grid: tuple) -> Callable[..., None]:
        written = whole(grid)
        padded = (*written, 1, 1)[:3]
        return lambda *arguments, stream=None: self._on_launch(self, padded, len(written), arguments)

    def check_launch(self, programs: int) -> None:
        """Raises what a launch raises where threads or memory for descriptors are wanting, as far as the text tells."""
        threads = self.options["num_warps"] * WARP_SIZE
        if threads > MOST_THREADS:
            raise OutOfResources(threads, MOST_THREADS, "threads")
        allocator = _allocation._allocator.get()
        needs_scratch = self._target.arch >= FIRST_WITH_TENSOR_MAPS and b'"tt.make_tensor_descriptor"' in self.text
        if programs and needs_scratch:
            size = SCRATCH_BYTES * programs * self.text.count(b'"tt.make_tensor_descriptor"')
            memory = allocator(size, SCRATCH_BYTES, 0)  # Triton's own says that none was set
            if not getattr(memory, "is_cuda", False) or memory.nbytes < size:
                found = f"{memory.nbytes} on {memory.device}" if hasattr(memory, "nbytes") else type(memory).__name__
                raise TypeError(f"the allocator is asked for {size} bytes on the GPU, and returns {found}")

    # ---- what it was made of ----------------------------------------------------------------------------

    @cached_property
    def name(self) -> str:
        return self.src.fn.fn.__name__

    @cached_property
    def options(self) -> dict:
        """Those of OPTIONS, and what else differs from what a launch without options has."""
        backend = make_backend(self._target)
        own, plain = vars(backend.parse_options(dict(self._given))), vars(backend.parse_options({}))
        names = [name for name in OPTIONS if name in own]
        names += [name for name in own if name not in names and own[name] != plain[name]]
        return {name: _as_json(own[name]) for name in names}

    @cached_property
    def recipe(self) -> dict:
        """What the front end was given: with the file's own kernel it makes the same text again."""
        attributes = (self.src.attrs or {}).items()
        typed = [(self.src.fn.arg_names.index(name), kind) for name, kind in self.src.signature.items()]
        return {
            "function": self.name,
            "signature": {name: _as_json(kind) for name, kind in self.src.signature.items()},
            "constants": [[list(path), _constant(value)] for path, value in self.src.constants.items()],
            "attrs": [[list(path), _as_json(value)] for path, value in attributes],
            "options": self.options,
            "globals": _globals(self.src.fn),
            "fields": [
                *(found for number, kind in typed for found in _fields(kind, [number])),
                *(found for path, value in self.src.constants.items() for found in _fields(value, list(path))),
            ],
            "symbol": _symbol(self.src),
        }

    @cached_property
    def key(self) -> tuple[bytes, str]:
        """Launches of the same text with the same options are launches of one kernel."""
        return self.text, json.dumps(self.options, sort_keys=True)


def _as_json(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_as_json(item) for item in value]
    return value if value is None or isinstance(value, (bool, int, str)) else repr(value)[:MOST_TEXT]


def _fields(value: Any, path: list[int]) -> Iterator[list]:
    """Where the tuples are whose parts have names: [path, names]."""
    value = value.value if isinstance(value, constexpr) else value
    if isinstance(value, tuple):
        if hasattr(value, "_fields"):
            yield [path, list(value._fields)]
        for number, part in enumerate(value):
            yield from _fields(part, [*path, number])


def _symbol(source: ASTSource) -> str:
    """What @triton.jit(repr=...) makes of the function's name; "" where nothing does."""
    if source.fn._repr is None:
        return ""
    constants = {source.fn.arg_names[path[0]]: value for path, value in source.constants.items() if len(path) == 1}
    return str(source.fn.repr(SimpleNamespace(constants=constants, signature=source.signature)))[:MOST_TEXT]


def _constant(value: Any) -> dict:
    """An argument that is compiled into the kernel."""
    value = value.value if isinstance(value, constexpr) else value
    if isinstance(value, tuple):
        return {"items": [_constant(item) for item in value]}
    if isinstance(value, JITFunction):
        return {"function": value.fn.__name__}
    if isinstance(value, dtype):
        return {"dtype": value.name}
    if value is None or isinstance(value, (bool, int, float, str)) and len(repr(value)) <= MOST_TEXT:
        return {"value": repr(value)}
    return {"other": repr(value)[:MOST_TEXT]}


def _globals(function: JITFunction) -> list[list]:
    """The plain values that the function sees beside its arguments: [name, whether it is a constexpr, constant]."""
    scope, found = function.get_capture_scope(), []
    for name, value in list(scope.items()):
        said = _constant(value)
        is_alias = "function" in said and said["function"] != name
        if not name.startswith("__") and (is_alias or "value" in said or "dtype" in said):
            found.append([name, int(isinstance(value, constexpr)), said])
    return found[:MOST_GLOBALS]


def whole(grid: Any) -> tuple[int, ...]:
    if not isinstance(grid, (tuple, list)):
        raise TypeError("the grid must be a tuple, such as (n,)")
    if not 1 <= len(grid) <= 3:
        raise TypeError("the grid must have 1 to 3 numbers")
    if not all(hasattr(size, "__index__") for size in grid):
        raise TypeError("the grid must hold whole numbers: triton.cdiv rounds up")
    return tuple(int(size) for size in grid)


def install(on_launch: Callable[..., None]) -> None:
    """From now on JIT functions become Kernels."""

    def compile_lazily(src: Any, target: GPUTarget | None = None, options: dict | None = None, **rest: Any) -> Any:
        if not isinstance(src, ASTSource):  # a text in a file
            return _compile_in_full(src, target=target, options=options, **rest)
        target = target or triton.runtime.driver.active.get_current_target()
        kernel = Kernel(src, target, options or {}, on_launch)
        _ = kernel.text  # so that it fails here, where Triton's would
        return kernel

    parse = JITCallable.parse

    def parse_once(function: JITCallable) -> ast.Module:
        """A text's tree is read by the front end and by Triton's hash of the function, and left as it is."""
        if function.src not in _trees:
            _trees[function.src] = parse(function)
        return _trees[function.src]

    run = JITFunction.run

    def run_on_a_whole_grid(function: JITFunction, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        checked = grid
        if not warmup:
            checked = (lambda meta: whole(grid(meta))) if callable(grid) else whole(grid)
        return run(function, *args, grid=checked, warmup=warmup, **kwargs)

    compiler.compile = triton.compile = compile_lazily
    JITCallable.parse, JITFunction.run = parse_once, run_on_a_whole_grid
