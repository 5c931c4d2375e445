"""`course explain`: what the site's page of a failure says, in the terminal and without a network."""

from __future__ import annotations

import difflib
import sys
from dataclasses import replace

import click

from grader.course.by_name import course_root
from grader.course.folder import Folder, all_folders
from grader.explain.verdict import FAIL
from grader.progress.standing import current_exercise, next_line, read_progress
from grader.site.failure_pages import FailurePage, failures_of


@click.command(short_help="a failure by its name: what it is, how it comes about, where to look")
@click.argument("name", required=False, metavar="[NAME]")
def explain(name: str | None) -> None:
    """Says what a failure is that a report names, in which ways kernels come to it, and where to look.

    Without NAME it is the failure of your last run; if that did not fail, all names are listed. The exercise that you
    work on comes first.

    \b
    Example:  course explain oob-load
    """
    root = course_root()
    done = read_progress(root)
    current = current_exercise(root, done)
    if current and not name and done.of(current.id).outcome == FAIL:
        name = done.of(current.id).cause
    pages = failures_of(all_folders(root))
    if name:
        _show(_page(_called(name, pages), current), next_line(root, done))
    else:
        _list(pages)


def _called(name: str, pages: list[FailurePage]) -> FailurePage:
    """Returns the page of this name. Raises click.ClickException with the nearest names where there is none."""
    names = {page.id: page for page in pages}
    wanted = name.strip().lower().replace("_", "-")
    if wanted in names:
        return names[wanted]
    near = difflib.get_close_matches(wanted, names, 3, 0.7) or [one for one in names if wanted and wanted in one][:3]
    also = f"Did you mean {' or '.join(near)}?" if near else "A report of pytest says how its failure is called."
    raise click.ClickException(f"No failure is called {name!r}. {also}")


def _page(page: FailurePage, current: Folder | None) -> FailurePage:
    """Returns the page with the exercise that the learner works on as its first."""
    return replace(page, places=tuple(sorted(page.places, key=lambda place: place.folder != current)))


def _show(page: FailurePage, following: str) -> None:
    from rich.markdown import Markdown

    from grader.show.terminal import console, for_terminal

    out = console()
    with out.capture() as captured:
        out.print(Markdown(for_terminal(page.text), hyperlinks=False))
        out.print()
        out.print(following, markup=False, soft_wrap=True)
    click.echo_via_pager(captured.get(), color=None if sys.stdout.isatty() else False)


def _list(pages: list[FailurePage]) -> None:
    from rich.table import Table
    from rich.text import Text

    from grader.show.terminal import console

    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    for page in pages:
        table.add_row(Text(page.id), Text(page.brief))
    out = console()
    with out.capture() as captured:
        out.print(table)
        out.print("Next: course explain NAME", markup=False)
    click.echo_via_pager(captured.get(), color=None if sys.stdout.isatty() else False)
