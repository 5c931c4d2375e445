"""Checks on the syntax tree what the bodies of kernels and of constexpr functions name. Nothing runs for this.

The compiler evaluates a kernel's expressions as Python: attributes of modules and values, calls with constants. In
these bodies a name may therefore lead to Triton's public functions, math, constants and other kernels, and nowhere
else. Code outside of them may be any Python: it runs in the recording child alone, on tensors without values.
"""

from __future__ import annotations

import ast
import builtins
import difflib
from collections import deque
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

from grader.sentences import Said, Sentence
from grader.submission.nodes import Node, last_line
from grader.submission.public_names import MODULES, members

MOST_REFUSED = 100  # places of a file; a report shows a few
MOST_NAME = 60  # characters of a refused name that a sentence shows
# Decorators of functions that the compiler evaluates; @tl.constexpr makes a constant of a function, which is called.
CONSTEXPR_FUNCTIONS = ("triton.constexpr_function", "triton.language.constexpr")
BY_NAME = frozenset({"getattr", "hasattr"})  # allowed with the attribute's name as a literal text
# Methods of tiles and of tensor descriptors.
OF_TILES = frozenset({
    "abs", "advance", "argmax", "argmin", "associative_scan", "atomic_add", "atomic_and", "atomic_cas", "atomic_load",
    "atomic_max", "atomic_min", "atomic_or", "atomic_poll", "atomic_store", "atomic_xchg", "atomic_xor",
    "broadcast_to", "cast", "cdiv", "ceil", "cos", "cumprod", "cumsum", "erf", "exp", "exp2", "expand_dims", "flip",
    "floor", "gather", "histogram", "item", "load", "log", "log2", "logical_and", "logical_or", "max", "min",
    "permute", "ravel", "reduce", "reduce_or", "reshape", "rsqrt", "scatter", "sigmoid", "sin", "softmax", "sort",
    "split", "sqrt", "sqrt_rn", "store", "sum", "to", "trans", "view", "xor_sum",
})  # fmt: skip
# Attributes of tiles, types, descriptors and constants; methods of numbers, texts and lists; tl.PropagateNan's members.
OF_VALUES = frozenset({
    "ALL", "NONE", "T", "append", "bit_length", "block_shape", "block_type", "count", "dtype", "element_ty",
    "endswith", "extend", "get", "get_block_shapes", "index", "insert", "int_bitwidth", "int_signedness", "is_block",
    "is_bf16", "is_bool", "is_const", "is_dtype", "is_floating", "is_fp16", "is_fp32", "is_fp64", "is_fp8",
    "is_fp8e4b15", "is_fp8e4b8", "is_fp8e4nv", "is_fp8e5", "is_fp8e5b16", "is_int", "is_int1", "is_int16", "is_int32",
    "is_int64", "is_int8", "is_int_signed", "is_int_unsigned", "is_integer", "is_ptr", "is_standard_floating",
    "is_uint16", "is_uint32", "is_uint64", "is_uint8", "is_void", "items", "itemsize", "keys", "kind", "lower", "name",
    "nbytes", "ndim", "numel", "pop", "primitive_bitwidth", "rank", "replace", "return_layout", "scalar", "shape",
    "size", "startswith", "strides", "type", "upper", "value", "values",
})  # fmt: skip
# Words that lead into Python, torch or the compiler, whatever the file's own classes call their fields.
LEADS_ELSEWHERE = frozenset({
    "__all__", "asm", "builder", "core", "device_caches", "driver", "exec", "fn", "format", "format_map", "handle",
    "handles", "hook", "inspect", "mro", "np", "os", "parse", "raw_src", "run", "semantic", "src", "standard", "sys",
    "torch", "triton", "used_global_vals", "warmup",
})  # fmt: skip

SINGLE = (None, True, False)  # of which Python has one object each

