"""`course site`: writes the course as a folder of HTML pages that need no server and no network."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

import click
from markupsafe import Markup

from grader.course.by_name import course_root
from grader.course.questions import BadQuestion
from grader.files import write_whole
from grader.show.html_page import rendered
from grader.site.pages import FILES, BrokenLink, CourseSite, SitePage, site_of

HERE = Path(__file__).parent
TEMPLATE, OWN_STYLE, SEARCH = HERE / "page_of_site.html", HERE / "site.css", HERE / "search.js"
MARK = ".course_site"  # a folder that has it was written by this command, and may be written again
INDEX = "search_index.js"
TAG = re.compile(r"<[^>]+>")


@click.command(short_help="the course as a site: a folder of pages")
@click.option("--out", type=click.Path(path_type=Path), required=True, metavar="DIR", help="The folder to write.")
def site(out: Path) -> None:
    """Writes the course as HTML: lessons with their pictures, questions and folded hints, words, failures, pages.

    DIR opens in a browser from the disk, and any web server can publish it. The same course gives the same bytes.

    \b
    Example:  course site --out site
    """
    if out.exists() and not (out / MARK).exists() and (not out.is_dir() or any(out.iterdir())):
        raise click.ClickException(f"{out} holds files that are no site. Next: choose a folder that is empty or new.")
    try:
        whole = site_of(course_root().resolve())
        contents = {page: whole.html(page) for page in whole.pages}
    except (BrokenLink, BadQuestion) as bad:
        raise click.ClickException(str(bad)) from None
    try:
        _write(whole, contents, out)
    except OSError as error:
        raise click.ClickException(f"{error.filename} cannot be written: {error.strerror}.") from None
    click.echo(f"{len(contents)} pages, {len(whole.copies)} other files. Next: open {out / 'index.html'} in a browser.")


def _write(whole: CourseSite, contents: dict[SitePage, str], out: Path) -> None:
    """Writes the pages, what they link to, and what all of them load; pages of an earlier course go. Raises OSError."""
    out.mkdir(parents=True, exist_ok=True)
    write_whole(out / MARK, "")
    for earlier in out.glob("*.html"):
        earlier.unlink()
    for page, content in contents.items():
        write_whole(out / page.address, rendered(TEMPLATE, page=page, content=Markup(content)))
    for path in sorted(whole.copies):
        copy = out / FILES / path.relative_to(whole.root)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(path.read_bytes())
    write_whole(out / "site.css", OWN_STYLE.read_text(encoding="utf-8") + _colours_of_code())
    write_whole(out / "search.js", SEARCH.read_text(encoding="utf-8"))
    entries = [[page.address, page.title, _plain(content)] for page, content in contents.items()]
    write_whole(out / INDEX, f"const PAGES = {json.dumps(entries, ensure_ascii=False, indent=0)};\n")


def _plain(content: str) -> str:
    """Returns what a page says without its markup, for the search."""
    return " ".join(html.unescape(TAG.sub(" ", content)).split())


def _colours_of_code() -> str:
    from pygments.formatters import HtmlFormatter

    light, dark = (HtmlFormatter(style=name).get_style_defs("pre") for name in ("default", "github-dark"))
    return f"{light}\n@media (prefers-color-scheme: dark) {{\n{dark}\n}}\n"
