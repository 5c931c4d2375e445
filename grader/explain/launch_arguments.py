"""Explains arguments of a launch that are given twice or not at all: Python's messages name functions of Triton."""

from __future__ import annotations

import ast
import re

from grader.course.exercise import in_words
from grader.explain.evidence import in_line
from grader.explain.slips import misplaced_arguments
from grader.sentences import Said, Sentence
from grader.submission.nodes import all_parameters, calls_in, covers
from grader.submission.text import Submission, calls_of, kernels_of, launches_of
from grader.submission.tuning_lines import function_that_returns_nothing
from grader.wire.launch_abi import LAUNCH_OPTIONS
from grader.wire.messages import Failure

# Messages about a launch: Python's, about Triton's function `run`, and Triton's, before it measures.
TWICE = re.compile(r"\brun\w*\(\) got multiple values for keyword argument '(\w+)'|Conflicting meta-parameters: (\w+)")
MISSING = re.compile(r"dynamic_func\(\) missing \d+ required (?:positional|keyword-only) arguments?: (.*)")


TOO_MANY = re.compile(r"dynamic_func\(\) got multiple values for argument '(\w+)'")
FRACTION = re.compile(r"unsupported operand type\(s\) for (?:&|\||>>|<<)=?: 'float'")
SHAPE = re.compile(r"torch\.Size|can only concatenate tuple \(not")
NO_GRID = "outside of the scope of a kernel"
NOT_OF_TL = re.compile(r"module 'triton\.language' has no attribute '(cdiv|next_power_of_2)'")
NO_KERNEL = "'function' object is not subscriptable"


class LaunchArguments(Sentence):
    GIVEN_TWICE = (
        "{parameter} is given twice: by the launch{in_line} and by each configuration. Leave it out at the launch."
    )
    NOT_KNOWN = (
        "The kernel's {names} {verb} not given by the launch{in_line}, which passes {unknown}: the kernel has no "
        "parameter of that name."
    )
    TOO_MANY = (
        "The launch{in_line} gives {parameter} by its name, and by its place too: there are too many arguments before "
        "the names."
    )
    WITHOUT_GRID = "{kernel} is called{in_line} and not launched: a launch has a grid, as in {kernel}[grid](...)."
    OF_KERNELS = "Line {line} stands in a host function and calls tl.{function}: there it is triton.{function}."
    FRACTION = "A whole number is wanted{in_line}, and here it is a fraction: / makes fractions, // whole numbers."
    SHAPE_IS_CALLED = (
        "A shape is no function{in_line}: M, N = x.shape takes its numbers, and x.shape[0] is one of them."
    )
    SHAPE = (
        "A number is wanted{in_line}, and here it is a shape, as x.shape and x.size() are: x.numel() counts all "
        "elements, x.shape[0] those along axis 0."
    )
    NO_KERNEL = "{function} is launched{in_line}, and it is no kernel: kernels have @triton.jit in front of them."
    NOT_GIVEN = "The kernel's {names} {verb} not given by the launch{in_line}."
    GIVEN_BY_NEITHER = "The kernel's {names} {verb} given neither by the launch{in_line} nor by the configurations."
    NO_CONFIGURATIONS = (
        "{function} returns nothing (None), and the kernel gets no configurations from it: does it end with `return`?"
    )


def launch_arguments(failure: Failure, submission: Submission) -> tuple[Said, int] | None:
    """Returns the sentence about a launch's arguments and the line to look at; None for any other failure."""
    where, tree = in_line(failure.line), submission.tree
    if (said := _of_the_host(failure, tree)) is not None:
        return said, failure.line
    tuned = bool(calls_of(tree, "autotune"))
    if tuned and (twice := TWICE.search(failure.message)):
        return LaunchArguments.GIVEN_TWICE(parameter=twice[1] or twice[2], in_line=where), failure.line
    if (missing := MISSING.search(failure.message)) is None:
        return None
    if tuned and (silent := function_that_returns_nothing(tree)) is not None:
        return LaunchArguments.NO_CONFIGURATIONS(function=silent.name), silent.lineno
    if misplaced := next((one for one in misplaced_arguments(tree) if one.is_sure and one.line == failure.line), None):
        return misplaced.said, failure.line
    names = re.findall(r"'(\w+)'", missing[1])
    found = dict(names=in_words(names), verb="is" if len(names) == 1 else "are", in_line=where)
    if unknown := [] if tuned else _unknown_names(tree, failure.line):
        return LaunchArguments.NOT_KNOWN(unknown=in_words(unknown), **found), failure.line
    sentence = LaunchArguments.GIVEN_BY_NEITHER if tuned else LaunchArguments.NOT_GIVEN
    return sentence(**found), failure.line


def _of_the_host(failure: Failure, tree: ast.Module) -> Said | None:
    """Returns the sentence about a mistake in the host function that Triton or Python tells in its own terms; None for
    any other failure."""
    where = dict(in_line=in_line(failure.line))
    if found := TOO_MANY.search(failure.message):
        return LaunchArguments.TOO_MANY(parameter=found[1], **where)
    if found := NOT_OF_TL.search(failure.message):
        return LaunchArguments.OF_KERNELS(function=found[1], line=failure.line)
    if FRACTION.search(failure.message):
        return LaunchArguments.FRACTION(**where)
    if SHAPE.search(failure.message):
        sentence = LaunchArguments.SHAPE_IS_CALLED if "not callable" in failure.message else LaunchArguments.SHAPE
        return sentence(**where)
    here = [call for call in calls_in([tree]) if covers(call, failure.line)]
    if NO_GRID in failure.message:
        called = [_root(call.func) for call in here]
        kernel = next((one.id for one in called if isinstance(one, ast.Name) and one.id in _kernels(tree)), "")
        if kernel:
            return LaunchArguments.WITHOUT_GRID(kernel=kernel, **where)
        function = next((one.attr for one in called if isinstance(one, ast.Attribute) and one.attr in ("cdiv",)), "")
        return LaunchArguments.OF_KERNELS(function=function, line=failure.line) if function else None
    if failure.message == NO_KERNEL:
        launched = [call.func.value for call in here if isinstance(call.func, ast.Subscript)]
        name = next((one.id for one in launched if isinstance(one, ast.Name)), "")
        return LaunchArguments.NO_KERNEL(function=name, **where) if name else None
    return None


def _root(called: ast.expr) -> ast.expr:
    """Returns `kernel` for kernel((n,))(...)."""
    while isinstance(called, ast.Call):
        called = called.func
    return called


def _kernels(tree: ast.Module) -> dict[str, list[str]]:
    """Returns the names of the kernels, each with the names of its parameters."""
    return {one.name: all_parameters(one) for one in kernels_of(tree)}


def _unknown_names(tree: ast.Module, line: int) -> list[str]:
    """Returns the names that this line's launch passes and that are neither parameters of its kernel nor options."""
    for launch in launches_of(tree):
        if covers(launch.call, line) and launch.kernel in _kernels(tree):
            known = {*_kernels(tree)[launch.kernel], *LAUNCH_OPTIONS}
            return [one.arg for one in launch.call.keywords if one.arg and one.arg not in known]
    return []
