"""matplotlib figures as part of a page: text stays text, colours are the page's own, and a picture has words."""

from __future__ import annotations

import io
import re
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.typing import RcKeyType

# matplotlib wants colours; these are exchanged for the page's own, which follow light and dark.
INK, QUIET, BAR, OVER = "#010203", "#010204", "#010205", "#010206"
VARIABLES = {INK: "--ink", QUIET: "--quiet", BAR: "--bar", OVER: "--wrong"}
# Text stays text, and a picture is the same each time.
SETTINGS: dict[RcKeyType, Any] = {"svg.fonttype": "none", "font.size": 9, "svg.hashsalt": "course"}


def plain_sides(axes: Axes, colour: str, ink: str) -> None:
    """Hides the frame but for the axis at the bottom, which gets `colour`; the labels of x get `ink`."""
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(colour)
    axes.tick_params(axis="x", colors=ink)
    axes.tick_params(axis="y", length=0)


def page_svg(figure: Figure, name: str, description: str) -> str:
    """Returns an <svg> element, without fonts or scripts.

    `name` sets its ids apart from others on the page; `description` is for screen readers.
    """
    text = io.StringIO()
    figure.savefig(text, format="svg", transparent=True, bbox_inches="tight", metadata={"Date": None})
    svg = text.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    for colour, variable in VARIABLES.items():
        svg = svg.replace(colour, f"var({variable})")
    svg = re.sub(r'(id="|url\(#|href="#)', rf"\g<1>{name}-", svg).replace("*{", ".chart *{")
    svg = re.sub(r"font-family: [^;\"]*; ?", "", svg)  # the page chooses
    svg = re.sub(r"font: ([\d.]+px)[^;\"]*", r"font-size: \1", svg)
    return svg.replace("<svg ", f'<svg role="img" aria-label="{escape(description)}" class="chart" ', 1)
