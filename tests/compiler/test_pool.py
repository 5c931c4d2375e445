"""Compiler processes side by side: each text once, none waited for in vain, and nothing left of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from grader.compiler.compiler_pool import CompilerPool
from grader.compiler.result import CompilerResult, Failed
from grader.gpu.models import MODELS
from grader.processes.child import own_children
from tests.compiler.conftest import OPTIONS
from tests.compiler.test_hostile_texts import ENDLESS, LIMIT

MODEL = MODELS["sm_90"]


@pytest.fixture
def pool() -> Iterator[CompilerPool]:
    made = CompilerPool(most=2)
    yield made
    made.end()


def warps(number: int) -> dict:
    return {**OPTIONS, "num_warps": number}


def test_a_text_is_compiled_once_for_each_set_of_options_and_parts(pool, text):
    first = pool.compile(text, OPTIONS, MODEL, ())
    assert pool.compile(text, dict(reversed(OPTIONS.items())), MODEL, []) is first
    others = [pool.compile(text, warps(2), MODEL, ()), pool.compile(text, OPTIONS, MODEL, ("ptx",))]
    assert first not in others and all(isinstance(one.result(LIMIT), CompilerResult) for one in (first, *others))
    assert others[1].result().kernel.texts.keys() == {"ptx"}


def test_as_many_processes_as_questions_and_no_more_than_there_may_be(pool, text):
    before = set(own_children())
    pool.compile(text, OPTIONS, MODEL, ()).result(LIMIT)
    assert len(set(own_children()) - before) == 1
    for future in [pool.compile(text, warps(number), MODEL, ()) for number in (1, 2, 8)]:
        future.result(LIMIT)
    assert len(set(own_children()) - before) == 2


def test_what_was_cancelled_before_it_began_is_asked_anew(pool, text):
    begun = [pool.compile(text, warps(number), MODEL, ()) for number in (1, 2, 4, 8)]
    waiting = begun[-1]
    assert waiting.cancel()
    again = pool.compile(text, warps(8), MODEL, ())
    assert again is not waiting and isinstance(again.result(LIMIT), CompilerResult)


def test_a_refusal_is_kept_and_a_process_that_died_is_asked_again(pool, text, monkeypatch):
    refused = pool.compile("no text", OPTIONS, MODEL, ())
    assert refused.result(LIMIT).what == "text" and pool.compile("no text", OPTIONS, MODEL, ()) is refused
    monkeypatch.setattr("grader.compiler.compiler_client.CompilerClient.compile", lambda *_: Failed("died"))
    died = pool.compile(text, OPTIONS, MODEL, ())
    assert died.result(LIMIT).what == "died"
    monkeypatch.undo()
    assert isinstance(pool.compile(text, OPTIONS, MODEL, ()).result(LIMIT), CompilerResult)


def test_it_ends_at_once_whatever_is_being_compiled(pool, text):
    before = set(own_children())
    pool.compile(text, OPTIONS, MODEL, ()).result(LIMIT)  # both are there from now on
    futures = [pool.compile(ENDLESS, warps(number), MODEL, ()) for number in (1, 2, 8)]
    pool.end()
    assert not set(own_children()) - before
    ended = [one for one in futures if not one.cancelled() and one.exception() is None]  # others had not begun
    assert all(one.done() for one in futures) and all(one.result().what == "died" for one in ended)
