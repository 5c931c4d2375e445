"""`course check --findings FILE`: the findings of all proofs, as lines to compare before and after a change."""

from __future__ import annotations

from grader.author.proof import Outcome

SEED = 1  # of every run whose finding is kept: what is drawn decides which mistake shows first


def as_text(outcomes: list[Outcome]) -> str:
    """Returns a line for each outcome, sorted: exercise, submission, outcome, ids of failures, start of the message.

    Tabs separate the columns, and "-" stands for an empty column. The id of the diagnosis comes first among the ids.
    Of the message, only the first line is kept.
    """
    return "".join(f"{line}\n" for line in sorted(map(_line, outcomes)))


def _line(outcome: Outcome) -> str:
    told = outcome.message.partition("\n")[0]
    columns = outcome.proof.exercise.name, outcome.proof.name, outcome.found, " ".join(outcome.ids), told
    return "\t".join(" ".join(column.split()) or "-" for column in columns)
