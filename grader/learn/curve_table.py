"""Throughput over size in a terminal: a row per size, a bar for the first kernel's rate, a mark at the ceiling."""

from __future__ import annotations

from rich.console import Group
from rich.table import Table
from rich.text import Text

from grader.show.curves import Curves, number_text, rate_text

BAR, CEILING = "█", "|"
LONGEST, SHORTEST = 30, 8  # bars, in characters
NARROW, NARROWEST = 84, 52  # columns: below NARROW the ceiling alone is in figures too, below NARROWEST nothing is


def curve_table(curves: Curves, width: int) -> Group:
    """Returns lines of at most `width` characters, readable without colours; figures are in the unit of the curves."""
    first = curves.kernels[0]
    others = [name for name in curves.rates if name != first] if width >= NARROW else [curves.ceiling]
    others = others if width >= NARROWEST else []
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column("n", justify="right", no_wrap=True)
    table.add_column(first, justify="right", no_wrap=True)
    table.add_column("share", justify="right", no_wrap=True)
    longest = max(SHORTEST, min(LONGEST, width - 37 - 11 * len(others)))
    table.add_column("", no_wrap=True, min_width=longest + 1)
    for name in others:
        table.add_column(name, justify="right", no_wrap=True)
    for place, size in enumerate(curves.sizes):
        share = curves.share(first, place)
        figures = [_figure(curves, name, place) for name in others]
        percent = f"{100 * share:.0f} %" if share else ""
        table.add_row(
            number_text(size), _figure(curves, first, place), percent, _bar(curves, first, place, longest), *figures
        )
    legend = f"{BAR} {first}   {CEILING} {curves.ceiling}, the ceiling; the share is of it"
    return Group(table, Text(legend, style="dim"))


def _figure(curves: Curves, name: str, place: int) -> str:
    rate = curves.rates[name][place]
    return "" if rate is None else rate_text(rate, "").strip()


def _bar(curves: Curves, name: str, place: int, longest: int) -> Text:
    def length(rate: float | None) -> int:
        return round(longest * rate / curves.highest) if rate and curves.highest else 0

    own, ceiling = length(curves.rates[name][place]), length(curves.rates[curves.ceiling][place])
    cells = [BAR] * own + [" "] * (longest + 1 - own)
    if curves.rates[curves.ceiling][place]:
        cells[ceiling] = CEILING
    return Text("".join(cells))
