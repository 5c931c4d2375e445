"""Functions for the cells of a class's notebook: they judge the file that the notebook saved, and show its points.

Nothing here prints to stderr: nbgrader's own executor takes a single line there for a failure.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from grader.course.folder import Folder
from grader.learn.notebooks.cells import judged, say_not_there, show
from grader.places import COURSE

_results: dict[tuple[str, str], dict] = {}  # by exercise and text: grade cells share one run


def report(exercise: str) -> None:
    """Judges the saved file anew, prints what pytest would print, and shows the map of tiles as a picture."""
    result = _result(exercise, again=True)
    if result is None:
        return
    show(result)


def score(exercise: str, item: str) -> float | None:
    """Returns the points of one item, which the cell shows as its value, and prints the item's tests.

    None where the points are open: for hidden cases, and where a test could not be run here. 0.0 where there is no file
    to judge, or no item of this name; a printed sentence says so.
    """
    from grader.classroom.rubric import HIDDEN, items_of

    if item == HIDDEN:
        print("Hidden cases are judged after you hand in.")
        return None
    result = _result(exercise, again=False)
    if result is None:
        return 0.0
    found = items_of(result).get(item)
    if found is None:
        print(f"The tests of {exercise} have no item {item!r}: the notebook and the course do not fit together.")
        return 0.0
    print("\n".join(found.lines))
    if found.open:
        print(f"Not run here: {found.open[0].removesuffix('.')}. These points are still open.")
        return None
    return found.score


def _result(exercise: str, again: bool) -> dict | None:
    """Returns the judge's result for the file in the current folder.

    Prints a sentence and returns None where there is nothing to judge. `again`: judge the text even if it has a result.
    """
    folder = Folder(COURSE / "exercises" / exercise)
    if not folder.test_file.exists():
        say_not_there(folder)
        return None
    file = Path(f"{folder.name}.py")
    if not file.exists():
        print(f"There is no {file} yet. Run the solution cell first: it saves the file.")
        return None
    key = exercise, hashlib.sha256(file.read_bytes()).hexdigest()
    if again or key not in _results:
        _results[key] = judged(exercise, [folder.path, "--submission", file.resolve()])
    return _results[key]
