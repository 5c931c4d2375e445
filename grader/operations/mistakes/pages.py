"""Mistakes in cutting the number of a row into a page and a row of that page, in a cache that lies in pages."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch

from grader.sentences import Said, Sentence

CAUSES = ("page-size", "page-and-row-swapped")
USUAL = (16, 1, 8, 32, 64, 128)
Cut = Callable[[torch.Tensor], tuple[torch.Tensor, torch.Tensor]]  # of numbers, their pages and rows


class Pages(Sentence):
    """Sentences about numbers, {of}, that are cut in another way."""

    PAGE_SIZE = "{of} are cut as if pages had {used:#row}; those of {name} have {page}."
    SWAPPED = "Page and row are exchanged: number n is row n % page of page n // page."


def wrong_cuts(of: str, name: str, page: int, *sizes: int) -> Iterator[tuple[str, Said, Cut]]:
    """Yields id, sentence and cut for pages of these sizes, and usual sizes, in the place of the size `page` of the
    cache `name`."""
    for used in dict.fromkeys((*sizes, *USUAL)):
        if used != page:
            said = Pages.PAGE_SIZE(of=of, used=used, name=name, page=page)
            yield "page-size", said, _pages_of(used)
    yield "page-and-row-swapped", Pages.SWAPPED(), lambda n: (n % page, n // page)


def _pages_of(used: int) -> Cut:
    return lambda n: (n // used, n % used)
