"""Charts: a bar or a line for each figure, as long as it says, with its words, its own ids, and nothing from elsewhere.

matplotlib draws them. Where a place is asked for, the drawing is asked before it becomes a text.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from grader.explain.medal_words import SILVER, Medal
from grader.explain.speed import MeasuredSpeeds
from grader.show import throughput_svg as throughput
from grader.show.curves import Curves
from grader.show.ladder_svg import ladder_svg
from grader.show.svg_chart import BAR, INK, OVER, QUIET
from grader.show.traffic_svg import Moved, moved_of, traffic_svg
from tests.show.drawn import HOSTILE, READABLE, SEEN, asks_for_nothing, contrast, parsed, texts

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FAST = MeasuredSpeeds("copy", gate=0.78, share=0.98, rate=4.173e12, ceiling=4.266e12, torch=4.1e12)
SLOW = MeasuredSpeeds("copy", gate=0.78, share=0.5, rate=2.133e12, ceiling=4.266e12)
MOVED = [Moved("x read", 1.0, 1.0), Moved("y read", 2.5, 1.0), Moved("z written", 1.25, 1.5)]
RUNGS = [("naive", 0.2, "0.9 TB/s"), ("tiled", 0.95, "4.1 TB/s"), ("yours", 1.1, "4.7 TB/s")]


def curves(count: int = 4, gap: int = 1) -> Curves:
    rates = {name: [peak * (place + 1) for place in range(count)]
             for name, peak in (("yours", 10.0), ("solution", 11.0), ("torch", 9.0), ("copy", 12.0))}  # fmt: skip
    rates["yours"][gap] = None
    sizes = [1 << 20 + place for place in range(count)]
    return Curves("01_masked_add", "a GPU", 60 << 20, "n elements, fp32", "GB/s", "copy", sizes, rates)


PICTURES = {
    "speed": lambda name: throughput.throughput_svg(FAST, name),
    "missed": lambda name: throughput.throughput_svg(SLOW, name),
    "curves": lambda name: throughput.curves_svg(curves(), name),
    "traffic": lambda name: traffic_svg(MOVED, name),
}


@pytest.fixture(params=PICTURES, scope="module")
def svg(request) -> str:
    """Each picture of a page in turn."""
    return PICTURES[request.param]("first")


@pytest.fixture
def axes(monkeypatch) -> list[Axes]:
    """The axes of the pictures that the test draws."""
    from matplotlib.figure import Figure

    made: list[Axes] = []
    subplots = Figure.subplots
    monkeypatch.setattr(Figure, "subplots", lambda *args: made.append(subplots(*args)) or made[-1])
    return made


def lengths(axes: Axes) -> list[float]:
    return [bar.get_width() for bar in axes.patches]


def colours(axes: Axes) -> list[str]:
    from matplotlib.colors import to_hex

    return [to_hex(bar.get_facecolor()) for bar in axes.patches]


# ---- every picture of a page ----------------------------------------------------------------------------------------


def test_a_picture_is_a_part_of_its_page(svg):
    """It has the page's colours and letters, words for who cannot see it, and ids that no other picture has."""
    root = parsed(svg)
    assert root.get("role") == "img" and root.get("class") == "chart" and root.get("aria-label")
    assert not re.search(r"#0102\w\w|font-family|<metadata|<\?xml|\bfont:", svg) and "var(--ink)" in svg
    ids = {element.get("id") for element in root.iter() if element.get("id")}
    assert all(one.startswith("first-") for one in ids)
    assert set(re.findall(r'(?:href="|url\()#([^")]*)', svg)) <= ids and asks_for_nothing(svg)


def test_a_style_of_a_picture_holds_for_nothing_else_on_the_page(svg):
    rules = re.findall(r"([^{}<>]*)\{[^}]*\}", "".join(re.findall(r"<style[^>]*>(.*?)</style>", svg, re.S)))
    assert rules and all(rule.strip().startswith(".chart ") for rule in rules)


def test_a_picture_is_the_same_each_time():
    one, same, other = (traffic_svg(MOVED, name) for name in ("first", "first", "second"))
    assert one == same != other


# ---- throughput -----------------------------------------------------------------------------------------------------


def test_a_bar_for_each_rate_is_as_long_as_its_share_of_the_ceiling(axes):
    svg = throughput.throughput_svg(FAST, "a")
    assert lengths(axes[0]) == pytest.approx([4.173 / 4.266, 4.1 / 4.266, 1]) and colours(axes[0])[0] == BAR
    assert axes[0].lines[0].get_xdata()[0] == 0.78
    shown = texts(parsed(svg))
    for text in ("yours", "torch", "copy", "4 173 GB/s", "4 100 GB/s", "4 266 GB/s"):
        assert shown.count(text) == 1
    assert "of the ceiling; the dashed line is what is needed, 78 %" in shown
    assert axes[0].get_ylim()[0] > axes[0].get_ylim()[1]  # the first bar is at the top


def test_a_missed_gate_is_marked_and_a_better_kernel_than_the_ceiling_has_room(axes):
    throughput.throughput_svg(SLOW, "a")
    assert colours(axes[0]) == [OVER, QUIET]
    medal = Medal(SILVER, 0.91)
    throughput.throughput_svg(MeasuredSpeeds("cuBLAS", 0.6, 1.5, 9e14, 6e14, medal=medal), "a")
    assert lengths(axes[1]) == pytest.approx([1.5, 1.5 / 0.91, 1]) and axes[1].get_xlim()[1] > 1.5 / 0.91
    assert [label.get_text() for label in axes[1].get_yticklabels()] == ["yours", "solution", "cuBLAS"]


