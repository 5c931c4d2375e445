"""The map of tiles: from a judged call to plain data, to text, to a picture."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from grader import normal, output
from grader.explain.tile_map import RIGHT, UNWRITTEN, WRONG, MapTile, TileMap
from grader.show.tiles_svg import summary, tile_map_svg

ROOT = Path(__file__).resolve().parents[2]
TRANSPOSE = (ROOT / "solutions/04_transpose/transpose.py").read_text()
SVG = "{http://www.w3.org/2000/svg}"


def test_a_right_result_has_a_map_of_its_programs(bench):
    tiles = bench(TRANSPOSE, "04_transpose").check(normal(261, 77)).tiles
    assert tiles.shape == (77, 261) and tiles.rows == (0, 64, 77) and tiles.columns == (0, 128, 256, 261)
    assert [[tile.program for tile in line] for line in tiles.tiles] == [
        [(0, 0), (1, 0), (2, 0)],
        [(0, 1), (1, 1), (2, 1)],
    ]
    assert {tile.state for line in tiles.tiles for tile in line} == {RIGHT}
    assert tiles.elements(1, 2) == "z[64:77, 256:261]"


def test_an_unwritten_tile_belongs_to_nobody(bench):
    floor = TRANSPOSE.replace("triton.cdiv(M, BLOCK_M)", "M // BLOCK_M")
    tiles = bench(floor, "04_transpose").check(normal(261, 77)).tiles
    assert [[tile.state for tile in line] for line in tiles.tiles] == [[RIGHT, RIGHT, UNWRITTEN]] * 2
    assert tiles.tiles[0][2].program is None
    assert tiles.text() == ["..?", "..?"]


COPY = (ROOT / "solutions/02_strided_blocks/strided_blocks.py").read_text()


@pytest.mark.parametrize(
    ("mask", "shape", "marks"),
    [
        ("(rows < M - 1) & (cols < N)", (131, 77), ["..", "..", "XX"]),
        ("(rows < M) & (cols < N - 1)", (101, 153), ["..X", "..X"]),
        ("(rows < M) & (cols < 70)", (101, 203), [".X??", ".X??"]),
        ("(rows < 77) & (cols < N)", (203, 77), ["..", "XX", "??", "??"]),
        ("(rows < 64) & (cols < N)", (203, 77), ["..", "??", "??", "??"]),
    ],
)
def test_a_tile_that_a_mask_cuts_off_is_one_tile(bench, mask, shape, marks):
    wrong = COPY.replace("(rows < M) & (cols < N)", mask)
    assert bench(wrong, "02_strided_blocks").check(normal(*shape), output(*shape)).tiles.text() == marks


def test_what_one_program_wrote_of_a_tile_is_no_tile(bench):
    """A mask leaves a row and a column out of one tile of the exercise, which makes four parts of it."""
    wrong = COPY.replace("(rows < M) & (cols < N)", "(rows < M - 1) & (cols < N - 1)")
    tiles = bench(wrong, "02_strided_blocks").check(normal(64, 64), output(64, 64)).tiles
    assert tiles.text() == [".?", "??"] and tiles.count == 4
    assert summary(tiles) == "Map of z, 64 x 64: 4 parts, 1 right, 0 wrong, 3 not written."


def test_a_wrong_tile_shows_its_first_wrong_element(bench):
    text = (ROOT / "solutions/01_masked_add/masked_add.py").read_text()
    wrong = text.replace("x + y", "x + y + tl.where(offsets == 1500, 1.0, 0.0)")
    tiles = bench(wrong).check(normal(3000), normal(3000)).tiles
    assert [tile.state for tile in tiles.tiles[0]] == [RIGHT, WRONG, RIGHT]
    tile = tiles.tiles[0][1]
    assert tile.element == (1500,) and tile.wrong == 1 and tile.program == (1,)
    assert float(tile.yours) == pytest.approx(float(tile.expected) + 1, abs=1e-4)


def test_a_tile_of_a_result_with_four_dimensions_has_indices_of_all_of_them(bench):
    text = (ROOT / "solutions/25_flash_attention/flash_attention.py").read_text()
    right = "acc / total[:, None]"
    assert text.count(right) == 1
    wrong = text.replace(right, f"{right} + tl.where((tl.program_id(1) == 4) & (rows == 65), 1.0, 0.0)")
    q, k, v = normal(2, 3, 70, 16), normal(2, 3, 40, 16), normal(2, 3, 40, 16)
    tiles = bench(wrong, "25_flash_attention").check(q, k, v, BLOCK_M=64, BLOCK_N=32).tiles
    states = [line[0].state for line in tiles.tiles]
    assert states == [RIGHT] * 9 + [WRONG] + [RIGHT] * 2
    assert tiles.elements(0, 0) == "o[0, 0, 0:64, 0:16]" and tiles.elements(9, 0) == "o[1, 1, 64:70, 0:16]"
    assert tiles.tiles[9][0].element == (1, 1, 65, 0) and tiles.tiles[8][0].element == (1, 1, 0, 0)


@pytest.mark.parametrize(
    ("shape", "rows", "elements"),
    [
        ((12, 5), (4, 8), "z[4:8, 0:5]"),
        ((3, 4, 5), (4, 8), "z[1, 0:4, 0:5]"),
        ((3, 4, 5), (0, 12), "z[0:3, 0:4, 0:5]"),
        ((3, 4, 5), (5, 7), "z[1, 1:3, 0:5]"),
        ((3, 4, 5), (2, 7), "z.flatten(0, -2)[2:7, 0:5]"),
        ((2, 3, 4, 5), (16, 24), "z[1, 1:3, 0:4, 0:5]"),
        ((2, 3, 4, 5), (8, 16), "z.flatten(0, -2)[8:16, 0:5]"),
    ],
)
def test_rows_of_several_dimensions_are_slices_where_they_can_be(shape, rows, elements):
    tile = MapTile(RIGHT, (0,), 0, (0,) * len(shape), "1", "1")
    assert TileMap("z", shape, rows, (0, 5), ((tile,),)).elements(0, 0) == elements


def test_a_map_survives_json_and_a_damaged_one_is_refused():
    tile = MapTile(WRONG, (1, 2), 3, (4, 5), "nan", "0.5")
    tiles = TileMap("z", (64, 64), (0, 64), (0, 64), ((tile,),))
    assert TileMap.from_json(json.loads(json.dumps(tiles.to_json()))) == tiles
    for damage in ({"tiles": []}, {"rows": ["a"]}, {"shape": None}):
        with pytest.raises((KeyError, TypeError, ValueError)):
            TileMap.from_json({**tiles.to_json(), **damage})


def a_map(*states: str) -> TileMap:
    line = tuple(
        MapTile(state, None if state == UNWRITTEN else (n,), n, (n,), "<1>", "2") for n, state in enumerate(states)
    )
    return TileMap("z", (10 * len(states),), (0, 1), tuple(range(0, 10 * len(states) + 1, 10)), (line,))


def test_the_picture_tells_each_tile_in_words():
    root = ET.fromstring(tile_map_svg(a_map(RIGHT, WRONG, UNWRITTEN)))
    tiles = [g for g in root.iter(f"{SVG}g") if "tile" in g.get("class", "").split()]
    assert [g.get("class") for g in tiles] == ["tile right", "tile wrong", "tile unwritten"]
    assert tiles[0].get("aria-label") == "Program (0,), z[0:10]: right."
    assert tiles[1].get("aria-label").endswith("1 element wrong. The first is z[1]: yours <1>, expected 2.")
    assert tiles[2].get("aria-label") == "z[20:30]: not written by any program."
    assert tiles[1].find(f"{SVG}path") is not None and tiles[0].find(f"{SVG}path") is None  # not by colour alone
    assert all(g.get("tabindex") == "0" for g in tiles)
    assert root.get("aria-label") == "Map of z, 30: 3 parts, 1 right, 1 wrong, 1 not written."


def test_a_sliver_of_a_tile_can_still_be_hit():
    line = tuple(MapTile(RIGHT, (n,), 0, (0,), "1", "1") for n in range(2))
    root = ET.fromstring(tile_map_svg(TileMap("z", (4097,), (0, 1), (0, 4096, 4097), (line,))))
    widths = [float(rect.get("width")) for rect in root.iter(f"{SVG}rect")]
    assert min(widths) >= 14 and sum(widths) < 660


def test_an_empty_result_has_no_map(bench):
    text = (ROOT / "solutions/01_masked_add/masked_add.py").read_text()
    verdict = bench(text).check(normal(0), normal(0))
    assert verdict.outcome == "pass" and verdict.tiles is None


def test_one_tile_and_a_thousand():
    assert len(tile_map_svg(a_map(RIGHT))) < 4000
    assert len(tile_map_svg(a_map(*[WRONG] * 1024))) < 500_000