NOT_ALLOWED = "Line {line}: {what} is not allowed in {body}. "
# The compiler knows these, and a constexpr function takes Python's. Other names lead anywhere, or nowhere in a kernel.
BUILTINS = frozenset({
    "abs", "all", "any", "bool", "dict", "divmod", "enumerate", "float", "int", "isinstance", "len", "list", "map",
    "max", "min", "pow", "print", "range", "reversed", "round", "set", "slice", "sorted", "str", "sum", "super",
    "tuple", "zip", "None", "True", "False", "Ellipsis", "NotImplemented",
})  # fmt: skip

# torch's names of dtypes -> the names of tl
TORCH_DTYPES = {
    "float16": "float16", "half": "float16", "bfloat16": "bfloat16", "float32": "float32", "float": "float32",
    "float64": "float64", "double": "float64", "bool": "int1", "uint8": "uint8", "int8": "int8", "int16": "int16",
    "int32": "int32", "int": "int32", "int64": "int64", "long": "int64",
}  # fmt: skip

# The word of torch, of NumPy or of a beginner -> how a kernel says it.
SAID_IN_KERNELS = {
    "bfloat16": "x.to(tl.bfloat16)", "bf16": "tl.bfloat16", "bmm": "tl.dot(a, b)",
    "clamp": "tl.clamp(x, min, max)", "double": "x.to(tl.float64)", "empty": "tl.zeros(shape, dtype)",
    "expand": "x[:, None] or x[None, :]", "float": "x.to(tl.float32)", "fp16": "tl.float16", "fp32": "tl.float32",
    "fp64": "tl.float64", "half": "x.to(tl.float16)", "inf": 'float("inf")', "int": "x.to(tl.int32)",
    "long": "x.to(tl.int64)",
    "masked_fill": "tl.where(mask, a, b)", "matmul": "tl.dot(a, b)", "mean": "tl.sum(x, 0) over their number",
    "mm": "tl.dot(a, b)", "nan": 'float("nan")', "newaxis": "None, as in x[:, None]",
    "outer": "a column times a row, [:, None] "
    "and [None, :]", "pow": "x * x", "relu": "tl.where, or tl.maximum", "silu": "x * tl.sigmoid(x)", "square": "x * x",
    "stride": "an argument of the kernel, as stride_xm", "t": "tl.trans(x)", "tanh": "made of tl.exp",
    "transpose": "tl.trans(x)", "unsqueeze": "x[:, None] or x[None, :]",
}  # fmt: skip


class KernelNames(Sentence):
    """Sentences about names that a body may not use. {body}: "a kernel" or "a constexpr function"."""

    MODULE = NOT_ALLOWED + "In a kernel only tl works, as in tl.arange or tl.exp."
    OF_TL = NOT_ALLOWED + "In a kernel only tl works: tl.{near} is there too."
    DTYPE_OF_TORCH = NOT_ALLOWED + "Kernels use the dtypes of tl: tl.{dtype}."
    IN_KERNELS = NOT_ALLOWED + "In a kernel it is {instead}."
    NO_SUCH_ATTRIBUTE = NOT_ALLOWED + "Is .{near} meant?"
    NOT_IMPORTED = "Line {line}: {body} uses {what}, and the file does not import math: add `import math` at its top."
    NO_INFINITY = (
        "Line {line}: {body} uses {what}, and the file does not import math: add `import math` at its top, or write "
        'float("inf").'
    )
    MISSPELT = NOT_ALLOWED + "Is tl.{near} meant?"
    NOT_PUBLIC = NOT_ALLOWED + "Kernels use the public functions of tl, as in tl.load."
    UNDERSCORE = NOT_ALLOWED + "Names with an underscore belong to Python itself."
    TWO_UNDERSCORES = NOT_ALLOWED + "Names with two underscores belong to Python itself."
    BUILTIN = NOT_ALLOWED + "Use tl, the parameters and constants of the file."
    ATTRIBUTE = NOT_ALLOWED + "Kernels use tl and the methods of tiles, as in x.to()."
    INNER_DEFINITION = NOT_ALLOWED + "Write it outside of the function."
    OF_OUTSIDE = NOT_ALLOWED + "Take what you need as a parameter."
    IDENTITY = NOT_ALLOWED + "Write {instead}: `is` asks for one object in memory, and equal values may be two."
    AS_A_VALUE = "Line {line}: {what} as a value is not allowed in {body}. Use what you need of it, as in tl.load."
    NEW_VALUE = "Line {line}: a new value for {what} is not allowed in {body}. Give the result a name of its own."
    HIDES_A_MODULE = (
        "Line {line}: a new value for {what} is not allowed in {body}. Choose another name: this one is a module's."
    )


