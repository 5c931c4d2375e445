"""What a submission may import and name, read off its syntax tree. Nothing of it runs for this.

A kernel file needs torch to allocate, triton to launch, tl in kernels, and a little Python. All else could leave the
child's watched torch: another module, a private name, a built-in that runs text. So what is not on a list is refused,
with its line. Below `if __name__ == "__main__":` a learner may do anything; the grader never runs that part.
"""

from __future__ import annotations

import ast
import builtins
import difflib
import string
from collections.abc import Iterator
from dataclasses import dataclass

from grader.allowed_names import (
    BASES_ONLY,
    DECORATORS_ONLY,
    LEADS_ELSEWHERE,
    MODULES,
    OF_TILES,
    SPECIAL_METHODS,
    SPECIAL_NAMES,
    attributes,
    is_harmless_builtin,
    members,
)  # fmt: skip

MAIN_GUARDS = ("__name__ == '__main__'", "'__main__' == __name__")
OWN_INSTANCES = {"self", "cls", "ctx"}  # what a method calls its object: its attributes may be assigned
TRY_OUT = 'For trying things out, everything is allowed below `if __name__ == "__main__":`.'


@dataclass(frozen=True)
class Refused:
    """Something in the text that is on no list. `sentence` says what, and what to do in its place."""

    line: int
    sentence: str
    column: int = 0  # where it ends


def first_refused(tree: ast.Module) -> Refused | None:
    """The first thing in the file that is not allowed, None if all is."""
    found = list(_Reader(tree).refused())
    return min(found, key=lambda refused: (refused.line, refused.column), default=None)


