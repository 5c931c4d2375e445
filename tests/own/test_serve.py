"""`course serve`: a judgement for each line, one sentence for a line that asks for none, and the tool of an agent."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest

from grader.own.judgement import RIGHT, WRONG
from grader.own.serve_command import answer
from tests.conftest import ROOT
from tests.own.test_own_kernels import KERNEL, MENDED, REFERENCE

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
        (json.dumps(request("a\0.py")).encode(), "file holds a character with the code 0"),
    ],
)
def test_a_line_that_asks_for_nothing_gets_a_sentence(line, said):
    told = answer(line, None)  # no judge is asked
    assert said in told["error"] and told["next"]


def test_an_agent_finds_one_tool_and_its_judgement(folder):
    mcp = pytest.importorskip("mcp")
    from mcp.client.stdio import StdioServerParameters, stdio_client

    async def asked() -> tuple[list[str], dict]:
        server = StdioServerParameters(command=COMMAND[0], args=[*COMMAND[1:], "--mcp"], env=ENVIRONMENT, cwd=folder)
        async with stdio_client(server) as streams, mcp.ClientSession(*streams) as session:
            await session.initialize()
            tools = [one.name for one in (await session.list_tools()).tools]
            result = await session.call_tool("judge", request("leaky.py"))
            return tools, json.loads(result.content[0].text)

    tools, found = asyncio.run(asked())
    assert tools == ["judge"] and found["outcome"] == WRONG and "has no mask" in found["sentences"][0]
