"""What a release of Triton can write into a kernel's text that those before it could not.

    python -m tests.ttir.release            what the installed one has and tests/ttir/front_end.txt lacks
    python -m tests.ttir.release --add      adds it there, once the table of operations knows what it makes

The front end makes each operation, type and attribute by a method of the compiler's builder, and each setting by a
value of an enumeration: their names are what a new release is compared by. Exits with 1 where something is new.
"""

from __future__ import annotations

import sys
from pathlib import Path

import triton
from triton._C.libtriton import ir

KNOWN = Path(__file__).parent / "front_end.txt"


def front_end() -> set[str]:
    """`create_load` and the other methods of the builder that make something; `ROUNDING_MODE.RTNE` and the like."""
    methods = {name for name in dir(ir.builder) if name.startswith(("create_", "get_"))}
    values = {
        f"{name}.{value}"
        for name, kind in vars(ir).items()
        if isinstance(kind, type)
        for value in getattr(kind, "__members__", ())
    }  # fmt: skip
    return methods | values


def known() -> set[str]:
    return set(KNOWN.read_text(encoding="utf-8").split())


def main() -> int:
    new = sorted(front_end() - known())
    if "--add" in sys.argv[1:]:
        KNOWN.write_text("".join(f"{name}\n" for name in sorted(known() | front_end())), encoding="utf-8")
    for name in new:
        print(name)
    print(f"Triton {triton.__version__}: {len(new) or 'nothing'} new", file=sys.stderr)
    return int(bool(new))


if __name__ == "__main__":
    raise SystemExit(main())
