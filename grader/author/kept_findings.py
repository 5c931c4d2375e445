"""`course check --findings FILE`: what every proof found, as lines that can be compared before and after a change."""

from __future__ import annotations

from grader.author.proof import Outcome

SEED = 1  # of every run whose finding is kept: what is drawn decides which mistake shows first


def as_text(outcomes: list[Outcome]) -> str:
    """Sorted, a line each: exercise, where the submission stands, outcome, ids of its failures, first line told.

    Separated by tabs; "-" where there is nothing. The id that the diagnosis names comes first.
    """
    return "".join(f"{line}\n" for line in sorted(map(_line, outcomes)))


def _line(outcome: Outcome) -> str:
    told = outcome.message.partition("\n")[0]
    columns = outcome.proof.exercise.name, outcome.proof.name, outcome.found, " ".join(outcome.ids), told
    return "\t".join(" ".join(column.split()) or "-" for column in columns)
