"""`course serve`: a warm judge for programs, which answers requests line by line, or by the Model Context Protocol."""

from __future__ import annotations

import contextlib
import json
import sys
from typing import Any

import click

from grader.own.judgement import TOOLS, request_of
from grader.own.warm_judge import WarmOwnJudge

KINDS = {
    "file": (str,), "reference": (str,), "entry": (str,), "shapes": (str,), "dtypes": (list,), "promise": (dict, str),
    "target": (str,), "seed": (int,), "thorough": (bool,), "isolation": (str,), "tool": (str,), "program": (list,),
    "time": (str,),
}  # fmt: skip
EXAMPLE = '{"id": 1, "file": "mykernel.py", "reference": "ref.py", "shapes": "M,N"}'
ITEMS = {"program": int}  # what a list holds; others hold texts
ITEM_WORDS = {str: " of texts", int: " of whole numbers"}
WORDS = {str: "a text", list: "a list", dict: "an object", int: "a whole number", bool: "true or false"}


@click.command(short_help="judges kernels of your own for a program: a request in each line, an answer in each line")
@click.option("--mcp", is_flag=True, help="speak the Model Context Protocol, for an agent: pip install "
                                          "'triton-course[mcp]'")  # fmt: skip
def serve(mcp: bool) -> None:
    """Reads requests as lines of JSON on standard input, and writes a judgement as a line for each, until the input
    ends. The first takes as long as `course judge`; all that follow find a process that has imported everything. A
    request with "tool": "explain" or "trace" gets more than the judgement: docs/own_kernels.md.

    \b
    Example:  course serve < requests.jsonl
    """
    warm = WarmOwnJudge()
    try:
        if mcp:
            from grader.own.mcp_server import serve_mcp

            serve_mcp(warm)
            return
        with contextlib.suppress(BrokenPipeError):
            for line in sys.stdin.buffer:
                if line.strip():
                    sys.stdout.write(json.dumps(answer(line, warm)) + "\n")
                    sys.stdout.flush()
    finally:
        warm.end()


def answer(line: bytes, warm: WarmOwnJudge) -> dict[str, Any]:
    """Returns the judgement that a line asks for, as --json has it, with the request's `id` and what its tool adds; or
    {"id", "error", "next"} for a line that asks for none."""
    try:
        stated = json.loads(line)
    except (ValueError, RecursionError):
        return _no_request(None, "The line is no JSON.")
    if not isinstance(stated, dict):
        return _no_request(None, "The line is no object of JSON.")
    number = stated.pop("id", None)
    if wrong := _wrong_in(stated):
        return _no_request(number, wrong)
    return {"id": number, **warm.answer(request_of(**stated))}


def _no_request(number: Any, said: str) -> dict[str, Any]:
    return {"id": number, "error": said, "next": f"write a line as {EXAMPLE}"}


def _wrong_in(stated: dict[str, Any]) -> str:
    """Returns what is wrong with the fields of a request, in a sentence; "" if nothing is."""
    if "file" not in stated:
        return "The request has no file."
    for name, value in stated.items():
        if name not in KINDS:
            return f"The request has a field {name!r}; there are id, {', '.join(KINDS)}."
        is_one = isinstance(value, KINDS[name]) and (bool in KINDS[name] or not isinstance(value, bool))
        item = ITEMS.get(name, str)
        of_items = not isinstance(value, list) or all(type(one) is item for one in value)
        if not (is_one and of_items):
            words = [WORDS[one] + (ITEM_WORDS[item] if one is list else "") for one in KINDS[name]]
            return f"{name} is {json.dumps(value)[:60]}: {' or '.join(words)} was expected."
        if name == "tool" and value not in TOOLS:
            return f"tool is {value!r}; there are {', '.join(TOOLS)}."
        if isinstance(value, str) and "\0" in value:
            return f"{name} holds a character with the code 0."
    return ""