@dataclass(frozen=True)
class Refused:
    """A part of a body that leads elsewhere. `sentence` says which part, and what to write instead."""

    line: int
    sentence: Said
    column: int = 0  # where it ends


def all_refused(tree: ast.Module) -> list[Refused]:
    """Returns what the compiler's functions name and may not use, in the order of the text, MOST_REFUSED at most."""
    names = FileNames(tree)
    found: dict[tuple[int, int, str], Refused] = {}  # so that the same place in two bodies is named once
    for name in chain.from_iterable(_Body(names, body).refused() for body in names.bodies):
        found[name.line, name.column, name.sentence.text] = name
        if len(found) == MOST_REFUSED:
            break
    return sorted(found.values(), key=lambda refused: (refused.line, refused.column))


class FileNames:
    """The names that a file gives to Triton's modules, and the functions in it that the compiler evaluates."""

    def __init__(self, tree: ast.Module):
        self.nodes = list(ast.walk(tree))
        self.imported = self._imported()  # name in the file -> "torch", "triton.language.load"
        self.tuples = self._named_tuples()  # name of a named tuple -> names of its fields
        self.fields = self._fields()
        self.calls = [n for n in self.nodes if isinstance(n, ast.Call) and self.path(n.func) == "triton.jit"]
        called = {arg.id for call in self.calls for arg in call.args if isinstance(arg, ast.Name)}
        functions = [node for node in self.nodes if isinstance(node, ast.FunctionDef)]
        kernels = [f for f in functions if self._decorated(f, "triton.jit") or f.name in called]
        constexpr_functions = [f for f in functions if any(self._decorated(f, path) for path in CONSTEXPR_FUNCTIONS)]
        self.kernels = frozenset(kernels)
        self.bodies = dict.fromkeys(kernels + constexpr_functions)  # in this order
        self.stored = _stored(self.nodes)
        self.near: dict[str, str] = {}  # name that tl lacks -> a public name spelt nearly the same, or ""

    def path(self, node: ast.expr) -> str:
        """Returns the dotted path of the module, or the member of a module, that an expression names:
        "triton.language.load"; "" if it names none."""
        if isinstance(node, ast.Attribute) and (inner := self.path(node.value)):
            return f"{inner}.{node.attr}"
        return self.imported.get(node.id, "") if isinstance(node, ast.Name) else ""

    def decorator(self, function: ast.FunctionDef, path: str) -> ast.expr | None:
        """Returns the function's decorator with this path, alone or called; None if it has none."""
        named = function.decorator_list
        return next((one for one in named if self.path(one.func if isinstance(one, ast.Call) else one) == path), None)

    def _decorated(self, function: ast.FunctionDef, path: str) -> bool:
        return self.decorator(function, path) is not None

    def _imported(self) -> dict[str, str]:
        paths = {}
        for node in self.nodes:
            if isinstance(node, ast.Import):
                for name in node.names:
                    top = name.name.partition(".")[0]
                    paths[name.asname or top] = name.name if name.asname else top
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                paths |= {name.asname or name.name: f"{node.module}.{name.name}" for name in node.names}
        for node in self.nodes:  # jit = triton.jit
            if isinstance(node, ast.Assign) and isinstance(node.value, (ast.Attribute, ast.Name)):
                stored = [target.id for target in node.targets if isinstance(target, ast.Name)]
                if _first_name(node.value) in paths:
                    self.imported = paths
                    path = self.path(node.value)
                    paths |= {name: path for name in stored if path in ("triton.jit", *CONSTEXPR_FUNCTIONS)}
        return paths

    def _fields(self) -> set[str]:
        """Returns the fields of the file's own classes: a tuple with names is an argument like others."""
        classes = (node for node in self.nodes if isinstance(node, ast.ClassDef))
        fields = {name for node in classes for name in _annotated(node)}
        return fields.union(*self.tuples.values()) - LEADS_ELSEWHERE

    def _named_tuples(self) -> dict[str, list[str]]:
        """Returns the fields of class Pair(NamedTuple) and Pair = namedtuple("Pair", "x y"), which kernels may make
        too."""
        classes = {}
        for node in self.nodes:
            if isinstance(node, ast.ClassDef) and [self.path(base) for base in node.bases] == ["typing.NamedTuple"]:
                classes[node.name] = _annotated(node)
            elif isinstance(node, ast.Assign) and (fields := self.namedtuple_fields(node.value)):
                classes |= {target.id: fields for target in node.targets if isinstance(target, ast.Name)}
        return classes

    def namedtuple_fields(self, node: ast.expr) -> list[str]:
        """Returns the fields of namedtuple("Pair", "x y"); [] for anything else."""
        if isinstance(node, ast.Call) and self.path(node.func) == "collections.namedtuple" and len(node.args) == 2:
            return _literal_names(node.args[1])
        return []


