"""The fence that the operating system holds around a process that works on what others wrote."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Fence:
    """landlock: its ABI, 0 for none. seccomp: it filters system calls. capabilities: all of root's are given up."""

    landlock: int
    seccomp: bool
    capabilities: bool

    @property
    def keeps_files(self) -> bool:
        """True where the process cannot write outside of its own folder."""
        return self.landlock > 0
