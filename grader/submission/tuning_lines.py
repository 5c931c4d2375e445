"""Finds the lines of an autotuned kernel's configurations, key and grid in a submission, as far as its text tells."""

from __future__ import annotations

import ast
from collections import Counter

from grader.submission.nodes import called_name, calls_in, covers, is_method_call, whole_number

MOST_STEPS = 8  # from a name to what is assigned to it, or from a call to what it returns
Scope = ast.Module | ast.FunctionDef


def line_of_configs(tree: ast.Module) -> int:
    """Returns the line of the list of configurations; 0 where it is not found."""
    return _line_of_keyword(tree, "configs", 0)


def line_of_key(tree: ast.Module) -> int:
    """Returns the line of the list of names in the key; 0 where it is not found."""
    return _line_of_keyword(tree, "key", 1)


def line_of_config(tree: ast.Module, config: str) -> int:
    """Returns the line of the only triton.Config, or row of numbers, with exactly these settings; if there is none, of
    the only row of three or more numbers that are all among them; else 0.

    `config` is "BLOCK_M: 64, BLOCK_N: 128, num_warps: 4", as Triton writes it.
    """
    settings = sorted(part.rpartition(": ")[2] for part in config.split(", "))
    rows = (node for node in ast.walk(tree) if isinstance(node, ast.Tuple | ast.List | ast.Call))
    numbers = [(row.lineno, _numbers(row)) for row in rows]
    lines = [line for line, row in numbers if len(row) > 1 and row == settings] or [
        line for line, row in numbers if len(row) > 2 and not Counter(row) - Counter(settings)
    ]
    return lines[0] if len(lines) == 1 else 0


def _numbers(row: ast.Tuple | ast.List | ast.Call) -> list[str]:
    """Returns the numbers of a tuple, a list or a triton.Config as texts, sorted; [] for anything else."""
    values = row.elts if not isinstance(row, ast.Call) else []
    if is_method_call(row, "Config"):
        dictionaries = (arg for arg in row.args if isinstance(arg, ast.Dict))
        values = [value for each in dictionaries for value in each.values] + [keyword.value for keyword in row.keywords]
    numbers = [whole_number(value) for value in values]
    return sorted(map(str, numbers)) if None not in numbers else []


def name_of_pruning(tree: ast.Module) -> str:
    """Returns the name of the function that leaves configurations out, as prune_configs_by states it; "" where the text
    does not tell."""
    pairs = [pair for node in ast.walk(tree) if isinstance(node, ast.Dict) for pair in zip(node.keys, node.values)]
    names = [
        value.id
        for key, value in pairs
        if getattr(key, "value", "") == "early_config_prune" and isinstance(value, ast.Name)
    ]
    return names[0] if len(names) == 1 else ""


def function_of_key(tree: ast.Module) -> str:
    """Returns the name of the function that returns the key together with the configurations; "" where none does."""
    function = function_that_is_asked(tree)
    return function.name if function is not None and covers(function, line_of_key(tree)) else ""


def line_of_grid(tree: ast.Module, launch: int) -> int:
    """Returns the line of the tuple in kernel[...] of the launch in line `launch`, or of the tuple that a name there
    stands for; 0 where it is not found."""
    for scope in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
        for call in calls_in([scope]):
            if isinstance(call.func, ast.Subscript) and covers(call, launch):
                return _line(tree, scope, call.func.slice, MOST_STEPS)
    return 0


def function_that_returns_nothing(tree: ast.Module) -> ast.FunctionDef | None:
    """Returns the function that the configurations come from, as in `configs, key = tuning() or ([], [])`, if none of
    its lines returns a value; None if it returns one, or where the text does not tell which function it is."""
    function = function_that_is_asked(tree)
    return None if function is None or any(map(_gives_a_value, ast.walk(function))) else function


def only_return(function: ast.FunctionDef) -> ast.Return | None:
    """Returns the only statement that returns a value; None where there are several, or none, or where it yields."""
    returns = [node for node in ast.walk(function) if _gives_a_value(node)]
    return returns[0] if len(returns) == 1 and isinstance(returns[0], ast.Return) else None


