"""Every rung of every ladder: stated soundly, its files there, its values right.

The values of two rungs of each ladder are judged, drawn; of all in `tox -- slow`.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from grader.course.code_digest import digest_of_code
from grader.course.folder import Folder, all_folders, load_test_file
from grader.course.resized import resized
from grader.explain.verdict import PASS
from grader.judging.uses import CheckUse, ThroughputUse, uses_asked
from grader.learn.ladder.figures import Timed, kept
from grader.learn.ladder.rungs import BadRung, Ladder, Rung, ladder_of
from grader.numerics.data_sets import indices, normal
from tests.conftest import ROOT
from tests.slow import SLOW, drawn

LADDERS = {folder: ladder for folder in all_folders(ROOT) if (ladder := ladder_of(folder)) is not None}
# The solution is proven by `course check`, and so are the accepted kernels.
OTHERS = {
    folder: {
        rung.name: rung
        for rung in ladder.rungs
        if rung.is_changed or rung.path != folder.solution_file and "accepted" not in rung.path.parts
    }
    for folder, ladder in LADDERS.items()
}
TO_PROVE = [
    pytest.param(folder, rungs[name], id=f"{folder.id}-{name.replace(' ', '_')}")
    for folder, rungs in OTHERS.items()
    for name in drawn(rungs, 2, "".join(rung.text for rung in rungs.values()))
]
SMALL = {
    "11_rope": (normal(2, 3, 5, 16), normal(7, 8), normal(7, 8), indices(2, 5, below=7)),
    "22_persistent_matmul": (normal(40, 48), normal(48, 40)),  # rows begin at multiples of 16 bytes
    "23_descriptor_matmul": (normal(40, 48), normal(48, 40)),  # rows begin at multiples of 16 bytes
    "26_causal_attention": (normal(1, 2, 150, 16), normal(1, 2, 150, 16), normal(1, 2, 150, 16), None, None),
}
# Their programs take a turn for each column: a short row shows all that they do, and a long one takes seconds.
IN_STEPS_OF_ONE, LONG = ("one column at a time", "one number at a time"), 2000
FOLDERS = pytest.mark.parametrize("folder", LADDERS, ids=lambda folder: folder.id)


@FOLDERS
def test_its_files_are_there_and_its_names_its_own(folder):
    rungs = LADDERS[folder].rungs
    assert len(rungs) >= 3 and all(rung.text and rung.why for rung in rungs)
    assert len({digest_of_code(rung.text) for rung in rungs}) == len(rungs)


@FOLDERS
def test_every_file_beside_a_ladder_is_a_rung_that_says_what_and_why(folder):
    written = sorted((folder.solution_file.parent / "ladder").glob("*.py"))
    numbers = {rung.path: number for number, rung in enumerate(LADDERS[folder].rungs, 1)}
    for path in written:
        assert path.name.startswith(f"{numbers[path]}_"), path
        said = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
        assert said.startswith(f"{folder.number}, rung {numbers[path]}:") and "What:" in said and "Why" in said, path


@pytest.mark.parametrize(("folder", "rung"), TO_PROVE)
def test_its_values_are_right(bench, folder: Folder, rung: Rung):
    one = bench(rung.text, folder.id)
    if rung.path.name == "unwanted.py":  # made for the call that is timed, and nothing else
        verdict = one.check(*_small(folder), dtypes=load_test_file(folder).exercise.dtypes[:1])
        assert verdict.outcome == PASS, verdict.lines
        return
    for call in uses_asked(load_test_file(folder), CheckUse)[::2]:
        if rung.name in IN_STEPS_OF_ONE:
            if max(map(max, (data.shape for data in call.data))) > LONG and not SLOW:
                continue
            one = bench(rung.text, folder.id)  # a judge for each call: their work is not added up
        verdict = call.verdict(one.judge)
        assert verdict.outcome == PASS, f"{call.test}: {verdict.lines}"


def _small(folder: Folder) -> tuple:
    (timed, *_) = uses_asked(load_test_file(folder), ThroughputUse)
    return SMALL.get(folder.id) or resized(timed.data, 5)


@FOLDERS
def test_kept_figures_are_of_these_kernels(folder):
    if (figures := kept(folder)) is None:
        pytest.skip(f"not measured yet: course ladder {folder.number} --keep, on a GPU")
    digests = {rung.name: digest_of_code(rung.text) for rung in LADDERS[folder].rungs}
    again = f"course ladder {folder.number} --keep"
    assert {name: one.digest for name, one in figures.rungs.items() if isinstance(one, Timed)} == digests, again


# ---- how rungs are stated -------------------------------------------------------------------------------------------

SOLUTION = "a = 1\nb = 2\n"


@pytest.fixture
def stated(tmp_path: Path):
    """stated(text): the ladder of an exercise whose ladder.toml is this text."""
    folder = Folder(tmp_path / "exercises" / "01_few")
    folder.solution_file.parent.mkdir(parents=True)
    folder.solution_file.write_text(SOLUTION)

    def stated(text: str) -> Ladder:
        folder.solution_file.with_name("ladder.toml").write_text(text)
        return ladder_of(folder)

    return stated


def test_a_rung_is_a_file_or_the_solution_with_its_changes(stated, tmp_path):
    (tmp_path / "other.py").write_text("c = 3\n")
    found = stated(
        'counted = [[1, 2]]\n[one_element]\nfile = "other.py"\nwhy = "a file"\n'
        '[two]\nchanges = [["b = 2", "b = 3"]]\nwhy = "changed"\n[three]\nwhy = "as it is"\n'
        '[four]\nfile = "no.py"\nwhy = "not there"\n'
    )
    assert found.counted == [[1, 2]]
    assert [rung.name for rung in found.rungs] == ["one element", "two", "three", "four"]
    assert [rung.text for rung in found.rungs] == ["c = 3\n", "a = 1\nb = 3\n", SOLUTION, ""]
    assert [rung.is_changed for rung in found.rungs] == [False, True, False, False]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[one]\nfile = "a.py"\n', "the rung one has to state why"),
        ('[one]\nwhy = "x"\nfiles = "a.py"\n', "nothing else"),
        ('[one]\nwhy = "x"\nfile = "a.py"\nchanges = []\n', "both a file and changes"),
        ('[one]\nwhy = "x"\nchanges = [["c", "d"]]\n', "the old text of change 1 does not stand in the solution"),
        ("one = 3\n", "the rung one has to state why"),
        ("[", "ladder.toml"),
    ],
)
def test_what_does_not_fit_is_named_with_its_rung(stated, text, said):
    with pytest.raises(BadRung) as raised:
        stated(text)
    assert said in str(raised.value)


def test_an_exercise_without_the_file_has_no_ladder(tmp_path):
    assert ladder_of(Folder(tmp_path / "exercises" / "01_few")) is None
