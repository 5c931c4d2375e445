"""`course judge`: the judge for a kernel of one's own, anywhere on the disk."""

from __future__ import annotations

import json
from pathlib import Path

import click

from grader.own.judgement import RIGHT, WRONG, Judgement
from grader.own.own_speed import speed_words
from grader.processes.bubblewrap import LEVELS, LIMITS
from grader.wire.printable import one_line

MOST_SEED = (1 << 63) - 1


@click.command(short_help="judges a kernel of your own against a reference in torch")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--reference", type=click.Path(path_type=Path), metavar="REF.py",
              help="a file with one function in torch: what the kernel has to compute")  # fmt: skip
@click.option("--entry", default="", metavar="NAME", help="the function that launches, where FILE has several")
@click.option("--shapes", default="", metavar="LINE",
              help='a word for each argument, then sizes: "M,K K,N =0.5; M=1..300 K=1..200 N=1..300"')  # fmt: skip
@click.option("--dtypes", default="", metavar="LIST", help="fp32 unless you say more: fp32,fp16,bf16")
@click.option("--promise", type=click.Path(path_type=Path), metavar="FILE.toml",
              help="what else the kernel is for: in_place, out, any_strides, positive, nan, only_kernels, "
                   "approximates")  # fmt: skip
@click.option("--target", default="", metavar="GPU", help="the GPU to compile for, as sm_80; sm_90 without")
@click.option("--time", default="", metavar="SIZES",
              help='time a right kernel on a GPU, in a call of these sizes: "M=4096 N=4096"')  # fmt: skip
@click.option("--seed", type=click.IntRange(0, MOST_SEED), help="of an earlier run, to draw the same calls")
@click.option("--thorough", is_flag=True, help="draw ten times as many calls, and try more edits of a wrong line")
@click.option("--isolation", type=click.Choice(LEVELS), default=LIMITS, show_default=True,
              help="run the kernel's Python within limits, in bubblewrap where there is one (auto), or in it or not at "
                   "all (strict)")  # fmt: skip
@click.option(
    "--json", "as_json", is_flag=True, help="print the judgement as JSON, whose fields docs/own_kernels.md lists"
)
def judge(
    file: Path, reference: Path | None, entry: str, shapes: str, dtypes: str, promise: Path | None, target: str,
    time: str, seed: int | None, thorough: bool, isolation: str, as_json: bool,
) -> None:  # fmt: skip
    """Judges the kernel in FILE against a function of torch, without a GPU: values, memory, races between programs,
    and machine code. Exit status: 0 right, 1 wrong, 2 not judged. docs/own_kernels.md says more.

    \b
    Example:  course judge mykernel.py --reference ref.py --shapes "M,N; M=1..70 N=1..2100"
    """
    from grader.own.judgement import judge as judged

    names = [name.strip() for name in dtypes.split(",") if name.strip()]
    found = judged(
        file, reference or "", entry=entry, shapes=shapes, dtypes=names, promise=promise, target=target, seed=seed,
        thorough=thorough, isolation=isolation, time=time,
    )  # fmt: skip
    if as_json:
        click.echo(json.dumps(found.to_json(), indent=1))
    else:
        click.echo("\n".join(map(one_line, lines(found))))
    raise SystemExit(found.exit_status)


def lines(found: Judgement) -> list[str]:
    """Returns the report: what was judged, the mistake or that there is none, and in the last line the next action."""
    name = Path(found.file).name
    head = [f"{name}: {found.entry}, against {Path(found.reference).name}"] if found.entry else []
    told = [f"  {one}" for one in found.sentences]
    if found.outcome == RIGHT:
        told = [f"  Right: {_judged(found)}"]
    elif found.outcome != WRONG:
        told[0] = f"  Not judged: {told[0].strip()}"
    case = [f"  Seen in: {found.case}"] if found.case else []
    again = [f"  Again with these data: add --seed {found.seed}"] if case else []
    lines_of_torch = ["  The same call on a GPU:", *(f"    {one}" for one in found.in_torch)] if found.in_torch else []
    notes = [f"  {one}" for one in (*found.notes, *(speed_words(found.speed) if found.speed else ()))]
    last = [f"  Next: {found.next}"] if found.next else [_of_right(found)]
    return [*head, *told, *case, *lines_of_torch, *notes, *again, *last]


def _judged(found: Judgement) -> str:
    """Returns what was found right, and in which calls."""
    drawn = found.drawn
    sizes = f", {drawn['sizes']}" if drawn["sizes"] else ""
    dtypes = " and ".join(drawn["dtypes"])
    return (
        f"values, memory, races and machine code for {found.target}, in {drawn['calls']} calls in {dtypes}{sizes},"
        f" {drawn['layouts']}."
    )


def _of_right(found: Judgement) -> str:
    more = "" if len(found.drawn["dtypes"]) > 1 else "--dtypes fp32,fp16,bf16 asks for more dtypes"
    timed = "" if found.speed else "--time and sizes time it on a GPU"
    return f"  Next: {'; '.join(filter(None, (more, timed))) or 'use it'}."
