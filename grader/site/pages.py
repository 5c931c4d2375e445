"""The pages of the site: which texts of the course become pages, at which address, and which files go with them.

Nothing is written for the site alone. A link to a text leads to its page; a link to another file of the course leads to
a copy. So no link of the site leads nowhere: a target that the course does not have ends `course site`.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from grader.course.folder import Folder, path_of
from grader.course.questions import LETTERS, LessonQuestion, questions_of
from grader.progress.hints import COMMENT
from grader.site.failure_pages import FailurePage, failures_of
from grader.site.page_markdown import anchor_of, plain_text, rendered_markdown

FILES = "files"  # the folder of what is copied
TOP = ("README.md", "course.md", "classroom.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")
ADDRESSES = {"README.md": "index.html", "course.md": "map.html"}
TITLE = re.compile(r"^# (.+)$", re.MULTILINE)
TERM = re.compile(r"^\| ([^|]+) \| ([^|]+) \|", re.MULTILINE)
WORDS, SHIPPED = "docs/words.md", "docs/shipped_bugs.md"
FAILURES = "What can be wrong"  # the title of the page that lists them
# Lessons use these as everyday English, or for two things: a meaning shown at the first place could be a false one.
OF_SEVERAL_MEANINGS = {"carry", "entry", "group", "layout", "other", "page", "scale", "split"}


class BrokenLink(Exception):
    """A text links to a file that the course does not have; the message says which text, and to what."""


@dataclass(frozen=True)
class SitePage:
    """A page: its address below the site's folder, and its text as Markdown, which may hold HTML. `path`: of the text,
    in the course; links start there. `is_derived`: the page is made of others' texts, and links start at this file.
    `is_lesson`: terms say what they mean. `before`, `after`: the addresses of the lessons around this one."""

    address: str
    title: str
    text: str
    path: Path
    is_derived: bool = False
    is_lesson: bool = False
    before: str = ""
    after: str = ""


@dataclass
class CourseSite:
    """The site of a course. `copies`: files of the course that pages link to, filled while pages are rendered."""

    root: Path
    pages: list[SitePage]
    meanings: dict[str, str]
    copies: set[Path] = field(default_factory=set)

    def html(self, page: SitePage) -> str:
        """Returns what a page says, as HTML. Raises BrokenLink."""
        meanings = self.meanings if page.is_lesson else {}
        return rendered_markdown(page.text, lambda target: self._address(page, target), meanings)

    def _address(self, page: SitePage, target: str) -> str | None:
        name, mark, anchor = target.partition("#")
        if not name or name in (known.address for known in self.pages):
            return target
        path = (page.path.parent / name).resolve()
        address = self._of_text(path / "README.md" if path.is_dir() else path)
        if address:
            return address + ("#hints" if path.parent.name == "hints" and not anchor else mark + anchor)
        if path.is_dir() and path.is_relative_to(self.root):
            return None
        if not path.is_file() or not path.is_relative_to(self.root):
            raise BrokenLink(f"{page.path.relative_to(self.root)} links to {target}, which the course does not have.")
        self.copies.add(path)
        return f"{FILES}/{path.relative_to(self.root).as_posix()}"

    def _of_text(self, path: Path) -> str:
        """Returns the address of a text's page; "" if it has none. Hints stand on the page of their lesson."""
        if path.parent == self.root / "hints":
            path = self.root / "exercises" / path.stem / "README.md"
        return next((page.address for page in self.pages if page.path == path and not page.is_derived), "")


def site_of(root: Path) -> CourseSite:
    """Returns the site of the course at `root`. Raises OSError, BadQuestion, TOMLDecodeError."""
    folders = [Folder(root / "exercises" / id) for id in path_of(root)]
    failures = failures_of(folders)
    texts = [root / name for name in TOP if (root / name).exists()] + sorted((root / "docs").glob("*.md"))
    pages = [_of_text(path, root) for path in texts] + list(_lessons(folders)) + list(_of_failures(failures, root))
    return CourseSite(root, pages, _meanings(root))


def _meanings(root: Path) -> dict[str, str]:
    """Returns the meanings of terms that have one, in plain text."""
    rows = TERM.findall((root / WORDS).read_text(encoding="utf-8"))[2:]  # without the table's head
    terms = {term: plain_text(meaning) for names, meaning in rows for term in plain_text(names).split(", ")}
    return {term: meaning for term, meaning in terms.items() if term not in OF_SEVERAL_MEANINGS}


