"""course site: what it writes, in bytes, in links and in a browser."""

from __future__ import annotations

import shutil
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest
from click.testing import CliRunner

from grader.course.folder import path_of
from grader.learn.init import init
from grader.site.page_markdown import rendered_markdown
from grader.site.pages import BrokenLink, CourseSite, SitePage
from grader.site.site_command import site
from tests.learn.conftest import driver  # noqa: F401  # a browser, where there is one

ROOT = Path(__file__).resolve().parents[2]
WIDTHS = (390, 1400)
OF_SITE = 10_000_000  # bytes


def written(out: Path) -> Path:
    done = CliRunner().invoke(site, ["--out", str(out)])
    assert done.exit_code == 0, done.output
    return out


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return written(tmp_path_factory.mktemp("site") / "pages")


class Page(HTMLParser):
    """The links and anchors of a page, and its text outside of scripts."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attributes: list) -> None:
        stated = dict(attributes)
        self.links += [stated[name] for name in ("href", "src") if name in stated]
        self.anchors |= {stated["id"]} if "id" in stated else set()


def test_no_link_of_the_site_leads_nowhere(folder):
    pages = {path.name: Page(path) for path in folder.glob("*.html")}
    assert len(pages) > len(path_of(ROOT)) + 100
    broken = []
    for name, page in pages.items():
        for link in page.links:
            goal, _, anchor = unquote(link).partition("#")
            goal = goal or name
            if ":" not in goal and not ((folder / goal).is_file() and (not anchor or anchor in pages[goal].anchors)):
                broken.append((name, link))
    assert broken == []


def test_each_lesson_has_a_page_with_its_picture_hints_questions_and_ladder(folder):
    for id in path_of(ROOT):
        assert (folder / f"{id}.html").is_file(), id
    page = (folder / "02_strided_blocks.html").read_text(encoding="utf-8")
    assert 'src="files/exercises/02_strided_blocks/programs.svg"' in page
    assert page.count("<summary>The answer</summary>") == 4 and "it is 52." not in page and "It is 52." in page
    assert "fits:" not in page and "Nearly the line" in page and "tiles of 8 x 8" in page
    assert 'rel="prev" href="01_masked_add.html"' in page and 'rel="next" href="04_transpose.html"' in page


def test_the_same_course_gives_the_same_bytes_in_less_than_the_limit(folder, tmp_path):
    again = written(tmp_path / "again")
    files = {path.relative_to(folder) for path in folder.rglob("*") if path.is_file()}
    assert files == {path.relative_to(again) for path in again.rglob("*") if path.is_file()}
    assert [name for name in files if (folder / name).read_bytes() != (again / name).read_bytes()] == []
    assert sum((folder / name).stat().st_size for name in files) < OF_SITE


def test_a_page_that_the_course_no_longer_has_goes_and_a_strangers_folder_stays(folder, tmp_path):
    copy = shutil.copytree(folder, tmp_path / "site")
    (copy / "99_gone.html").write_text("")
    written(copy)
    assert not (copy / "99_gone.html").exists()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("all of it")
    done = CliRunner().invoke(site, ["--out", str(tmp_path / "mine")])
    assert done.exit_code == 1 and "holds files that are no site. Next: choose a folder" in done.output
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["thesis.txt"]


def test_a_folder_of_ones_own_has_a_site_too(tmp_path, monkeypatch):
    assert CliRunner().invoke(init, [str(tmp_path / "mine")]).exit_code == 0
    monkeypatch.chdir(tmp_path / "mine")
    page = (written(tmp_path / "pages") / "failure_oob-load.html").read_text(encoding="utf-8")
    assert "only the store has a mask" in page and "public kernels" not in page


def test_a_failure_that_public_kernels_had_leads_to_them(folder):
    page = (folder / "failure_offset-overflow.html").read_text(encoding="utf-8")
    assert 'in public kernels: <a href="shipped_bugs.html#offsets-of-32-bits">' in page


def test_a_link_to_what_the_course_does_not_have_is_refused(tmp_path):
    page = SitePage("a.html", "A", "[gone](gone.md)", tmp_path / "a.md")
    with pytest.raises(BrokenLink, match="a.md links to gone.md, which the course does not have"):
        CourseSite(tmp_path, [page], {}).html(page)


def test_a_term_says_what_it_means_where_it_stands_first_and_nowhere_inside_of_something_else():
    text = "# A mask\n\nA `mask`, [a mask](https://a.org), unmasked; **masks** and a mask."
    page = rendered_markdown(text, lambda target: target, {"mask": "which lanes <load>"})
    assert page.count('class="meaning"') == 1 and "which lanes &lt;load&gt;" in page
    assert '<strong><span class="word" tabindex="0">masks<span' in page


def test_a_link_that_leads_to_no_page_is_text():
    page = rendered_markdown("[here](folder) and [there](x.md)", {"x.md": "x.html"}.get)
    assert page == '<p>here and <a href="x.html">there</a></p>\n'


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_fit_a_window_of_any_width_and_say_nothing_on_the_console(folder, driver, width, scheme):  # noqa: F811
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics(width))
    media = [{"name": "prefers-color-scheme", "value": scheme}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": media})
    for name in ("index", "map", "words", "01_masked_add", "25_flash_attention", "failures", "failure_oob-load"):
        driver.get((folder / f"{name}.html").as_uri())
        across = driver.execute_script("return document.documentElement.scrollWidth")
        assert across <= width, (name, across)
    paper = driver.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert paper == ("rgb(252, 251, 248)" if scheme == "light" else "rgb(21, 24, 30)")
    assert [entry["message"] for entry in driver.get_log("browser")] == []


def metrics(width: int) -> dict:
    return {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}


def test_the_search_finds_a_page_and_a_term_is_told_to_who_goes_to_it_by_key(folder, driver):  # noqa: F811
    from selenium.webdriver.common.by import By

    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics(1000))
    driver.get((folder / "02_strided_blocks.html").as_uri())
    driver.find_element(By.CSS_SELECTOR, "input[type=search]").send_keys("paged decoding")
    first = driver.find_element(By.CSS_SELECTOR, ".results a")
    assert first.get_attribute("href").endswith("28_paged_decoding.html")
    word = driver.find_element(By.CSS_SELECTOR, ".word")
    meaning = word.find_element(By.CSS_SELECTOR, ".meaning")
    assert not meaning.is_displayed()
    driver.execute_script("arguments[0].focus()", word)
    assert meaning.is_displayed() and meaning.text
