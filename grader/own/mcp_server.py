"""The judge of one's own kernels as three tools of an agent, by the Model Context Protocol and its official package."""

from __future__ import annotations

from typing import Any

import click

from grader.own.judgement import EXPLAIN, TRACE, request_of
from grader.own.warm_judge import WarmOwnJudge

ARGUMENTS = """file: the kernel and the function that launches it. reference: a file with one function in torch that
takes the same arguments and computes what the kernel has to. shapes: of the arguments, as "M,K K,N; M=1..300 K=1..200
N=1..300". entry: the function to call, where the file has several. dtypes: fp32, fp16, bf16. promise: what else the
kernel is for, as {"in_place": ["x"], "any_strides": true, "nan": true}. target: as "sm_80". seed: of an earlier
judgement, to draw the same calls. thorough: ten times as many calls."""


def serve_mcp(warm: WarmOwnJudge) -> None:
    """Serves on standard input and output until the agent leaves. Raises click.ClickException without the package."""
    try:
        from mcp.server.mcpserver import MCPServer
    except ImportError:
        raise click.ClickException(
            "The package of the Model Context Protocol is not installed. Next: pip install 'triton-course[mcp]'"
        ) from None
    server = MCPServer("triton-course")

    @server.tool(
        description=f"""Judges a Triton kernel against a function of torch, without a GPU: values, memory,
races and machine code.

{ARGUMENTS}

Returns `outcome`, which is right, wrong or not judged; `sentences`, which name the mistake and its line; `next`;
`edits`, of one line, which mend it, where there are any; `in_torch`, the failing call in torch; `seed`."""
    )
    def judge(
        file: str, reference: str = "", shapes: str = "", entry: str = "", dtypes: list[str] | None = None,
        promise: dict[str, Any] | None = None, target: str = "", seed: int | None = None, thorough: bool = False,
    ) -> dict[str, Any]:  # fmt: skip
        return warm.answer(request_of(
            file, reference, shapes=shapes, entry=entry, dtypes=dtypes or (), promise=promise, target=target, seed=seed,
            thorough=thorough,
        ))  # fmt: skip

    @server.tool(
        description=f"""Judges a Triton kernel as the tool judge does, and says how sure its explanation is.

{ARGUMENTS}

Returns the fields of judge, and `explanations`: what would give the wrong values, with the calls that each fits, those
that contradict it, and why it was not told; `failed`: the calls that failed, and their causes; `right_calls`."""
    )
    def explain(
        file: str, reference: str = "", shapes: str = "", entry: str = "", dtypes: list[str] | None = None,
        promise: dict[str, Any] | None = None, target: str = "", seed: int | None = None, thorough: bool = False,
    ) -> dict[str, Any]:  # fmt: skip
        return warm.answer(request_of(
            file, reference, shapes=shapes, entry=entry, dtypes=dtypes or (), promise=promise, target=target, seed=seed,
            thorough=thorough, tool=EXPLAIN,
        ))  # fmt: skip

    @server.tool(
        description=f"""Judges a Triton kernel as the tool judge does, and shows what the variables of one
program held, line by line, in the call that failed.

{ARGUMENTS}
program: its place in the grid, as [1, 0]; without it, the program that the mistake names.

Returns the fields of judge, and `trace`: the call, and for each launch the steps of that program, each with its line,
variable, dtype, shape and numbers."""
    )
    def trace(
        file: str, reference: str = "", shapes: str = "", entry: str = "", dtypes: list[str] | None = None,
        promise: dict[str, Any] | None = None, target: str = "", seed: int | None = None, thorough: bool = False,
        program: list[int] | None = None,
    ) -> dict[str, Any]:  # fmt: skip
        return warm.answer(request_of(
            file, reference, shapes=shapes, entry=entry, dtypes=dtypes or (), promise=promise, target=target, seed=seed,
            thorough=thorough, tool=TRACE, program=program or [],
        ))  # fmt: skip

    server.run()
