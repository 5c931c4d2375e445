"""What a kernel moved, as bars against the least that it has to move: once each."""

from __future__ import annotations

import io
import re
from dataclasses import dataclass

# matplotlib wants colours; these are exchanged for the page's own, which follow light and dark.
INK, QUIET, BAR, OVER = "#010203", "#010204", "#010205", "#010206"
VARIABLES = {INK: "--ink", QUIET: "--quiet", BAR: "--bar", OVER: "--wrong"}


@dataclass(frozen=True)
class Moved:
    """How often an argument was moved, in multiples of its size. `limit`: how often it may be."""

    label: str  # "x read"
    times: float
    limit: float


def moved_of(figures: dict[str, float]) -> list[Moved]:
    """The bars that a test's figures hold: x_read beside x_read_limit, and so on."""
    return [
        Moved(name.replace("_", " "), figures[name], figures[f"{name}_limit"])
        for name in figures
        if f"{name}_limit" in figures
    ]


def traffic_svg(moved: list[Moved], name: str) -> str:
    """An <svg> element, without fonts or scripts; `name` sets it apart from others on its page."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    settings = {"svg.fonttype": "none", "font.size": 9, "svg.hashsalt": "course"}  # text stays text; the same each time
    with matplotlib.rc_context(settings):
        figure, axes = pyplot.subplots(figsize=(6.2, 0.55 + 0.34 * len(moved)))
        colours = [OVER if bar.times > bar.limit + 1e-6 else BAR for bar in moved]
        axes.barh(range(len(moved)), [bar.times for bar in moved], height=0.55, color=colours)
        for row, bar in enumerate(moved):
            over = f" (at most {bar.limit:g})" if bar.times > bar.limit + 1e-6 else ""
            label = f"{bar.times:.3g}{over}"
            axes.annotate(label, (bar.times, row), (5, 0), textcoords="offset points", va="center", color=INK)
        axes.axvline(1, color=QUIET, linestyle="--", linewidth=1)
        axes.set_yticks(range(len(moved)), [bar.label for bar in moved], color=INK)
        axes.invert_yaxis()
        axes.set_xlim(0, 1.3 * max(1.0, *(bar.times for bar in moved)))
        axes.set_xlabel("times its size; the dashed line is the least possible", color=INK)
        axes.tick_params(axis="x", colors=INK)
        axes.tick_params(axis="y", length=0)
        for side in ("top", "right", "left"):
            axes.spines[side].set_visible(False)
        axes.spines["bottom"].set_color(QUIET)
        text = io.StringIO()
        figure.savefig(text, format="svg", transparent=True, bbox_inches="tight", metadata={"Date": None})
        pyplot.close(figure)
    return _for_a_page(text.getvalue(), moved, name)


def _for_a_page(svg: str, moved: list[Moved], name: str) -> str:
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    for colour, variable in VARIABLES.items():
        svg = svg.replace(colour, f"var({variable})")
    svg = re.sub(r'(id="|url\(#|href="#)', rf"\g<1>{name}-", svg).replace("*{", ".chart *{")
    said = ", ".join(f"{bar.label} {bar.times:.3g} times" for bar in moved)
    svg = re.sub(r"font-family: [^;\"]*; ?", "", svg)  # the page chooses
    return svg.replace(
        "<svg ", f'<svg role="img" aria-label="{said}; the least possible is once each" class="chart" ', 1
    )
