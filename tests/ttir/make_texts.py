"""Writes the texts that the Triton at hand makes of the kernels beside this file, as JSON on standard output.

{"triton": "3.9.0", "texts": {"masked_sum.source": "...", "masked_sum.sm_90": "...", "masked_sum.sm_80": "..."},
 "again": {"masked_sum.sm_90": "..."}, "errors": {"masked_sum.sm_80": "..."}}

`again` holds what make_ttir makes of a source text that was read back.
"""

from __future__ import annotations

import json
import sys
import tempfile

import triton
from kernels import CASES, Case
from triton._C.libtriton import ir
from triton.backends.compiler import GPUTarget
from triton.compiler.compiler import ASTSource, make_backend

from grader.front_end.ttir_text import generic_text, source_of


def texts_of(case: Case, arch: int) -> tuple[str, str, str]:
    """Before and after make_ttir, and after make_ttir of the text before it."""
    target = GPUTarget("cuda", arch, 32)
    backend, context = make_backend(target), ir.context()
    pointers = {
        (number,): [["tt.divisibility", 16]] for number, kind in enumerate(case.signature.values()) if kind[0] == "*"
    }
    source = ASTSource(case.kernel, case.signature, case.constants, pointers)
    options = backend.parse_options({**case.options, **source.parse_options()})
    ir.load_dialects(context)
    backend.load_dialects(context)
    stages: dict = {}
    backend.add_stages(stages, options, source.language)
    codegen = backend.get_codegen_implementation(options)
    module = source.make_ir(target, options, codegen, backend.get_module_map(), context)
    before = source_of(module)
    metadata = {"hash": "", "target": target, **options.__dict__}
    after = generic_text(stages["ttir"](module, dict(metadata)), context)
    with tempfile.NamedTemporaryFile("w", suffix=".ttir") as file:
        file.write(before)
        file.flush()
        read = ir.parse_mlir_module(file.name, context)
    read.context = context
    return before, after, generic_text(stages["ttir"](read, dict(metadata)), context)


def main() -> None:
    texts, again, errors = {}, {}, {}
    for name, case in CASES.items():
        for arch in (90, 80):
            try:
                before, after, after_reading = texts_of(case, arch)
                texts |= {f"{name}.source": before, f"{name}.sm_{arch}": after}
                again[f"{name}.sm_{arch}"] = after_reading
            except Exception as error:
                errors[f"{name}.sm_{arch}"] = f"{type(error).__name__}: {error} {error.__cause__ or ''}"
    json.dump({"triton": triton.__version__, "texts": texts, "again": again, "errors": errors}, sys.stdout)


if __name__ == "__main__":
    main()
