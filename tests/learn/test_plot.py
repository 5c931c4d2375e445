"""course plot without a GPU: which calls are timed, what becomes of samples, and what is shown of them.

The samples here are made up, as a replay process would send them; the plans are real.
"""

from __future__ import annotations

import json
import struct
from dataclasses import asdict, dataclass, field
from types import SimpleNamespace

import click
import pytest
import torch
from click.testing import CliRunner
from rich.console import Console

from grader.cli import main
from grader.course.folder import Folder, all_folders, load_test_file
from grader.course.resized import LEAST_BYTES, fitting, resized, sizes_below
from grader.gpu.answers import ANCHOR, KERNEL, TORCH, Measurement, Round
from grader.gpu.device import NO_GPU, Device
from grader.gpu.models import DEFAULT_MODEL
from grader.gpu.pool.replay_process import ReplayEnded
from grader.judging.run import Run
from grader.judging.uses import ThroughputUse, uses_asked
from grader.learn.curve_table import curve_table
from grader.learn.sweep import Sweep
from grader.numerics.data_sets import Data, indices, normal, slots
from grader.progress import kept_curves
from grader.show.curves import Curves
from tests.conftest import folders_with_speed
from tests.learn.conftest import ROOT

ADD = Folder(ROOT / "exercises" / "01_masked_add")
VECTORS = (normal(1 << 14), normal(1 << 14))
MATMUL = Folder(ROOT / "exercises" / "05_grouped_matmul")


def answer(work: int, kernel: float, anchor: float, torch: float | None = None, invalid: str = "", wrong: str = ""):
    seconds = {KERNEL: kernel, ANCHOR: anchor} | ({TORCH: torch} if torch else {})
    return {"kind": "measured", **asdict(Measurement([Round(seconds, invalid)] * 7, wrong, work))}


@dataclass
class Answers:
    """In the place of Replays: an answer per call, by number of calls."""

    special: dict[int, object] = field(default_factory=dict)
    asked: list[dict] = field(default_factory=list)
    ready: int = 0
    device: Device = Device("GPU-0", DEFAULT_MODEL)

    def start(self, samples: int) -> None:
        assert self.ready == 0
        self.ready = samples

    def measure(self, recording, config, folder, **options) -> dict:
        self.ready -= 1
        self.asked.append({"elements": recording.arguments[0].shape, **options})
        found = self.special.get(len(self.asked) - 1)
        if isinstance(found, Exception):
            raise found
        work = 12 * recording.arguments[0].shape[0]
        assert self.ready >= 0
        return found or answer(work, work / 2e12, work / 4e12, work / 1e12 if options["with_torch"] else None)

    def end(self) -> None:
        pass


@pytest.fixture
def sweep():
    """sweep(answers, data, folder): of the solution, against itself under the learner's name."""
    made: list[Run] = []

    def sweep(answers, data=VECTORS, folder=ADD, **options) -> Sweep:
        made.extend(Run(folder, "solutions", model=DEFAULT_MODEL) for _ in range(2))
        exercise = load_test_file(folder).exercise
        return Sweep(
            dict(zip(("yours", "solution"), made[-2:])),
            exercise,
            ThroughputUse.of("test_it", *data, at_least=0.5, **options),
            answers,
        )

    yield sweep
    for run in made:
        run.end()


def measured(sweep: Sweep) -> tuple[Curves, int, list[str]]:
    advanced, notes = [], []
    curves = sweep.measure(lambda: advanced.append(1), notes.append)
    return curves, len(advanced), notes


# ---- sizes ----------------------------------------------------------------------------------------------------------


FEWEST = {"26": 2}  # sizes: there are two batches, of 8192 queries and keys each
LARGE = ("28",)  # its caches stay as large with fewer sequences: a card of 8 GiB has too little memory to time it


@pytest.mark.parametrize("folder", folders_with_speed(), ids=lambda folder: folder.id)
def test_every_exercise_has_a_size_to_plot_up_to(folder):
    module = load_test_file(folder)
    data = uses_asked(module, ThroughputUse)[0].data
    sizes = sizes_below(module.exercise, data, getattr(torch, module.exercise.dtypes[0]))
    assert len(sizes) >= FEWEST.get(folder.number, 3) and sizes == sorted(set(sizes))
    assert resized(data, sizes[-1]) == data
    assert sizes[0] == 1 or sizes[0] <= sizes[-1] // 32


def test_a_curve_begins_where_a_call_moves_enough_to_be_measured():
    def first(number: str, *data: Data) -> int:
        (folder,) = [one for one in all_folders(ROOT) if one.number == number]
        return sizes_below(load_test_file(folder).exercise, data, torch.float32)[0]

    assert LEAST_BYTES == 32 << 10
    assert first("01", normal(1 << 27), normal(1 << 27)) == 4096  # 3 x 16 KiB
    assert first("04", normal(8192, 8192)) == 64  # 2 x 16 KiB
    assert first("03", normal(32768, 4096)) == 1  # 2 x 16 KiB a row
    assert first("06", normal(16384), normal(16384)) == 128  # 64 KiB of results


