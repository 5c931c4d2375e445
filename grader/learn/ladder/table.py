"""A ladder in a terminal: measured figures with a bar for each rung, counted figures, and the change of each rung."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rich.console import Group, JustifyMethod
from rich.table import Table
from rich.text import Text

from grader.learn.ladder.counts import Counts
from grader.learn.ladder.figures import Figures, Timed
from grader.learn.ladder.rungs import Rung
from grader.show.curves import number_text

BAR, CEILING = "█", "|"
LONGEST, SHORTEST = 30, 8  # bars, in characters
WIDE, MIDDLE = 100, 76  # characters; a terminal of this width shows more columns


def figure_text(number: float | None) -> str:
    """Returns a rate or a factor with three digits, or with all its digits before the point; "" for None."""
    if number is None:
        return ""
    return number_text(round(number)) if number >= 100 else f"{number:.3g}"


def percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= 0.1 else f"{100 * share:.2g} %"


def measured_table(figures: Figures, numbers: dict[str, str], width: int) -> Group:
    """Returns a row for each kernel, with a bar if the terminal is wide enough. numbers: of the rungs, by name."""
    columns: list[tuple[str, JustifyMethod]] = [
        ("", "right"), ("rung", "left"), (figures.unit, "right"), ("share", "right"), ("times", "right"), ("", "left"),
    ]  # fmt: skip
    shown = len(columns) if width >= MIDDLE else 4
    table = _table(*columns[:shown])
    longest = max(SHORTEST, min(LONGEST, width - 38 - max(map(len, numbers), default=0)))
    highest = max((rung.share for rung in figures.rungs.values() if isinstance(rung, Timed)), default=0.0)
    before = 0.0
    for name, rung in figures.rungs.items():
        cells: list[str | Text] = ["-"]
        if isinstance(rung, Timed):
            faster = f"x {figure_text(rung.rate / before)}" if before else ""
            cells = [figure_text(rung.rate), percent(rung.share), faster, _bar(rung, max(highest, 1.0), longest)]
            before = rung.rate
        table.add_row(*[numbers.get(name, ""), name, *cells][:shown])
    ceiling = f"{CEILING} {figures.anchor}: {figure_text(figures.rate)} {figures.unit}, which the share is of"
    return Group(table, Text(f"{ceiling}; times: as fast as the rung before", style="dim"))


def _bar(rung: Timed, highest: float, longest: int) -> Text:
    own, ceiling = round(longest * rung.share / highest), round(longest / highest)
    cells = [BAR] * own + [" "] * (longest + 1 - own)
    cells[ceiling] = CEILING
    return Text("".join(cells))


def counted_table(counted: dict[str, Counts | str], numbers: dict[str, str], width: int) -> Group:
    """Returns a row of counts for each kernel; a narrow terminal gets only the most telling columns."""
    shown = [column for column in COLUMNS if width >= column.least]
    table = _table(("", "right"), ("rung", "left"), *((column.name, column.side) for column in shown))
    for name, counts in counted.items():
        cells = [column.cell(counts) for column in shown] if isinstance(counts, Counts) else ["-"]
        table.add_row(numbers.get(name, ""), name, *cells)
    legend = " ".join(f"{column.name}: {column.legend}." for column in shown if column.legend)
    return Group(table, Text(legend, style="dim"))


@dataclass(frozen=True)
class Column:
    """A column of counts. `least`: the width of a terminal, in characters, that it takes to show it."""

    name: str
    side: JustifyMethod
    least: int
    cell: Callable[[Counts], str]
    legend: str = ""


def _programs(counts: Counts) -> str:
    count = f"{counts.programs / 1e6:.3g}M" if counts.programs >= 1_000_000 else number_text(counts.programs)
    return count + (f" in {counts.launches}" if counts.launches > 1 else "")


def _registers(counts: Counts) -> str:
    return f"{counts.registers}+{counts.spilled}" if counts.spilled else str(counts.registers)


COLUMNS = [
    Column("bytes", "right", 0, lambda counts: figure_text(counts.moved) or "?",
           "what loads and stores move, each program by itself, times the least; what programs share may come from a "
           "cache"),
    Column("programs", "right", WIDE, _programs),
    Column("code", "right", MIDDLE, lambda one: "?" if one.instructions is None else number_text(one.instructions),
           "instructions of machine code"),
    Column("regs", "right", WIDE, _registers, "per thread, + bytes of them that are spilled"),
    Column("shared", "right", MIDDLE, lambda counts: f"{counts.shared / 1024:.3g}", "KiB per program"),
    Column("opcodes", "left", MIDDLE, lambda counts: counts.opcodes),
    Column("access", "left", WIDE, lambda counts: ", ".join(map(str, counts.widths)),
           "bytes that a thread loads or stores at once"),
]  # fmt: skip


def reasons(rungs: list[Rung]) -> Table:
    """Returns a row for each rung: its number, its name, its change and the reason for it."""
    table = Table.grid(padding=(0, 1))
    table.add_column(justify="right", no_wrap=True)
    table.add_column()
    for number, rung in enumerate(rungs, 1):
        table.add_row(str(number), Text(f"{rung.name}: {rung.why}"))
    return table


def _table(*columns: tuple[str, JustifyMethod]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for name, side in columns:
        table.add_column(name, justify=side, no_wrap=True)
    return table
