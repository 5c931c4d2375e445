"""Options of a launch that stand in the dictionary of a triton.Config, where Triton does not look for them."""

from __future__ import annotations

import ast

from grader.course.exercise import in_words
from grader.sentences import Said, Sentence

OF_CONFIG = ("num_warps", "num_stages", "num_ctas")  # arguments whose values, given or not, win over the dictionary's


class IdleOptions(Sentence):
    NO_EFFECT = (
        "Line {line}: {names} in the dictionary of a triton.Config {has} no effect. Pass {it} to triton.Config, as in "
        "triton.Config({{...}}, num_warps=8)."
    )


def idle_options(tree: ast.Module | None) -> Said | None:
    """Returns the sentence about the first such dictionary; None where there is none."""
    for node in ast.walk(tree) if tree is not None else ():
        if not isinstance(node, ast.Call) or getattr(node.func, "attr", getattr(node.func, "id", "")) != "Config":
            continue
        given = [*node.args[:1], *(one.value for one in node.keywords if one.arg == "kwargs")]
        keys = [key for one in given if isinstance(one, ast.Dict) for key in one.keys]
        names = [key.value for key in keys if isinstance(key, ast.Constant) and key.value in OF_CONFIG]
        if names:
            line = next(key.lineno for key in keys if isinstance(key, ast.Constant) and key.value in OF_CONFIG)
            several = len(names) > 1
            has, it = ("have", "them") if several else ("has", "it")
            return IdleOptions.NO_EFFECT(line=line, names=in_words(names), has=has, it=it)
    return None
