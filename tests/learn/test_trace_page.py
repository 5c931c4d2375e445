"""course trace --html: the page opened in a real browser."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.learn.conftest import Course

selenium = pytest.importorskip("selenium", reason="selenium drives the browser: python -m pip install selenium")
from selenium.webdriver import ActionChains, Keys  # noqa: E402
from selenium.webdriver.support.ui import Select  # noqa: E402


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> Path:
    course = Course(tmp_path_factory.mktemp("traced"))
    path = course.write("05_grouped_matmul", "    pid = tl.program_id(0)\n",
                        '    pid = tl.program_id(0)  # <script>document.title = "taken"</script>\n')  # fmt: skip
    assert path.exists()
    done = course.here("trace", "05", "--html", "trace.html")
    assert done.status == 0 and "Next: open it in a browser: file://" in done.lines[-1]
    return course.path / "trace.html"


@pytest.fixture
def browser(driver, page):
    driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    driver.get(page.as_uri())
    return driver


def press(browser, *keys: str) -> str:
    """The heading afterwards: where the program is."""
    for key in keys:
        ActionChains(browser).send_keys(key).perform()
    return browser.find_element("id", "where").text


def row(browser, text: str):
    return next(row for row in browser.find_elements("css selector", "#source tr") if text in row.text)


def test_it_holds_everything_and_asks_for_nothing(browser, page):
    assert page.stat().st_size < 300_000 and browser.title == "Inside a kernel: 05 grouped_matmul"
    assert browser.execute_script("return performance.getEntriesByType('resource').length") == 0
    assert [entry["message"] for entry in browser.get_log("browser")] == []
    assert "a small example: a 5 x 3, b 3 x 6 fp16" in browser.find_element("tag name", "header").text


def test_arrows_go_line_by_line_and_iteration_by_iteration(browser):
    assert press(browser) == "Line 12"
    assert press(browser, Keys.ARROW_RIGHT) == "Line 18"
    assert "pid = 0" in row(browser, "pid = tl.program_id(0)").text
    assert "tiles_m = 3" not in browser.find_element("id", "source").text  # the program is not there yet
    assert "iteration 1 of 2 of the loop in line 33" in press(browser, *[Keys.ARROW_RIGHT] * 14)
    assert press(browser, Keys.ARROW_DOWN) == "Line 33, iteration 2 of 2 of the loop in line 33"
    assert "here" in row(browser, "for start in range").get_attribute("class")
    assert "stale" in row(browser, "acc = tl.dot").get_attribute("class")
    assert press(browser, Keys.ARROW_UP, Keys.ARROW_LEFT) == "Line 32"


def test_the_line_at_hand_is_shown_whole(browser):
    """Its mask and its `other` stand at its end; other lines are cut, and whole where the pointer rests on them."""
    load = row(browser, "b = tl.load(")
    cell = load.find_element("css selector", ".text")
    cut = "return arguments[0].scrollWidth > arguments[0].clientWidth"
    browser.execute_script("arguments[0].textContent += '  # ' + 'long '.repeat(20)", cell)
    assert browser.execute_script(cut, cell)
    load.click()
    assert "here" in row(browser, "b = tl.load(").get_attribute("class")
    assert not browser.execute_script(cut, cell)


def test_masked_lanes_are_marked_by_more_than_a_colour(browser):
    press(browser, *[Keys.ARROW_RIGHT] * 15, Keys.ARROW_DOWN, Keys.ARROW_RIGHT)
    told = browser.find_element("id", "told")
    assert "2 of 4 lanes masked off" in told.text and "(0)" in told.text
    assert {span.text.strip() for span in told.find_elements("css selector", ".masked")} == {"(0)"}


def test_another_program_can_be_chosen_and_a_line_clicked(browser):
    chosen = Select(browser.find_element("id", "program"))
    assert len(chosen.options) == 9
    chosen.select_by_index(4)
    row(browser, "pid = tl.program_id(0)").click()
    assert browser.find_element("id", "told").text.startswith("pid = 4")


def test_a_line_of_the_file_is_text_on_the_page(browser):
    assert "<script>document.title" in browser.find_element("id", "source").text
    assert "taken" not in browser.title


@pytest.mark.parametrize("width", [320, 768])
def test_it_fits_a_phone(browser, width):
    metrics = {"width": width, "height": 800, "deviceScaleFactor": 2, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    browser.refresh()
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width


def test_a_screen_reader_hears_every_control(browser):
    nodes = browser.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    said = [(n["role"]["value"], n.get("name", {}).get("value", "")) for n in nodes if not n.get("ignored")]
    controls = [(role, name) for role, name in said if role in ("button", "combobox", "slider")]
    assert len(controls) == 6 and all(name for _, name in controls)
    assert ("heading", "Line 12") in said
