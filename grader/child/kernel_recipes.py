"""Kernels of a recording child: a launch needs a kernel's recipe, and nothing is compiled until someone asks for it.

A recipe names a function of the file, with the types, constants and options that Triton compiles it for. Registers,
shared memory, machine code and all else that a compiled kernel has are made when a host function asks for them.

Host code can exchange a function's text or code, and change an object after it was made: a method of a class of tuples,
the name of a dtype, the type of a constant. A kernel would see the change, and the front end, which makes it from the
file's lines, would not. So a recipe tells only of functions and objects that are as they were written and made.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import json
import linecache
import os
import sys
from collections import namedtuple
from collections.abc import Callable, Iterator
from dis import get_instructions
from functools import cache, cached_property
from types import CodeType, FunctionType, ModuleType, NoneType, SimpleNamespace
from typing import Any

import triton
from triton.language import constexpr, dtype

from grader.child.triton_api import LazyKernel, OutOfResources, allocator, compile_lazily
from grader.front_end.triton_text_api import ASTSource, JITCallable, JITFunction, make_backend
from grader.submission.public_names import MODULES
from grader.wire.frames import JsonObject
from grader.wire.launch_abi import FIRST_WITH_TENSOR_MAPS, LAUNCH_OPTIONS, MOST_THREADS, TENSOR_MAP_BYTES, WARP_SIZE

MAKES_A_DESCRIPTOR = "make_tensor_descriptor"
MOST_TEXT = 200  # characters of a constant
MOST_NAMES = 250  # of a function, and functions of a kernel
TRITON = os.path.join(os.path.dirname(triton.__file__), "")
TOO_MANY = {"other": f"one of more than {MOST_NAMES} names of a function, or of the functions that a kernel reaches"}
TWO_VALUES = {"other": "another value in each function that is made of these lines"}
UNSURE = object()  # a default that Python and Triton read differently
ABSENT, CHANGED = object(), object()  # a name with no value but Python's, if any; a name whose value is not Python's
UNTOLD = {
    id(ABSENT): [0, {"absent": ""}],
    id(CHANGED): [1, {"other": "another function than Python's own of that name"}],
    id(UNSURE): [1, {"other": "hidden by a signature of its own"}],
}
OPTION_KINDS = {"int": (int, "a whole number"), "bool": (bool, "True or False"), "str": (str, "a text")}
# Python adds these to a class that a class statement or namedtuple makes; none of them changes a value.
DESCRIBES = frozenset({
    "__annotate__", "__annotate_func__", "__annotations__", "__annotations_cache__", "__doc__", "__firstlineno__",
    "__match_args__", "__module__", "__orig_bases__", "__parameters__", "__slots__", "__static_attributes__",
})  # fmt: skip
PYTHONS = dict(vars(builtins))  # before any line of a file has run


class Kernel(LazyKernel):
    """Stands for a JIT function that is specialized for the arguments of a launch, and gives its recipe."""

    def check_threads(self) -> None:
        """Raises OutOfResources, as a launch does, where a block has no room for its threads."""
        threads = self.options["num_warps"] * WARP_SIZE
        if threads > MOST_THREADS:
            raise OutOfResources(threads, MOST_THREADS, "threads")

    def no_scratch(self, programs: int) -> str:
        """Returns why there is no memory for descriptors that the kernel may make; "" if there is, or none is needed.

        The kernel's text shows later whether it makes one.
        """
        may_make_one = MAKES_A_DESCRIPTOR in "".join(linecache.getlines(self.src.fn.fn.__code__.co_filename))
        if not programs or self._target.arch < FIRST_WITH_TENSOR_MAPS or not may_make_one:
            return ""
        size = TENSOR_MAP_BYTES * programs
        try:
            memory = allocator()(size, TENSOR_MAP_BYTES, 0)  # Triton's own says that none was set
        except Exception as error:
            return f"{type(error).__name__}: {error}"[:MOST_TEXT]
        if getattr(memory, "is_cuda", False) and memory.nbytes >= size:
            return ""
        returned = f"{memory.nbytes} on {memory.device}" if hasattr(memory, "nbytes") else type(memory).__name__
        return f"TypeError: the allocator is asked for {size} bytes on the GPU, and returns {returned}"

    @cached_property
    def name(self) -> str:
        name: str = self.src.fn.fn.__name__
        return name

    @cached_property
    def options(self) -> JsonObject:
        """The values of LAUNCH_OPTIONS, and of others that differ from a launch without options. Truth values and whole
        numbers do for each other, as in Triton. Raises TypeError for a value of another type, at which the compiler's
        passes fail."""
        backend = make_backend(self._target)
        own, plain = dict(vars(backend.parse_options(dict(self._given)))), vars(backend.parse_options({}))
        names = [name for name in LAUNCH_OPTIONS if name in own]
        names += [name for name in own if name not in names and own[name] != plain[name]]
        for name in names:
            kind, words = OPTION_KINDS.get(LAUNCH_OPTIONS.get(name, "").removesuffix(" | None"), (object, ""))
            if kind in (int, bool) and type(own[name]) in (int, bool):
                own[name] = kind(own[name])
            elif own[name] is not None and not isinstance(own[name], kind):
                raise TypeError(f"option {name} has to be {words}: {own[name]!r:.40}")
        return {name: _as_json(own[name]) for name in names}

    @cached_property
    def recipe(self) -> JsonObject:
        """The recipe that the front end gets: see wire.recorded_call.Recipe."""
        attributes = (self.src.attrs or {}).items()
        typed = [(self.src.fn.arg_names.index(name), kind) for name, kind in self.src.signature.items()]
        return {
            "function": self.name,
            "line": _line(self.src.fn) if is_as_written(self.src.fn) else 0,
            "signature": {name: _as_json(kind) for name, kind in self.src.signature.items()},
            "constants": [[list(path), _description_of(value)] for path, value in self.src.constants.items()],
            "attrs": [[list(path), _as_json(value)] for path, value in attributes],
            "options": self.options,
            "scopes": _scopes(self.src),
            "fields": [field for number, kind in typed for field in _fields(kind, [number])],
            "symbol": _symbol(self.src),
        }

    @cached_property
    def key(self) -> str:
        """The recipe as text: launches with the same recipe are launches of one kernel."""
        return json.dumps(self.recipe, sort_keys=True)


def _as_json(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_as_json(item) for item in value]
    return value if value is None or isinstance(value, (bool, int, str)) else repr(value)[:MOST_TEXT]


def _fields(value: Any, path: list[int]) -> Iterator[list[Any]]:
    """Yields [path, names] for each type of a tuple whose parts have names."""
    if isinstance(value, tuple):
        if hasattr(value, "_fields"):
            yield [path, list(value._fields)]
        for number, part in enumerate(value):
            yield from _fields(part, [*path, number])


def _symbol(source: ASTSource) -> str:
    """Returns the function's name as @triton.jit(repr=...) changes it; "" without repr."""
    if source.fn._repr is None:
        return ""
    constants = {source.fn.arg_names[path[0]]: value for path, value in source.constants.items() if len(path) == 1}
    return str(source.fn.repr(SimpleNamespace(constants=constants, signature=source.signature)))[:MOST_TEXT]


