"""HTML pages that load nothing from elsewhere, in the style that all our pages share."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from grader.wire.printable import several_lines

if TYPE_CHECKING:
    import jinja2

STYLE = Path(__file__).with_suffix(".css")


def _fit(value: object) -> object:
    """Returns a value as a page shows it. Markup is ours; other texts may be a learner's, and lose their control
    characters."""
    return several_lines(value) if type(value) is str else value


def rendered(template: Path, filters: dict[str, Callable] | None = None, **values: object) -> str:
    """Returns the template with these values. Text from a submission stays text, never markup. Raises
    jinja2.UndefinedError where the template asks for another value."""
    from markupsafe import Markup

    style = Markup(STYLE.read_text(encoding="utf-8"))
    return _read(template, tuple((filters or {}).items())).render(style=style, **values)


@functools.cache
def _read(template: Path, filters: tuple[tuple[str, Callable], ...]) -> jinja2.Template:
    """Returns the template, read once: a class has a page for each hand-in."""
    import jinja2

    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, finalize=_fit)
    environment.filters |= dict(filters)
    return environment.from_string(template.read_text(encoding="utf-8"))
