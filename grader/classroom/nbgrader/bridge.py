"""nbgrader as gradebook and web interface only: the judge's verdicts are put in, and nbgrader runs no student's code.

`configure`, called from a class's nbgrader_config.py, replaces the two phases of `nbgrader autograde`:

    sanitize    HandInExporter   reads a hand-in as data and builds the notebook anew from the released one, with
                                 the student's text in the solution cell. Nothing else that was handed in is read.
    autograde   PutInVerdict     finds the judge's result for this text, or asks the judge, and gives each grade cell
                                 its lines and score
                SaveScores       writes the scores into the gradebook; an open item gets none

Gradebook, formgrader, late penalties, manual scores, feedback and export work as usual.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import warnings
from pathlib import Path

import nbformat
from nbconvert.exporters import HTMLExporter, NotebookExporter
from nbformat import NotebookNode, from_dict
from nbgrader.preprocessors import GetGrades, NbGraderPreprocessor, SaveAutoGrades
from nbgrader.utils import is_grade
from sqlalchemy.exc import SAWarning
from traitlets import Bool, Unicode

from grader.classroom.cell_names import CHECK_CELL
from grader.classroom.cluster.pytest_call import judge
from grader.classroom.handin import HandIn, filled, read_hand_in, solution_text
from grader.classroom.nbgrader.cell_outputs import item_outputs, report_outputs
from grader.classroom.nbgrader.nbgrader_types import CourseDirectory
from grader.classroom.result_store import Results, Text
from grader.classroom.rubric import SPEED, Item, items_of
from grader.course.folder import Folder
from grader.course.regions import STUB
from grader.gpu.nvml import gpu_here
from grader.processes.bubblewrap import AUTO

TEMPLATES = Path(__file__).with_name("templates")


def configure(config, file: str, course: str) -> None:
    """Changes nbgrader's configuration where a class of this course differs from a stock nbgrader course.

    `file`: the nbgrader_config.py that calls this; its folder becomes nbgrader's root. `course`: the folder that holds
    exercises/ and solutions/.
    """
    warnings.filterwarnings("ignore", category=SAWarning, module="nbgrader")  # nbgrader's own, on every autograde
    config.CourseDirectory.root = str(Path(file).resolve().parent)
    config.ClearSolutions.code_stub = {"python": "\n".join(STUB)}
    config.Autograde.exporter_class = HandInExporter
    config.Autograde.sanitize_preprocessors = ["nbgrader.preprocessors.CheckCellMetadata"]
    config.Autograde.autograde_preprocessors = [
        PutInVerdict,
        SaveScores,
        "nbgrader.preprocessors.AssignLatePenalties",
        "nbgrader.preprocessors.CheckCellMetadata",
    ]
    config.PutInVerdict.course = course
    config.GenerateFeedback.exporter_class = FeedbackExporter
    config.GenerateFeedback.preprocessors = [ShowScores]
    config.FeedbackExporter.template_name = "course_feedback"
    config.FeedbackExporter.extra_template_basedirs = [str(TEMPLATES)]
    config.ExportApp.plugin_class = "grader.classroom.nbgrader.exports.Grades"


def hidden_cases(class_folder: Path) -> Path | None:
    folder = class_folder / "hidden"
    return folder if any(folder.glob("*.toml")) else None


class HandInExporter(NotebookExporter):
    """Reads a hand-in as data, whatever it holds, and exports the released notebook with the student's text in it.

    A notebook outside of the student's submitted folder is exported as nbconvert does it.
    """

    def from_filename(self, filename, resources=None, **kw):
        coursedir, names = _coursedir_of(self), resources["nbgrader"]
        folder = Path(coursedir.format_path(coursedir.submitted_directory, names["student"], names["assignment"]))
        if Path(filename).parent.resolve() != folder.resolve():
            return super().from_filename(filename, resources=resources, **kw)
        released = read_released(coursedir, names["assignment"], names["notebook"])
        siblings = tuple(path.stem for path in released_notebooks(coursedir, names["assignment"]))
        hand_in = read_hand_in(folder, names["notebook"], solution_text(released), siblings)
        return self.from_notebook_node(rebuilt(released, hand_in), resources=resources, **kw)


class FeedbackExporter(HTMLExporter):
    """Writes next to each feedback page the files without which nbgrader's release_feedback stops.

    It bears a name of its own so that its template is set for feedback, and not for the formgrader.
    """

    def from_filename(self, filename, resources=None, **kw):
        coursedir, names = _coursedir_of(self), resources["nbgrader"]
        complete_feedback(
            Path(coursedir.format_path(coursedir.feedback_directory, names["student"], names["assignment"]))
        )
        return super().from_filename(filename, resources=resources, **kw)


def complete_feedback(folder: Path) -> None:
    """Writes submission_secret.txt and timestamp.txt into a student's feedback folder where they are missing.

    They are missing where a hand-in did not come by nbgrader submit.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in (("submission_secret.txt", secrets.token_hex(32)), ("timestamp.txt", "")):
        if not (folder / name).exists():
            (folder / name).write_text(content)