class _Reader:
    def __init__(self, tree: ast.Module):
        top = [part for statement in tree.body for part in _without_main(statement)]
        self.nodes = [node for statement in top for node in ast.walk(statement)]
        self.parents = {id(child): node for node in self.nodes for child in ast.iter_child_nodes(node)}
        self.imported = self._imported()  # name in the file -> "torch", "triton.language.load"
        self.own = self._own_attributes()
        self.assigned = {
            node.id
            for node in self.nodes
            if isinstance(node, ast.Name) and _is_stored(node) and not self._is_lambda(node)
        }
        self.decorated = {
            node.name for node in self.nodes if isinstance(node, ast.FunctionDef) and self._is_wrapped(node)
        }

    def refused(self) -> Iterator[Refused]:
        for node in self.nodes:
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                yield from self._import(node)
            elif isinstance(node, ast.Attribute):
                yield from self._attribute(node)
            elif isinstance(node, ast.Name):
                yield from self._name(node)
            elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                yield from self._definition(node)
            elif isinstance(node, ast.MatchClass):
                yield from (_not_an_attribute(node, name) for name in node.kwd_attrs if not self._is_attribute(name))
            elif isinstance(node, (ast.AsyncFunctionDef, ast.Await)):
                yield _refused(node, "async", "Kernels and what launches them need no coroutines.")
            for name in _bound_names(node):
                yield from self._new_name(node, name)

    # ---- imports ----------------------------------------------------------------------------------------

    def _imported(self) -> dict[str, str]:
        found = {}
        for node in self.nodes:
            if isinstance(node, ast.Import):
                for name in node.names:
                    top = name.name.partition(".")[0]
                    found[name.asname or top] = name.name if name.asname else top
            elif isinstance(node, ast.ImportFrom) and node.module:
                found |= {name.asname or name.name: f"{node.module}.{name.name}" for name in node.names}
        return found

    def _import(self, node: ast.Import | ast.ImportFrom) -> Iterator[Refused]:
        if isinstance(node, ast.Import):
            for name in node.names:
                if name.name not in MODULES:
                    yield _not_importable(node, f"import {name.name}", name.name)
            return
        module = node.module or "."
        for name in node.names:
            written = f"from {'.' * node.level}{node.module or ''} import {name.name}"
            if node.level or module not in MODULES:
                yield _not_importable(node, written, "grader" if node.level else module)
            elif name.name == "*":
                yield _refused(node, written, "Import the names that you use, one by one.")
            elif name.name not in members(module):
                yield _refused(node, written, _instead_of(f"{module}.{name.name}"))

    # ---- names ------------------------------------------------------------------------------------------

    def _name(self, node: ast.Name) -> Iterator[Refused]:
        if _is_stored(node):
            return  # a bound name
        path = self.imported.get(node.id)
        if path in MODULES:
            if not isinstance(self.parents.get(id(node)), ast.Attribute):
                yield _refused(node, f"{node.id} as a value", "Use what you need of a module, as in torch.empty.")
        elif path is not None:
            yield from self._place_of(node, node.id, path)
        elif node.id in SPECIAL_NAMES:
            return
        elif node.id.startswith("__"):
            yield _refused(node, node.id, "Names with two underscores belong to Python itself.")
        elif node.id in vars(builtins) and not is_harmless_builtin(node.id):
            yield _refused(node, node.id, _instead_of_builtin(node.id))
        elif node.id == "isinstance" and self._kernel_around(node):
            yield _refused(node, "isinstance in a kernel", "A kernel knows what its parameters are.")

    def _place_of(self, node: ast.expr, written: str, path: str) -> Iterator[Refused]:
        """Some names are fine in one place only."""
        parent = self.parents.get(id(node))
        if path in BASES_ONLY:
            inner = self.parents.get(id(parent)) if isinstance(parent, ast.Subscript) else parent  # Generic[T]
            if not isinstance(inner, ast.ClassDef) or node in inner.decorator_list:
                yield _refused(node, f"{written} as a value", f"Write a class: class Name({written}): ...")
        elif path in DECORATORS_ONLY:
            inner, child = (self.parents.get(id(parent)), parent) if _calls(parent, node) else (parent, node)
            if not isinstance(inner, ast.FunctionDef) or child not in inner.decorator_list:
                yield _refused(node, f"{written} as a value", f"Write @{written} above the kernel.")

    def _new_name(self, node: ast.AST, name: str) -> Iterator[Refused]:
        """What any statement may not call its variables."""
        importing = isinstance(node, (ast.Import, ast.ImportFrom))
        if self.imported.get(name) in MODULES and not importing:
            yield _refused(node, f"a new value for {name}", "Choose another name: this one is a module's.")
        elif name.startswith("__") and name != "__all__" and not isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield _refused(node, f"a new value for {name}", "It belongs to Python itself.")
        elif name in vars(builtins) and not is_harmless_builtin(name):
            yield _refused(node, f"a new value for {name}", "Choose another name: this one is Python's own.")

    # ---- attributes -------------------------------------------------------------------------------------

    def _attribute(self, node: ast.Attribute) -> Iterator[Refused]:
        path = self._path(node.value)
        if path is None:
            yield from self._attribute_of_a_value(node)
            return
        written, full = ast.unparse(node), f"{path}.{node.attr}"
        if _is_stored(node):
            yield _refused(node, f"a new value for {written}", "Modules stay as they are.")
        elif node.attr not in members(path):
            yield _refused(node, full, _instead_of(full))
        elif full in MODULES:
            if not isinstance(self.parents.get(id(node)), ast.Attribute):
                yield _refused(node, f"{full} as a value", "Use what you need of a module, as in torch.empty.")
        else:
            yield from self._place_of(node, full, full)

    def _attribute_of_a_value(self, node: ast.Attribute) -> Iterator[Refused]:
        if node.attr == "__init__" and ast.unparse(node.value) == "super()":
            return
        if _is_format_of_text(node):
            return
        if not self._is_attribute(node.attr):
            module = self._missing_import(node)
            yield _not_imported(node, module) if module else _not_an_attribute(node, node.attr)
        elif _is_stored(node) and getattr(node.value, "id", "") not in OWN_INSTANCES:
            yield _refused(
                node, f"a new value for {ast.unparse(node)}", "Tensors, kernels and functions stay as they are."
            )
        elif _is_called(node, self.parents) and node.attr not in OF_TILES and self._kernel_around(node):
            yield _refused(
                node, f".{node.attr}() in a kernel", "Kernels use tl and the methods of tiles, as in x.to()."
            )

    def _missing_import(self, node: ast.Attribute) -> str | None:
        """math, of math.inf in a file that does not import it."""
        name = node.value.id if isinstance(node.value, ast.Name) else ""
        return name if name in MODULES and name not in self.imported else None

    def _is_attribute(self, name: str) -> bool:
        return not name.startswith("_") and (name in attributes() or name in self.own)

    def _path(self, node: ast.expr) -> str | None:
        """The module that an expression names: "torch.nn.functional"; None if it names none."""
        if isinstance(node, ast.Name):
            path = self.imported.get(node.id)
            return path if path in MODULES else None
        if isinstance(node, ast.Attribute) and (path := self._path(node.value)):
            return f"{path}.{node.attr}" if f"{path}.{node.attr}" in MODULES else None
        return None

    # ---- definitions ------------------------------------------------------------------------------------

    def _own_attributes(self) -> set[str]:
        """Fields and methods of the file's own classes."""
        found = set()
        for node in self.nodes:
            if isinstance(node, ast.ClassDef):
                found |= {name for statement in node.body for name in _names_in_class(statement)}
            elif isinstance(node, ast.Attribute) and _is_stored(node):
                found |= {node.attr} if getattr(node.value, "id", "") in OWN_INSTANCES else set()
        return found - LEADS_ELSEWHERE

    def _definition(self, node: ast.FunctionDef | ast.ClassDef) -> Iterator[Refused]:
        if isinstance(node, ast.FunctionDef) and self._is_kernel(node):
            same = [other for other in self.nodes if self._is_kernel(other) and other.name == node.name]
            if node is not same[0]:
                yield _refused(node, f"a second kernel named {node.name}", "Give each kernel a name of its own.")
        if node.name.startswith("__") and node.name not in SPECIAL_METHODS:
            yield _refused(node, f"a definition of {node.name}", "It changes how Python itself treats a value.")
        if isinstance(node, ast.FunctionDef):
            if self._is_kernel(node):
                yield from self._kernel(node)
            return
        if node.keywords:
            yield _refused(node, f"class {node.name} with a metaclass", "A plain class will do.")
        for statement in node.body:
            for name in _names_in_class(statement):
                if name in LEADS_ELSEWHERE or name in OF_TILES:
                    yield _refused(statement, f"the name {name} in a class", "Choose another name for it.")

    # ---- kernels ----------------------------------------------------------------------------------------

    def _is_kernel(self, node: ast.AST) -> bool:
        if not isinstance(node, ast.FunctionDef):
            return False
        decorators = [d.func if isinstance(d, ast.Call) else d for d in node.decorator_list]
        return any(self._full_name(decorator) == "triton.jit" for decorator in decorators)

    def _full_name(self, node: ast.expr) -> str:
        if isinstance(node, ast.Name):
            return self.imported.get(node.id, "")
        path = self._path(node.value) if isinstance(node, ast.Attribute) else None
        return f"{path}.{node.attr}" if path else ""

    def _kernel_around(self, node: ast.AST) -> ast.FunctionDef | None:
        """The kernel in whose body the node stands."""
        child, parent = node, self.parents.get(id(node))
        while parent is not None:
            if self._is_kernel(parent) and child in parent.body:
                return parent
            child, parent = parent, self.parents.get(id(parent))
        return None

    def _kernel(self, kernel: ast.FunctionDef) -> Iterator[Refused]:
        """A kernel calls tl, methods of tiles and other kernels. What a variable holds may be any Python function."""
        for node in (inner for statement in kernel.body for inner in ast.walk(statement)):
            if not isinstance(node, ast.Call):
                continue
            called, advice = node.func, "A kernel calls tl, and functions under @triton.jit by their names."
            if isinstance(called, ast.Name):
                if called.id in _parameters(kernel) | self.assigned | self.decorated:
                    yield _refused(node, f"a call of {called.id} in a kernel", advice)
            elif not isinstance(called, ast.Attribute):
                yield _refused(node, f"the call {ast.unparse(called)[:40]}() in a kernel", advice)
            elif self._full_name(called).partition(".")[0] in ("functools", "itertools", "dataclasses", "collections"):
                yield _refused(node, f"{ast.unparse(called)}() in a kernel", advice)

    def _is_lambda(self, stored: ast.Name) -> bool:
        """Such a name cannot be called in a kernel, and the compiler says why."""
        parent = self.parents.get(id(stored))
        return isinstance(parent, ast.Assign) and isinstance(parent.value, ast.Lambda)

    def _is_wrapped(self, function: ast.FunctionDef) -> bool:
        """Under a decorator that may give back anything, a tl.constexpr that holds a Python function for one."""
        return bool(function.decorator_list) and not (self._is_kernel(function) and len(function.decorator_list) == 1)


