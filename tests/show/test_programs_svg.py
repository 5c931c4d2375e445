"""The picture of which program touches which element: a cell for each, with its program as a text and as a colour."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pytest

from grader.show.programs_svg import CELL, GAP, HUES, LETTER, MARGIN, STYLE, TOP, programs_svg, short
from tests.show.drawn import HOSTILE, READABLE, SVG, asks_for_nothing, boxes, contrast, overlap, parsed, texts

Programs = tuple[tuple[int, ...], ...]


@dataclass
class Drawn:
    """A Grid whose elements are touched by these programs, row by row."""

    touched: list[list[Programs]]
    name: str = "x"
    verb: str = "loads"

    @property
    def rows(self) -> int:
        return len(self.touched)

    @property
    def columns(self) -> int:
        return len(self.touched[0])

    def of(self, row: int, column: int) -> Programs:
        return self.touched[row][column]


ONE, TWO, NOBODY = ((0,),), ((0,), (1,)), ()


def test_each_element_has_its_cell_with_its_programs():
    root = parsed(programs_svg([Drawn([[ONE, TWO, NOBODY], [((2, 3),), ONE, ONE]])], "masked add"))
    cells = root.findall(f"{SVG}g")
    assert [cell.find(f"{SVG}text").text for cell in cells] == ["0", "2x", ".", "2,3", "0", "0"]
    assert [cell.find(f"{SVG}title").text for cell in cells] == [
        "(0,)", "(0,), (1,)", "no program", "(2, 3)", "(0,)", "(0,)"
    ]  # fmt: skip
    assert texts(root)[0] == "x: the program that loads each element"
    paper, *placed = boxes(root)
    assert not overlap(placed) and {box[2:] for box in placed} == {(CELL, CELL)}
    assert [box[0] for box in placed[:3]] == [MARGIN, MARGIN + CELL, MARGIN + 2 * CELL]
    assert placed[3][0] == MARGIN and placed[3][1] == placed[0][1] + CELL and paper[:2] == (0, 0)


def test_letters_stand_in_the_middle_of_their_cells():
    root = parsed(programs_svg([Drawn([[ONE, TWO]])], "t"))
    for cell in root.findall(f"{SVG}g"):
        rect, text = cell.find(f"{SVG}rect"), cell.find(f"{SVG}text")
        assert [float(text.get(side)) - float(rect.get(side)) for side in "xy"] == [CELL / 2, CELL / 2]


@pytest.mark.parametrize("columns", [1, 12, 40])
def test_grids_lie_below_each_other_within_the_frame(columns):
    grids = [Drawn([[ONE] * columns] * 2), Drawn([[ONE] * columns] * 3, name="y")]
    root = parsed(programs_svg(grids, "t"))
    paper, *placed = boxes(root)
    assert root.get("viewBox") == f"0 0 {root.get('width')} {root.get('height')}"
    assert paper == (0, 0, float(root.get("width")), float(root.get("height")))
    assert not overlap(placed) and placed[columns * 2][1] == placed[0][1] + 2 * CELL + GAP + TOP
    assert all(x + w <= paper[2] and y + h <= paper[3] for x, y, w, h in placed)


def test_a_long_name_has_room():
    name = "a_rather_long_name_of_an_argument_that_someone_chose"
    root = parsed(programs_svg([Drawn([[ONE]], name=name)], "t"))
    assert float(root.get("width")) >= LETTER * len(texts(root)[0]) > 400


def test_neighbours_differ_and_nobodys_elements_are_dashed():
    """A program's colour depends on the sum of its numbers, so that neighbours on either axis differ."""
    root = parsed(programs_svg([Drawn([[((i, j),) for j in range(4)] for i in range(4)] + [[NOBODY] * 4])], "t"))
    rects = [cell.find(f"{SVG}rect") for cell in root.findall(f"{SVG}g")]
    paints = [rect.get("style") for rect in rects[:16]]
    assert all(paints[i * 4 + j] != paints[i * 4 + j + 1] for i in range(4) for j in range(3))
    assert all(paints[i * 4 + j] != paints[i * 4 + j + 4] for i in range(3) for j in range(4))
    assert {(rect.get("class"), rect.get("style")) for rect in rects[16:]} == {("nobody", None)}
    assert re.search(r"\.nobody \{[^}]*dasharray", STYLE)


def test_every_colour_is_light_enough_for_its_letters():
    ink = re.search(r"text \{ fill: (#\w+)", STYLE)[1]
    root = parsed(programs_svg([Drawn([[((n,),) for n in range(len(HUES))]])], "t"))
    fills = {re.search(r"hsl\([^)]*\)", rect.get("style"))[0] for rect in root.iter(f"{SVG}rect") if rect.get("style")}
    assert len(fills) == len(HUES) and min(contrast(ink, fill) for fill in fills) >= READABLE


def test_hostile_names_and_titles_stay_text():
    svg = programs_svg([Drawn([[ONE]], name=HOSTILE)], HOSTILE)
    root = parsed(svg)
    assert root.get("aria-label") == root.find(f"{SVG}title").text == HOSTILE and asks_for_nothing(svg)
    assert texts(root)[0] == f"{HOSTILE}: the program that loads each element"


def test_what_nobody_touches_and_nothing_at_all_are_pictures_too():
    assert parsed(programs_svg([], "t")).findall(f"{SVG}g") == []
    assert (short(()), short(((4,),)), short(((0, 1),)), short(((0,), (1,), (2,), (3,)))) == (".", "4", "0,1", "4x")
