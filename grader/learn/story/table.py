"""Makes tables for a terminal of what a story measures."""

from __future__ import annotations

from rich.table import Table

from grader.learn.story.messages import StorySpeeds

BAR = "█"
LONGEST = 10  # characters of a bar: all of a token


def ways_table(speeds: StorySpeeds) -> Table:
    table = _table("", "one by one", "CUDA graph")
    table.add_column("")
    for way in speeds.ways:
        table.add_row(way.name, _figure(way.one_by_one), _figure(way.graph), way.why)
    return table


def compared(speeds: StorySpeeds) -> str:
    """Returns a sentence that compares the kernels with torch, each way of launching with its own."""
    torch, _, kernels = speeds.ways
    if not (kernels.graph and torch.one_by_one and torch.graph):
        return "There is nothing to compare."
    return (
        f"In a graph the kernels make {kernels.graph / torch.one_by_one:.1f} times as many tokens as torch does one by "
        f"one, and {kernels.graph / torch.graph:.2f} times as many as torch in a CUDA graph."
    )


def steps_table(speeds: StorySpeeds, numbers: dict[str, str]) -> Table:
    """Returns a row for each kernel of a token. `numbers`: of the exercises, by kernel."""
    table = _table("step", "us, torch", "us, kernel", "tokens/s with it")
    table.add_column("share of a token")
    token = 1e9 / speeds.ways[-1].graph
    for step in speeds.steps:
        named = f"{numbers[step.kernel]} {step.kernel}"
        table.add_row(
            named, *map(_us, (step.torch_ns, step.kernel_ns)), _figure(step.speed), _bar(step.kernel_ns / token)
        )
    rest = max(0.0, token - sum(step.kernel_ns for step in speeds.steps))
    table.add_row("products and the rest", "", _us(rest), "", _bar(rest / token))
    return table


def _table(first: str, *figures: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column(first, no_wrap=True)
    for name in figures:
        table.add_column(name, justify="right")
    return table


def _figure(rate: int) -> str:
    return f"{rate:,}".replace(",", " ") if rate else "-"


def _us(nanoseconds: float) -> str:
    return f"{nanoseconds / 1000:.1f}"


def _bar(share: float) -> str:
    return f"{100 * share:3.0f} % {BAR * round(LONGEST * min(1.0, share))}"
