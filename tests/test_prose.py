"""What a learner reads before the first keystroke is short, and each lesson ends with two or three links to read on."""

from __future__ import annotations

import re

import pytest

from grader.course.folder import Folder
from tests.prose import OF_THE_FIELD, counts, lessons, read_first, words

LESSONS = lessons()
FIRST, LATER = 450, 900  # words: of 01 to 07, which lead to the first kernels, and of all others
LINK = re.compile(r"- \[[^\]]+\]\((https://[^)\s]+)\)(?: \([^)]+\)|, [^:]+)?: \S.*\.\)?")  # [title](address): why.
LAST = re.compile(r"\n\nGo on with \[[^\]]+\]\([^)]+\)\.\Z")  # of a page without an exercise
REGISTRY = re.compile(
    r"//(?:[\w-]+\.)*(?:pypi\.org|pythonhosted\.org|anaconda\.org|npmjs\.(?:com|org)|crates\.io|docker\.(?:com|io)|ghcr\.io"
    r"|golang\.org)\b"
)


def links_in(text: str) -> list[str]:
    """Returns the points of the section `## Read on`, each in a line; what is no point stands there too."""
    section = LAST.sub("", text.partition("\n## Read on\n")[2].partition("\n## ")[0].strip())
    return re.split(r"\n(?=- )", section) if section else []


def in_a_line(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("folder", LESSONS, ids=lambda folder: folder.id)
def test_a_lesson_ends_with_two_or_three_links(folder: Folder):
    text = folder.lesson_file.read_text(encoding="utf-8").strip()
    found = [in_a_line(one) for one in links_in(text)]
    assert text.count("\n## Read on\n") == 1 and text.rpartition("\n## ")[2].startswith("Read on\n")
    assert 2 <= len(found) <= 3 and all(map(LINK.fullmatch, found)), found
    addresses = [LINK.fullmatch(one)[1] for one in found]
    assert len(set(addresses)) == len(addresses) and not any(map(REGISTRY.search, addresses))


@pytest.mark.parametrize("folder", [one for one in LESSONS if one.number != "00"], ids=lambda folder: folder.id)
def test_little_is_read_before_the_first_keystroke(folder: Folder):
    limit = FIRST if int(folder.number) <= 7 else LATER
    assert words(read_first(folder.lesson_file.read_text(encoding="utf-8"))) <= limit


def test_the_words_of_the_field_are_used():
    text = "\n".join(folder.lesson_file.read_text(encoding="utf-8") for folder in LESSONS)
    assert [word for word in OF_THE_FIELD if not counts(text)[word]] == []


def test_words_are_those_of_running_text():
    text = """# 01 · One

    Two words, [a link](x/y.md) · ![a picture](a.svg)

| a | table |

```
code, and more code
```
<details><summary>Folded</summary>

Hidden.

</details>
"""
    assert words(text) == len(["01", "One", "Two", "words", "a", "link"])
    assert read_first("a\n## The task\nb\n## Next\nc") == "a\nb"


@pytest.mark.parametrize(
    "point",
    [
        "- [A](http://a.org): why.", "- [A](https://a.org) why.", "- A: https://a.org.", "- [A](https://a.org): ",
        "[A](https://a.org): why.", "- [A](https://a.org): why",
    ],
)  # fmt: skip
def test_other_forms_are_no_links(point):
    assert LINK.fullmatch(point) is None


def test_a_registry_is_no_place_to_read():
    assert REGISTRY.search("https://pypi.org/project/triton") and not REGISTRY.search("https://pytorch.org/blog/x")
