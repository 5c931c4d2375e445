"""The words that a learner would have written for an operation of the compiler's text."""

from __future__ import annotations

from grader.ttir.module import Operation

SIGNS = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "rem": "%", "and": "&", "or": "|", "xor": "^", "shl": "<<",
    "shr": ">>",
}  # fmt: skip
COMPARED = ("==", "!=", "<", "<=", ">", ">=", "<", "<=", ">", ">=")  # cmpi's predicates, the unsigned comparisons last
COMPARED_FLOATS = ("", "==", ">", ">=", "<", "<=", "!=") * 2  # cmpf's, ordered and then unordered
FOLDED = {"add": "sum", "max": "max", "min": "min", "xor": "xor_sum", "and": "all", "or": "any", "mul": "prod"}
NAMES = {
    "tt.get_program_id": "tl.program_id", "tt.get_num_programs": "tl.num_programs", "tt.make_range": "tl.arange",
    "arith.select": "tl.where", "tt.trans": "tl.trans", "tt.print": "tl.device_print", "tt.descriptor_load": ".load",
    "tt.descriptor_store": ".store", "tt.atomic_cas": "tl.atomic_cas", "tt.dot": "tl.dot",
    "tt.dot_scaled": "tl.dot_scaled", "tt.clampf": "tl.clamp", "math.absf": "tl.abs", "math.absi": "tl.abs",
}  # fmt: skip
ATOMICS = {1: "and", 2: "or", 3: "xor", 4: "add", 5: "add", 6: "max", 7: "min", 8: "max", 9: "min", 10: "xchg"}
SILENT = {
    "tt.splat", "tt.broadcast", "tt.expand_dims", "tt.reshape", "tt.bitcast", "tt.addptr", "tt.unsplat",
    "arith.constant", "arith.extsi", "arith.extui", "arith.trunci", "arith.extf", "arith.truncf", "tt.fp_to_fp",
    "arith.sitofp", "arith.uitofp", "arith.fptosi", "arith.fptoui", "arith.index_cast", "arith.bitcast",
}  # fmt: skip  # they change a shape or a type: the value is known from what they were given


def in_words(operation: Operation) -> str:
    """Returns a learner's word for an operation, "+" or "tl.max"; "" where it only changes a shape or a type."""
    name = operation.name
    if name in SILENT:
        return ""
    if name in NAMES:
        axis = operation.attributes.get("axis") if name in ("tt.get_program_id", "tt.get_num_programs") else None
        return NAMES[name] if axis is None else f"{NAMES[name]}({int(axis)})"
    if name in ("tt.reduce", "tt.scan"):
        return _fold(operation)
    if name == "tt.atomic_rmw":
        return f"tl.atomic_{ATOMICS.get(int(operation.attributes.get('atomic_rmw_op', 0)), 'rmw')}"
    dialect, _, rest = name.partition(".")
    if dialect == "arith":
        return _arithmetic(operation, rest)
    return f"tl.{rest}"


def _arithmetic(operation: Operation, name: str) -> str:
    if name in ("cmpi", "cmpf"):
        words, number = COMPARED if name == "cmpi" else COMPARED_FLOATS, int(operation.attributes.get("predicate", 0))
        return words[number] if number < len(words) else name
    if name.startswith("div") and not name.endswith("f"):
        return "//"
    if name.startswith(("max", "min")):
        return f"tl.{name[:3]}imum"
    return next((sign for stem, sign in SIGNS.items() if name.startswith(stem)), f"tl.{name}")


def _fold(operation: Operation) -> str:
    """Returns a learner's word for a reduction or a scan: tl.sum, tl.max, tl.cumsum.

    It depends on the operation in the region that combines two elements.
    """
    inner = [inner_operation.name.partition(".")[2] for inner_operation in operation.regions[0][0].operations[:-1]]
    stem = next((word for name in inner for stem, word in FOLDED.items() if name.startswith(stem)), "")
    several = len(operation.results) > 1
    if operation.name == "tt.scan":
        return {"sum": "tl.cumsum", "prod": "tl.cumprod"}.get(stem, "tl.associative_scan")
    return f"tl.{stem}" if stem and not several else "tl.reduce"
