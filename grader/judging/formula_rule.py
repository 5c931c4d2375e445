"""The rule of formulas: a call that is right within rounding has to be right where nothing is rounded.

It belongs to bounds that nobody has derived, which are wide: numerics/torchs_rounding.py has both rules.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import torch

from grader.course.trial import Trial
from grader.explain.hidden_formulas import HiddenFormula
from grader.explain.no_exact_run import why_no_exact_run
from grader.explain.values import value_verdict
from grader.explain.verdict import PASS, Verdict
from grader.judging.in_interpreter import Interpreted
from grader.numerics.arguments import Argument, exact
from grader.numerics.bounds import RoundingModel
from grader.numerics.comparison import compare
from grader.numerics.torchs_rounding import FORMULA, OfTheLargest, largest
from grader.sentences import Said
from grader.ttir.exact_text import NoExactRun
from grader.wire.reply import Reply


@dataclass
class InterpretedByFormula(Interpreted):
    """Judges a call by its rounding, then by its formula. `without_exact`: why calls had no exact run, so that rounding
    alone judged them."""

    without_exact: list[Said] = field(default_factory=list)

    @property
    def share(self) -> float:
        """How far an exact run may be off, as a share of the largest value."""
        return FORMULA

    def verdict(self, trial: Trial, inputs: list[Argument], twice: bool, **options) -> tuple[Verdict, Reply]:
        verdict, first = super().verdict(trial, inputs, twice, **options)
        if verdict.outcome == PASS:
            verdict = self.of_formula(trial, inputs, first) or verdict
        return verdict, first

    def of_formula(self, trial: Trial, inputs: list[Argument], first: Reply) -> Verdict | None:
        """Returns the verdict on a call that is right within rounding, and wrong where nothing is rounded; or None."""
        try:
            ran = self.run.exact(trial, inputs)
        except NoExactRun as why:
            self.without_exact.append(why_no_exact_run(why))
            return None
        bound = RoundingModel(OfTheLargest(self.share))
        for evidence in self._compared(trial, inputs, first):
            name, ref = evidence.wanted.name, evidence.comparison.ref
            if not evidence.wanted.dtype.is_floating_point:
                continue
            comparison = compare(ran.outputs[name].double(), ref, bound, exact(inputs))
            if comparison.right:
                continue
            of_exact_run = replace(
                evidence, reply=replace(first, outputs=ran.outputs, writers=ran.writers), comparison=comparison,
                right_results=[],
                wanted=replace(evidence.wanted, dtype=torch.float64, bound=bound), exact_run=lambda: ran,
            )  # fmt: skip
            verdict = value_verdict(of_exact_run)
            off = largest(comparison.out - ref) / (largest(ref) or 1.0)
            told = HiddenFormula.OTHER(name=name, share=off, dtype=str(trial.dtype).removeprefix("torch."))
            verdict.said.insert(0, told)
            return verdict
        return None
