"""course ladder: without a GPU, and with the stand-ins of one that tests/gpu has."""

from __future__ import annotations

import json
import re

import pytest
from click.testing import CliRunner
from rich.console import Console

from grader.cli import main
from grader.course.code_digest import digest_of_code
from grader.course.folder import Folder
from grader.gpu.device import Device
from grader.gpu.models import MODELS
from grader.learn.ladder import figures
from grader.learn.ladder.climb import at_one_clock
from grader.learn.ladder.counts import Counts
from grader.learn.ladder.figures import Figures, NotTimed, Timed, still_true
from grader.learn.ladder.rungs import ladder_of
from grader.learn.ladder.table import counted_table, figure_text, measured_table, percent
from tests.conftest import folders_with_speed
from tests.gpu.replays_here import replays_here  # noqa: F401
from tests.learn.conftest import Course

LADDER = """
[small_blocks]
changes = [["BLOCK_N = 1024", "BLOCK_N = 32"]]
why = "many programs"

[the_solution]
why = "a thread moves 16 bytes at once"

[not_there]
file = "nowhere.py"
why = "its file is missing"

[wrong]
changes = [["offsets, x + y", "offsets, x - y"]]
why = "never right"
"""
TEST = "test_masked_add.py"


@pytest.fixture
def ladder(course, monkeypatch):
    """ladder(*arguments): the command in this process, in a course whose exercise 01 has a small ladder."""
    (course.path / "solutions/01_masked_add/ladder.toml").write_text(LADDER)
    (course.path / "solutions/01_masked_add/ladder.json").unlink()  # the course's own figures
    path = course.path / "exercises/01_masked_add" / TEST
    text, changes = re.subn(r"throughput\(.*", "throughput(normal(5120), normal(5120), at_least=0.5)", path.read_text())
    assert changes == 1
    path.write_text(text)
    monkeypatch.chdir(course.path)
    monkeypatch.setenv("COLUMNS", "100")
    return lambda *arguments: CliRunner().invoke(main, ["ladder", "01", *arguments], prog_name="course")


@pytest.fixture
def on_gpu(monkeypatch, request):
    pytest.importorskip("cuda.bindings")
    replays = request.getfixturevalue("replays_here")
    replays.end = lambda: None
    monkeypatch.setattr("grader.gpu.device.device_here", lambda: Device("none", MODELS["sm_90"]))
    monkeypatch.setattr("grader.learn.ladder.climb.Replays", lambda device: replays)
    return replays


def lines_with(out: str, name: str) -> list[str]:
    return [" ".join(line.split()) for line in out.splitlines() if name in line]


def test_rates_are_those_at_one_clock():
    """The second kernel has the larger share; a slower clock while it was timed must not make it the slower one."""
    first, second = Timed("", 1.0, 737.0, 0.953), Timed("", 1.0, 711.0, 0.955)
    assert at_one_clock(first, 771.0).rate < at_one_clock(second, 771.0).rate == 0.955 * 771.0
    assert at_one_clock(NotTimed("it"), 771.0) == NotTimed("it") and at_one_clock(first, None) == first


@pytest.mark.parametrize("folder", folders_with_speed(), ids=lambda folder: folder.id)
def test_every_ladder_has_figures_of_its_kernels_as_they_are(folder):
    """Else: course ladder NN --keep, on a GPU."""
    digests = {rung.name: digest_of_code(rung.text) for rung in ladder_of(folder).rungs}
    found = still_true(figures.kept(folder), digests)
    assert set(found.rungs) == set(digests)
    assert not [(name, one.why) for name, one in found.rungs.items() if isinstance(one, NotTimed)]


# ---- without a GPU --------------------------------------------------------------------------------------------------


