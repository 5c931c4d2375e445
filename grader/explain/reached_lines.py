"""Finds lines of kernels that no program has carried out in any interpreted call of a run."""

from __future__ import annotations

from dataclasses import dataclass, field

from grader.sentences import Said, Sentence
from grader.wire.reply import Reply

MOST_TOLD = 4  # items of the sentence's list, the last of which may be "12 more"


class ReachedLines(Sentence):
    NEVER = "Line {line} was never reached by {calls} calls: if it is right, this run does not say."
    NEVER_ANY = "Lines {lines} were never reached by {calls} calls: if they are right, this run does not say."


@dataclass
class Lines:
    """Gathers the lines of all kernels that a run's calls launch, and which of these lines have been carried out."""

    calls: int = 0
    reached: set[int] = field(default_factory=set)
    seen: set[int] = field(default_factory=set)

    def add(self, reply: Reply) -> None:
        self.calls += 1
        self.reached.update(reply.reached)
        self.seen.update(reply.reached, reply.left_out)

    @property
    def never(self) -> list[int]:
        """The lines of the kernels that were carried out in no call, in order."""
        return sorted(self.seen - self.reached)

    @property
    def said(self) -> Said | None:
        """The sentence about the lines that were never reached; None if all were reached."""
        never = self.never
        if not never:
            return None
        if len(never) == 1:
            return ReachedLines.NEVER(line=never[0], calls=self.calls)
        *first, last = map(str, never[:MOST_TOLD])
        more = len(never) - MOST_TOLD
        ends = [*first, last][: MOST_TOLD - 1] + [f"{more + 1} more"] if more > 0 else [*first, last]
        return ReachedLines.NEVER_ANY(lines=f"{', '.join(ends[:-1])} and {ends[-1]}", calls=self.calls)
