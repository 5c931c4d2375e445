"""Describes a CompilationError of Triton's: what the compiler refuses, and at which line of the learner's file."""

from __future__ import annotations

import ast
import re

from grader.front_end.refused_values import in_other_words
from grader.front_end.triton_text_api import CompilationError
from grader.wire.messages import Failure

MOST_MESSAGE = 500
DEFINITION = re.compile(r"^def (\w+)", re.MULTILINE)
UNFINISHED = re.compile(r"^KeyError\('[\w.]+__")  # of a function whose text is being made, when it is called in it


def compile_failure(error: CompilationError, tree: ast.Module) -> Failure:
    """Returns what the compiler refuses, at the innermost location that it names in the file with this tree."""
    chain: list[BaseException] = [error]
    while (cause := chain[-1].__cause__ or chain[-1].__context__) is not None and len(chain) < 16:
        chain.append(cause)
    refusals = [link for link in chain if isinstance(link, CompilationError)]
    last = chain[-1]
    message = refusals[-1].error_message or (text_of(last) if last is not refusals[-1] else "")
    if isinstance(error.node, str):  # a kernel's name, which is refused before anything in the kernel is read
        return Failure("compile", type(error).__name__, cut(error.src), _line_of(error.node, tree), error.node)
    if message == repr(last) and not isinstance(last, KeyError):  # as releases before 3.9 write it
        message = text_of(last) or message
    if isinstance(last, KeyError) and UNFINISHED.search(message):
        message = "a kernel, or a function of one, calls itself: the compiler writes each into its caller"
    elif isinstance(last, RecursionError):
        message = "it is nested too deeply for the compiler: write it as several statements"
    places = [(_line_of_node(link, tree), _kernel_of(link), link.node) for link in refusals]
    line, kernel, node = next((place for place in reversed(places) if place[0]), (0, "", None))
    message = in_other_words(message, last, node) or message
    return Failure("compile", type(last).__name__, cut(message), line, kernel)


def _kernel_of(error: CompilationError) -> str:
    match = DEFINITION.search(error.src or "")
    return match[1] if match else ""


def _line_of_node(error: CompilationError, tree: ast.Module) -> int:
    """Returns the line of the refused node in the file; 0 if it stands in no function of the file.

    The error counts lines from the `def` of a function.
    """
    line, above = getattr(error.node, "lineno", 0), _line_of(_kernel_of(error), tree)
    return above + line - 1 if line and above else 0


def _line_of(name: str, tree: ast.Module) -> int:
    """Returns the line of the `def` of this function of the file; 0 if there is none."""
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    return next((function.lineno for function in functions if function.name == name), 0)


def text_of(error: BaseException) -> str:
    """Returns an exception's text, cut; "" where it has none, or making it raises an exception."""
    try:
        return cut(str(error).strip())
    except BaseException:
        return ""


def cut(text: str) -> str:
    """Returns a text, or the beginning and the end of a long text, where differences may stand."""
    return text if len(text) <= MOST_MESSAGE else f"{text[: MOST_MESSAGE - 105]} ... {text[-100:]}"