def _coursedir_of(exporter: NotebookExporter | HTMLExporter) -> CourseDirectory:
    """Returns the CourseDirectory of nbgrader's converter, which has made the exporter."""
    converter = exporter.parent
    if converter is None:
        raise ValueError(f"{type(exporter).__name__} belongs to no converter of nbgrader's")
    return converter.coursedir


def released_notebooks(coursedir: CourseDirectory, assignment: str) -> list[Path]:
    return sorted(Path(coursedir.format_path(coursedir.release_directory, ".", assignment)).glob("*.ipynb"))


def read_released(coursedir: CourseDirectory, assignment: str, notebook: str) -> NotebookNode:
    path = Path(coursedir.format_path(coursedir.release_directory, ".", assignment), f"{notebook}.ipynb")
    if not path.exists():
        raise FileNotFoundError(f"{path} is not there. Next: nbgrader generate_assignment {assignment}")
    return nbformat.read(path, as_version=4)


def rebuilt(released: NotebookNode, hand_in: HandIn) -> NotebookNode:
    notebook = released if hand_in.text is None else filled(released, hand_in.text)
    notebook.metadata["course"] |= {"problem": hand_in.problem, "notes": hand_in.notes}
    return notebook


class PutInVerdict(NbGraderPreprocessor):
    """Writes the outputs of check cell and grade cells, and each item's score into its cell's metadata."""

    course = Unicode(help="the folder of the course: exercises/, solutions/").tag(config=True)
    isolation = Unicode(AUTO, help="limits, auto or strict: how a submission is shut in").tag(config=True)
    judge_missing = Bool(True, help="whether to judge a text that has no result yet").tag(config=True)

    def preprocess(self, notebook, resources):
        facts = notebook.metadata["course"]
        result = None if facts["problem"] else self._result(facts["exercise"], solution_text(notebook))
        items, why = _items(result, notebook, facts["problem"])
        notes = [*facts["notes"], *([f"Not graded yet: {why.removesuffix('.')}."] if why else [])]
        for cell in notebook.cells:
            if is_grade(cell):
                item = items.get(cell.metadata.nbgrader.grade_id)
                open_because = why if item is None else next(iter(item.open), "")
                cell.outputs = from_dict(item_outputs(item, open_because))
                cell.metadata["course"] = {"score": item.score if item else None, "open": open_because}
            elif cell.metadata.get("nbgrader", {}).get("grade_id") == CHECK_CELL:
                judged = result if result and not result["fault"] else None
                cell.outputs = from_dict(report_outputs(judged, notes))
        facts["verdict"] = fingerprint(notebook, facts["problem"], facts["notes"], result)
        facts["why_open"] = why
        return notebook, resources

    def _result(self, exercise: str, text: str) -> dict:
        here = Path(self.parent.parent.coursedir.root)
        wanted = Text(Folder(Path(self.course, "exercises", exercise)), text, hidden_cases(here))
        results = Results(here / "results")
        if self.judge_missing and results.is_missing(wanted, gpu_here()):
            results.folder.mkdir(exist_ok=True)
            results.store(wanted, judge(wanted, self.isolation))
        return results.find(wanted) or {"fault": "there is no result yet", "tests": []}


