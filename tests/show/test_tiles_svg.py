"""The picture of a result's tiles: where each lies, what it says, and what tells it from others without a colour.

tests/explain/test_tile_map.py has the words of each tile.
"""

from __future__ import annotations

import re

import pytest

from grader.explain.tile_map import RIGHT, UNWRITTEN, WRONG, MapTile, TileMap
from grader.show.tiles_svg import GAP, LEAST_SIDE, STYLE, TALLEST, WIDEST, description, summary, tile_map_svg
from tests.show.drawn import HOSTILE, READABLE, SEEN, SVG, asks_for_nothing, boxes, contrast, overlap, parsed, texts


def a_map(rows: tuple[int, ...], columns: tuple[int, ...], state: str = RIGHT, name: str = "z", **tile) -> TileMap:
    """Makes a map of tiles that are all alike, each with the program of its place."""
    tiles = tuple(
        tuple(
            MapTile(state, None if state == UNWRITTEN else (i, j), 1, (0, 0), tile.get("yours", "1"), "2")
            for j in range(len(columns) - 1)
        )
        for i in range(len(rows) - 1)
    )
    return TileMap(name, (rows[-1], columns[-1]), rows, columns, tiles)


def test_tiles_lie_as_in_the_result_and_are_as_large_as_their_elements():
    root = parsed(tile_map_svg(a_map((0, 64, 128), (0, 128, 256, 320))))
    first, second, third, *_, last = placed = boxes(root)
    assert len(placed) == 6 and not overlap(placed)
    assert first[1] == second[1] == third[1] < last[1] and first[0] < second[0] < third[0] == last[0]
    assert first[2] == second[2] > third[2] and first[3] == last[3]
    assert second[0] - first[0] - first[2] == pytest.approx(GAP, abs=0.1)
    # Half the elements, and half of what is beyond the least side.
    assert third[2] - LEAST_SIDE == pytest.approx((first[2] - LEAST_SIDE) / 2, abs=0.1)


@pytest.mark.parametrize(
    ("rows", "columns"), [((0, 1), (0, 5000)), ((0, 5000), (0, 1)), ((0, 3, 4), (0, 2)), ((0, 64, 65), (0, 64, 65))]
)
def test_a_map_of_any_shape_fits_its_frame_and_is_not_flat(rows, columns):
    root = parsed(tile_map_svg(a_map(rows, columns)))
    _, _, width, height = map(float, root.get("viewBox").split())
    assert (root.get("width"), root.get("height")) == (f"{width:.0f}", f"{height:.0f}")
    assert width <= WIDEST + 4 and height <= TALLEST + 4
    for x, y, w, h in boxes(root):
        assert x >= 0 and y >= 0 and x + w <= width + 0.5 and y + h <= height + 0.5 and min(w, h) >= LEAST_SIDE


def test_what_is_wrong_has_a_cross_and_what_nobody_wrote_a_question_mark():
    """Printed in one colour, they still differ; and the label stays clear of the cross."""
    right, wrong, unwritten = (
        parsed(tile_map_svg(a_map((0, 64), (0, 64), state))) for state in (RIGHT, WRONG, UNWRITTEN)
    )
    assert [len(list(root.iter(f"{SVG}path"))) for root in (right, wrong, unwritten)] == [0, 1, 0]
    assert [texts(root) for root in (right, wrong, unwritten)] == [["0,0"], ["0,0"], ["?"]]
    assert re.search(r"\.unwritten rect \{[^}]*stroke-dasharray", STYLE)


def test_a_program_without_room_for_its_number_has_none():
    """Beside its cross a wrong tile has less room."""
    for state, room in ((RIGHT, 30), (WRONG, 55)):
        root = parsed(tile_map_svg(a_map((0, 1), (0, 1, 2, 4, 8, 16, 32, 64), state)))
        labelled = [tile.find(f"{SVG}text") is not None for tile in root.iter(f"{SVG}g")]
        assert labelled == [width > room for _, _, width, _ in boxes(root)] and set(labelled) == {True, False}


def test_hostile_names_and_values_stay_text():
    svg = tile_map_svg(a_map((0, 1), (0, 1), WRONG, HOSTILE, yours=HOSTILE))
    (tile,) = parsed(svg).findall(f"{SVG}g")
    assert tile.get("data-yours") == HOSTILE and tile.get("data-element") == f"{HOSTILE}[0, 0]"
    assert HOSTILE in tile.find(f"{SVG}title").text and HOSTILE in tile.get("aria-label") and asks_for_nothing(svg)


def test_each_tile_knows_its_place_for_the_page():
    root = parsed(tile_map_svg(a_map((0, 1, 2), (0, 1, 2))))
    told = [(g.get("data-row"), g.get("data-column")) for g in root.findall(f"{SVG}g")]
    assert told == [("0", "0"), ("0", "1"), ("1", "0"), ("1", "1")]


def test_a_tile_that_no_program_wrote_rightly_or_wrongly_is_told_as_that():
    """As where the kernel's own memory held the right values by chance: nobody wrote them."""
    tiles = TileMap("z", (4,), (0, 1), (0, 4), ((MapTile(RIGHT, None, 0, (0,), "1", "1"),),))
    assert description(tiles, 0, 0) == "No program, z[0:4]: right."
    several = TileMap("z", (4,), (0, 1), (0, 4), ((MapTile(WRONG, (3,), 2, (1,), "1", "2"),),))
    told = "Program (3,), z[0:4]: 2 elements wrong. The first is z[1]: yours 1, expected 2."
    assert description(several, 0, 0) == told
    assert summary(several) == "Map of z, 4: 1 part, 0 right, 1 wrong, 0 not written."


def colours(style: str) -> dict[str, dict[str, str]]:
    """Returns the colours of a style's rules, by selector and by property."""
    rules = re.findall(r"\.tilemap ([^{@]*?) \{([^}]*)\}", style)
    return {selector: dict(re.findall(r"(fill|stroke): (#\w+)", body)) for selector, body in rules}


@pytest.mark.parametrize(("part", "paper"), [(0, "#ffffff"), (1, "#1c2129")], ids=["light", "dark"])
def test_letters_and_edges_are_seen_on_every_tile_in_light_and_dark(part, paper):
    found = colours(STYLE.split("@media")[part])
    ink, fills = found["text"]["fill"], [found["rect"]["fill"], found[".wrong rect"]["fill"], paper]
    assert min(contrast(ink, fill) for fill in fills) >= READABLE
    assert contrast(found["path"]["stroke"], found[".wrong rect"]["fill"]) >= SEEN
    edges = [found["rect"]["stroke"], found[".wrong rect"]["stroke"], found[".unwritten rect"]["stroke"]]
    assert min(contrast(edge, paper) for edge in edges) >= SEEN
