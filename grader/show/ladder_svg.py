"""A ladder as a picture that stands alone: a bar for each rung, the naive kernel at the top."""

from __future__ import annotations

import io

from grader.show.svg_chart import BAR, INK, QUIET, SETTINGS, plain_sides
from grader.show.throughput_svg import ON_PAPER


def ladder_svg(title: str, bars: list[tuple[str, float, str]], caption: str, of: str, own: str = "") -> str:
    """Returns an SVG file. `bars` are (name, share of the speed of `of`, figures as text); `own` is the name of the
    learner's bar."""
    import matplotlib
    from matplotlib.figure import Figure

    ink, quiet, blue = ON_PAPER[INK], ON_PAPER[QUIET], ON_PAPER[BAR]
    with matplotlib.rc_context(SETTINGS):
        figure = Figure(figsize=(7.6, 1.1 + 0.34 * len(bars)))
        axes = figure.subplots()
        colours = [ink if name == own else blue for name, _, _ in bars]
        axes.barh(range(len(bars)), [share for _, share, _ in bars], height=0.55, color=colours)
        for row, (_, share, text) in enumerate(bars):
            axes.annotate(text, (share, row), (5, 0), textcoords="offset points", va="center", color=ink)
        axes.axvline(1, color=quiet, linestyle="--", linewidth=1)
        axes.set_yticks(range(len(bars)), [name for name, _, _ in bars], color=ink)
        axes.invert_yaxis()
        axes.set_xlim(0, 1.3 * max(1.0, *(share for _, share, _ in bars)))
        axes.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "25 %", "50 %", "75 %", "100 %"])
        axes.set_xlabel(f"of the speed of {of}. {caption}", color=quiet)
        axes.set_title(title, loc="left", color=ink)
        plain_sides(axes, quiet, ink)
        picture = io.StringIO()
        figure.savefig(picture, format="svg", bbox_inches="tight", metadata={"Date": None, "Creator": None})
    return picture.getvalue()
