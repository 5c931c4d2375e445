"""Samples of an unchanged kernel count again in the next run."""

from __future__ import annotations

import ast
import itertools
from types import SimpleNamespace

import pytest

from grader.course.folder import Folder
from grader.explain.verdict import FAIL, PASS
from grader.gpu.answers import ANCHOR, KERNEL, Measurement, Round
from grader.gpu.models import DEFAULT_MODEL
from grader.judging import speed_samples
from grader.judging.gate_here import Gate
from grader.numerics.data_sets import normal
from grader.progress.earlier_samples import KERNELS, EarlierSamples
from grader.session.machine import Machine
from grader.session.session import Session
from tests.conftest import ROOT

TEXT = "def add(x):\n    return x + 1\n"


def samples_of(text: str, root) -> EarlierSamples:
    return EarlierSamples(root, "01_masked_add", ast.parse(text))


def test_a_comment_makes_no_other_kernel(tmp_path):
    samples_of(TEXT, tmp_path).keep("its speed", [0.7, 0.71])
    assert samples_of("# faster?\n\n" + TEXT.replace("1", "1  # now?"), tmp_path).of("its speed") == [0.7, 0.71]


@pytest.mark.parametrize("text, measured", [(TEXT.replace("1", "2"), "its speed"), (TEXT, "its speed on another GPU")])
def test_another_kernel_or_another_gpu_begins_anew(tmp_path, text, measured):
    samples_of(TEXT, tmp_path).keep("its speed", [0.7])
    assert samples_of(text, tmp_path).of(measured) == []


def test_what_is_kept_replaces_what_was_there_and_nothing_forgets_it(tmp_path):
    earlier = samples_of(TEXT, tmp_path)
    for shares in ([0.7], [0.7, 0.8], []):
        earlier.keep("its speed", shares)
        assert earlier.of("its speed") == shares


def test_the_oldest_kernel_is_forgotten_first(tmp_path):
    earlier = samples_of(TEXT, tmp_path)
    for number in range(KERNELS + 1):
        earlier.keep(f"call {number}", [0.5])
    assert earlier.of("call 0") == [] and earlier.of("call 1") == [0.5]


DAMAGED = ["", "[", "[1]", '{"a": 1}', '{"a": ["x"]}', "\xff", f'{{"a": [1{"0" * 400}]}}', "[" * 100_000]


@pytest.mark.parametrize("content", DAMAGED, ids=range(len(DAMAGED)))
def test_a_damaged_file_is_no_samples_and_no_error(tmp_path, content):
    earlier = samples_of(TEXT, tmp_path)
    earlier.keep("its speed", [0.7])
    next(tmp_path.glob(".course/samples/*.json")).write_text(content)
    assert earlier.of("its speed") == []
    earlier.keep("its speed", [0.6])
    assert earlier.of("its speed") == [0.6]


def test_what_is_no_share_is_left_out(tmp_path):
    earlier = samples_of(TEXT, tmp_path)
    earlier.keep("its speed", [0.7, float("inf"), float("nan"), 0.0, -1.0, 0.8])
    assert earlier.of("its speed") == [0.7, 0.8]


def test_a_course_that_cannot_be_written_is_no_error(tmp_path):
    (tmp_path / ".course").write_text("a file where the folder should be")
    samples_of(TEXT, tmp_path).keep("its speed", [0.7])
    assert samples_of(TEXT, tmp_path).of("its speed") == []


@pytest.mark.parametrize("submission, kept", [(None, True), ("solutions", False)])
def test_samples_of_the_learners_own_file_alone_are_kept(submission, kept):
    option = SimpleNamespace(device="cpu", submission=submission, seed=1, hidden=None, thorough=False)
    folder = Folder(ROOT / "exercises" / "01_masked_add")
    session = Session(SimpleNamespace(option=option), [folder], Machine("--device cpu", DEFAULT_MODEL, False))
    assert (session.gradings[folder.id].run.earlier is not None) == kept


@pytest.fixture
def measured(bench, tmp_path, monkeypatch):
    """measured(share): the verdict of one run at this share of the anchor, and how many samples it drew.

    Several shares are those of its samples, in this order.
    """
    source = (ROOT / "solutions/01_masked_add/masked_add.py").read_text()
    found = bench(source)
    found.run.replays = SimpleNamespace(device=SimpleNamespace(is_impossible=lambda **rates: False))
    found.run.earlier = EarlierSamples(tmp_path, "01_masked_add", found.run.submission.tree)
    trial = found.judge.trial("test_speed", (normal(4096), normal(4096)), "float32")
    recording = found.run.launch_plan(trial, ("ptx", "ttgir"))

    def measured(shares: float | list[float]):
        drawn = []

        def samples(*_):
            for share in shares if isinstance(shares, list) else itertools.repeat(shares):
                drawn.append(share)
                yield Measurement([Round({KERNEL: 1.0, ANCHOR: share})] * 7, bytes=1)

        monkeypatch.setattr(speed_samples, "samples_of", samples)
        asked = found.run, trial, recording, "copy", Gate(0.8)
        return speed_samples.speed_verdict(*asked), len(drawn)

    return measured


def test_a_slow_kernel_that_is_run_again_goes_on_where_it_stopped(measured):
    first, drawn = measured(0.6)
    assert first.outcome == FAIL and drawn == 2 and "earlier" not in " ".join(first.lines)
    again, drawn = measured(0.7)
    assert again.outcome == FAIL and drawn == 3
    assert again.figures["share"] == 0.7 and again.figures["samples"] == 3 and again.figures["earlier"] == 2
    told = "2 earlier samples of this kernel count too, as it has not changed: 70 % in the middle of all."
    assert again.lines.index(told) < len(again.lines) - 1  # what to do next comes last


def test_a_clearly_slow_kernel_is_as_slow_again_after_two_samples(measured):
    assert [measured(0.6)[1] for _ in range(4)] == [2, 2, 1, 2]


def test_one_lucky_sample_does_not_make_a_slow_kernel_fast(measured):
    for _ in range(4):
        assert measured(0.75)[0].outcome == FAIL
    luck = [0.9, *[0.75] * 20]
    assert measured(luck)[0].outcome == FAIL


def test_what_was_slow_beside_others_passes_as_soon_as_the_gpu_is_quiet(measured):
    for _ in range(4):
        assert measured(0.6)[0].outcome == FAIL
    verdict, drawn = measured(0.9)
    assert verdict.outcome == PASS and drawn <= 10
    assert "earlier samples of this kernel count too" in verdict.note


def test_a_kernel_that_passed_begins_anew(measured):
    for _ in range(2):
        verdict, drawn = measured(0.9)
        assert verdict.outcome == PASS and drawn == 2
