"""Somebody who studies alone with a notebook: opens it in a folder of their own, and runs its cells."""

from __future__ import annotations

import re
from pathlib import Path
from unittest.mock import patch

import pytest
from nbclient import NotebookClient
from nbformat import NotebookNode

from grader.course.folder import Folder
from grader.gpu.device import NO_GPU
from grader.learn.notebooks.cells import in_a_notebook
from grader.learn.notebooks.self_study import Origin, self_study_notebook
from tests.conftest import ROOT
from tests.typed_commands import of_a_terminal, run_pytest
from tests.waiting import NEVER

LIMITS = {name: int(NEVER) for name in ("timeout", "startup_timeout", "iopub_timeout")}  # whole seconds, for a kernel
FIRST = "if set_up():"


class Student:
    """A notebook of an exercise in a kernel of its own.

    The kernel sees no GPU, so that a test says the same everywhere, unless `gpu` is true.
    """

    def __init__(self, id: str, folder: Path, gpu: bool = False) -> None:
        self.hidden = {} if gpu else {"CUDA_VISIBLE_DEVICES": ""}
        self.exercise = Folder(ROOT / "exercises" / id)
        self.folder = folder
        self.notebook = self_study_notebook(self.exercise, Origin(""), "")
        self._client = NotebookClient(
            self.notebook, kernel_name="python3", resources={"metadata": {"path": folder}}, **LIMITS
        )

    def __enter__(self) -> Student:
        with pytest.MonkeyPatch.context() as patch:
            for name, value in of_a_terminal({"PYTHONPATH": str(ROOT), **self.hidden}).items():
                patch.setenv(name, value)
            self._kernel = self._client.setup_kernel()
            self._kernel.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._kernel.__exit__(*error)

    @property
    def file(self) -> Path:
        """The learner's file in the folder that the notebook laid down."""
        return self.folder / "triton-course" / "exercises" / self.exercise.id / f"{self.exercise.name}.py"

    def cell(self, part: str) -> NotebookNode:
        """The only code cell that holds this text."""
        (found,) = (cell for cell in self.notebook.cells if cell.cell_type == "code" and part in cell.source)
        return found

    def run(self, part: str) -> list[NotebookNode]:
        cell = self.cell(part)
        self._client.execute_cell(cell, self.notebook.cells.index(cell))
        return cell.outputs

    def reads(self, part: str) -> str:
        """The text that running a cell prints; nothing goes to stderr."""
        outputs = self.run(part)
        assert not [o for o in outputs if o.output_type == "error" or o.get("name") == "stderr"], outputs
        return "".join(o.get("text", "") or o.get("data", {}).get("text/markdown", "") for o in outputs)

    def writes(self, text: str) -> str:
        """Runs the task cell with this text after its first line."""
        cell = self.cell("%%writefile")
        cell.source = f"{cell.source.partition(chr(10))[0]}\n{text}"
        return self.reads("%%writefile")

    def checks(self, text: str) -> str:
        self.writes(text)
        return self.reads("import check")

    def pytest_says(self, said: str) -> str:
        """Returns what pytest prints about the learner's file, with the data of a check that failed and said this.

        It runs in this process, without a GPU.
        """
        seed = re.search(r"--seed (\d+)", said)[1]
        with patch("grader.gpu.device._told", NO_GPU):
            done = run_pytest(
                self.file.parent.relative_to(self.folder / "triton-course"), "--seed", seed, "--disable-warnings",
                cwd=self.folder / "triton-course", COLUMNS="100",
            )  # fmt: skip
        return in_a_notebook(done.out.strip("\n")) + "\n"