def function_that_is_asked(tree: ast.Module) -> ast.FunctionDef | None:
    """Returns the function of the file that the configurations come from; None where the text does not tell."""
    tuned = [call for call in calls_in([tree]) if called_name(call) == "autotune"]
    if len(tuned) != 1:
        return None
    named = [keyword.value for keyword in tuned[0].keywords if keyword.arg == "configs"]
    for value in named or tuned[0].args[:1]:
        asked = _asked_first(tree, value)
        function = _function(tree, asked) if isinstance(asked, ast.Call) else None
        if function is not None:
            return function
    return None


def _asked_first(tree: ast.Module, value: ast.expr) -> ast.expr:
    """Returns the value that a name is assigned, alone or among several, and `f()` of `f() or ...`; else `value`."""
    if isinstance(value, ast.Name):
        for target, assigned in _assignments(tree):
            if value.id in [getattr(element, "id", "") for element in getattr(target, "elts", [target])]:
                value = assigned
                break
    return value.values[0] if isinstance(value, ast.BoolOp) and isinstance(value.op, ast.Or) else value


def _gives_a_value(node: ast.AST) -> bool:
    returns = isinstance(node, ast.Return) and node.value is not None
    return returns or isinstance(node, ast.Yield | ast.YieldFrom)


def _line_of_keyword(tree: ast.Module, name: str, place: int) -> int:
    for call in calls_in([tree]):
        if called_name(call) == "autotune":
            named = [keyword.value for keyword in call.keywords if keyword.arg == name]
            for value in named or call.args[place : place + 1]:
                return _line(tree, tree, value, MOST_STEPS)
    return 0


def _line(tree: ast.Module, scope: Scope, value: ast.expr, steps: int) -> int:
    """Returns the line of the list or tuple that an expression stands for, or of the expression that makes it of
    others; 0 where it is not found. `steps`: how many names and calls may still be followed."""
    if isinstance(value, (ast.List, ast.Tuple, ast.ListComp, ast.Subscript, ast.BinOp)):
        return value.lineno
    if steps == 0:
        return 0
    if isinstance(value, ast.Name):
        for where in (scope, tree):
            for target, assigned in _assignments(where):
                if isinstance(target, ast.Name) and target.id == value.id:
                    return _line(tree, where, assigned, steps - 1)
                names = [getattr(element, "id", "") for element in getattr(target, "elts", ())]
                if value.id in names:
                    return _line_of_item(tree, where, assigned, names.index(value.id), steps - 1)
    if isinstance(value, ast.Call) and (function := _function(tree, value)) is not None:
        return _line(tree, function, _returned(function), steps - 1)
    return 0


def _line_of_item(tree: ast.Module, scope: Scope, value: ast.expr, place: int, steps: int) -> int:
    """Returns the line of an item, at `place`, of what this expression stands for: as _line."""
    if isinstance(value, ast.Tuple) and place < len(value.elts):
        return _line(tree, scope, value.elts[place], steps)
    if isinstance(value, ast.BoolOp):
        return _line_of_item(tree, scope, value.values[0], place, steps)
    if steps and isinstance(value, ast.Call) and (function := _function(tree, value)) is not None:
        return _line_of_item(tree, function, _returned(function), place, steps - 1)
    return 0


def _assignments(scope: Scope) -> list[tuple[ast.expr, ast.expr]]:
    """Returns the targets and values assigned in the body of a scope itself, the last first."""
    assignments = []
    for node in scope.body:
        if isinstance(node, ast.Assign):
            assignments += [(target, node.value) for target in node.targets]
    return assignments[::-1]


def _function(tree: ast.Module, call: ast.Call) -> ast.FunctionDef | None:
    name = getattr(call.func, "id", "")
    return next((node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == name), None)


def _returned(function: ast.FunctionDef) -> ast.expr:
    """Returns the value of the function's last `return` that has a value; the constant None where there is none."""
    returns = [node for node in ast.walk(function) if isinstance(node, ast.Return)]
    values = [(node.lineno, node.value) for node in returns if node.value is not None]
    return max(values, key=lambda candidate: candidate[0])[1] if values else ast.Constant(None)
