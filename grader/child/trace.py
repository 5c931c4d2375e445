"""Every access of a small call, lane by lane, for a learner who wants to see what each program does."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from grader.child.shadow import Shadow
from grader.protocol import TracedAccess

MOST_ACCESSES = MOST_LANES = 256
MASKED = -1


@dataclass
class Trace:
    """Addresses become elements at the end: what the result is called and how it is shaped is not known before."""

    _noted: list[tuple[TracedAccess, Shadow, np.ndarray]] = field(default_factory=list)

    def note(self, access: TracedAccess, shadow: Shadow, addresses: np.ndarray) -> None:
        """`access` without its argument and elements; `addresses` by lane, 0 for a lane that is masked off."""
        if len(self._noted) < MOST_ACCESSES:
            self._noted.append((access, shadow, addresses.ravel()[:MOST_LANES].copy()))

    def accesses(self) -> list[TracedAccess]:
        for access, shadow, addresses in self._noted:
            access.argument = shadow.label
            access.elements = [_number(shadow, int(address)) if address else MASKED for address in addresses]
        return [access for access, _, _ in self._noted]


def _number(shadow: Shadow, address: int) -> int:
    """An element's number in the argument, counted row by row."""
    index = shadow.geometry.element(address)
    return int(np.ravel_multi_index(index, shadow.geometry.shape)) if index else MASKED
