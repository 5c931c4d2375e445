'''Mutants: wrong submissions. Each is stated as changes to the solution or, if it is built otherwise, as a file.

solutions/NN_name/mistakes.toml, one table for each:

    [no_mask]
    wrong = "the last block reads and writes past the end"
    finding = "oob-load"
    sentence = "The load in line 14 has no mask ... element 3000 of x"
    changes = [["x_ptr + cols, mask=mask", "x_ptr + cols"]]

`changes`: pairs of old and new text. Each old text occurs exactly once in the solution, so that no mutant drifts away
from the code that it spoils. `finding`: the id of the cause that rejects it, or several ids if that depends on drawn
data. `sentence`: a part of the message that a learner then reads; " ... " in it stands for any text, and " | "
separates alternatives. A mistake with a sentence of its own states it instead, as `says`, with further fields
(grader/course/mistakes.py). The docstring of solutions/NN_name/mistakes/NAME.py says the same:

    """Wrong: the last block reads and writes past the end.

    Finding: oob-load

    Rejected with: The load in line 14 has no mask ... element 3000 of x
    """

What any kernel can get wrong is not stated: operators make these mutants (grader/author/operators.py).
'''

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from grader.author.operators import changed_solutions
from grader.course import mistakes
from grader.course.changed_text import BadChange, changed
from grader.course.folder import Folder
from grader.explain.causes import Cause

FIELDS = {"wrong": str, "finding": str, "changes": list}
MORE_FIELDS = {"sentence": str, "says": str, "loses": str, "plain": bool, "astray": bool}


class BadMutant(Exception):
    """A mutant that is not stated as it has to be; the message says where and why."""


@dataclass(frozen=True)
class Mutant:
    """A mutant. `path`: the file that states it; `text`: the whole submission. `by_operator`: an operator made it."""

    path: Path
    name: str
    wrong: str
    finding: str
    sentence: str
    text: str
    by_operator: bool = False


def mutants_of(folder: Folder) -> Iterator[Mutant]:
    """Yields the mutants of an exercise: the mutants stated as changes, then the files, then those that operators make.
    Raises BadMutant."""
    stated = list(_stated(folder))  # raises for a file that cannot be read
    stated += [_in_file(path) for path in sorted(folder.mistakes_folder.glob("*.py"))]
    causes = mistakes.causes_of(folder)
    for mutant in stated:
        for unknown in sorted({*mutant.finding.split()} - {*Cause} - causes):
            raise BadMutant(f"{mutant.path.name}: {mutant.name} expects the finding {unknown}, which there is not.")
        yield mutant
    yield from _by_operators(folder, {mutant.name for mutant in stated})


def mutant_of(folder: Folder, name: str) -> Mutant:
    """Returns the mutant with this name. Raises KeyError where there is none, and BadMutant."""
    for mutant in mutants_of(folder):
        if mutant.name == name:
            return mutant
    raise KeyError(f"{folder.id} has no mutant {name}")


def _stated(folder: Folder) -> Iterator[Mutant]:
    path = folder.mistakes_file
    if not path.exists():
        return
    shown = path.relative_to(folder.root)
    solution = folder.solution_file.read_text(encoding="utf-8")
    try:
        tables = mistakes.tables(folder)
    except tomllib.TOMLDecodeError as error:
        raise BadMutant(f"{shown}: {error}") from None
    for name, table in tables.items():
        where = f"{shown}: the mutant {name}"
        given = {field: type(value) for field, value in table.items()} if isinstance(table, dict) else {}
        fits = FIELDS.items() <= given.items() <= (FIELDS | MORE_FIELDS).items()
        if not fits or given.keys().isdisjoint(("sentence", "says")):
            raise BadMutant(f"{where} has to state {', '.join(FIELDS)}, and sentence or says.")
        if table.get("loses", "") not in ("", "digits", "range"):
            raise BadMutant(f"{where} loses {table['loses']!r}; it may be digits or range.")
        try:
            text = changed(solution, table["changes"])
        except BadChange as error:
            raise BadMutant(f"{where}: {error}") from None
        yield _mutant(path, name, table, text)


def _by_operators(folder: Folder, stated: set[str]) -> Iterator[Mutant]:
    if not folder.mistakes_file.exists():
        return
    exceptions = mistakes.exceptions_of(folder)
    made = list(changed_solutions(folder.solution_file.read_text(encoding="utf-8")))
    if unknown := sorted(exceptions.keys() - {name for name, *_ in made}):
        raise BadMutant(f"{folder.mistakes_file.name}: [operators] names {unknown[0]}, and no operator makes it.")
    for name, operator, text in made:
        if name not in stated and name not in exceptions:
            finding, sentence = operator.finding, operator.sentence
            yield Mutant(folder.mistakes_file, name, operator.wrong, finding, sentence, text, by_operator=True)


def _in_file(path: Path) -> Mutant:
    text = path.read_text(encoding="utf-8")
    stated = mistakes.in_docstring(text)
    if stated is None:
        raise BadMutant(
            f"{path}: its docstring has to say 'Wrong: ...', 'Finding: ...', 'Rejected with: ...' or 'Says: ...'."
        )
    return _mutant(path, path.stem, stated, text)


def _mutant(path: Path, name: str, stated: dict, text: str) -> Mutant:
    sentence = stated.get("sentence") or mistakes.pattern_of(stated["says"])
    return Mutant(path, name, stated["wrong"], stated["finding"], sentence, text)
