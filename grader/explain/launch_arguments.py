"""Arguments of a launch that are given twice, or not at all: Python speaks of Triton's own functions there."""

from __future__ import annotations

import re

from grader.explain.evidence import in_line
from grader.sentences import Said, Sentence
from grader.submission.text import Submission, calls_of
from grader.submission.tuning_lines import function_that_returns_nothing
from grader.wire.messages import Failure

# Messages of Python about a launch with Triton's own `run`, and of Triton before it measures.
TWICE = re.compile(r"\brun\w*\(\) got multiple values for keyword argument '(\w+)'|Conflicting meta-parameters: (\w+)")
MISSING = re.compile(r"dynamic_func\(\) missing \d+ required (?:positional|keyword-only) arguments?: (.*)")


class LaunchArguments(Sentence):
    GIVEN_TWICE = (
        "{parameter} is given twice: by the launch{in_line} and by each configuration. Leave it out at the launch."
    )
    NOT_GIVEN = "The kernel's {names} {verb} not given by the launch{in_line}."
    GIVEN_BY_NEITHER = "The kernel's {names} {verb} given neither by the launch{in_line} nor by the configurations."
    NO_CONFIGURATIONS = (
        "{function} returns nothing (None), and the kernel gets no configurations from it: does it end with `return`?"
    )


def launch_arguments(failure: Failure, submission: Submission) -> tuple[Said, int] | None:
    """Returns the sentence about a launch's arguments and the line to look at; None for any other failure."""
    where, tree = in_line(failure.line), submission.tree
    tuned = tree is not None and bool(calls_of(tree, "autotune"))
    if tuned and (twice := TWICE.search(failure.message)):
        return LaunchArguments.GIVEN_TWICE(parameter=twice[1] or twice[2], in_line=where), failure.line
    if (missing := MISSING.search(failure.message)) is None:
        return None
    if tuned and (silent := function_that_returns_nothing(tree)) is not None:
        return LaunchArguments.NO_CONFIGURATIONS(function=silent.name), silent.lineno
    names = re.findall(r"'(\w+)'", missing[1])
    sentence = LaunchArguments.GIVEN_BY_NEITHER if tuned else LaunchArguments.NOT_GIVEN
    return sentence(names=" and ".join(names), verb="is" if len(names) == 1 else "are", in_line=where), failure.line
