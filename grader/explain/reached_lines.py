"""Lines of kernels that no program has come to, in all calls of a run that were carried out here."""

from __future__ import annotations

from dataclasses import dataclass, field

from grader.sentences import Said, Sentence
from grader.wire.reply import Reply

MOST_TOLD = 4


class ReachedLines(Sentence):
    NEVER = "Line {line} was never reached by {calls} calls: if it is right, this run does not say."
    NEVER_ANY = "Lines {lines} were never reached by {calls} calls: if they are right, this run does not say."


@dataclass
class Lines:
    """Gathers, over all calls of a run, the lines of the file that stand in their kernels and those that have run."""

    calls: int = 0
    reached: set[int] = field(default_factory=set)
    seen: set[int] = field(default_factory=set)

    def add(self, reply: Reply) -> None:
        self.calls += 1
        self.reached.update(reply.reached)
        self.seen.update(reply.reached, reply.left_out)

    @property
    def never(self) -> list[int]:
        """The lines that stand in some kernel's text and were not carried out in any call."""
        return sorted(self.seen - self.reached)

    @property
    def said(self) -> Said | None:
        """The sentence about them; None where there are none."""
        never = self.never
        if not never:
            return None
        if len(never) == 1:
            return ReachedLines.NEVER(line=never[0], calls=self.calls)
        *first, last = map(str, never[:MOST_TOLD])
        more = len(never) - MOST_TOLD
        ends = [*first, last][: MOST_TOLD - 1] + [f"{more + 1} more"] if more > 0 else [*first, last]
        return ReachedLines.NEVER_ANY(lines=f"{', '.join(ends[:-1])} and {ends[-1]}", calls=self.calls)
