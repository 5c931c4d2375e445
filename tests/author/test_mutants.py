"""How mutants are stated: pairs of old and new text of the solution, each old text there exactly once."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from grader.author import proof
from grader.author.mutants import BadMutant, Mutant, mutant_of, mutants_of
from grader.author.proof import Way, proofs_of
from grader.author.proving import run
from grader.course.folder import Folder, all_folders, load_test_file
from tests.conftest import ROOT

STATED = """
[no_mask]
wrong = "no mask."
finding = "oob-load"
sentence = "has no mask"
changes = {changes}
"""
ADD = Folder(ROOT / "exercises" / "01_masked_add")
TESTS_OF_ADD = [name for name in vars(load_test_file(ADD)) if name.startswith("test_")]
SOLUTION = "a = 1\nb = 2\nc = a + a\n"


@pytest.fixture
def stated(tmp_path: Path):
    """stated(text): the mutants of an exercise whose solutions/01_few/mistakes.toml is this text."""
    folder = Folder(tmp_path / "exercises" / "01_few")
    folder.solution_file.parent.mkdir(parents=True)
    folder.solution_file.write_text(SOLUTION)
    folder.mistakes_folder.mkdir()

    def stated(text: str) -> list[Mutant]:
        (tmp_path / "solutions/01_few/mistakes.toml").write_text(text)
        return list(mutants_of(folder))

    stated.folder = folder
    return stated


def test_the_pairs_are_changed_and_nothing_else(stated):
    (mutant,) = stated(STATED.format(changes='[["b = 2", "b = a = 1"], ["a = 1", "b = 2"]]'))
    assert mutant.text == "b = 2\nb = a = 1\nc = a + a\n"
    assert (mutant.name, mutant.finding, mutant.sentence) == ("no_mask", "oob-load", "has no mask")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ('[["d", "e"]]', "the old text of change 1 does not stand in the solution: 'd'"),
        ('[["b = 2", "b"], [" = ", "="]]', "the old text of change 2 stands 3 times in the solution: ' = '"),
        ('[["a = 1", "a"], ["1\\nb", "b"]]', "two changes overlap at '1'"),
        ('[["a = 1"]]', "change 1 is no pair of old and new text"),
        ('["a = 1", "a"]', "change 1 is no pair"),
        ('"a"', "has to state wrong, finding, changes, and sentence or says"),
        ("[]\nname = 3", "has to state"),
        ("[", "01_few/mistakes.toml: "),
    ],
)
def test_what_does_not_fit_is_named_with_its_mutant(stated, changes, said):
    with pytest.raises(BadMutant) as raised:
        stated(STATED.format(changes=changes))
    assert said in str(raised.value) and "01_few/mistakes.toml" in str(raised.value)
    assert "no_mask" in str(raised.value) or changes == "["


def test_a_file_says_the_same_in_its_docstring(stated):
    path = stated.folder.root / "solutions/01_few/mistakes/built_otherwise.py"
    path.write_text('"""Wrong: it is\nanother.\n\nFinding: race\n\nRejected with: a\nrace.\n"""\nd = 3\n')
    (mutant,) = stated("")
    assert (mutant.name, mutant.wrong, mutant.finding) == ("built_otherwise", "it is another.", "race")
    assert mutant.sentence == "a race." and mutant.text.endswith("d = 3\n")
    path.write_text('"""Wrong: it is another."""\n')
    with pytest.raises(BadMutant, match="built_otherwise.py: its docstring has to say"):
        stated("")


def test_one_is_found_by_its_name(stated):
    stated(STATED.format(changes='[["b = 2", "b"]]'))
    assert mutant_of(stated.folder, "no_mask").wrong == "no mask."
    with pytest.raises(KeyError):
        mutant_of(stated.folder, "mask")


def test_a_solution_that_was_edited_is_told_to_its_author(tmp_path, proven_here):
    """By `course check`."""
    from grader.author.check import check

    for name in ("exercises", "solutions", "hints"):
        shutil.copytree(ROOT / name, tmp_path / name)
    (folder,) = (one for one in all_folders(tmp_path) if one.number == "01")
    path = folder.solution_file
    path.write_text(path.read_text().replace("offsets < N", "offsets <= N - 1"))
    said: list[str] = []
    check([folder], 1, said.append, lambda count: lambda: None)
    (told,) = (line for line in said if line.strip().startswith("solutions/01_masked_add/mistakes.toml"))
    assert "the mutant" in told and "does not stand in the solution: 'mask = offsets < N'" in told


def test_a_finding_that_there_is_not_is_refused(stated):
    with pytest.raises(BadMutant, match="no_mask expects the finding oob-lode, which there is not"):
        stated(STATED.format(changes="[]").replace("oob-load", "oob-lode"))


@pytest.mark.parametrize("by_pytest", [False, True])
@pytest.mark.parametrize("whole", [False, True])
def test_a_run_ends_where_the_mutant_is_rejected_as_stated_unless_it_is_to_be_whole(whole, by_pytest, monkeypatch):
    (found,) = (one for one in proofs_of(ADD) if one.name.endswith(": no_mask"))
    results = []
    monkeypatch.setattr(proof, "_complaint", lambda _, result: results.append(result) or "")
    run(found, Way(whole, by_pytest=by_pytest))
    outcomes = [test["outcome"] for test in results[0]["tests"]]
    assert "fail" in outcomes and results[0]["cause"] == found.finding
    assert (len(outcomes) == len(TESTS_OF_ADD)) is whole and (outcomes[-1] == "fail") is not whole


def test_one_of_several_sentences_is_enough():
    (right,) = (one for one in proofs_of(ADD) if one.name.endswith(": no_mask"))
    wrong = replace(right, sentence="nobody says this | nor this")
    assert run(replace(right, sentence=f"nobody says this | {right.sentence}"), Way()).complaint == ""
    assert "rejected with another sentence" in run(wrong, Way()).complaint


def test_a_run_goes_on_where_another_finding_was_stated():
    (right,) = (one for one in proofs_of(ADD) if one.name.endswith(": no_mask"))
    wrong = replace(right, finding="race")
    assert run(right, Way()).complaint == ""
    assert run(wrong, Way()).complaint == f"rejected by the finding {right.finding}, and race was expected"
