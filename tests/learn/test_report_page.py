"""course report: the page opened in a real browser, with real runs on it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

selenium = pytest.importorskip("selenium", reason="selenium drives the browser: python -m pip install selenium")
from selenium.webdriver import ActionChains, Keys  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402

from grader.course.folder import all_folders  # noqa: E402
from tests.learn.conftest import ROOT  # noqa: E402


@pytest.fixture(scope="module")
def page(history, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("page") / "report.html"
    done = history.here("report", "--output", str(path))
    assert done.status == 0 and "Next: open it in a browser: file://" in done.lines[-1]
    return path


@pytest.fixture
def browser(driver, page):
    """The browser, with the page freshly loaded and nothing emulated."""
    driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    driver.get(page.as_uri())
    return driver


def section(browser, id: str):
    return browser.find_element(By.ID, id)


def test_it_holds_everything_and_asks_for_nothing(browser, page):
    assert page.stat().st_size < 250_000  # speeds measured on a GPU take the other half of 500 kB
    assert f"1 of {len(all_folders(ROOT))} passed" in browser.title
    assert "Passed, judged in" in section(browser, "01_masked_add").text
    assert "243 lanes past the end of each row" in section(browser, "03_softmax").text
    assert "sm_90:" in section(browser, "01_masked_add").text
    assert section(browser, "01_masked_add").text.count("Not measured here: it needs a GPU.") == 1
    assert browser.execute_script("return performance.getEntriesByType('resource').length") == 0
    assert [entry["message"] for entry in browser.get_log("browser")] == []


def test_a_click_on_a_tile_tells_its_program_elements_and_values(browser):
    part = section(browser, "04_transpose")
    wrong = part.find_elements(By.CSS_SELECTOR, ".tile.wrong")[0]
    detail = part.find_element(By.CSS_SELECTOR, ".detail")
    assert detail.text == "No part is chosen."
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", wrong)
    wrong.click()
    assert detail.text.startswith("Program (") and "wrong. The first is z[" in detail.text
    assert f"yours {wrong.get_attribute('data-yours')}, expected {wrong.get_attribute('data-expected')}" in detail.text
    assert "chosen" in wrong.get_attribute("class")


def test_an_unwritten_tile_says_so(browser):
    part = section(browser, "02_strided_blocks")
    empty = part.find_elements(By.CSS_SELECTOR, ".tile.unwritten")
    browser.execute_script("arguments[0].focus()", empty[0])
    assert "not written by any program" in part.find_element(By.CSS_SELECTOR, ".detail").text


def test_the_keyboard_reaches_every_tile_with_one_stop_of_tab(browser):
    part = section(browser, "02_strided_blocks")
    all_tiles = part.find_elements(By.CSS_SELECTOR, ".tile")
    assert [tile.get_attribute("tabindex") for tile in all_tiles] == ["0"] + ["-1"] * (len(all_tiles) - 1)
    browser.execute_script("arguments[0].focus()", all_tiles[0])
    active = "return [document.activeElement.dataset.row, document.activeElement.dataset.column]"
    for key, place in ((Keys.ARROW_RIGHT, ["0", "1"]), (Keys.ARROW_DOWN, ["1", "1"]), (Keys.ARROW_LEFT, ["1", "0"]),
                       (Keys.ARROW_LEFT, ["1", "0"]), (Keys.ARROW_UP, ["0", "0"])):  # fmt: skip
        ActionChains(browser).send_keys(key).perform()
        assert browser.execute_script(active) == place
    ActionChains(browser).send_keys(Keys.TAB).perform()
    assert not browser.execute_script("return document.activeElement.classList.contains('tile')")


def test_a_screen_reader_hears_tiles_charts_and_headings(browser):
    nodes = browser.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    said = [(n["role"]["value"], n.get("name", {}).get("value", "")) for n in nodes if not n.get("ignored")]
    images = [name for role, name in said if role in ("image", "img")]
    assert any(name.startswith("z[") and "not written by any program" in name for name in images)
    assert any("x read 1 times" in name for name in images)
    assert all(images)  # none without words
    assert ("heading", "03 softmax: failing") in said
    assert any(role == "group" and name.startswith("Map of z, ") for role, name in said)


@pytest.mark.parametrize("width", [320, 390, 768])
def test_it_fits_a_phone(browser, width):
    metrics = {"width": width, "height": 800, "deviceScaleFactor": 2, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    browser.refresh()
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    assert browser.execute_script("return innerWidth") == width


def test_light_and_dark_follow_the_reader(browser):
    colours = {}
    for scheme in ("light", "dark"):
        feature = {"name": "prefers-color-scheme", "value": scheme}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
        style = "const s = getComputedStyle(arguments[0]); return [s.backgroundColor, s.color, s.fill]"
        body = browser.execute_script(style, browser.find_element(By.TAG_NAME, "body"))
        tile = browser.execute_script(style, browser.find_element(By.CSS_SELECTOR, ".tile.wrong rect"))
        chart = browser.execute_script(style, browser.find_element(By.CSS_SELECTOR, ".chart text"))
        colours[scheme] = (body[0], body[1], tile[2], chart[2])
    assert all(light != dark for light, dark in zip(colours["light"], colours["dark"]))


def test_what_a_learner_writes_is_text_on_the_page(browser, tried):
    """A line of the learner's file stands in the diagnosis: it must not become part of the page."""
    path = tried.path / ".course/results/03_softmax.json"
    result = json.loads(path.read_text())
    assert "Line 16:  x = tl.load(" in result["message"]
    result["message"] = result["message"].replace(
        "other=0.0)", 'other=0.0)  # <script>document.title = "taken"</script>'
    )
    path.write_text(json.dumps(result))
    tried.here("report", "--output", "mine.html")
    browser.get((tried.path / "mine.html").as_uri())
    assert f"1 of {len(all_folders(ROOT))} passed" in browser.title
    assert "<script>document.title" in section(browser, "03_softmax").text
