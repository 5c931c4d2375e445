"""`course notebooks`: a class's folder for nbgrader, with source notebooks, a configuration and a README."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import nbformat

from grader.classroom.nbgrader.bridge import hidden_cases
from grader.classroom.nbgrader.source_notebook import notebook_of
from grader.classroom.rubric import SPEED, points_of
from grader.course.folder import Folder
from grader.files import write_whole

CONFIG = """\
# nbgrader's configuration of this class. Everything that nbgrader documents may be added below.
from grader.classroom.nbgrader.bridge import configure

c = get_config()  # noqa: F821

c.CourseDirectory.course_id = "triton"
c.Exchange.root = {exchange!r}  # students' nbgrader needs the same; on JupyterHub: its exchange
{database}
# Hand-ins are judged by the course's grader instead of being executed.
configure(c, __file__, course={course!r})

# Late hand-ins: c.AssignLatePenalties.plugin_class, or
# c.LateSubmissionPlugin.penalty_method = "zero"
"""

README = """\
# A class, for nbgrader

Made by `course notebooks`. Private: `source/` holds the solutions.

```
nbgrader generate_assignment {first}         source/ -> release/, without solutions
nbgrader release_assignment {first}          -> {exchange}, or upload release/{first}/ where your students are
nbgrader collect {first}                     -> submitted/STUDENT/{first}/
course grade                                 judges all hand-ins, fills nbgrader's gradebook
course grade --from export.zip               the same for a learning platform's zip of .py files or notebooks
nbgrader generate_feedback {first}           feedback/STUDENT/{first}/*.html
nbgrader release_feedback {first}
nbgrader export                              grades.csv
```

| here | what |
| --- | --- |
| `nbgrader_config.py` | this class's settings; never overwritten |
| `source/` | notebooks with solutions, written by `course notebooks`: run it again after a change of the course |
| `release/` | what students get |
| `submitted/` | what they handed in: `STUDENT/ASSIGNMENT/NAME.ipynb` or `NAME.py` |
| `submitted/STUDENT/*.sent.json` | what an export said of a hand-in: who is in the group, what was not taken |
| `results/` | the judge's results by text, with the judged text next to each; delete one to have it judged again |
| `hidden/` | your hidden cases, `NN_name.toml`; make it before `course notebooks` |
| `gradebook.db`, `autograded/`, `feedback/` | nbgrader's |

The whole way, with what each command prints: classroom.md in the course, {course}
"""


@dataclass(frozen=True)
class Class:
    """The arguments of `course notebooks` for a class.

    `assignment`: a single assignment for all exercises, or None for an assignment per exercise. `speed`: whether speed
    counts. `db`: the URL of nbgrader's gradebook; "" for a file in the class's folder.
    """

    assignment: str | None = None
    speed: bool = False
    db: str = ""


def write(out: Path, folders: list[Folder], wanted: Class, say: Callable[[str], None]) -> None:
    """Writes the source notebooks; the configuration and the README only where there are none.

    `say` gets the points of each notebook, and the next command.
    """
    out.mkdir(mode=0o700, parents=True, exist_ok=True)  # it will hold solutions and grades
    points = _points(folders, out, wanted)
    for folder in folders:
        path = out / "source" / (wanted.assignment or folder.id) / f"{folder.name}.ipynb"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, nbformat.writes(notebook_of(folder, points[folder.id])) + "\n")
        worth = ", ".join(f"{item} {worth:g}" for item, worth in points[folder.id].items())
        say(f"{path}: {sum(points[folder.id].values()):g} points ({worth})")
    _write_once(out, folders, wanted)
    config, database = out / "nbgrader_config.py", _database(wanted.db)
    if database not in config.read_text(encoding="utf-8"):
        say(f"{config} was there already and is never overwritten. For the gradebook, add: {database.strip()}")
    name = wanted.assignment or folders[0].id
    say(f"Next: cd {out} && nbgrader generate_assignment {name}")


def counts_speed(out: Path) -> bool | None:
    """Returns whether the class in this folder counts what only a GPU can show; None where there is no class yet."""
    notebooks = [nbformat.read(path, as_version=4) for path in sorted(out.glob("source/*/*.ipynb"))]
    cells = [cell.metadata.get("nbgrader", {}).get("grade_id") for notebook in notebooks for cell in notebook.cells]
    return SPEED in cells if notebooks else None


def _points(folders: list[Folder], out: Path, wanted: Class) -> dict[str, dict[str, float]]:
    points = points_of(folders, hidden_cases(out))
    if wanted.speed:
        return points
    return {id: {item: worth for item, worth in items.items() if item != SPEED} for id, items in points.items()}


def _database(db: str) -> str:
    return f"c.CourseDirectory.db_url = {db!r}\n" if db else ""


def _write_once(out: Path, folders: list[Folder], wanted: Class) -> None:
    exchange = out.parent / f"{out.name}_exchange"
    words = {"exchange": str(exchange), "course": str(folders[0].root)}
    config, readme = out / "nbgrader_config.py", out / "README.md"
    if not config.exists():
        write_whole(config, CONFIG.format(**words, database=_database(wanted.db)))
        exchange.mkdir(exist_ok=True)
        exchange.chmod(0o777)  # nbgrader: anyone may hand in
    if not readme.exists():
        write_whole(readme, README.format(first=wanted.assignment or folders[0].id, **words))
