"""Pages: a submission's text stays text, what a template lacks is an error, and the colours can be read."""

from __future__ import annotations

import re

import jinja2
import pytest
from markupsafe import Markup

from grader.show import html_page
from grader.show.html_page import STYLE, rendered
from tests.show.drawn import HOSTILE, READABLE, SEEN, contrast


@pytest.fixture
def page(tmp_path):
    """page(template, **values): the page that this text makes of these values."""

    def page(template: str, filters=None, **values: object) -> str:
        (path := tmp_path / "page.html").write_text(template, encoding="utf-8")
        return rendered(path, filters, **values)

    return page


def test_a_text_is_text_in_an_element_and_in_an_attribute(page):
    made = page('<p title="{{ text }}">{{ text }}</p>', text=HOSTILE)
    assert made.count("<") == 2 and made.count('"') == 2 and "&lt;script&gt;" in made


def test_our_own_markup_stays_markup(page):
    assert page("{{ picture }}", picture=Markup("<svg>\n</svg>")) == "<svg>\n</svg>"


def test_control_characters_are_gone_and_lines_stay(page):
    assert page("{{ text }}", text="a\x1b[31m\u202eb\n\tc\x00") == "a?[31m?b\n\tc?"


def test_numbers_and_what_a_filter_makes_are_shown(page):
    assert page("{{ 3 }} {{ 'ab' | twice }}", filters={"twice": lambda text: 2 * text}) == "3 abab"


def test_a_value_that_is_missing_is_an_error(page):
    with pytest.raises(jinja2.UndefinedError):
        page("{{ nothing }}")


def test_every_page_gets_the_style_that_all_share_as_it_is(page, tmp_path, monkeypatch):
    assert page("{{ style }}") == STYLE.read_text(encoding="utf-8")
    (style := tmp_path / "page.css").write_text('a > b::before { content: "&"; }')
    monkeypatch.setattr(html_page, "STYLE", style)
    assert page("{{ style }}") == style.read_text()


def colours(text: str) -> dict[str, str]:
    return dict(re.findall(r"--(\w+): (#\w+)", text))


@pytest.mark.parametrize("part", [0, 1], ids=["light", "dark"])
def test_letters_links_and_bars_are_seen_in_light_and_dark(part):
    found = colours(STYLE.read_text(encoding="utf-8").split("@media")[part])
    assert found.keys() == {"paper", "card", "ink", "quiet", "line", "link", "bar"}
    for ground in (found["paper"], found["card"]):
        assert min(contrast(found[name], ground) for name in ("ink", "quiet", "link")) >= READABLE
        assert contrast(found["bar"], ground) >= SEEN


def test_the_style_asks_for_nothing():
    text = STYLE.read_text(encoding="utf-8")
    assert "url(" not in text and "@import" not in text and "</" not in text


def test_each_template_of_ours_holds_all_that_it_shows():
    """No page fetches a font, a script or a picture from elsewhere."""
    templates = list(STYLE.parents[1].rglob("*.html"))
    assert templates
    for path in templates:
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"""(?:src|href)=["'](?:https?:)?//|@import|url\((?!#)""", text), path