class ShowScores(GetGrades):
    """Adds nbgrader's scores to the feedback page. An item is open only until the judge or a person has scored it.

    Where a person has changed its points, the page says so: the judge's report tells other ones.
    """

    def preprocess_cell(self, cell, resources, cell_index):
        cell, resources = super().preprocess_cell(cell, resources, cell_index)
        if is_grade(cell):
            grade = self.gradebook.find_grade(
                cell.metadata.nbgrader.grade_id, self.notebook_id, self.assignment_id, self.student_id
            )
            cell.metadata["course"]["open"] = grade.auto_score is None and grade.manual_score is None
            cell.metadata["course"]["by_hand"] = grade.manual_score not in (None, grade.auto_score)
        return cell, resources


class SaveScores(SaveAutoGrades):
    """Writes into the gradebook the scores that PutInVerdict has put into the cells' metadata.

    nbgrader's own SaveAutoGrades reads outputs, and takes a missing output for full marks.
    """

    def _add_score(self, cell, resources):
        grade = self.gradebook.find_grade(
            cell.metadata.nbgrader.grade_id, self.notebook_id, self.assignment_id, self.student_id
        )
        score = cell.metadata["course"]["score"]
        if score is not None and not 0 <= score <= cell.metadata.nbgrader.points:  # nan too
            raise ValueError(f"{score} of {cell.metadata.nbgrader.points} points")
        grade.auto_score = score
        grade.needs_manual_grade = score is None or grade.manual_score is not None
        self.gradebook.db.commit()


def fingerprint(notebook: NotebookNode, problem: str, notes: list[str], result: dict | None) -> str:
    """Returns 32 hex digits that change when an autograded notebook is out of date.

    They cover the points of the grade cells and the other arguments; nothing else in `notebook` matters.
    """
    content = json.dumps([_points(notebook), problem, notes, result], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()[:32]


def _items(result: dict | None, notebook: NotebookNode, problem: str) -> tuple[dict[str, Item], str]:
    """Returns the judged items by name, and "".

    If nothing can be graded, returns no items, and the reason: a problem of the hand-in, a fault, or points that differ
    between the notebook and the tests.
    """
    if problem or result is None or result["fault"]:
        return {}, problem or "a fault of the machine that judges, not of yours; it will be judged again"
    items = items_of(result, without(notebook))
    if out_of_step(notebook, items):
        return {}, "notebook and tests differ in points; your instructor is told"
    return items, ""


def without(notebook: NotebookNode) -> tuple[str, ...]:
    """Returns the items that do not count in this class: speed, unless the notebook has a cell for it."""
    return () if SPEED in _points(notebook) else (SPEED,)


def out_of_step(notebook: NotebookNode, items: dict[str, Item]) -> str:
    """Returns a text on how the points of the notebook and of the tests differ; "" where they agree."""
    wanted, judged = _points(notebook), {name: item.possible for name, item in items.items()}
    return "" if wanted == judged else f"the notebook has {_shown(wanted)}; the tests have {_shown(judged)}"


def _points(notebook: NotebookNode) -> dict[str, float]:
    return {c.metadata.nbgrader.grade_id: float(c.metadata.nbgrader.points) for c in notebook.cells if is_grade(c)}


def _shown(points: dict[str, float]) -> str:
    return ", ".join(f"{name} {worth:g}" for name, worth in points.items())
