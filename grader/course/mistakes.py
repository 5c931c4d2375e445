"""The mistakes of an exercise that have a sentence of their own: each is a change to the solution.

solutions/NN_name/mistakes.toml states them among the mutants (grader/author/mutants.py), and nothing states them again:
the judge carries the changed solution out on a call that went wrong, and says the sentence of a mistake that gives the
same numbers as the submission.

    [eps_outside]
    wrong = "eps is added to the root, not to the variance."
    finding = "eps-outside"
    says = "eps is added outside of the root: it belongs under it, 1 / sqrt(variance + eps)."
    changes = [["tl.sqrt(var + eps)", "(tl.sqrt(var) + eps)"]]

says: what a learner reads. A field, {N} or {cdiv(N, BLOCK_N)}, is made of numbers that the changed solution's launches
    were given, by the names of the parameters; {name} is the result that is wrong, {dtype} the dtype of the call.
finding: the cause; more may follow that a proof also accepts.
loses: "digits" where the formula stays right; "range" where numbers get too large or too small on the way, so that an
    exact run may be right or wrong.
plain: true where the sentence itself says what to change, so that no hint has to.
astray: true where the mistake leads outside of a tensor, or two programs to one place.

A mistake that is no change to the solution has a file, solutions/NN_name/mistakes/NAME.py, whose docstring may end with
"Says: ..." in the same way.

Beside the tables the file may state `lost_digits`, advice where digits are lost and nothing else is known, and `alone`,
the cause of a result that is wrong alone and that nothing explains.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field

from grader.course.changed_text import changed
from grader.course.folder import Folder
from grader.sentences import StatedSentence

ADVICE = ("lost_digits", "alone")
OPERATORS = "operators"  # the table of the places where the change of an operator is no mistake, each with the reason
IN_DOCSTRING = re.compile(
    r"Wrong: (?P<wrong>.*) Finding: (?P<finding>\S+) (?:Rejected with: (?P<sentence>.*)|Says: (?P<says>.*))"
)


@dataclass(frozen=True)
class Mistake:
    """A mistake, and what is said of a kernel that computes the same. `text`: the changed solution."""

    name: str
    cause: str
    says: StatedSentence
    text: str
    loses: str = ""
    astray: bool = False


@dataclass(frozen=True)
class Advice:
    """An exercise gives this advice where nothing is known but that digits are lost, and states the causes of results
    that are wrong alone."""

    lost_digits: StatedSentence | None = None
    alone: dict[str, str] = field(default_factory=dict)  # by the result's name


def tables(folder: Folder) -> dict[str, dict]:
    """Returns the mistakes as the file states them, by name; none where the course has no such file. Raises OSError,
    TOMLDecodeError."""
    return {name: table for name, table in _stated(folder).items() if name not in (*ADVICE, OPERATORS)}


def advice_of(folder: Folder) -> Advice:
    """Returns the file's advice. Raises OSError, TOMLDecodeError."""
    stated = _stated(folder)
    text = stated.get("lost_digits")
    return Advice(StatedSentence("mistakes.lost-digits", text) if text else None, stated.get("alone", {}))


def exceptions_of(folder: Folder) -> dict[str, str]:
    """Returns why the mutants of these names, which an operator would make, are no mistakes here. Raises OSError,
    TOMLDecodeError."""
    return _stated(folder).get(OPERATORS, {})


def _stated(folder: Folder) -> dict:
    if not folder.mistakes_file.exists():
        return {}
    return tomllib.loads(folder.mistakes_file.read_text(encoding="utf-8"))


def mistakes_of(folder: Folder) -> Iterator[Mistake]:
    """Yields the mistakes of an exercise that have a sentence, in their order. Raises OSError, TOMLDecodeError,
    BadChange.

    Mistakes with one sentence are several ways of one: the sentence is called after the first.
    """
    stated = _with_a_sentence(folder)
    solution = folder.solution_file.read_text(encoding="utf-8") if stated else ""
    first: dict[str, StatedSentence] = {}
    for name, table in stated.items():
        says = first.setdefault(table["says"], StatedSentence(f"mistakes.{name.replace('_', '-')}", table["says"]))
        text = table["text"] if "text" in table else changed(solution, table["changes"])
        loses = table.get("loses", "")
        yield Mistake(name, _cause(table), says, text, loses, table.get("astray", False))


def causes_of(folder: Folder, loses: str | None = None) -> frozenset[str]:
    """Returns the ids of the causes that are this exercise's own; `loses`: of those that lose "digits" or "range"."""
    stated = _with_a_sentence(folder).values()
    causes = {_cause(table) for table in stated if loses is None or table.get("loses", "") == loses}
    return frozenset(causes | (set(advice_of(folder).alone.values()) if loses is None else set()))


def causes_that_hints_help_with(folder: Folder) -> frozenset[str]:
    """Returns the ids of the exercise's own causes whose sentences do not say by themselves what to change."""
    plain = {_cause(table) for table in _with_a_sentence(folder).values() if table.get("plain")}
    return causes_of(folder) - plain


def pattern_of(says: str) -> str:
    """Returns the sentence with " ... " for each word that holds a field, as mutants state what a message holds."""
    words = ["..." if "{" in word else word for word in re.sub(r"\{[^{}]*\}", "{}", says).split()]
    return re.sub(r"\.\.\.(?: \.\.\.)+", "...", " ".join(words)).strip(". ")


def in_docstring(text: str) -> dict[str, str] | None:
    """Returns what the docstring of a file of a mistake states: wrong, finding, and sentence or says; None where it
    states something else."""
    docstring = " ".join((ast.get_docstring(ast.parse(text)) or "").split())
    stated = IN_DOCSTRING.fullmatch(docstring)
    return {name: value for name, value in stated.groupdict().items() if value is not None} if stated else None


def all_stated(folder: Folder) -> dict[str, dict]:
    """Returns what the exercise states of each of its mistakes, tables and files alike, by name; "text": the kernel, of
    those that have a file. Raises OSError, TOMLDecodeError."""
    stated = dict(tables(folder))
    for path in sorted(folder.mistakes_folder.glob("*.py")):
        text = path.read_text(encoding="utf-8")
        stated[path.stem] = (in_docstring(text) or {}) | {"text": text}
    return stated


def _with_a_sentence(folder: Folder) -> dict[str, dict]:
    return {name: table for name, table in all_stated(folder).items() if "says" in table}


def _cause(table: dict) -> str:
    return table["finding"].split()[0]
