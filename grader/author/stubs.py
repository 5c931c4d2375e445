"""The learner's stub, derived from the solution by nbgrader's own ClearSolutions: one definition of "stub"."""

from __future__ import annotations

import nbformat
from nbgrader.preprocessors import ClearSolutions
from traitlets.config import Config

from grader.course.folder import Folder
from grader.course.regions import STUB

CELL = {"schema_version": 3, "grade_id": "submission", "solution": True, "grade": False, "locked": False, "task": False}


def stub_of(solution: str) -> str:
    """Returns the solution with every marked region replaced, and everything else byte for byte."""
    config = Config()
    config.ClearSolutions.code_stub = {"python": "\n".join(STUB)}
    cell = nbformat.v4.new_code_cell(solution, metadata={"nbgrader": dict(CELL)})
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = nbformat.v4.new_notebook(cells=[cell], metadata={"kernelspec": kernel})
    cleared, _ = ClearSolutions(config=config).preprocess(notebook, {})
    return cleared.cells[0].source.rstrip("\n") + "\n"


def derived_stub(folder: Folder) -> str:
    return stub_of(folder.solution_file.read_text(encoding="utf-8"))