def _without_main(statement: ast.stmt) -> list[ast.stmt]:
    """A statement of the module, or what stands beside its `if __name__ == "__main__":`."""
    if isinstance(statement, ast.If) and ast.unparse(statement.test) in MAIN_GUARDS:
        return statement.orelse
    return [statement]


def _is_stored(node: ast.Name | ast.Attribute) -> bool:
    return not isinstance(node.ctx, ast.Load)


def _calls(node: ast.AST | None, function: ast.expr) -> bool:
    return isinstance(node, ast.Call) and node.func is function


def _is_called(node: ast.expr, parents: dict[int, ast.AST]) -> bool:
    return _calls(parents.get(id(node)), node)


def _bound_names(node: ast.AST) -> Iterator[str]:
    """Names that get a value here."""
    if isinstance(node, ast.Name) and _is_stored(node):
        yield node.id
    elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield node.name
    elif isinstance(node, ast.arg):
        yield node.arg
    elif isinstance(node, (ast.Import, ast.ImportFrom)):
        yield from (name.asname for name in node.names if name.asname)
    elif isinstance(node, (ast.Global, ast.Nonlocal)):
        yield from node.names
    elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name:
        yield node.name
    elif isinstance(node, ast.MatchMapping) and node.rest:
        yield node.rest


