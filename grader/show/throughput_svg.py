"""Throughput as pictures: bars of one size against the ceiling and the gate, and curves over size."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from grader.show.svg_chart import BAR, INK, OVER, QUIET, SETTINGS, page_svg, plain_sides

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from grader.explain.speed import MeasuredSpeeds
    from grader.show.curves import Curves

SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
MOST_LABELS = 9  # on the axis of sizes
ON_PAPER = {INK: "#1d2330", QUIET: "#5b6472", BAR: "#2a6aa8"}  # for a picture that stands alone


# ---- one size -------------------------------------------------------------------------------------------------------


def throughput_svg(speed: MeasuredSpeeds, name: str) -> str:
    """Returns an <svg> element: a bar for each of `speed.compared`, the learner's kernel first and the ceiling last,
    and a line at what is needed. `name` sets its ids apart on a page."""
    import matplotlib
    from matplotlib.figure import Figure

    bars = speed.compared
    with matplotlib.rc_context(SETTINGS):
        figure = Figure(figsize=(6.2, 0.7 + 0.34 * len(bars)))
        axes = figure.subplots()
        missed = speed.share < speed.gate
        colours = [OVER if missed else BAR] + [QUIET] * (len(bars) - 1)
        axes.barh(range(len(bars)), [rate / speed.ceiling for _, rate in bars], height=0.55, color=colours)
        for row, (_, rate) in enumerate(bars):
            place = (rate / speed.ceiling, row)
            axes.annotate(speed.rate_text(rate), place, (5, 0), textcoords="offset points", va="center", color=INK)
        axes.axvline(speed.gate, color=INK, linestyle="--", linewidth=1)
        axes.set_yticks(range(len(bars)), [label for label, _ in bars], color=INK)
        axes.invert_yaxis()
        axes.set_xlim(0, 1.3 * max(1.0, *(rate / speed.ceiling for _, rate in bars)))
        axes.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "25 %", "50 %", "75 %", "100 %"])
        axes.set_xlabel(f"of the ceiling; the dashed line is what is needed, {100 * speed.gate:.0f} %", color=INK)
        plain_sides(axes, QUIET, INK)
        rates_in_words = ", ".join(f"{label} {speed.rate_text(rate)}" for label, rate in bars)
        return page_svg(figure, name, f"Throughput: {rates_in_words}; {speed.needed} of the ceiling")


# ---- over size ------------------------------------------------------------------------------------------------------


def curves_svg(curves: Curves, name: str) -> str:
    """Returns an <svg> element for a page; `name` sets its ids apart from others there."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(SETTINGS):
        figure = Figure(figsize=(6.2, 3.4))
        _draw(figure.subplots(), curves, {INK: INK, QUIET: QUIET, BAR: BAR})
        return page_svg(figure, name, f"Throughput over size. {curves.summary}")


def curves_png(curves: Curves) -> bytes:
    """Returns a PNG picture that stands alone, with a title, and below it what was timed."""
    import textwrap

    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context({"font.size": 10}):
        figure = Figure(figsize=(8, 5.4), dpi=130)
        axes = figure.add_axes((0.1, 0.3, 0.86, 0.61))
        _draw(axes, curves, ON_PAPER)
        axes.set_title(f"{curves.exercise.replace('_', ' ')} on {curves.gpu}", loc="left", color=ON_PAPER[INK])
        caption = textwrap.fill(curves.caption, 108)
        figure.text(0.1, 0.17, caption, va="top", fontsize=8, color=ON_PAPER[QUIET])
        content = io.BytesIO()
        figure.savefig(content, format="png", metadata={"Software": None})
    return content.getvalue()


def _draw(axes: Axes, curves: Curves, colours: dict[str, str]) -> None:
    """Draws lines that markers and strokes tell apart as well as colours do, with gaps where nothing was measured."""
    strokes = {curves.ceiling: (QUIET, "", "-", 1.0)}
    strokes |= zip(curves.kernels, [(BAR, "o", "-", 2.0), (INK, "s", "--", 1.0), (INK, "^", ":", 1.0)])
    for depth, (name, rates) in enumerate(curves.rates.items()):
        colour, marker, stroke, width = strokes[name]
        axes.plot(
            curves.sizes, [float("nan") if rate is None else rate for rate in rates], label=name,
            color=colours[colour], marker=marker, markersize=5, markerfacecolor="none" if depth else None,
            linestyle=stroke, linewidth=width, zorder=9 - depth,
        )  # fmt: skip
    for name, rate in curves.medal_rates.items():
        axes.plot(curves.sizes[-1:], [rate], marker="_", markersize=12, color=colours[INK], zorder=10)
        axes.annotate(name, (curves.sizes[-1], rate), (8, 0), textcoords="offset points", va="center",
                      fontsize="small", color=colours[INK], annotation_clip=False)  # fmt: skip
    axes.set_xscale("log", base=2)
    axes.set_ylim(0, 1.08 * (curves.highest or 1))
    every = -(-len(curves.sizes) // MOST_LABELS)
    labelled = curves.sizes[::-1][::every]
    axes.set_xticks(labelled, [_size_text(size, curves.sizes[-1]) for size in labelled])
    axes.set_xticks([], minor=True)
    axes.tick_params(colors=colours[INK])
    axes.set_xlabel(f"n: the first argument is {curves.shape}", color=colours[INK])
    axes.set_ylabel(curves.unit, color=colours[INK])
    axes.grid(axis="y", color=colours[QUIET], alpha=0.3, linewidth=0.6)
    plain_sides(axes, colours[QUIET], colours[INK])
    axes.legend(frameon=False, labelcolor=colours[INK], loc="best")


def _size_text(size: int, largest: int) -> str:
    """Returns "4096", or "2²⁷" for a power of two where the largest size has six digits or more."""
    if largest < 100_000 or size & (size - 1):
        return str(size)
    return "2" + str(size.bit_length() - 1).translate(SUPERSCRIPTS)