def test_rungs_are_counted_and_what_fails_says_why(course, ladder):
    done = ladder()
    assert done.exit_code == 0 and done.stderr == "", done.output
    out = done.stdout
    assert "Counted: 5120 fp32, for sm_90 (NVIDIA H200)" in out and "Measured" not in out
    small, why = lines_with(out, "small blocks")
    assert small.split()[:5] == ["1", "small", "blocks", "1", "160"] and why == "1 small blocks: many programs"
    assert lines_with(out, "the solution")[0].split()[:5] == ["2", "the", "solution", "1", "5"]
    assert lines_with(out, "not there")[0] == "3 not there -"
    assert "not there: not counted. nowhere.py cannot be run." in out
    assert "no figures are kept with this ladder" in out and "yours" not in out
    assert max(map(len, out.splitlines())) <= 100


def test_your_kernel_stands_among_them_if_it_is_right(course, ladder):
    course.write("01_masked_add", "BLOCK_N = 1024", "BLOCK_N = 512")
    (own,) = lines_with(ladder().stdout, "yours")
    assert own.split()[:3] == ["yours", "1", "10"]


def test_the_text_of_a_rung_is_a_submission_for_who_has_passed(course, ladder, tmp_path):
    refused = ladder("--rung", "1")
    assert refused.exit_code == 1 and "rungs are solutions" in refused.stderr
    course.here("solution", "01", "--give-up")
    shown = ladder("--rung", "1")
    assert "BLOCK_N = 32" in shown.stdout and "### BEGIN" not in shown.stdout and shown.stdout.startswith('"""')
    assert "has 4 rungs" in ladder("--rung", "5").stderr
    assert "nowhere.py cannot be read" in ladder("--rung", "3").stderr


def test_an_exercise_without_a_ladder_says_so(course, ladder):
    (course.path / "solutions/01_masked_add/ladder.toml").unlink()
    done = ladder()
    assert done.exit_code == 1 and "01_masked_add has no ladder. Next: course hint 01" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--keep",), "Figures are kept where they are measured, on a GPU: "),
        (("--svg", "a.png"), "a name that ends in .svg was expected"),
        (("--svg", "no/such/a.svg"), "there is no folder"),
    ],
)
def test_what_cannot_be_done_is_told_at_once(ladder, arguments, sentence):
    done = ladder(*arguments)
    assert done.exit_code == 1 and sentence in done.stderr and done.stdout == ""


# ---- with stand-ins of one ------------------------------------------------------------------------------------------


@pytest.fixture
def kept(course: Course, ladder, on_gpu) -> dict:
    """What `--keep` keeps of this ladder."""
    done = ladder("--keep")
    assert done.exit_code == 0 and "Kept in solutions/01_masked_add/ladder.json" in done.stdout, done.output
    return json.loads((course.path / "solutions/01_masked_add/ladder.json").read_text())


def test_rungs_are_timed_and_what_fails_says_why(course, ladder, on_gpu):
    course.write("01_masked_add")
    done = ladder("--svg", "a.svg")
    assert done.exit_code == 0 and done.stderr == "", done.output
    out = done.stdout
    assert "Measured: 5120 fp32. NVIDIA H200, " in out and "Counted" not in out
    assert lines_with(out, "small blocks")[0].split()[3:6] == ["0.0614", "100", "%"]  # 61440 bytes in 1 ms
    assert lines_with(out, "the solution")[0].split()[6:8] == ["x", "1"]
    assert lines_with(out, "yours")[0].split()[:4] == ["yours", "0.0614", "100", "%"]
    assert "not there: not measured, nowhere.py cannot be run." in out
    assert "wrong: not measured, an output of a timed call is wrong." in out
    assert set(on_gpu.pool.asked) == {"measure"}
    picture = (course.path / "a.svg").read_text()
    assert "small blocks" in picture and "yours" in picture and "0.0614 GB/s" in picture and "not there" not in picture


def test_a_kernel_that_is_wrong_is_not_among_them(course, ladder, on_gpu):
    course.write("01_masked_add", "offsets, x + y", "offsets, x - y")
    out = ladder("--counted").stdout
    assert "masked_add.py is not right yet. Next: pytest " in out and lines_with(out, "yours") == []
    assert "Counted: 5120 fp32" in out


