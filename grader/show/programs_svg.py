"""Arguments as grids of elements, each coloured and numbered by the programs that load or store it."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Protocol

CELL, GAP, TOP, MARGIN = 34, 26, 24, 8
LETTER = 7  # pixels, the average width of a bold letter, rounded up
HUES = (210, 35, 110, 330, 265, 170, 55, 0)

STYLE = """\
.programs { max-width: 100%; height: auto; font: 12px system-ui, sans-serif; }
.programs .paper { fill: #fcfbf8; }
.programs text { fill: #1d2330; text-anchor: middle; dominant-baseline: central; }
.programs .name { font-weight: bold; text-anchor: start; }
.programs rect { stroke: #8d949e; }
.programs .nobody { fill: none; stroke-dasharray: 3 2; }
"""


class Grid(Protocol):
    """An argument as it is drawn; grader.learn.program_accesses.TouchedArgument is a Grid."""

    @property
    def name(self) -> str: ...

    @property
    def verb(self) -> str: ...

    @property
    def rows(self) -> int: ...

    @property
    def columns(self) -> int: ...

    def of(self, row: int, column: int) -> tuple[tuple[int, ...], ...]: ...


def programs_svg(grids: Sequence[Grid], title: str) -> str:
    """Returns an <svg> for a file, with the grids one below the other."""
    parts, y = [], MARGIN
    for grid in grids:
        parts.append(_grid_svg(grid, y))
        y += TOP + CELL * grid.rows + GAP
    width = 2 * MARGIN + max([360, *(max(CELL * grid.columns, LETTER * len(_name(grid))) for grid in grids)])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="programs" viewBox="0 0 {width} {y}" width="{width}" '
        f'height="{y}" role="img" aria-label="{escape(title)}"><title>{escape(title)}</title><style>{STYLE}</style>'
        f'<rect class="paper" width="{width}" height="{y}"/>{"".join(parts)}</svg>\n'
    )


def _name(grid: Grid) -> str:
    return f"{grid.name}: the program that {grid.verb} each element"


def _grid_svg(grid: Grid, y: int) -> str:
    parts = [f'<text class="name" x="{MARGIN}" y="{y + TOP / 2}">{escape(_name(grid))}</text>']
    for row in range(grid.rows):
        for column in range(grid.columns):
            parts.append(_cell_svg(grid, row, column, MARGIN + CELL * column, y + TOP + CELL * row))
    return "".join(parts)


def _cell_svg(grid: Grid, row: int, column: int, x: int, y: int) -> str:
    programs = grid.of(row, column)
    paint = f'style="fill: hsl({HUES[sum(programs[0]) % len(HUES)]} 60% 86%)"' if programs else 'class="nobody"'
    names = ", ".join(str(tuple(program)) for program in programs) or "no program"
    return (
        f'<g><title>{escape(names)}</title><rect {paint} x="{x}" y="{y}" width="{CELL}" height="{CELL}"/>'
        f'<text x="{x + CELL / 2}" y="{y + CELL / 2}">{escape(short(programs))}</text></g>'
    )


def short(programs: tuple[tuple[int, ...], ...]) -> str:
    """Returns the label of an element: "3", "0,1" for a program of two axes, "4x" for four programs, "." for none."""
    if not programs:
        return "."
    return ",".join(map(str, programs[0])) if len(programs) == 1 else f"{len(programs)}x"
