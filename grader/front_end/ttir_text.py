"""The compiler's modules as text, in MLIR's generic form: one grammar for all operations, every attribute written out.

The bindings cannot ask for that form. But MLIR prints a module in it that does not verify. So an empty block is added
to the end of its last function, and taken out again, from the module and from the text.
"""

from __future__ import annotations

import re
from typing import Any

from grader.front_end.triton_text_api import ir, passes

_EMPTY_BLOCK = re.compile(r"^  \^bb\d+:  // no predecessors\n(?=  \}\))", re.MULTILINE)


def source_of(module: Any) -> str:
    """Returns the text of a kernel with its private functions inlined, as make_ttir begins, too.

    module: from ASTSource.make_ir. It is inlined in place and stays valid for the passes that follow.
    """
    manager = ir.pass_manager(module.context)
    passes.common.add_inliner(manager)
    manager.run(module, "inline")
    return generic_text(module, module.context)


def generic_text(module: Any, context: Any) -> str:
    """Returns the text of any module with a `tt.func`; it parses back, and the module is as it was."""
    functions: list[Any] = []
    module.walk(lambda operation: functions.append(operation) if operation.get_name() == "tt.func" else None)
    block = ir.builder(context).create_block_with_parent(functions[-1].get_region(0), [])
    try:
        text = str(module)
    finally:
        block.erase()
    ends = list(_EMPTY_BLOCK.finditer(text))
    return text[: ends[-1].start()] + text[ends[-1].end() :]