def _names_in_class(statement: ast.stmt) -> Iterator[str]:
    if isinstance(statement, ast.FunctionDef):
        yield statement.name
    else:
        yield from (node.id for node in ast.walk(statement) if isinstance(node, ast.Name) and _is_stored(node))


def _parameters(function: ast.FunctionDef) -> set[str]:
    return {node.arg for node in ast.walk(function.args) if isinstance(node, ast.arg)}


def _is_format_of_text(node: ast.Attribute) -> bool:
    """ "{} of {}".format: its text stands there and reaches into no value, as "{0.shape}" would."""
    if node.attr != "format" or not isinstance(node.value, ast.Constant) or not isinstance(node.value.value, str):
        return False
    try:
        fields = [(name or "", spec or "") for _, name, spec, _ in string.Formatter().parse(node.value.value)]
    except ValueError:
        return False
    return not any("." in name or "[" in name or "{" in spec for name, spec in fields)


# ---- sentences ------------------------------------------------------------------------------------------


def _not_importable(node: ast.stmt, written: str, module: str) -> Refused:
    if module.startswith(("exercises", "solutions", "grader", "tests")):
        return _refused(node, written, "A submission is one file, and all that it uses stands in it.")
    listed = "torch, triton, triton.language, math and a few more of Python's own"
    return _refused(
        node, written, f'It may import {listed}; for trying things out, import below `if __name__ == "__main__":`.'
    )


def _not_imported(node: ast.Attribute, module: str) -> Refused:
    sentence = f"Line {node.lineno}: {module} is used and not imported. Add `import {module}` at the top."
    return Refused(node.lineno, sentence, node.col_offset)


def _not_an_attribute(node: ast.AST, name: str) -> Refused:
    if name in ("format", "format_map"):
        return _refused(node, f".{name}()", 'Write an f-string, as in f"{x.shape}".')
    return _refused(node, f".{name}", f"No tensor, kernel or plain value needs it to launch a kernel. {TRY_OUT}")


def _instead_of(full: str) -> str:
    if full == "torch.compile":
        return "It would write the kernel that you are to write."
    if full.startswith("triton.language."):
        name = full.rpartition(".")[2]
        near = difflib.get_close_matches(name, members("triton.language"), 1, 0.7)
        return f"Is tl.{near[0]} meant?" if near else "Kernels use the public functions of tl, as in tl.load."
    if full.startswith("triton.runtime"):
        return f"Take the device of an input, x.device; torch.cuda.get_device_properties tells its limits. {TRY_OUT}"
    if full.startswith("triton."):
        return f"Host functions need triton.jit, cdiv, next_power_of_2, autotune and Config. {TRY_OUT}"
    if full.startswith("torch."):
        return f"Torch may allocate, fill and view here; the kernel has to compute. {TRY_OUT}"
    return TRY_OUT


def _instead_of_builtin(name: str) -> str:
    if name == "type":
        return "Ask isinstance(value, kind)."
    if name == "BaseException":
        return "Write `except Exception:`."
    if name in ("getattr", "hasattr", "setattr", "delattr", "vars", "dir"):
        return "Write the attribute itself, as in x.shape."
    return f"The host function needs torch to allocate and a kernel to launch. {TRY_OUT}"


def _refused(node: ast.AST, what: str, advice: str) -> Refused:
    line = node.end_lineno if isinstance(node, ast.Attribute) else node.lineno  # the attribute stands at the end
    return Refused(line, f"Line {line}: {what} is not allowed in a submission. {advice}", node.end_col_offset)