def test_lines_have_gaps_and_are_told_apart_without_colour(axes):
    throughput.curves_svg(one := curves(), "a")
    lines = {line.get_label(): line for line in axes[0].lines if not line.get_label().startswith("_")}
    assert list(lines) == ["yours", "solution", "torch", "copy"]
    for name, line in lines.items():
        assert list(line.get_xdata()) == one.sizes
        assert [None if y != y else y for y in line.get_ydata()] == one.rates[name]
    assert len({(line.get_marker(), line.get_linestyle()) for line in lines.values()}) == 4
    assert axes[0].get_ylim()[0] == 0 and axes[0].get_ylim()[1] > one.highest


def test_medals_stand_at_the_largest_size(axes):
    throughput.curves_svg(one := curves(), "a")
    marks = [line for line in axes[0].lines if line.get_marker() == "_"]
    assert [(list(mark.get_xdata()), list(mark.get_ydata())) for mark in marks] == [
        (one.sizes[-1:], [rate]) for rate in one.medal_rates.values()
    ]
    assert [note.get_text() for note in axes[0].texts] == ["silver", "gold"]


@pytest.mark.parametrize(("count", "labels"), [(4, 4), (9, 9), (10, 5), (27, 9)])
def test_sizes_have_labels_as_far_as_there_is_room_and_the_largest_has_one(axes, count, labels):
    throughput.curves_svg(one := curves(count), "a")
    shown = [label.get_text() for label in axes[0].get_xticklabels()]
    assert len(shown) == labels and shown[0] == throughput._size_text(one.sizes[-1], one.sizes[-1])


def test_a_large_power_of_two_is_told_as_that():
    told = [
        throughput._size_text(*sizes) for sizes in ((4096, 65536), (1 << 27, 1 << 27), (1000, 1 << 27), (4096, 1 << 20))
    ]
    assert told == ["4096", "2²⁷", "1000", "2¹²"]


def test_nothing_measured_is_a_picture_too(axes):
    one = curves(2)
    one.rates = {name: [None, None] for name in one.rates}
    assert "Throughput over size. At n = 2 097 152: yours not measured" in throughput.curves_svg(one, "a")
    assert axes[0].get_ylim() == (0, 1.08)


# ---- traffic --------------------------------------------------------------------------------------------------------


def test_figures_with_their_limits_are_bars():
    figures = {"x_read": 1.0, "x_read_limit": 1.5, "share": 0.9, "z_written": 2.0, "z_written_limit": 1.0}
    assert moved_of(figures) == [Moved("x read", 1.0, 1.5), Moved("z written", 2.0, 1.0)]
    assert moved_of({"share": 0.9}) == []


def test_what_was_moved_too_often_says_how_often_it_may_be(axes):
    svg = traffic_svg(MOVED, "a")
    assert lengths(axes[0]) == [1.0, 2.5, 1.25] and colours(axes[0]) == [BAR, OVER, BAR]
    shown = texts(parsed(svg))
    assert {"x read", "y read", "z written", "1", "2.5 (at most 1)", "1.25"} <= set(shown)
    said = parsed(svg).get("aria-label")
    assert said == "x read 1 times, y read 2.5 times, z written 1.25 times; the least possible is once each"
    assert axes[0].lines[0].get_xdata()[0] == 1 and axes[0].get_xlim()[1] > 2.5


# ---- what stands alone ----------------------------------------------------------------------------------------------


def test_a_ladder_has_a_bar_for_each_rung_and_your_own_stands_out(axes):
    picture = ladder_svg("Copies", RUNGS, "a GPU, today", "cuBLAS", own="yours")
    assert lengths(axes[0]) == [0.2, 0.95, 1.1] and axes[0].get_xlim()[1] > 1.1
    ink, blue = throughput.ON_PAPER[INK], throughput.ON_PAPER[BAR]
    assert colours(axes[0]) == [blue, blue, ink]
    assert axes[0].get_ylim()[0] > axes[0].get_ylim()[1]
    root = parsed(picture)
    assert {"Copies", "naive", "0.9 TB/s", "of the speed of cuBLAS. a GPU, today"} <= set(texts(root))
    assert "var(" not in picture  # there is no page whose colours it could have


def test_a_picture_that_stands_alone_can_be_read_on_white_paper():
    paper = throughput.ON_PAPER
    assert min(contrast(paper[name], "#ffffff") for name in (INK, QUIET)) >= READABLE
    assert contrast(paper[BAR], "#ffffff") >= SEEN
    assert contrast(paper[BAR], paper[INK]) > 2


@pytest.mark.parametrize("hostile", [HOSTILE, "$\\frac{", "a_b^c", "]]>", "ключ"])
def test_names_stay_text_whatever_they_are(hostile):
    assert hostile in texts(parsed(ladder_svg(hostile, [("a", 1.0, "1")], "c", "torch")))
    svg = traffic_svg([Moved(hostile, 1.0, 1.0)], "a")
    assert hostile in texts(parsed(svg)) and hostile in parsed(svg).get("aria-label") and asks_for_nothing(svg)