class _Body:
    """A function that the compiler evaluates, without its annotations and defaults: they run in the file alone."""

    def __init__(self, names: FileNames, function: ast.FunctionDef):
        self.names, self.function = names, function
        self.nodes = list(_inside(function.body, names.bodies))
        self.kind = "a kernel" if function in names.kernels else "a constexpr function"
        self.own = {node.arg for node in (*ast.walk(function.args), *self.nodes) if isinstance(node, ast.arg)}
        self.own |= _stored(self.nodes)
        in_comprehensions = _stored(inner for node in self.nodes for inner in _targets_of(node))
        self.own -= in_comprehensions & vars(builtins).keys()  # outside of the comprehension they are Python's

    def refused(self) -> Iterator[Refused]:
        by_name = {id(node.func) for node in self.nodes if isinstance(node, ast.Call) and self._is_by_name(node)}
        inside = {id(node.value) for node in self.nodes if isinstance(node, ast.Attribute)}
        for node in self.nodes:
            if isinstance(node, ast.Name):
                if id(node) not in by_name:
                    yield from self._name(node, alone=id(node) not in inside)
            elif isinstance(node, ast.Attribute):
                yield from self._attribute(node, alone=id(node) not in inside)
            elif isinstance(node, ast.Compare):
                yield from self._identities(node)
            elif isinstance(node, ast.MatchClass):
                yield from (self._no_value_has(node, name) for name in node.kwd_attrs if not self._is_attribute(name))
            elif isinstance(node, (ast.Import, ast.ImportFrom, ast.ClassDef)):
                yield self._refuse(KernelNames.INNER_DEFINITION, node, _first_line(node))
            elif isinstance(node, (ast.Global, ast.Nonlocal, ast.Await, ast.AsyncFunctionDef)):
                yield self._refuse(KernelNames.OF_OUTSIDE, node, _first_line(node))

    def _name(self, node: ast.Name, alone: bool) -> Iterator[Refused]:
        if node.id.startswith("__"):
            yield self._refuse(KernelNames.TWO_UNDERSCORES, node, node.id)
        elif node.id in self.own or not isinstance(node.ctx, ast.Load):
            return
        elif path := self.names.imported.get(node.id):
            yield from self._of_a_module(node, path, alone)
        elif node.id in vars(builtins) and node.id not in BUILTINS:
            yield self._refuse(KernelNames.BUILTIN, node, node.id)

    def _attribute(self, node: ast.Attribute, alone: bool) -> Iterator[Refused]:
        path = self.names.path(node)
        of_a_module = path and _first_name(node) not in self.own
        if of_a_module and not _is_value(self.names.path(node.value)):
            yield from self._of_a_module(node, path, alone)
        elif not self._is_attribute(node.attr):
            yield self._hidden_module(node) or self._not_imported(node) or self._no_value_has(node, node.attr)
        elif not isinstance(node.ctx, ast.Load):
            yield self._refuse(KernelNames.NEW_VALUE, node, _text_of(node))

    def _identities(self, node: ast.Compare) -> Iterator[Refused]:
        """Yields a refusal for each `a is b` unless a or b is None, True or False, of which Python has one object
        each."""
        for left, compared, right in zip([node.left, *node.comparators], node.ops, node.comparators):
            if isinstance(compared, (ast.Is, ast.IsNot)) and not (_is_single(left) or _is_single(right)):
                pair = ast.copy_location(ast.Compare(left, [compared], [right]), left)
                equal = ast.Compare(left, [ast.Eq() if isinstance(compared, ast.Is) else ast.NotEq()], [right])
                yield self._refuse(KernelNames.IDENTITY, pair, _text_of(pair), instead=_short(_text_of(equal)))

    def _of_a_module(self, node: ast.expr, path: str, alone: bool) -> Iterator[Refused]:
        """Yields a refusal for a module before a dot, or for what stands behind the dot. `path`: of the node. `alone`:
        no dot follows."""
        module, _, name = path.rpartition(".")
        if path in MODULES or path == "math":
            if alone:
                yield self._refuse(KernelNames.AS_A_VALUE, node, _text_of(node))
        elif module == "math":
            if name.startswith("_"):
                yield self._refuse(KernelNames.UNDERSCORE, node, path)
        elif module not in MODULES:
            if not alone and (isinstance(node, ast.Name) or not path.startswith("triton.")):
                return  # the whole is named, with what stands behind the dot
            if module == "torch" and name in TORCH_DTYPES:
                yield self._refuse(KernelNames.DTYPE_OF_TORCH, node, path, dtype=TORCH_DTYPES[name])
            elif not self._is_refused_below(node):
                yield self._of_torch(node, path, name)
        elif name not in members(module):
            yield self._not_public(node, module, path)

    def _of_torch(self, node: ast.expr, path: str, name: str) -> Refused:
        """Returns the refusal of a name of torch, such as torch.exp, with what a kernel has instead."""
        if path.startswith(("torch.", "numpy.")) and name in SAID_IN_KERNELS:
            return self._refuse(KernelNames.IN_KERNELS, node, path, instead=SAID_IN_KERNELS[name])
        if path == f"torch.{name}" and name in members("triton.language"):
            return self._refuse(KernelNames.OF_TL, node, path, near=name)
        return self._refuse(KernelNames.MODULE, node, path)

    def _is_refused_below(self, node: ast.expr) -> bool:
        """Returns whether a shorter path is refused already: triton.a.b.c is refused once, for triton.a."""
        inner = self.names.path(node.value) if isinstance(node, ast.Attribute) else ""
        return bool(inner) and inner.partition(".")[0] == "triton" and inner not in MODULES

    def _is_attribute(self, name: str) -> bool:
        return not name.startswith("_") and (name in OF_TILES or name in OF_VALUES or name in self.names.fields)

    def _is_by_name(self, call: ast.Call) -> bool:
        """Returns whether a call asks for an allowed attribute by a literal name: getattr(x, "dtype")."""
        if not isinstance(call.func, ast.Name) or call.func.id not in BY_NAME or len(call.args) < 2 or call.keywords:
            return False
        module = self.names.path(call.args[0])
        name = call.args[1].value if isinstance(call.args[1], ast.Constant) else None
        return not module and isinstance(name, str) and self._is_attribute(name)

    def _hidden_module(self, node: ast.Attribute) -> Refused | None:
        """Returns the refusal of tl.load where tl is a parameter; None where no module's name stands before the dot."""
        if not isinstance(node.value, ast.Name) or node.value.id not in self.names.imported:
            return None
        return self._refuse(KernelNames.HIDES_A_MODULE, node, node.value.id)

    def _not_imported(self, node: ast.Attribute) -> Refused | None:
        """Returns the refusal of math.inf, in a file that gives `math` no meaning; None for anything else."""
        if not isinstance(node.value, ast.Name) or node.value.id != "math" or node.attr[0] == "_":
            return None
        if "math" in self.own or "math" in self.names.imported or "math" in self.names.stored:
            return None
        sentence = KernelNames.NO_INFINITY if node.attr == "inf" else KernelNames.NOT_IMPORTED
        return self._refuse(sentence, node, _text_of(node))

    def _no_value_has(self, node: Node, name: str) -> Refused:
        if name in SAID_IN_KERNELS:
            return self._refuse(KernelNames.IN_KERNELS, node, f".{name}", instead=SAID_IN_KERNELS[name])
        if near := next((method for method in OF_TILES | OF_VALUES if method.lower() == name.lower()), ""):
            return self._refuse(KernelNames.NO_SUCH_ATTRIBUTE, node, f".{name}", near=near)
        return self._refuse(KernelNames.ATTRIBUTE, node, f".{name}")

    def _not_public(self, node: ast.expr, module: str, path: str) -> Refused:
        name, near = path.rpartition(".")[2], self.names.near
        if module == "triton.language" and name in SAID_IN_KERNELS:
            return self._refuse(KernelNames.IN_KERNELS, node, path, instead=SAID_IN_KERNELS[name])
        if module == "triton.language" and name not in near:
            near[name] = next(iter(difflib.get_close_matches(name, members(module), 1, 0.7)), "")
        if module == "triton.language" and near.get(name):
            return self._refuse(KernelNames.MISSPELT, node, path, near=near[name])
        return self._refuse(KernelNames.NOT_PUBLIC, node, path)

    def _refuse(self, sentence: KernelNames, node: Node, what: str, **evidence: str) -> Refused:
        line = last_line(node) if isinstance(node, ast.Attribute) else node.lineno  # the attribute stands at the end
        words = sentence(line=line, what=_short(what), body=self.kind, **evidence)
        return Refused(line, words, node.end_col_offset or 0)