def test_kept_figures_name_their_origin(kept):
    assert kept["command"] == "course ladder 01 --keep" and kept["gpu"] == "NVIDIA H200"
    assert {"triton", "torch"} <= kept["versions"].keys() and kept["unit"] == "GB/s" and kept["anchor"] == "copy"
    assert kept["rungs"].keys() == {"small blocks", "the solution", "not there", "wrong"}
    assert kept["rungs"]["the solution"]["share"] == 1 and kept["rungs"]["wrong"]["share"] is None


def test_kept_figures_are_shown_without_a_gpu_while_they_hold(course, ladder, kept, monkeypatch):
    monkeypatch.setattr("grader.gpu.device.device_here", lambda: "no GPU")
    out = ladder("--svg", "a.svg").stdout
    assert "Measured: 5120 fp32. NVIDIA H200, " in out and "Counted: 5120 fp32" in out
    assert lines_with(out, "small blocks")[0].split()[3:6] == ["0.0614", "100", "%"]
    assert (course.path / "a.svg").exists()
    path = course.path / "solutions/01_masked_add/ladder.toml"
    path.write_text(LADDER.replace("BLOCK_N = 32", "BLOCK_N = 64"))
    out = ladder().stdout
    assert lines_with(out, "small blocks")[0].split() == ["1", "small", "blocks", "-"]
    assert "small blocks: not measured, its kernel has changed since it was measured." in out


def test_damaged_figures_are_none(course, ladder):
    (course.path / "solutions/01_masked_add/ladder.json").write_text("{}")
    assert figures.kept(Folder(course.path / "exercises/01_masked_add")) is None


# ---- what is shown --------------------------------------------------------------------------------------------------

LONGEST = "a hundred and twenty-eight"


@pytest.fixture
def tables():
    """tables(width): the lines of both, of two rungs."""
    counts = Counts(23211.0, 3, 16_777_216, 1118, 255, 8040, 196_608, "wgmma cp.async", [2, 16])
    rungs = {LONGEST: Timed("0", 0.1, 0.00213, 0.00031), "another": Timed("1", 0.1, 764.2, 1.04), "no": NotTimed("it")}
    figures = Figures("course ladder", "GPU", {}, "2026-11-24", "a call", "cuBLAS", "TFLOP/s", 735.0, rungs)
    numbers = {name: str(number) for number, name in enumerate(rungs, 9)}

    def tables(width: int) -> list[str]:
        out = Console(width=width, force_terminal=False, highlight=False)
        with out.capture() as captured:
            out.print(measured_table(figures, numbers, width))
            out.print(counted_table({LONGEST: counts, "no": "it fails"}, numbers, width))
        return captured.get().splitlines()

    return tables


@pytest.mark.parametrize("width", [50, 60, 75, 76, 99, 100, 120])
def test_tables_fit_and_cut_nothing_short(tables, width):
    lines = tables(width)
    assert max(map(len, lines)) <= width and "\N{HORIZONTAL ELLIPSIS}" not in "".join(lines)
    assert sum(LONGEST in line for line in lines) == 2


def test_a_wide_terminal_shows_all(tables):
    measured, other, no = (line.split() for line in tables(100)[1:4])
    assert measured[5:8] == ["0.00213", "0.031", "%"] and other[2:8] == ["764", "104", "%", "x", "358", "779"]
    assert other[8].startswith("█" * 20) and no == ["11", "no", "-"]
    counted = next(line for line in tables(100) if "23 211" in line)
    assert " ".join(counted.split()[5:]) == "23 211 16.8M in 3 1 118 255+8040 192 wgmma cp.async 2, 16"


# ---- words ----------------------------------------------------------------------------------------------------------


def test_figures_have_three_digits():
    assert [figure_text(number) for number in (None, 0.00213, 16.333, 764.2, 23211.0)] == [
        "", "0.00213", "16.3", "764", "23 211",
    ]  # fmt: skip
    assert [percent(share) for share in (0.00031, 0.0999, 0.951, 1.04)] == ["0.031 %", "10 %", "95 %", "104 %"]