def _description_of(value: Any) -> JsonObject:
    """Returns the description of a value that a kernel is compiled with, in a form of wire.recorded_call.Recipe."""
    value = value.value if is_plain_constexpr(value) else value
    if type(value) is tuple:
        return {"items": [_told_item(item) for item in value]}
    if is_plain_tuple_class(type(value)):
        return {"named": [list(value._fields), [_told_item(item) for item in value]]}
    if isinstance(value, JITCallable) and not _is_of_triton(value) and not _is_changed(value):
        return {"function": [value.fn.__name__, _line(value)]}
    if is_plain_dtype(value):
        return {"dtype": value.name}
    if type(value) in (NoneType, bool, int, float, str) and len(repr(value)) <= MOST_TEXT:
        return {"value": repr(value)}
    if is_plain_tuple_class(value):
        defaults = [[name, *field] for name, field in _descriptions_of(value._field_defaults).items()]
        return {"tuple": [value.__name__, list(value._fields), defaults]}
    if _is_changed(value):
        return {"other": "changed after it was made"}
    path = _public_path(value)
    if path:
        return {"public": path}
    kind = "a Python function without @triton.jit" if isinstance(value, FunctionType) else ""
    return {"other": kind or f"an object of the class {type(value).__name__}"[:MOST_TEXT]}


def _is_changed(value: Any) -> bool:
    """Returns whether host code has changed this object of Triton's."""
    if isinstance(value, JITCallable):
        return not _is_of_triton(value) and not is_as_written(value)
    return type(value) is dtype and not is_plain_dtype(value)


def _told_item(value: Any) -> JsonObject:
    return {"constexpr": _description_of(value)} if isinstance(value, constexpr) else _description_of(value)


def _line(function: JITCallable) -> int:
    return getattr(getattr(function.fn, "__code__", None), "co_firstlineno", 0)