def _is_single(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and any(node.value is single for single in SINGLE)


def _inside(nodes: Iterable[ast.AST], bodies: Collection[ast.AST]) -> Iterator[ast.AST]:
    """Yields these nodes and all nodes in them, but for functions that are bodies themselves and are read as bodies."""
    waiting = deque(nodes)
    while waiting:
        if (node := waiting.popleft()) not in bodies:
            yield node
            waiting.extend(ast.iter_child_nodes(node))


def _stored(nodes: Iterable[ast.AST]) -> set[str]:
    return {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def _targets_of(node: ast.AST) -> Iterator[ast.AST]:
    """Yields the nodes of a comprehension's targets: the names that it gives values."""
    for generator in getattr(node, "generators", []):
        yield from ast.walk(generator.target)


def _annotated(node: ast.ClassDef) -> list[str]:
    """Returns the names of annotated fields, as x in `x: int`, in order."""
    targets = [inner.target for inner in node.body if isinstance(inner, ast.AnnAssign) and inner.simple]
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _literal_names(node: ast.expr) -> list[str]:
    """Returns the names in "x y", "x, y" or ["x", "y"]; [] for anything else."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value.replace(",", " ").split()
    parts = node.elts if isinstance(node, (ast.List, ast.Tuple)) else []
    return [part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)]


def _first_line(node: ast.AST) -> str:
    return _text_of(node).splitlines()[0]


def _text_of(node: ast.AST) -> str:
    """Returns the source of a node; its kind where Python cannot write it, as for a number of 4301 digits."""
    try:
        return ast.unparse(node)
    except ValueError:
        return f"this {type(node).__name__.removesuffix('Def').lower()}"


def _first_name(node: ast.expr) -> str:
    """Returns "a" for a.b.c; "" where another expression stands before the dots."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _short(what: str) -> str:
    """Returns the beginning and the end of a long text: names that are alike up to there differ somewhere."""
    return what if len(what) <= MOST_NAME else f"{what[: MOST_NAME // 2]}...{what[-MOST_NAME // 2 :]}"


def _is_value(path: str) -> bool:
    """Returns whether a path names a member that is no module, as tl.float32: a name behind its dot is an attribute
    like others."""
    module, _, name = path.rpartition(".")
    return path not in MODULES and module in MODULES and name in members(module)