def _of_text(path: Path, root: Path) -> SitePage:
    text = path.read_text(encoding="utf-8")
    address = ADDRESSES.get(path.relative_to(root).as_posix(), f"{path.stem.lower()}.html")
    return SitePage(address, _title(text, path), text, path)


def _title(text: str, path: Path) -> str:
    found = TITLE.search(text)
    return plain_text(found[1]) if found else path.stem


def _lessons(folders: list[Folder]) -> Iterator[SitePage]:
    """Yields a page for each lesson, in the order of the path: its text, questions, hints and measured ladder."""
    for place, folder in enumerate(folders):
        text = folder.lesson_file.read_text(encoding="utf-8")
        parts = [text, _questions(questions_of(folder)), _hints(folder), _ladder(folder)]
        before = f"{folders[place - 1].id}.html" if place else ""
        after = f"{folders[place + 1].id}.html" if place + 1 < len(folders) else ""
        yield SitePage(
            f"{folder.id}.html", _title(text, folder.lesson_file), "\n\n".join(filter(None, parts)),
            folder.lesson_file, is_lesson=True, before=before, after=after,
        )  # fmt: skip


def _questions(questions: list[LessonQuestion]) -> str:
    """Returns the questions as Markdown: a guess first, the answer folded."""
    lines = ["## Guess before you write"] if questions else []
    for number, question in enumerate(questions, 1):
        choices = "".join(f"\n   - {letter}) {text}" for letter, text in zip(LETTERS, question.choices))
        lines.append(f"{number}. {question.ask}{choices}")
        answer = f"{question.explained[0].upper()}{question.explained[1:]} {question.where_shown}"
        lines.append(f"   <details><summary>The answer</summary>\n\n   {answer}\n\n   </details>")
    return "\n\n".join(lines)


def _hints(folder: Folder) -> str:
    if not folder.hints_file.exists():
        return ""
    text = COMMENT.sub("", folder.hints_file.read_text(encoding="utf-8"))
    return re.sub(r"^## ", "### ", re.sub(r"^# .*", "## Hints", text, count=1), flags=re.MULTILINE)


def _ladder(folder: Folder) -> str:
    """Returns the figures of the exercise's ladder as a table, folded: its rungs tell ways to write the kernel."""
    file = folder.solution_file.with_name("ladder.json")
    if not file.exists():
        return ""
    ladder = json.loads(file.read_text(encoding="utf-8"))
    rungs = [(name, rung) for name, rung in ladder["rungs"].items() if rung["rate"]]
    rows = [f"| {name} | {rung['rate']:,.0f} | {rung['share']:.0%} |" for name, rung in rungs]
    where = f"{ladder['call']} on one {ladder['gpu']}, Triton {ladder['versions']['triton']}, {ladder['date']}"
    table = "\n".join([f"| kernel | {ladder['unit']} | share of {ladder['anchor']} |", "| --- | --: | --: |", *rows])
    folded = f"<details><summary>What each step gains, measured</summary>\n\n{where}\n\n{table}\n\n</details>"
    return f"## The ladder\n\n{folded}"


def _of_failures(failures: list[FailurePage], root: Path) -> Iterator[SitePage]:
    top = root / "course.md"
    shipped = _shipped(root)
    for failure in failures:
        yield SitePage(failure.address, failure.id, failure.text + shipped[failure.id], top, is_derived=True)
    rows = [f"| [{one.id}]({one.address}) | {one.brief} | {', '.join(one.exercises)} |" for one in failures]
    head = f"# {FAILURES}\n\nThe judge calls each failure by a short name.\n\n| name | what it is | exercises |"
    yield SitePage("failures.html", FAILURES, "\n".join([head, "| --- | --- | --- |", *rows]), top, is_derived=True)


def _shipped(root: Path) -> dict[str, str]:
    """Returns, for each failure that a section of bugs of public kernels names, a link to that section; else "", as in
    a learner's own folder, where nothing tells of these bugs."""
    links: dict[str, str] = defaultdict(str)
    text = (root / SHIPPED).read_text(encoding="utf-8") if (root / SHIPPED).exists() else ""
    for section in text.split("\n## ")[1:]:
        heading, _, rest = section.partition("\n")
        for id in re.findall(r"`([a-z-]+)`", rest.partition("\n|")[0]):
            links[id] = f"\n\nIt was in public kernels: [{heading}]({SHIPPED}#{anchor_of(heading)})."
    return links