@pytest.mark.parametrize("folder", folders_with_speed(), ids=lambda folder: folder.id)
def test_a_card_of_8_gib_times_fewer_rows_and_a_large_one_what_is_stated(folder):
    module = load_test_file(folder)
    for call in uses_asked(module, ThroughputUse):
        given = module.exercise, call.data, getattr(torch, module.exercise.dtypes[0])
        assert fitting(*given, 141 << 30) == call.data
        small = fitting(*given, 8 << 30)
        assert small == resized(call.data, small[0].shape[0])
        moved = sum(one.elements * one.dtype_in(given[2]).itemsize for one in small if isinstance(one, Data))
        assert folder.number in LARGE or 16 * moved < 0.8 * (8 << 30) and small[0].shape[0] > 1


def test_a_square_stays_one_and_a_row_keeps_its_length():
    square, rows = (normal(8192, 8192).transposed(),), (normal(32768, 4096),)
    assert resized(square, 64) == (normal(64, 64).transposed(),)
    assert resized(rows, 64) == (normal(64, 4096),)


def test_indices_point_into_what_has_shrunk():
    data = normal(4096, 8), indices(4096, below=4096, least=1024), indices(50, below=4096)
    wanted = normal(64, 8), indices(64, below=64, least=16), indices(50, below=64)
    shrunk = resized(data, 64)
    assert [(one.shape, one.steps) for one in shrunk] == [(one.shape, one.steps) for one in wanted]
    assert resized(data, 1)[1].steps == (("below", 1, 0),) and resized(data, 4096) == data


def test_pages_with_as_many_rows_become_fewer():
    data = normal(4096, 2, 8), normal(256, 16, 2, 8), slots(4096, below=4096)
    wanted = normal(40, 2, 8), normal(3, 16, 2, 8), slots(40, below=40)
    assert [(one.shape, one.steps) for one in resized(data, 40)] == [(one.shape, one.steps) for one in wanted]
    assert resized(data, 4096) == data


def test_a_size_that_is_no_power_of_two_is_the_last():
    exercise = load_test_file(Folder(ROOT / "exercises" / "01_masked_add")).exercise

    def sizes(n: int) -> list[int]:
        return sizes_below(exercise, (normal(n), normal(n)), torch.float32)

    assert sizes(10_000) == [4096, 8192, 10_000] and sizes(100) == [100]


# ---- samples to curves ----------------------------------------------------------------------------------------------


def test_rates_come_from_the_bytes_of_the_call(sweep):
    answers = Answers()
    curves, advanced, notes = measured(sweep(answers))
    assert curves.sizes == [4096, 8192, 16384] and (advanced, notes, answers.ready) == (6, [], 0)
    near = pytest.approx
    assert curves.rates["yours"] == near([2000] * 3) and curves.rates["solution"] == near([2000] * 3)
    assert curves.rates["torch"] == near([1000] * 3) and curves.rates["copy"] == near([4000] * 3)
    assert curves.share("yours", 0) == near(0.5) and curves.unit == "GB/s"
    assert curves.summary == "At n = 16 384: yours 2 000 GB/s, solution 2 000 GB/s, torch 1 000 GB/s, copy 4 000 GB/s."
    assert [one["with_torch"] for one in answers.asked] == [True, False] * 3
    assert [one["elements"][0] for one in answers.asked] == [4096, 4096, 8192, 8192, 16384, 16384]


