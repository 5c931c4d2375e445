"""The traffic of a kernel, as bars against the least that it has to move: each argument once."""

from __future__ import annotations

from dataclasses import dataclass

from grader.show.svg_chart import BAR, INK, OVER, QUIET, SETTINGS, page_svg, plain_sides


@dataclass(frozen=True)
class Moved:
    """The traffic of an argument: how often it was moved, in multiples of its size; `limit` is how often it may be."""

    label: str  # "x read"
    times: float
    limit: float


def moved_of(figures: dict[str, float]) -> list[Moved]:
    """Returns a bar for each pair of a test's figures: x_read with x_read_limit, and so on."""
    return [
        Moved(name.replace("_", " "), figures[name], figures[f"{name}_limit"])
        for name in figures
        if f"{name}_limit" in figures
    ]


def traffic_svg(moved: list[Moved], name: str) -> str:
    """Returns an <svg> element, without fonts or scripts; `name` sets its ids apart from others on the page."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(SETTINGS):
        figure = Figure(figsize=(6.2, 0.55 + 0.34 * len(moved)))
        axes = figure.subplots()
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
        plain_sides(axes, QUIET, INK)
        description = ", ".join(f"{bar.label} {bar.times:.3g} times" for bar in moved)
        return page_svg(figure, name, f"{description}; the least possible is once each")
