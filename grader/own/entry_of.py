"""The entry of a file that nobody wrote for the judge: the function that launches its kernels."""

from __future__ import annotations

import ast

from grader.own.cannot_judge import CannotJudge
from grader.submission.text import Submission, kernels_of

MOST_NAMED = 6


def entry_of(submission: Submission, wanted: str, reference: str, arguments: list[str]) -> str:
    """Returns the name of the function to call. `wanted`: its name, or "". `reference`: the reference's name, and
    `arguments` its arguments. Raises CannotJudge."""
    tree, file = submission.tree, submission.path.name
    kernels = {node.name for node in kernels_of(tree)}
    if not kernels:
        raise CannotJudge(
            f"{file} holds no kernel: no function in it is decorated with @triton.jit.",
            "name the file with the kernel and the function that launches it.",
        )
    functions = {
        node.name: node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name not in kernels
    }
    if wanted and wanted not in functions:
        known = f"name one of {_named(list(functions))}" if functions else "write the function that launches the kernel"
        raise CannotJudge(f"{file} defines no function {wanted} that could be called.", f"{known}.")
    name = wanted or _launching(functions, reference, file)
    _refuse_other_arguments(functions[name], file, arguments)
    return name


def _launching(functions: dict[str, ast.FunctionDef], reference: str, file: str) -> str:
    """Returns the function that launches a kernel, and that no other function of the file calls."""
    launching = {name for name, node in functions.items() if any(map(_is_launch, ast.walk(node)))}
    named = {name: {one.id for one in ast.walk(node) if isinstance(one, ast.Name)} for name, node in functions.items()}
    reaching, before = set(launching), -1
    while len(reaching) != before:
        before = len(reaching)
        reaching |= {name for name in functions if named[name] & reaching}
    top = [name for name in functions if name in reaching and not any(name in named[one] - {one} for one in reaching)]
    found = [name for name in top if name == reference] or top
    if not found:
        raise CannotJudge(
            f"{file} holds a kernel, and no function that launches it.",
            "write one that takes the reference's arguments, allocates the result, launches and returns it.",
        )
    if len(found) > 1:
        raise CannotJudge(
            f"{file} has several functions that launch kernels: {_named(found)}.",
            f"add --entry {found[-1]}, or another.",
        )
    return found[0]


def _is_launch(node: ast.AST) -> bool:
    """Returns whether this is kernel[grid](...), or the call of an autotuned kernel's `run`."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript)


def _refuse_other_arguments(function: ast.FunctionDef, file: str, arguments: list[str]) -> None:
    """Raises CannotJudge where the function cannot be called with the reference's arguments, in their order."""
    own = [one.arg for one in (*function.args.posonlyargs, *function.args.args)]
    needed = len(own) - len(function.args.defaults)
    needed_by_name = [
        one.arg for one, default in zip(function.args.kwonlyargs, function.args.kw_defaults) if not default
    ]
    most = len(arguments) if function.args.vararg else len(own)
    if needed <= len(arguments) <= most and not needed_by_name:
        return
    raise CannotJudge(
        f"{function.name} in {file} takes ({', '.join([*own, *needed_by_name])}), and the reference takes"
        f" ({', '.join(arguments)}): both are called with the same arguments, in order.",
        "give both the same arguments.",
    )


def _named(names: list[str]) -> str:
    more = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
