"""A ticket orders programs only with a scope that reaches them."""

from __future__ import annotations

import pytest

from grader import normal
from grader.explain.causes import Cause
from grader.judging.uses import CheckUse
from tests.conftest import ROOT

BY_TICKET = (ROOT / "solutions/14_split_softmax/accepted/last_program_combines.py").read_text()
ACQ_REL = 'sem="acq_rel"'


@pytest.mark.parametrize(("scope", "id"), [("gpu", ""), ("sys", ""), ("cta", Cause.RACE)])
def test_a_ticket_of_one_program_orders_no_other(bench, scope, id):
    assert BY_TICKET.count(ACQ_REL) == 1
    judge = bench(BY_TICKET.replace(ACQ_REL, f'{ACQ_REL}, scope="{scope}"'), "14_split_softmax").judge
    assert CheckUse.of("test_two_blocks", normal(10_000)).verdict(judge).id == id
