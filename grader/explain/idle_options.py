"""Explains options of a launch in the dictionary of a triton.Config, where Triton does not look for them."""

from __future__ import annotations

import ast

from grader.course.exercise import in_words
from grader.sentences import Said, Sentence
from grader.submission.nodes import called_name, calls_in

# Arguments of triton.Config: their values, given or default, win over the dictionary's.
OF_CONFIG = ("num_warps", "num_stages", "num_ctas")


class IdleOptions(Sentence):
    NO_EFFECT = (
        "Line {line}: {names} in the dictionary of a triton.Config {has} no effect. Pass {it} to triton.Config, as in "
        "triton.Config({{...}}, num_warps=8)."
    )


def idle_options(tree: ast.Module) -> Said | None:
    """Returns the sentence about the first triton.Config with options in its dictionary; None if there is none."""
    for node in calls_in([tree]):
        if called_name(node) != "Config":
            continue
        given = [*node.args[:1], *(one.value for one in node.keywords if one.arg == "kwargs")]
        keys = [key for one in given if isinstance(one, ast.Dict) for key in one.keys]
        idle = [key for key in keys if isinstance(key, ast.Constant) and key.value in OF_CONFIG]
        if idle:
            names, line = [str(key.value) for key in idle], idle[0].lineno
            several = len(names) > 1
            has, it = ("have", "them") if several else ("has", "it")
            return IdleOptions.NO_EFFECT(line=line, names=in_words(names), has=has, it=it)
    return None
