"""`course serve`: a judgement for each line, one sentence for a line that asks for none, and the tools of an agent."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from grader.own.judgement import NOT_JUDGED, RIGHT, TOOLS, WRONG
from grader.own.serve_command import answer
from grader.own.warm_judge import WarmOwnJudge
from grader.session.weighed import Weighed
from tests.conftest import ROOT
from tests.own.test_own_kernels import KERNEL, MENDED, PAGE, REFERENCE

COMMAND = [sys.executable, "-c", "from grader.cli import main; main()", "serve"]
ENVIRONMENT = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}


@pytest.fixture
def folder(tmp_path) -> Path:
    for name, text in (("leaky.py", KERNEL), ("mended.py", MENDED), ("ref.py", REFERENCE)):
        (tmp_path / name).write_text(text)
    return tmp_path


def request(file: str, **more: object) -> dict:
    return {"file": file, "reference": "ref.py", "shapes": "N; N=1..90", "seed": 5, **more}


def test_each_line_is_answered_in_its_order(folder):
    lines = [request("mended.py", id=1), "nonsense", request("leaky.py", id="two"), {"id": 3, "reference": "ref.py"}]
    told = "".join(f"{one if isinstance(one, str) else json.dumps(one)}\n" for one in lines)
    done = subprocess.run(COMMAND, cwd=folder, env=ENVIRONMENT, input=told, capture_output=True, text=True)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0 and "Traceback" not in done.stderr
    assert [one["id"] for one in answers] == [1, None, "two", 3]
    assert [one.get("outcome") for one in answers] == [RIGHT, None, WRONG, None]
    assert answers[1]["error"] == "The line is no JSON." and answers[3]["error"] == "The request has no file."


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"\xff\xfe", "no JSON"),
        (b"[" * 100_000, "no JSON"),
        (b"7", "no object"),
        (json.dumps(request("a.py", sead=5)).encode(), "a field 'sead'"),
        (json.dumps(request("a.py", dtypes=[16])).encode(), "dtypes is [16]: a list of texts"),
        (json.dumps(request("a.py", seed=True)).encode(), "seed is true: a whole number"),
        (json.dumps(request("a.py", promise=[])).encode(), "promise is []: an object or a text"),
        (json.dumps(request("a.py", tool="talk")).encode(), "tool is 'talk'; there are judge, explain, trace"),
        (json.dumps(request("a.py", program=["a"])).encode(), "a list of whole numbers was expected"),
        (json.dumps(request("a\0.py")).encode(), "file holds a character with the code 0"),
    ],
)
def test_a_line_that_asks_for_nothing_gets_a_sentence(line, said):
    told = answer(line, None)  # no judge is asked
    assert said in told["error"] and told["next"]


def test_a_tool_adds_to_the_judgement(folder, monkeypatch):
    """Of a wrong kernel, of a right one and of a file that is not there; what was judged stays the same."""
    monkeypatch.chdir(folder)
    (folder / "scaled.py").write_text(MENDED.replace("x * slope)", "x + slope)"))
    requests = [request("scaled.py", tool="explain"), request("scaled.py", tool="trace", program=[0]),
                request("leaky.py", tool="trace"), request("mended.py", tool="trace", program=[900]),
                request("no.py", tool="trace"), request("mended.py", tool="explain")]  # fmt: skip
    warm = WarmOwnJudge()
    try:
        found = [answer(json.dumps(one).encode(), warm) for one in requests]
    finally:
        warm.end()
    assert [one["outcome"] for one in found] == [WRONG, WRONG, WRONG, RIGHT, NOT_JUDGED, RIGHT]
    told, *others = found[0]["explanations"]
    assert told["lost"] == "" and told["text"] == found[0]["sentences"][0] and all(one["lost"] for one in others)
    assert found[0]["failed"] and found[0]["failed"][0].keys() == {"case", "cause"}
    (launch,) = found[1]["trace"]["launches"]
    assert launch["kernel"] == "leaky_kernel" and launch["program"] == [0] and not launch["left_out"]
    assert {"load", "store"} <= {one["kind"] for one in launch["steps"]}
    assert all(value for one in launch["steps"] for value in one.values())
    assert found[2]["trace"]["launches"][0]["steps"] and found[3]["trace"]["launches"][0]["program"] != [900]
    assert "trace" not in found[4] and found[5]["explanations"] == [] and found[5]["right_calls"] > 10


def test_a_kernel_that_does_not_compile_has_no_trace_and_keeps_its_judgement(folder, monkeypatch):
    monkeypatch.chdir(folder)
    (folder / "wrong.py").write_text(MENDED.replace("x * slope)", "x & 3)"))
    warm = WarmOwnJudge()
    try:
        found = answer(json.dumps(request("wrong.py", tool="trace")).encode(), warm)
    finally:
        warm.end()
    assert found["outcome"] == WRONG and found["trace"] is None and "(0)" in found["no_trace"], found


def test_the_page_lists_what_each_tool_adds():
    rows = dict(re.findall(r"^\| `(judge|explain|trace)` \| (.*) \|$", PAGE, re.MULTILINE))
    assert list(rows) == list(TOOLS)
    named = {tool: set(re.findall(r"`(\w+)`", text)) for tool, text in rows.items()}
    assert {"explanations", "failed", "right_calls", *(one.name for one in fields(Weighed))} <= named["explain"]
    assert {"trace", "launches", "kernel", "line", "grid", "program", "steps", "left_out", "no_trace"} <= named["trace"]


def test_an_agent_finds_three_tools_and_their_answers(folder):
    mcp = pytest.importorskip("mcp")
    from mcp.client.stdio import StdioServerParameters, stdio_client

    async def asked() -> tuple[list[str], list[dict]]:
        server = StdioServerParameters(command=COMMAND[0], args=[*COMMAND[1:], "--mcp"], env=ENVIRONMENT, cwd=folder)
        async with stdio_client(server) as streams, mcp.ClientSession(*streams) as session:
            await session.initialize()
            tools = [one.name for one in (await session.list_tools()).tools]
            results = [await session.call_tool(tool, request("leaky.py")) for tool in tools]
            return tools, [json.loads(one.content[0].text) for one in results]

    tools, found = asyncio.run(asked())
    assert tools == list(TOOLS) and all(one["outcome"] == WRONG for one in found)
    assert "has no mask" in found[0]["sentences"][0] and found[1]["failed"] and found[2]["trace"]["launches"]
