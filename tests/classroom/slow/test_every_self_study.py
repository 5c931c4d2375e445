"""Every notebook for self-study, its cells run: what it says to the stub, to a mutant and to the solution."""

from __future__ import annotations

import pytest

from grader.author.mutants import mutants_of
from grader.course.folder import all_folders
from tests.conftest import ROOT
from tests.learn.student import FIRST, Student

EXERCISES = all_folders(ROOT)


@pytest.mark.parametrize("folder", EXERCISES, ids=lambda folder: folder.id)
def test_a_stub_a_mutant_and_the_solution(folder, tmp_path):
    mutant = next(mutants_of(folder))
    with Student(folder.id, tmp_path) as student:
        assert "Judged here: values" in student.reads(FIRST)
        assert "Write your answers into this cell" in student.reads("import predict")
        student.reads("%%writefile")
        assert "not attempted" in student.reads("import check")
        said = student.checks(mutant.text)
        assert "FAIL" in said and said == student.pytest_says(said)
        assert "Hint 1 of 3" in student.reads("import hint")
        assert "olution opens when" in student.reads("import explanation")
        assert "Passed, judged in" in student.checks(folder.solution_file.read_text(encoding="utf-8"))
        assert student.reads("import explanation").startswith(f'"""{folder.number} · ')
