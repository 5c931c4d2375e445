"""Renders a text of the course as HTML: its links lead to pages of the site, and its terms say what they mean.

The texts are ours and may hold markup. GitHub shows them too, so headings get the anchors that GitHub gives them.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from markdown_it import MarkdownIt
from markdown_it.token import Token

ELSEWHERE = re.compile(r"[a-z]+:")  # a scheme: https:, mailto:
ADDRESS_IN_MARKUP = re.compile(r'\b(src|href)="([^"]+)"')
# A term in a sentence is given its meaning where it stands first: inside these it is part of something else.
CLOSED_TO_TERMS = {"link_open": 1, "link_close": -1}

Address = Callable[[str], str | None]  # of a link's target; None: it is no page and no file, and becomes plain text


def anchor_of(heading: str) -> str:
    """Returns the anchor of a heading, as GitHub makes it."""
    return re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-")


def rendered_markdown(text: str, address: Address, meanings: Mapping[str, str] | None = None) -> str:
    """Returns the text as HTML. `address`: gives what a link or a picture leads to on the site. `meanings`: of terms,
    in plain text; each is told where the term stands first."""
    markdown = MarkdownIt("commonmark", {"highlight": _highlighted}).enable(["table", "strikethrough"])
    tokens = markdown.parse(text)
    untold = dict(meanings or {})
    for place, token in enumerate(tokens):
        if token.type == "heading_open":
            token.attrSet("id", anchor_of(_plain(tokens[place + 1].children or ())))
        if token.type in ("html_block", "html_inline"):
            token.content = _with_addresses(token.content, address)
        if token.type == "inline" and token.children:
            token.children = _with_links(token.children, address)
            if untold and tokens[place - 1].type != "heading_open":
                token.children = list(_with_meanings(token.children, untold))
    page = markdown.renderer.render(tokens, markdown.options, {})
    return page.replace("<table>", '<div class="scroll"><table>').replace("</table>", "</table></div>")


def plain_text(line: str) -> str:
    """Returns a line of Markdown without its marks."""
    return _plain(MarkdownIt("commonmark").parseInline(line)[0].children or ())


def _plain(tokens: Sequence[Token]) -> str:
    return "".join(token.content for token in tokens if token.type in ("text", "code_inline"))


def _highlighted(code: str, language: str, _: str) -> str:
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import get_lexer_by_name
    from pygments.util import ClassNotFound

    try:
        return highlight(code, get_lexer_by_name(language), HtmlFormatter(nowrap=True)) if language else ""
    except ClassNotFound:
        return ""


def _with_addresses(markup: str, address: Address) -> str:
    def replaced(match: re.Match) -> str:
        return f'{match[1]}="{html.escape(_address(match[2], address) or match[2])}"'

    return ADDRESS_IN_MARKUP.sub(replaced, markup)


def _address(target: str, address: Address) -> str | None:
    return target if ELSEWHERE.match(target) else address(target)


def _with_links(tokens: list[Token], address: Address) -> list[Token]:
    """Returns the tokens with addresses of the site. A link that leads to nothing there is left as text."""
    kept, is_text = [], False
    for token in tokens:
        if token.type == "link_open":
            goal = _address(str(token.attrGet("href")), address)
            is_text = goal is None
            token.attrSet("href", goal or "")
        if token.type == "image":
            token.attrSet("src", _address(str(token.attrGet("src")), address) or "")
            token.attrSet("loading", "lazy")
        if token.type == "html_inline":
            token.content = _with_addresses(token.content, address)
        if not (is_text and token.type in ("link_open", "link_close")):
            kept.append(token)
        is_text = is_text and token.type != "link_close"
    return kept


def _with_meanings(tokens: Sequence[Token], untold: dict[str, str]) -> Iterator[Token]:
    """Yields the tokens, each term of `untold` with its meaning where it stands first; takes it out of `untold`."""
    depth = 0
    for token in tokens:
        depth += CLOSED_TO_TERMS.get(token.type, 0)
        if token.type != "text" or depth:
            yield token
            continue
        rest = token.content
        while match := _first_term(rest, untold):
            term = match[0] if match[0] in untold else match[0].removesuffix("s")
            yield Token("text", "", 0, content=rest[: match.start()])
            yield Token("html_inline", "", 0, content=_with_meaning(match[0], untold.pop(term)))
            rest = rest[match.end() :]
        yield Token("text", "", 0, content=rest)


def _with_meaning(word: str, meaning: str) -> str:
    told = f'<span class="meaning" role="note">{html.escape(meaning)}</span>'
    return f'<span class="word" tabindex="0">{html.escape(word)}{told}</span>'


def _first_term(text: str, untold: Mapping[str, str]) -> re.Match | None:
    if not untold:
        return None
    terms = "|".join(re.escape(term) for term in sorted(untold, key=len, reverse=True))
    return re.search(rf"(?<![\w-])(?:{terms})s?(?![\w-])", text)