def _is_of_triton(function: JITCallable) -> bool:
    return getattr(getattr(function.fn, "__code__", None), "co_filename", "").startswith(TRITON)


def _public_path(value: Any) -> str:
    """Returns the path of a module of Triton, or "module.name" of a public object of one; "" for anything else."""
    if isinstance(value, ModuleType):
        return value.__name__
    for path in MODULES:
        for name, other in list(vars(sys.modules[path]).items()) if path in sys.modules else ():
            if other is value and not name.startswith("_"):
                return f"{path}.{name}"
    return ""


def _scopes(source: ASTSource) -> list[list[Any]]:
    """Returns what the kernel, and each function of the file that it may reach, sees in addition to its arguments.

    Each entry is [function, line, names, defaults]; each name or default is [name, 1 for a constexpr, value]. If
    functions at one place see different values of a name, no value is told.
    """
    functions = [source.fn]
    for value in source.constants.values():
        functions += [inner for inner in _functions_in(value) if inner not in functions]
    scopes: dict[tuple[str, int], tuple[JsonObject, JsonObject]] = {}
    for function in functions:  # the list grows meanwhile
        names, defaults = _names_of(function), defaults_of(function)
        for value in (*names.values(), *defaults.values()):
            functions += [inner for inner in _functions_in(value) if all(inner is not other for other in functions)]
        both = _descriptions_of(names), _descriptions_of(defaults)
        for known, new in zip(scopes.setdefault((function.fn.__name__, _line(function)), both), both):
            known |= {name: [1, TWO_VALUES] for name in new if known.get(name) != new[name]}
    for names_and_defaults in scopes.values():
        for known in names_and_defaults:
            if len(known) > MOST_NAMES or len(scopes) > MOST_NAMES:
                known |= dict.fromkeys(known, [1, TOO_MANY])
    return [
        [*place, *([[name, *value] for name, value in list(each.items())[:MOST_NAMES]] for each in names_and_defaults)]
        for place, names_and_defaults in list(scopes.items())[:MOST_NAMES]
    ]


def _descriptions_of(values: dict[str, Any]) -> dict[str, list[Any]]:
    return {
        name: UNTOLD.get(id(value)) or [int(isinstance(value, constexpr) or _is_changed(value)), _description_of(value)]
        for name, value in values.items()
    }


def _names_of(function: JITCallable) -> dict[str, Any]:
    scope, looked_for = function.get_capture_scope(), _looked_for(function.fn.__code__)
    names = [name for name in _names_in(function.src) if name in scope or name in looked_for]
    return {
        name: scope[name] if name in scope else ABSENT if python_has(function.fn, name) else CHANGED for name in names
    }


def _functions_in(value: Any) -> Iterator[JITCallable]:
    """Yields the functions of the file that a value is, or holds. Triton's own functions are left out."""
    value = value.value if isinstance(value, constexpr) else value
    if isinstance(value, JITCallable) and not _is_of_triton(value):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from _functions_in(item)


@cache
def _names_in(source: str) -> list[str]:
    """Returns the names in a function's body that are no parameters, and the names in its defaults and annotations."""
    (function,) = ast.parse(source).body
    if not isinstance(function, ast.FunctionDef):
        raise TypeError("Triton gave a text that does not begin with def")
    parameters = {node.arg for node in ast.iter_child_nodes(function.args) if isinstance(node, ast.arg)}
    inside = [name for statement in function.body for name in _named(statement) if name not in parameters]
    return list(dict.fromkeys([*inside, *_named(function.args)]))


@cache
def _looked_for(code: CodeType) -> frozenset[str]:
    """Returns the names that Python looks for in the module and then among its builtins."""
    own = {one.argval for one in get_instructions(code) if one.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    return frozenset(own).union(*(_looked_for(inner) for inner in code.co_consts if isinstance(inner, CodeType)))


def _named(node: ast.AST) -> list[str]:
    return [inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)]


def install(on_launch: Callable[..., None]) -> None:
    """Makes Triton turn JIT functions into Kernels, for the rest of this process. on_launch: see LazyKernel."""
    compile_lazily(lambda source, target, options: Kernel(source, target, options, on_launch))
    constexpr.__new__ = _function_or_constant


def _function_or_constant(cls: type, *value: Any) -> Any:
    """Replaces constexpr.__new__: a function that @tl.constexpr decorates is told as a constexpr function."""
    if len(value) == 1 and type(value[0]) is FunctionType:
        return triton.constexpr_function(value[0])
    return object.__new__(cls)


