"""nbgrader as gradebook and web interface only: verdicts of the judge are put in, no code of a student runs in it.

`configure`, called from a class's nbgrader_config.py, replaces the two phases of `nbgrader autograde`:

    sanitize    HandInExporter   reads a hand-in as data and builds the notebook anew from the released one, with
                                 the student's text in the solution cell. What else was handed in is never looked at.
    autograde   PutInVerdict     finds the judge's result for this text, or asks the judge, and gives each grade cell
                                 its lines and score
                SaveScores       writes the scores into the gradebook; an open item gets none

Gradebook, formgrader, late penalties, manual scores, feedback and export go on as they are.
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

from grader.classroom.handin import HandIn, filled, read_hand_in, solution_text
from grader.classroom.judging import judge
from grader.classroom.names import CHECK_CELL
from grader.classroom.outputs import item_outputs, report_outputs
from grader.classroom.results import Results, Text
from grader.classroom.rubric import SPEED, Item, items_of
from grader.course.folder import Folder
from grader.course.regions import STUB
from grader.gpu.models import gpu_here
from grader.processes.bubblewrap import AUTO

TEMPLATES = Path(__file__).with_name("templates")


def configure(config, file: str, course: str) -> None:
    """The whole difference between a stock nbgrader course and ours. `file`: the configuration that calls this."""
    warnings.filterwarnings("ignore", category=SAWarning, module="nbgrader")  # its own, on every autograde
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
    config.GenerateFeedback.preprocessors = [Scores]
    config.GenerateFeedback.post_convert_hook = complete_feedback
    config.FeedbackExporter.template_name = "course_feedback"
    config.FeedbackExporter.extra_template_basedirs = [str(TEMPLATES)]
    config.ExportApp.plugin_class = "grader.classroom.exports.Grades"


def hidden_cases(class_folder: Path) -> Path | None:
    folder = class_folder / "hidden"
    return folder if any(folder.glob("*.toml")) else None


class HandInExporter(NotebookExporter):
    """Reads a submitted file as data, whatever it holds, and gives a notebook of ours."""

    def from_filename(self, filename, resources=None, **kw):
        coursedir, names = self.parent.coursedir, resources["nbgrader"]
        folder = Path(coursedir.format_path(coursedir.submitted_directory, names["student"], names["assignment"]))
        if Path(filename).parent.resolve() != folder.resolve():
            return super().from_filename(filename, resources=resources, **kw)
        released = read_released(coursedir, names["assignment"], names["notebook"])
        siblings = tuple(path.stem for path in released_notebooks(coursedir, names["assignment"]))
        hand_in = read_hand_in(folder, names["notebook"], solution_text(released), siblings)
        return self.from_notebook_node(rebuilt(released, hand_in), resources=resources, **kw)


class FeedbackExporter(HTMLExporter):
    """HTMLExporter under a name of its own, so that its template is set for feedback and not for the formgrader."""


def complete_feedback(assignment: str, student: str, notebooks: list[str]) -> None:
    """nbgrader release_feedback stops at the first hand-in that came by another way than nbgrader submit."""
    autograded = Path(notebooks[0]).parent
    folder = autograded.parents[2] / "feedback" / autograded.parent.name / autograded.name
    for name, content in (("submission_secret.txt", secrets.token_hex(32)), ("timestamp.txt", "")):
        if folder.is_dir() and not (folder / name).exists():
            (folder / name).write_text(content)


def released_notebooks(coursedir, assignment: str) -> list[Path]:
    return sorted(Path(coursedir.format_path(coursedir.release_directory, ".", assignment)).glob("*.ipynb"))


def read_released(coursedir, assignment: str, notebook: str) -> NotebookNode:
    path = Path(coursedir.format_path(coursedir.release_directory, ".", assignment), f"{notebook}.ipynb")
    if not path.exists():
        raise FileNotFoundError(f"{path} is not there. Next: nbgrader generate_assignment {assignment}")
    return nbformat.read(path, as_version=4)


def rebuilt(released: NotebookNode, hand_in: HandIn) -> NotebookNode:
    notebook = released if hand_in.text is None else filled(released, hand_in.text)
    notebook.metadata["course"] |= {"problem": hand_in.problem, "notes": hand_in.notes}
    return notebook


class PutInVerdict(NbGraderPreprocessor):
    """Gives the check cell and the grade cells their outputs, and notes each item's score for SaveScores."""

    course = Unicode(help="the folder of the course: exercises/, solutions/").tag(config=True)
    isolation = Unicode(AUTO, help="limits, auto or strict: how a submission is shut in").tag(config=True)
    judge_missing = Bool(True, help="whether to judge a text that has no result yet").tag(config=True)

    def preprocess(self, notebook, resources):
        facts = notebook.metadata["course"]
        result = None if facts["problem"] else self._result(facts["exercise"], solution_text(notebook))
        items, why = _items(result, notebook, facts["problem"])
        notes = [*facts["notes"], *([f"Not graded yet: {why}."] if why else [])]
        for cell in notebook.cells:
            if is_grade(cell):
                item = items.get(cell.metadata.nbgrader.grade_id)
                open_because = why or (item.open[0] if item.open else "")
                cell.outputs = from_dict(item_outputs(item, open_because))
                cell.metadata["course"] = {"score": None if open_because else item.score, "open": open_because}
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
        if self.judge_missing and results.is_missing(wanted, bool(gpu_here())):
            results.folder.mkdir(exist_ok=True)
            results.store(wanted, judge(wanted, self.isolation))
        return results.find(wanted) or {"fault": "there is no result yet", "tests": []}


