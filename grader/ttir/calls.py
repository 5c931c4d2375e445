"""Checks calls of functions by functions."""

from __future__ import annotations

from grader.ttir.module import BadText, Module

MOST_CALLS = 32  # functions that call functions


def check_calls(module: Module) -> None:
    """Raises BadText unless each callee exists and takes the given types, and no function calls itself.

    Calls through other functions count too. The module has to hold a single public function.
    """
    if sum(function.public for function in module.functions.values()) != 1:
        raise BadText("the text has to hold one public function")
    calls: dict[str, set[str]] = {}
    for function in module.functions.values():
        calls[function.name] = set()
        for operation in function.walk():
            if operation.name == "tt.call":
                callee = module.functions.get(operation.attributes["callee"])
                if callee is None or callee.public:
                    raise BadText(f"a call of {operation.attributes['callee']!r}, which is no private function")
                if (callee.blocks[0].types, callee.result_types) != (operation.operand_types, operation.result_types):
                    raise BadText(f"a call of {callee.name} with values of other types than it takes or returns")
                calls[function.name].add(callee.name)
    for _ in range(MOST_CALLS):  # take away what calls nothing, until nothing is left
        leaves = {name for name, callees in calls.items() if not callees}
        calls = {name: callees - leaves for name, callees in calls.items() if name not in leaves}
    if calls:
        raise BadText("functions that call themselves, or one another too deep")
