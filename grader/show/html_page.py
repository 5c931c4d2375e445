"""HTML pages that load nothing from elsewhere, in the style that all our pages share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from grader.wire.printable import several_lines

STYLE = Path(__file__).with_suffix(".css")


def _fit(value: object) -> object:
    """Returns a value as a page shows it. Markup is ours; other texts may be a learner's, and lose their control
    characters."""
    return several_lines(value) if type(value) is str else value


def rendered(template: Path, filters: dict[str, Callable] | None = None, **values: object) -> str:
    """Returns the template with these values. Text from a submission stays text, never markup. Raises
    jinja2.UndefinedError where the template asks for another value."""
    import jinja2
    from markupsafe import Markup

    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, finalize=_fit)
    environment.filters |= filters or {}
    style = Markup(STYLE.read_text(encoding="utf-8"))
    return environment.from_string(template.read_text(encoding="utf-8")).render(style=style, **values)
