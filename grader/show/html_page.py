"""A page of HTML that needs nothing from elsewhere, in the style that all our pages share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

STYLE = Path(__file__).with_suffix(".css")


def rendered(template: Path, filters: dict[str, Callable] | None = None, **values: object) -> str:
    """The template with these values. What comes from a submission is text in it, never markup."""
    import jinja2
    from markupsafe import Markup

    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    environment.filters |= filters or {}
    style = Markup(STYLE.read_text(encoding="utf-8"))
    return environment.from_string(template.read_text(encoding="utf-8")).render(style=style, **values)