class Scores(GetGrades):
    """nbgrader's scores for the feedback page; an item stays open only while no person has scored it either."""

    def preprocess_cell(self, cell, resources, cell_index):
        cell, resources = super().preprocess_cell(cell, resources, cell_index)
        if is_grade(cell):
            grade = self.gradebook.find_grade(
                cell.metadata.nbgrader.grade_id, self.notebook_id, self.assignment_id, self.student_id
            )
            cell.metadata["course"]["open"] = grade.auto_score is None and grade.manual_score is None
        return cell, resources


class SaveScores(SaveAutoGrades):
    """Writes what PutInVerdict noted; nbgrader's own way reads outputs, and takes a missing one for full marks."""

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
    """Changes when an autograded notebook is out of date. Of `notebook` only the points of its cells matter."""
    content = json.dumps([_points(notebook), problem, notes, result], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()[:32]


def _items(result: dict | None, notebook: NotebookNode, problem: str) -> tuple[dict[str, Item], str]:
    """(the judged items, why nothing can be graded). Points of notebook and tests must agree."""
    if problem or result["fault"]:
        return {}, problem or "a fault of the machine that judges, not of yours; it will be judged again"
    items = items_of(result, without(notebook))
    if out_of_step(notebook, items):
        return {}, "notebook and tests differ in points; your instructor is told"
    return items, ""


def without(notebook: NotebookNode) -> tuple[str, ...]:
    """Items that do not count in this class: speed, unless the notebook has a cell for it."""
    return () if SPEED in _points(notebook) else (SPEED,)


def out_of_step(notebook: NotebookNode, items: dict[str, Item]) -> str:
    """How the points of a notebook's cells and those of the tests differ; "" where they agree."""
    wanted, judged = _points(notebook), {name: item.possible for name, item in items.items()}
    return "" if wanted == judged else f"the notebook has {_shown(wanted)}; the tests have {_shown(judged)}"


def _points(notebook: NotebookNode) -> dict[str, float]:
    return {c.metadata.nbgrader.grade_id: float(c.metadata.nbgrader.points) for c in notebook.cells if is_grade(c)}


def _shown(points: dict[str, float]) -> str:
    return ", ".join(f"{name} {worth:g}" for name, worth in points.items())
