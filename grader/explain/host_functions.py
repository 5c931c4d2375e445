"""Explains an entry that changes its inputs, changes files, or returns without a launch."""

from __future__ import annotations

from grader.course.exercise import in_words
from grader.explain.causes import Cause
from grader.explain.verdict import Verdict, failed
from grader.sentences import Sentence


class HostFunction(Sentence):
    INPUTS_CHANGED = "{entry} changes {names}: inputs have to stay as they are."
    NO_LAUNCH = "{entry} returned without launching a kernel."
    FILES_CHANGED = "{entry} changed files next to it: {names:,}."


def inputs_changed(entry: str, names: list[str]) -> Verdict:
    return failed(Cause.INPUT_CHANGED, HostFunction.INPUTS_CHANGED(entry=entry, names=in_words(names)))


def no_launch(entry: str) -> Verdict:
    return failed(Cause.NO_LAUNCH, HostFunction.NO_LAUNCH(entry=entry), kind="error")


def files_changed(entry: str, names: list[str]) -> Verdict:
    return failed(Cause.FILES_CHANGED, HostFunction.FILES_CHANGED(entry=entry, names=names), kind="error")
