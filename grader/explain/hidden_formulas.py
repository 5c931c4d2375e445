"""Says of a result that rounding alone makes pass that its formula is another one."""

from __future__ import annotations

from grader.sentences import Sentence


class HiddenFormula(Sentence):
    OTHER = (
        "Rounding hides it, and it is another formula: where nothing is rounded, {name} is off by up to {share:.2g} of "
        "its largest value, {dtype}."
    )
