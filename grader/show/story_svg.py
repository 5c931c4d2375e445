"""Draws how long each step of a story takes for a token, in torch and on the kernels, for a file of its own."""

from __future__ import annotations

import io

from grader.show.svg_chart import BAR, INK, QUIET, SETTINGS, plain_sides
from grader.show.throughput_svg import ON_PAPER


def story_svg(name: str, gpu: str, steps: list[tuple[str, int, int]]) -> str:
    """Returns an SVG file. `steps` are (kernel, nanoseconds of a token in torch, nanoseconds on the kernel)."""
    import matplotlib
    from matplotlib.figure import Figure

    ink, quiet, blue = ON_PAPER[INK], ON_PAPER[QUIET], ON_PAPER[BAR]
    with matplotlib.rc_context(SETTINGS):
        figure = Figure(figsize=(7.6, 1.3 + 0.5 * len(steps)))
        axes = figure.subplots()
        by_torch, by_kernel = [step[1] for step in steps], [step[2] for step in steps]
        for label, colour, nanoseconds, offset in (
            ("torch", quiet, by_torch, -0.17),
            ("kernel", blue, by_kernel, 0.17),
        ):
            times = [number / 1000 for number in nanoseconds]
            places = [row + offset for row in range(len(steps))]
            axes.barh(places, times, height=0.3, color=colour, label=label)
            for place, time in zip(places, times):
                axes.annotate(f"{time:.1f}", (time, place), (4, 0), textcoords="offset points", va="center", color=ink)
        axes.set_yticks(range(len(steps)), [step[0] for step in steps], color=ink)
        axes.invert_yaxis()
        axes.margins(x=0.12)
        axes.set_xlabel(f"microseconds of a token, each step in a CUDA graph of its own. {gpu}", color=quiet)
        axes.set_title(f"The steps of {name}: before, in torch, and after, on kernels", loc="left", color=ink)
        axes.legend(frameon=False, labelcolor=ink)
        plain_sides(axes, quiet, ink)
        picture = io.StringIO()
        figure.savefig(picture, format="svg", bbox_inches="tight", metadata={"Date": None, "Creator": None})
    return picture.getvalue()
