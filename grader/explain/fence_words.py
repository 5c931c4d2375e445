"""Describes the fence around a submission, for people who run somebody else's file."""

from __future__ import annotations

from grader.sentences import Said, Sentence
from grader.wire.fence import Fence

SIGNALS_FROM = 6  # the first ABI of Landlock that keeps signals in


class Fences(Sentence):
    WHOLE = "A submission is kept to Python and its own folder (Landlock {abi}, seccomp, no capabilities)."
    NO_LANDLOCK = "Without Landlock, which is missing here, a submission can read and write all files that you can."
    NO_SIGNALS = "Landlock {abi}, which is here, keeps no signals in: a submission can end other processes of yours."
    NO_SECCOMP = (
        "Without seccomp, which is missing here, a submission can open sockets, change other processes' limits, and "
        "leave processes behind."
    )
    CAPABILITIES = "A submission keeps capabilities here, which are parts of root's power."


def told(fence: Fence) -> list[Said]:
    """Returns the sentence about a whole fence, or else a sentence for each part that is missing."""
    missing = []
    if fence.landlock == 0:
        missing.append(Fences.NO_LANDLOCK())
    elif fence.landlock < SIGNALS_FROM:
        missing.append(Fences.NO_SIGNALS(abi=fence.landlock))
    if not fence.seccomp:
        missing.append(Fences.NO_SECCOMP())
    if not fence.capabilities:
        missing.append(Fences.CAPABILITIES())
    return missing or [Fences.WHOLE(abi=fence.landlock)]


def is_whole(fence: Fence) -> bool:
    """Returns True if no part of the fence is missing."""
    return fence.landlock >= SIGNALS_FROM and fence.seccomp and fence.capabilities
