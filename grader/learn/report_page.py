"""`course report`: a page that holds the learner's progress and a picture of each exercise's last run."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import click

from grader.course.by_name import course_root
from grader.course.folder import Folder, all_folders
from grader.explain.verdict import FAIL, PASS
from grader.files import write_whole
from grader.learn.matplotlib_cache import keep_caches_in
from grader.progress import progress
from grader.progress.kept_curves import kept
from grader.progress.last_result import last_result
from grader.progress.progress import Record
from grader.progress.standing import read_progress, state
from grader.show.curves import Curves, number_text, rate_text
from grader.show.html_page import rendered

if TYPE_CHECKING:
    from grader.explain.speed import MeasuredSpeeds

NAME = "report.html"
TEMPLATE = Path(__file__).with_name("page.html")


@dataclass
class ShownChart:
    """A chart, the test that it belongs to, and what it shows, in words."""

    title: str
    text: str
    chart: str  # SVG; "" where nothing could be told


@dataclass
class ExerciseSection:
    """The part of the page about an exercise."""

    id: str
    state: str
    record: Record
    ago: str
    lines: list[str] = field(default_factory=list)  # the diagnosis of the last run
    tests: list[dict] = field(default_factory=list)
    tile_map: str = ""  # SVG
    tile_test: str = ""  # the test it belongs to
    traffic: list[tuple[str, str]] = field(default_factory=list)  # (test, SVG)
    compiled: list[tuple[str, str]] = field(default_factory=list)  # (test, figures of its machine code in words)
    throughput: list[ShownChart] = field(default_factory=list)  # of the last run's tests of speed
    gpu: str = ""  # that the last run used
    curves: Curves | None = None  # of the last plot
    curves_chart: str = ""  # SVG
    seconds: float = 0.0

    @property
    def title(self) -> str:
        return self.id.replace("_", " ", 1)

    @property
    def speed_told(self) -> bool:
        return bool(self.throughput) and all(shown.chart for shown in self.throughput)

    @property
    def reached(self) -> tuple[float, float]:
        reached, _, possible = self.record.points.partition("/")
        return float(reached or 0), float(possible or 1)


@click.command(short_help="one page with progress, maps of results, traffic, throughput")
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
              help=f"where to write it (default: {NAME} in the course)")  # fmt: skip
def report(output: Path | None) -> None:
    """Writes one HTML page: progress, and of each exercise's last run the verdict, which program wrote which part, the
    traffic, and what a GPU has shown of its throughput. It needs no network, and nothing of it leaves this machine.

    \b
    Example:  course report
    """
    from rich.progress import track

    from grader.show.terminal import console

    root = course_root()
    keep_caches_in(root)
    done, out = read_progress(root), console()
    folders: Iterable[Folder] = all_folders(root)
    if out.is_terminal:
        folders = track(folders, "Drawing", console=out, transient=True)
    sections = [_section(folder, done.of(folder.id)) for folder in folders]
    path = output or root / NAME
    try:
        write_whole(path, _page(sections))
    except OSError as error:
        raise click.ClickException(f"{path} cannot be written: {error.strerror}.") from None
    out.print(f"{path}: {path.stat().st_size / 1000:.0f} kB", markup=False, soft_wrap=True)
    out.print(f"Next: open it in a browser: {path.resolve().as_uri()}", markup=False, soft_wrap=True)


def _page(sections: list[ExerciseSection]) -> str:
    passed = sum(1 for section in sections if section.record.passed)
    filters: dict[str, Callable] = {"number": number_text, "rate": rate_text}
    return rendered(TEMPLATE, filters, sections=sections, passed=passed, when=progress.now())


def _section(folder: Folder, record: Record) -> ExerciseSection:
    from grader.show.terminal import ago

    section = ExerciseSection(folder.id, state(record), record, ago(record.last, progress.now()))
    result = last_result(folder)
    if result is not None:
        try:
            _fill(section, result)
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError):
            section.lines = ["Its last result cannot be read. Run it again."]
    section.curves = kept(folder)
    if section.curves is not None:
        from grader.show.throughput_svg import curves_svg

        section.curves_chart = curves_svg(section.curves, f"{section.id}-curves")
    return section


def _fill(section: ExerciseSection, result: dict) -> None:
    """Fills a section from the last result. For a result that no run wrote it raises LookupError, TypeError,
    ValueError, AttributeError or ArithmeticError."""
    from grader.explain.speed import MeasuredSpeeds
    from grader.explain.tile_map import TileMap
    from grader.show.tiles_svg import tile_map_svg
    from grader.show.traffic_svg import moved_of, traffic_svg

    section.lines = str(result["message"]).splitlines()
    section.gpu = str(result.get("gpu", ""))
    section.seconds = float(result["figures"]["seconds"])
    drawn = []
    for number, test in enumerate(result["tests"]):
        title = _title(test["name"])
        mark = str(test["outcome"]).upper() if test["outcome"] == FAIL else test["outcome"]
        note = "" if test["outcome"] == FAIL else str(test["message"])
        section.tests.append({"title": title, "outcome": test["outcome"], "mark": mark, "note": note})
        if (moved := moved_of(test["figures"])) and moved not in drawn:
            drawn.append(moved)
            section.traffic.append((title, traffic_svg(moved, f"{section.id}-{number}")))
        if (speed := MeasuredSpeeds.from_figures(test["figures"])) is not None:
            section.throughput.append(_chart_of(title, test, speed, f"{section.id}-{number}-speed"))
        if "registers" in test.get("figures", {}) and test["outcome"] == PASS:
            section.compiled.append((title, note))
    if result["tiles"]:
        section.tile_map = tile_map_svg(TileMap.from_json(result["tiles"]))
        section.tile_test = _title(result["tiles"]["test"])


def _chart_of(title: str, test: dict, speed: MeasuredSpeeds, name: str) -> ShownChart:
    from grader.show.throughput_svg import throughput_svg

    if test["outcome"] not in (PASS, FAIL):
        return ShownChart(title, str(test["message"]), "")
    rates = ", ".join(f"{name} {speed.rate_text(rate)}" for name, rate in speed.compared[1:])
    medal = f"; {speed.medal.text}" if speed.medal else ""
    text = f"{speed.text}; {speed.needed}{medal}. Beside it: {rates}."
    return ShownChart(title, text, throughput_svg(speed, name))


def _title(name: str) -> str:
    return name.removeprefix("test_").replace("_", " ")