def is_plain_constexpr(value: Any) -> bool:
    """Returns whether a constant's type is the type of its value, as when it was made."""
    if type(value) is not constexpr or vars(value).keys() != {"value", "type"}:
        return False
    made = constexpr(value.value).type
    return type(value.type) is type(made) and vars(value.type) == vars(made)


def is_plain_dtype(value: Any) -> bool:
    return type(value) is dtype and vars(value) == vars(dtype(value.name))


def is_plain_tuple_class(kind: Any) -> bool:
    """Returns whether this is a class of tuples with names whose methods are as namedtuple makes them."""
    if type(kind) is not type or kind.__bases__ != (tuple,) or not isinstance(kind.__dict__.get("_fields"), tuple):
        return False
    try:
        made = _class_of_tuples(kind.__dict__["_fields"])
    except (TypeError, ValueError):  # no names
        return False
    own, names = vars(kind), vars(made).keys() - DESCRIBES
    if any(_deed(own.get(name)) != _deed(vars(made)[name]) for name in names - {"_field_defaults"}):
        return False
    if any(name.startswith("__") for name in own.keys() - names - DESCRIBES):
        return False
    new = own["__new__"].__func__
    is_ours = new.__globals__.get("_tuple_new") == tuple.__new__
    defaults = own.get("_field_defaults")
    return is_ours and isinstance(defaults, dict) and (new.__defaults__ or ()) == tuple(defaults.values())


@cache
def _class_of_tuples(fields: tuple[str, ...]) -> type:
    """Returns a class with these names; `rename` keeps the _1 of a name that Python has put there by itself."""
    return namedtuple("made", fields, rename=True)


def _deed(member: Any) -> Any:
    """Returns what a member of a class does: a function's code, the number of a field, or the member itself."""
    member = getattr(member, "__func__", member)
    code = getattr(member, "__code__", None)
    if isinstance(code, CodeType):
        return code
    return member.__reduce__()[1][0] if type(member).__name__ == "_tuplegetter" else member


def is_as_written(function: JITCallable) -> bool:
    """Returns whether a function's text, or code, is that of the lines in which it begins."""
    code = getattr(function.fn, "__code__", None)
    if not isinstance(code, CodeType):
        return False
    is_text = isinstance(function, JITFunction)
    return _has_text_of(code, function.src) if is_text else code in _codes_in(code.co_filename)


def _has_text_of(code: CodeType, text: str) -> bool:
    lines = linecache.getlines(code.co_filename)[code.co_firstlineno - 1 :]
    begin = next((number for number, line in enumerate(lines) if line.lstrip().startswith("def ")), len(lines))
    written, lines_of_text = lines[begin:], text.splitlines()
    margin = len(written[0]) - len(written[0].lstrip()) if written else 0
    last = max((line for line in _lines_of(code)), default=0) - code.co_firstlineno - begin
    return last < len(lines_of_text) <= len(written) and all(
        one.rstrip() == line[margin:].rstrip() for one, line in zip(lines_of_text, written)
    )


def _lines_of(code: CodeType) -> Iterator[int]:
    yield from (line for *_, line in code.co_lines() if line)
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _lines_of(inner)


@cache
def _codes_in(path: str) -> frozenset[CodeType]:
    source = "".join(linecache.getlines(path))
    return frozenset(_with_inner(compile(source, path, "exec", dont_inherit=True)))


def _with_inner(code: CodeType) -> Iterator[CodeType]:
    yield code
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _with_inner(inner)


def defaults_of(function: JITCallable) -> dict[str, Any]:
    """Returns the values of parameters that have a default; UNSURE for all if the signatures disagree."""
    signatures = [inspect.signature(function.fn), function.signature]
    read = [{name: parameter.default for name, parameter in each.parameters.items()} for each in signatures]
    first, *others = [*read, _raw_defaults(function.fn)]
    defaults = {name: value for name, value in first.items() if value is not inspect.Parameter.empty}
    is_sure = all(
        other.get(name, inspect.Parameter.empty) is value for other in others for name, value in first.items()
    )
    return defaults if is_sure else dict.fromkeys(first, UNSURE)


def _raw_defaults(function: FunctionType) -> dict[str, Any]:
    """Returns the defaults that Python uses in a call, by parameter."""
    names, defaults = function.__code__.co_varnames[: function.__code__.co_argcount], function.__defaults__ or ()
    return dict(zip(names[len(names) - len(defaults) :], defaults)) | (function.__kwdefaults__ or {})


def python_has(function: FunctionType, name: str) -> bool:
    """Returns whether the function sees Python's own object under this name, or nothing."""
    return getattr(function, "__builtins__", {}).get(name) is PYTHONS.get(name)
