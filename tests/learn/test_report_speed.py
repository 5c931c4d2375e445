"""course report after runs on a GPU: throughput as charts and in words, opened in a real browser.

There need not be a GPU: what runs and plots leave behind is written here, as they write it.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from grader.course.folder import Folder, all_folders
from grader.explain.medal_words import Medal
from grader.explain.speed import MeasuredSpeeds
from grader.progress import kept_curves
from grader.show.curves import Curves
from grader.show.throughput_svg import throughput_svg
from tests.learn.conftest import ROOT, Course

IDS = ("01_masked_add", "02_strided_blocks", "03_softmax", "04_transpose", "05_grouped_matmul")
COPY = MeasuredSpeeds("copy", 0.78, 0.978, 4.173e12, 4.266e12, 4.1e12, samples=2)
SLOW = MeasuredSpeeds("copy", 0.78, 0.5, 2.133e12, 4.266e12, 4.1e12, samples=2)
MATMUL = MeasuredSpeeds("matmul", 0.6, 0.87, 612e12, 703e12, 703e12, samples=2, medal=Medal("silver", 0.91))


def run_of(course: Course, id: str, *tests: tuple[str, MeasuredSpeeds], **more) -> None:
    """The last result of an exercise, as a run on a GPU leaves it."""
    shown = [
        {"name": "test_it_reaches_the_gate", "item": "speed", "hidden": False, "outcome": outcome, "id": "",
         "points": 1, "message": "inconclusive: too noisy", "figures": speed.figures}
        for outcome, speed in tests
    ]  # fmt: skip
    folder = course.path / ".course/results"
    folder.mkdir(parents=True, exist_ok=True)
    result = {"message": "", "tests": shown, "figures": {"seconds": 9.5}, "tiles": None, "gpu": "NVIDIA H200"} | more
    (folder / f"{id}.json").write_text(json.dumps(result))


def plot_of(course: Course, id: str) -> None:
    sizes = [1 << power for power in range(12, 28)]
    rates = {name: [peak * n / (n + 4e6) for n in sizes] for name, peak in
             (("yours", 4173.0), ("solution", 4200.0), ("torch", 4100.0), ("copy", 4266.0))}  # fmt: skip
    rates["yours"][4] = None
    curves = Curves(id, "NVIDIA H200", 60 << 20, "n elements, fp32", "GB/s", "copy", sizes, rates)
    kept_curves.keep(Folder(course.path / "exercises" / id), curves)


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> Path:
    """Every exercise run and plotted on a GPU; one is too slow."""
    course = Course(tmp_path_factory.mktemp("speed"))
    for id in IDS:
        plot_of(course, id)
        run_of(course, id, ("pass", MATMUL if id == "05_grouped_matmul" else COPY))
    run_of(course, "04_transpose", ("fail", SLOW), message="2 133 GB/s is too slow.")
    (course.path / "progress.txt").write_text("01_masked_add  outcome=pass runs=1 throughput=4180GB/s,98.0%\n")
    assert course.here("report").status == 0
    return course.path / "report.html"


@pytest.fixture
def browser(driver, page):
    driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    driver.get(page.as_uri())
    return driver


def test_it_stays_small_and_asks_for_nothing(browser, page):
    assert page.stat().st_size <= 250_000  # what runs without a GPU show takes the other half of 500 kB
    assert browser.execute_script("return performance.getEntriesByType('resource').length") == 0
    assert [entry["message"] for entry in browser.get_log("browser")] == []


def test_speeds_stand_there_as_text(browser):
    add = browser.find_element("id", "01_masked_add").text
    assert "4 173 GB/s, 98 % of what this GPU can copy; needed 78 %. Beside it: torch 4 100 GB/s, copy 4 266" in add
    assert "on NVIDIA H200" in add and "Your best so far: 4 180 GB/s 98 % of the ceiling." in add
    told = "612 TFLOP/s, 87 % of cuBLAS; needed 60 %; silver, 0.91 of the solution's speed. Beside it: solution 673"
    assert told in browser.find_element("id", "05_grouped_matmul").text
    assert "2 133 GB/s, 50 % of what this GPU can copy; needed 78 %" in browser.find_element("id", "04_transpose").text
    assert "needs a GPU" not in add and "machine code and speed are right" in add


def test_the_curve_has_a_caption_and_its_figures_in_a_table(browser):
    part = browser.find_element("id", "01_masked_add")
    assert "after the L2 cache (60 MiB) was flushed" in part.text
    browser.execute_script("arguments[0].querySelectorAll('details').forEach(d => d.open = true)", part)
    rows = [row.text for row in part.find_elements("css selector", "table tbody tr")]
    assert "134 217 728 4 052 GB/s 4 078 GB/s 3 981 GB/s 4 143 GB/s" in rows
    assert any(row.startswith("65 536 not measured ") for row in rows)


def test_a_screen_reader_hears_both_charts(browser):
    nodes = browser.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    images = [n["name"]["value"] for n in nodes if not n.get("ignored") and n["role"]["value"] in ("image", "img")]
    assert "Throughput: yours 4 173 GB/s, torch 4 100 GB/s, copy 4 266 GB/s; needed 78 % of the ceiling" in images
    assert any(name.startswith("Throughput over size. At n = 134 217 728: yours 4 052 GB/s") for name in images)
    assert all(images)


@pytest.mark.parametrize("width", [320, 768])
def test_it_fits_a_phone(browser, width):
    metrics = {"width": width, "height": 800, "deviceScaleFactor": 2, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    browser.refresh()
    browser.execute_script("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width


def test_the_curves_follow_light_and_dark(browser):
    colours = []
    for scheme in ("light", "dark"):
        feature = {"name": "prefers-color-scheme", "value": scheme}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
        chart = "[aria-label^='Throughput over size'] path[style*='--bar']"
        colours.append(browser.execute_script(f'return getComputedStyle(document.querySelector("{chart}")).stroke'))
    assert colours[0] != colours[1]


# ---- without a browser ----------------------------------------------------------------------------------------------


def test_a_missed_gate_is_told_by_more_than_a_colour():
    assert "var(--wrong)" in throughput_svg(SLOW, "a") and "var(--wrong)" not in throughput_svg(COPY, "a")
    said = re.search(r'aria-label="([^"]*)"', throughput_svg(SLOW, "a"))[1]
    assert said == "Throughput: yours 2 133 GB/s, torch 4 100 GB/s, copy 4 266 GB/s; needed 78 % of the ceiling"


def test_a_plot_before_any_run_is_shown(course):
    plot_of(course, "03_softmax")
    assert course.here("report").status == 0
    html = (course.path / "report.html").read_text()
    assert html.startswith("<!doctype html>") and html.count("No run of it is known here.") == len(all_folders(ROOT))
    assert "Throughput over size, on NVIDIA H200" in html


def test_figures_give_the_speed_back():
    for speed in (COPY, SLOW, MATMUL):
        assert MeasuredSpeeds.from_figures(json.loads(json.dumps(speed.figures))) == speed
    assert MeasuredSpeeds.from_figures({"largest_error": 0.25}) is None


def test_what_was_too_noisy_has_no_chart(course):
    run_of(course, "03_softmax", ("skipped", COPY))
    assert course.here("report").status == 0
    html = (course.path / "report.html").read_text()
    assert "inconclusive: too noisy" in html and "98 % of what this GPU can copy" not in html


@pytest.mark.parametrize(
    "change",
    [
        {"share": "fast"}, {"bytes_per_second": None}, {"ceiling_bytes_per_second": 0},
        {"medal": 9, "of_solution": 0.95}, {"medal": 0, "of_solution": 0.95},
    ],
)  # fmt: skip
def test_damaged_speeds_cost_the_section_only(course, change):
    run_of(course, "03_softmax", ("pass", COPY))
    path = course.path / ".course/results/03_softmax.json"
    result = json.loads(path.read_text())
    result["tests"][0]["figures"] |= change
    path.write_text(json.dumps(result))
    assert course.here("report").status == 0
    assert "Its last result cannot be read. Run it again." in (course.path / "report.html").read_text()
