"""Feedback pages, made by nbgrader's own converter."""

from __future__ import annotations

import nbformat
import pytest
from nbformat.v4 import new_notebook
from nbgrader.converters import GenerateFeedback
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import NbGraderPreprocessor
from traitlets.config import Config

from grader.classroom.nbgrader.bridge import configure
from tests.classroom.instructor import ROOT

ADD = "01_masked_add"


class NoPoints(NbGraderPreprocessor):
    """Stands in for the scores of a gradebook, which say nothing about where files go."""

    def preprocess(self, notebook, resources):
        resources["nbgrader"] |= {"score": 0, "max_score": 0, "late_penalty": 0}
        return notebook, resources


@pytest.mark.parametrize(
    ("directory", "structure", "page"),
    [
        ("feedback", "{nbgrader_step}/{student_id}/{assignment_id}", f"feedback/ada/{ADD}"),
        ("pages", "{nbgrader_step}/{student_id}/{assignment_id}", f"pages/ada/{ADD}"),
        ("feedback", "{assignment_id}/{nbgrader_step}/{student_id}", f"{ADD}/feedback/ada"),
    ],
)
def test_release_feedback_finds_its_files_wherever_the_configuration_puts_the_pages(
    tmp_path, monkeypatch, directory, structure, page
):
    config = Config()
    configure(config, str(tmp_path / "nbgrader_config.py"), str(ROOT))
    config.CourseDirectory.feedback_directory, config.CourseDirectory.directory_structure = directory, structure
    config.GenerateFeedback.preprocessors = [NoPoints]
    coursedir = CourseDirectory(config=config)
    coursedir.assignment_id = ADD
    source = tmp_path / coursedir.format_path("autograded", "ada", ADD)
    source.mkdir(parents=True)
    nbformat.write(new_notebook(metadata={"course": {"exercise": ADD}}), source / "masked_add.ipynb")
    monkeypatch.chdir(tmp_path)
    GenerateFeedback(coursedir=coursedir, config=config).start()
    written = {path.name for path in (tmp_path / page).iterdir()}
    assert written == {"masked_add.html", "submission_secret.txt", "timestamp.txt"}
