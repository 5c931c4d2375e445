"""The text of a module in MLIR's generic form: one grammar for all operations."""

from __future__ import annotations

from triton._C.libtriton import ir, passes

MARK = "generic-form"


def source_of(module) -> str:
    """After the inliner. MLIR prints what does not verify in generic form: a second `tt.return` stands at the end."""
    manager = ir.pass_manager(module.context)
    manager.enable_debug()
    passes.common.add_inliner(manager)
    manager.run(module, "inline")
    blocks: list = []
    module.walk(lambda operation: blocks.append(operation.get_block()) if operation.get_name() == "tt.return" else None)
    builder = ir.builder(module.context)
    builder.set_insertion_point_to_end(blocks[-1])
    builder.set_loc(MARK, 0, 0)
    builder.ret([])
    return str(module)
