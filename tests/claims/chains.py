"""How many fp32 additions lie one behind the other in a kernel's PTX: what the rounding of a sum depends on."""

from __future__ import annotations

import re

INSTRUCTION = re.compile(r"^\s*(?:@!?%p\d+ )?([a-z][a-z0-9_.:]+)[ \t]+(.*);", re.MULTILINE)
REGISTER = re.compile(r"%[a-z]+\d+")


def longest_chain(ptx: str) -> int:
    """Returns the most additions that a number goes through before it is stored, in code without a loop."""
    depth: dict[str, int] = {}
    shared = longest = 0  # of what lies in shared memory, as if it were a single place; of what was stored
    for operation, operands in INSTRUCTION.findall(ptx):
        written, read = _registers(operation, operands)
        deepest = max((depth.get(register, 0) for register in read), default=0)
        if operation.startswith("st.shared"):
            shared = max(shared, deepest)
        elif operation.startswith("st.global"):
            longest = max(longest, deepest)
        elif operation.startswith("ld.shared"):
            deepest = shared
        depth.update(dict.fromkeys(written, deepest + (operation.startswith("add") and "f32" in operation)))
    return longest


def _registers(operation: str, operands: str) -> tuple[list[str], list[str]]:
    """Returns the registers that an instruction writes, and those that it reads."""
    if operation.startswith("st."):
        return [], REGISTER.findall(operands)
    first, rest = re.fullmatch(r"(\{[^}]*\}|[^,]*)(.*)", operands).groups()
    return REGISTER.findall(first), REGISTER.findall(rest)
