"""Triton's CodeGenerator, which visits a kernel's tree and makes its text: what the front end reads, calls or replaces.

It has a file of its own, since the compiler process needs the rest of front_end/triton_text_api.py and would import the
visitor in vain. Each name holds for Triton 3.6 to 3.9.

Messages that are put in other words are made of the frames that raised them, by the names of their functions and local
variables: front_end/refused_values.py and front_end/called_functions.py. Where a release has other names there, its own
message is shown, and tests/front_end tells.
"""

from __future__ import annotations

from typing import Any

from grader.front_end.triton_text_api import check_members, of_a_known_release

with of_a_known_release("front_end/triton_visitor_api.py"):
    from triton.compiler.code_generator import CodeGenerator

__all__ = ["CodeGenerator"]  # of Triton's; what is defined here goes without saying

MEMBERS: dict[Any, tuple[str, ...]] = {
    CodeGenerator: (
        "builtin_namespace",  # Python's functions that a kernel may call; getattr and hasattr are replaced
        "get_Attribute",  # (value, name); replaced
        "call_Function",  # (node, function, arguments, named); replaced
        "_apply_binary_method",  # (node, name of a method, left, right); replaced
        "visit", "visit_IfExp", "visit_While", "visit_JoinedStr",  # (node); all but the first are replaced
        "_unsupported",  # (node, message) -> an exception
        "file_name",  # of the function that is visited
        "lscope",  # its variables
    ),
}  # fmt: skip
check_members(MEMBERS, "front_end/triton_visitor_api.py")
