"""A copy of the course, and `course` and `pytest` run in it as a learner types them."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import mutant
from tests.typed_commands import Finished, of_a_terminal, run_course, run_pytest, started

ROOT = Path(__file__).resolve().parents[2]
COURSE = str(Path(sys.executable).with_name("course"))


class Course:
    """One learner's working copy."""

    def __init__(self, path: Path, made: bool = False) -> None:
        self.path = path
        if made:
            return
        for name in ("exercises", "solutions", "hints"):
            shutil.copytree(ROOT / name, path / name, ignore=shutil.ignore_patterns("__pycache__"))

        for name in ("pyproject.toml", "course.md"):
            shutil.copy(ROOT / name, path)

    def files(self) -> dict[Path, int]:
        """Returns when each file was written, without bytecode."""
        found = (path for path in self.path.rglob("*") if path.suffix != ".pyc" and path.is_file())
        return {path: path.stat().st_mtime_ns for path in found}

    def file(self, id: str) -> Path:
        return self.path / "exercises" / id / f"{id[3:]}.py"

    def solution(self, id: str) -> str:
        return (ROOT / "solutions" / id / f"{id[3:]}.py").read_text()

    def write(self, id: str, old: str = "", new: str = "") -> Path:
        """The solution as the learner's file, with one change."""
        text = self.solution(id)
        assert old in text
        return self.save(id, text.replace(old, new, 1) if old else text)

    def save(self, id: str, text: str) -> Path:
        """As editors save: another file, moved into place. A watch never sees a part of it."""
        beside = self.file(id).with_suffix(".py~")
        beside.write_text(text)
        return beside.replace(self.file(id))

    def environment(self, **more: str) -> dict[str, str]:
        return of_a_terminal(more)

    def course(self, *arguments: str, answer: str = "", cwd: Path | None = None, **environment: str) -> Finished:
        """A process of its own, as a shell starts it."""
        return started([COURSE, *arguments], cwd or self.path, environment, answer)

    def here(self, *arguments: str, answer: str = "", cwd: Path | None = None, **environment: str) -> Finished:
        """As `course`, but in this process."""
        return run_course(*arguments, cwd=cwd or self.path, answer=answer, **environment)

    def pytest(self, *arguments: str, **environment: str) -> Finished:
        return run_pytest(*arguments, cwd=self.path, **environment)

    @property
    def progress(self) -> str:
        return (self.path / "progress.txt").read_text()


# What the learner with a history has tried: 01 is right, the others are wrong, each in its own way.
WRONG = {
    "02_strided_blocks": "floor_grid",
    "03_softmax": "pad_zero",
    "04_transpose": "pids_not_exchanged",
    "05_grouped_matmul": "no_stride_5",
}


@pytest.fixture
def course(tmp_path) -> Course:
    """A fresh copy: nothing was tried."""
    return Course(tmp_path)


@pytest.fixture(scope="session")
def untouched(tmp_path_factory) -> Iterator[Course]:
    """A copy that many tests look at: to make one takes a tenth of a second."""
    course = Course(tmp_path_factory.mktemp("untouched"))
    before = course.files()
    yield course
    assert course.files() == before, "a test of those that only look has written"


@pytest.fixture(scope="session")
def history(tmp_path_factory) -> Course:
    """Five exercises were tried once; not to be changed."""
    course = Course(tmp_path_factory.mktemp("history"))
    course.write("01_masked_add")
    for id, name in WRONG.items():
        course.file(id).write_text(mutant(f"{id}/{name}"))
    course.pytest("exercises/01_masked_add", *(f"exercises/{id}" for id in WRONG))
    return course


@pytest.fixture
def tried(history, tmp_path) -> Course:
    """A copy of the course in which all five exercises were tried once."""
    shutil.copytree(history.path, tmp_path / "tried")
    return Course(tmp_path / "tried", made=True)


FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage",
)  # fmt: skip


@pytest.fixture(scope="session")
def driver(tmp_path_factory):
    """A browser; tests load what they want to see."""
    chromium, chromedriver = shutil.which("chromium"), shutil.which("chromedriver")
    if not chromium or not chromedriver:
        pytest.skip("needs a browser: apt-get install chromium chromium-driver")
    pytest.importorskip("selenium", reason="selenium drives the browser: python -m pip install selenium")
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('browser')}", "--window-size=1000,900"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options, webdriver.ChromeService(chromedriver))
    yield driver
    driver.quit()