def test_a_product_is_counted_in_operations(sweep):
    flops = [2 * 128**3, 2 * 256**3]
    answers = Answers({n: answer(0, flops[n // 2] / 400e12, flops[n // 2] / 700e12) for n in range(4)})
    curves, _, _ = measured(sweep(answers, (normal(256, 256), normal(256, 256)), MATMUL, anchor="matmul"))
    assert curves.rates["yours"] == pytest.approx([400, 400]) and curves.rates["cuBLAS"] == pytest.approx([700, 700])
    assert curves.unit == "TFLOP/s" and "torch" not in curves.rates and not answers.asked[0]["with_torch"]
    assert curves.shape == "n x n, fp16"


def test_what_cannot_be_measured_is_a_gap_with_its_reason(sweep):
    answers = Answers({2: ReplayEnded("no-room", ""), 3: answer(1, 1.0, 1.0, invalid="the GPU is throttled")})
    curves, advanced, notes = measured(sweep(answers))
    assert advanced == 6 and curves.rates["yours"][1] is curves.rates["solution"][1] is curves.rates["copy"][1] is None
    assert notes == [
        "n = 8 192, yours: not measured, the GPU has too little free memory.",
        "n = 8 192, solution: not measured, the GPU is throttled.",
    ]
    assert curves.rates["yours"][2] == pytest.approx(2000)


@pytest.mark.parametrize(
    ("found", "sentence"),
    [
        (answer(1, 1.0, 1.0, wrong="an output of a timed call is wrong"), "At n = 8 192 an output of a timed call is"),
        (ReplayEnded("failed", "CUDA_ERROR_ILLEGAL_ADDRESS"), "On the GPU the kernel reads or writes memory that"),
        (ReplayEnded("time", ""), "On the GPU the kernel does not end"),
    ],
)
def test_a_wrong_kernel_is_not_plotted(sweep, found, sentence):
    with pytest.raises(click.ClickException) as refused:
        measured(sweep(Answers({2: found})))
    assert refused.value.message.startswith(f"masked_add.py: {sentence}")
    assert "Only a right kernel is plotted. Next: pytest " in refused.value.message


def test_a_process_that_died_is_not_the_kernels_fault(sweep):
    with pytest.raises(click.ClickException) as refused:
        measured(sweep(Answers({0: ReplayEnded("died", "the replay process ended")})))
    assert refused.value.message == (
        "The process that owns the GPU ended: the replay process ended. Next: course doctor"
    )


def test_a_kernel_that_returns_something_else_is_not_plotted(tmp_path):
    text = (ROOT / "solutions/01_masked_add/masked_add.py").read_text()
    path = tmp_path / "masked_add.py"
    path.write_text(text.replace("return z", "return x"))
    run = Run(ADD, str(path), model=DEFAULT_MODEL)
    asked_for = ThroughputUse.of("test_it", *VECTORS, at_least=0.5)
    try:
        with pytest.raises(click.ClickException, match="returns another result than it should"):
            measured(Sweep({"yours": run}, load_test_file(ADD).exercise, asked_for, Answers()))
    finally:
        run.end()


# ---- what is shown --------------------------------------------------------------------------------------------------


@pytest.fixture
def curves() -> Curves:
    sizes = [1 << power for power in range(12, 28)]
    rates = {name: [peak * n / (n + 4e6) for n in sizes]
             for name, peak in (("yours", 3000), ("solution", 4200), ("torch", 4100), ("copy", 4266))}  # fmt: skip
    rates["yours"][5] = None
    return Curves("01_masked_add", "NVIDIA H200", 60 << 20, "n elements, fp32", "GB/s", "copy", sizes, rates)


def lines_of(curves: Curves, width: int) -> list[str]:
    out = Console(width=width, force_terminal=False, highlight=False)
    with out.capture() as captured:
        out.print(curve_table(curves, width))
    return captured.get().splitlines()


@pytest.mark.parametrize("width", [40, 60, 80, 100, 120])
def test_the_table_fits_and_says_every_size(curves, width):
    lines = lines_of(curves, width)
    assert max(map(len, lines)) <= width and "…" not in "".join(lines)
    last = next(line for line in lines if line.startswith("134 217 728"))
    assert last.split()[3:7] == ["2", "913", "70", "%"]
    assert next(line for line in lines if line.strip().startswith("131 072")).split()[2] == "|"  # a gap
    assert ("solution" in lines[0]) == (width >= 84)


def test_a_bar_is_as_long_as_the_rate(curves):
    bars = [line.count("█") for line in lines_of(curves, 100)[1:-1]]
    assert bars == sorted(bars[:5]) + [0] + sorted(bars[6:]) and bars[-1] == round(30 * 2913 / 4142)


def test_the_picture_is_a_png_of_its_own(curves):
    from grader.show.throughput_svg import curves_png

    content = curves_png(curves)
    width, height = struct.unpack(">II", content[16:24])
    assert content.startswith(b"\x89PNG") and width > 800 and height > 600 and curves_png(curves) == content


def test_medals_are_marked_at_the_largest_size(curves):
    from grader.show.throughput_svg import curves_svg

    silver, gold = curves.medal_rates["silver"], curves.medal_rates["gold"]
    assert silver == pytest.approx(0.9 * curves.rates["solution"][-1])
    assert gold == pytest.approx(0.97 * curves.rates["solution"][-1])
    told = "At n = 134 217 728 silver begins at 3 671 GB/s and gold at 3 956 GB/s; pytest gives the medal."
    assert curves.medals_told == told
    picture = curves_svg(curves, "p")
    assert ">silver<" in picture and ">gold<" in picture


def test_no_medal_is_marked_where_the_solution_is_what_is_plotted(curves):
    del curves.rates["yours"]
    assert curves.kernels[0] == "solution" and curves.medal_rates == {} and curves.medals_told == ""


# ---- kept for the report --------------------------------------------------------------------------------------------


def test_curves_are_read_as_they_were_kept(curves, tmp_path):
    folder = Folder(tmp_path / "exercises" / "01_masked_add")
    assert kept_curves.kept(folder) is None
    kept_curves.keep(folder, curves)
    assert kept_curves.kept(folder) == curves


DAMAGE = [
    {"rates": {}}, {"sizes": []}, {"sizes": [1, 2]}, {"ceiling": "moon"}, {"more": 1},
    {"rates": {"copy": ["fast"] * 16}}, {"rates": 3}, {"sizes": [-1] * 16},
    {"l2_bytes": "60"}, {"gpu": None}, {"rates": {"copy": [float("nan")] * 16}},
    {"rates": {"copy": [10**400] * 16}},
]  # fmt: skip


@pytest.mark.parametrize("change", DAMAGE)
def test_damaged_curves_are_none(curves, tmp_path, change):
    folder = Folder(tmp_path / "exercises" / "01_masked_add")
    kept_curves.keep(folder, curves)
    path = tmp_path / ".course/plots/01_masked_add.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    assert kept_curves.kept(folder) is None


# ---- the command ----------------------------------------------------------------------------------------------------


@pytest.fixture
def plot(course, monkeypatch):
    """plot(*arguments): the command in this process, on a GPU whose answers are made up."""
    answers = Answers()
    monkeypatch.setattr("grader.gpu.device.device_here", lambda: answers.device)
    monkeypatch.setattr("grader.gpu.pool.replays.Replays", lambda device: answers)
    monkeypatch.chdir(course.path)
    monkeypatch.setenv("COLUMNS", "100")
    return lambda *arguments: CliRunner().invoke(main, ["plot", *arguments], prog_name="course")


def test_it_shows_draws_and_keeps(course, plot):
    course.write("04_transpose")
    done = plot("04")
    lines = done.stdout.splitlines()
    assert done.exit_code == 0 and done.stderr == ""
    assert lines[0] == "04_transpose: throughput in GB/s on NVIDIA H200"
    assert lines[1].split() == ["n", "yours", "share", "solution", "torch", "copy"]
    assert [line.split()[0] for line in lines[2:6]] == ["64", "128", "256", "512"]
    assert "The first argument is n x n, fp32." in done.stdout
    assert lines[-2] == f"Picture: {course.path / 'throughput_04_transpose.png'}"
    assert lines[-1] == "Next: course report shows it with your progress"
    assert max(map(len, lines[:-2])) <= 100
    assert (course.path / "throughput_04_transpose.png").read_bytes().startswith(b"\x89PNG")
    assert kept_curves.kept(Folder(course.path / "exercises/04_transpose")).sizes[-1] == 8192


def test_what_others_wrote_is_not_kept(course, plot):
    done = plot("04", "--submission", "solutions", "--out", "mine.png")
    lines = done.stdout.splitlines()
    assert lines[1].split() == ["n", "solution", "share", "torch", "copy"] and (course.path / "mine.png").exists()
    assert lines[-1] == "Next: course plot 04 plots yours" and not (course.path / ".course/plots").exists()


def test_an_empty_stub_is_not_plotted(course, plot):
    done = plot("04")
    assert done.exit_code == 1 and "there is nothing to show. Next: course open 04" in done.stderr


def test_a_file_that_is_not_there_is_named(course, plot):
    done = plot("04", "--submission", "nowhere.py")
    again = "pytest exercises/04_transpose --submission nowhere.py"
    assert done.exit_code == 1 and f"nowhere.py cannot be run. Next: {again}" in done.stderr


def test_a_run_is_ended_even_if_the_next_one_cannot_be_made(plot, monkeypatch):
    made, ended = [], []

    def run(*_, **__) -> SimpleNamespace:
        made.append(SimpleNamespace(end=lambda: ended.append("the submission's")))
        if len(made) == 2:
            raise OSError("the solution's cannot be made")
        return made[0]

    monkeypatch.setattr("grader.judging.run.Run", run)
    assert str(plot("04").exception) == "the solution's cannot be made" and ended == ["the submission's"]


def test_without_a_gpu_it_is_one_sentence(course, monkeypatch):
    monkeypatch.setattr("grader.gpu.device._told", NO_GPU)  # also on a machine that has one
    done = course.here("plot", "03")
    assert (done.status, done.out) == (1, "")
    assert done.err == (
        "Error: course plot measures on a GPU, and there is none here. "
        "Next: pytest exercises/03_softmax judges all but speed without one.\n"
    )


@pytest.mark.parametrize(("out", "sentence"), [("a.jpg", "a name that ends in .png was expected"),
                                               ("no/such/a.png", "there is no folder")])  # fmt: skip
def test_a_picture_that_cannot_be_written_is_told_before_measuring(course, out, sentence):
    done = course.here("plot", "03", "--out", out)
    assert done.status == 1 and sentence in done.err
