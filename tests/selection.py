"""`pytest --since-record`: leaves out test files that cannot see what has changed since the last whole proof.

A test file sees a change where its text names it, or reads the course at large. The text of a test file is the file and
what it reaches by name: definitions of modules below tests/, and of conftest.py files above it. Wherever that cannot be
told, and wherever something else than exercises and pages has changed, every test file stays.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from grader.author.git import NoRevision
from grader.author.record import NoRecord, record_of
from grader.author.touched import Change, MoreChanged, change_of_exercises

DATA = {"accepted", "cheats", "gates", "mutants"}  # below tests/: submissions, not tests
RULE = "tests/selection.py"  # conftest.py reaches this file, whose words are those of the rule
WORD = re.compile(r"[A-Za-z_]\w*")
WHOLE = ""  # for the name of a definition: the whole module
# What Python or pytest looks at when it loads a module, whatever reaches it.
ALWAYS = re.compile(r"pytest\w*|collect_ignore\w*")

# By these a test reads exercises that it does not name. Commands take every exercise where none is named, or find the
# exercise at hand; the functions of the grader do so too, and no text of a test shows it.
READS_EXERCISES = re.compile(
    r"\b(all_folders|all_lessons|path_of|chosen|current_exercise|next_exercise|exercise_at_hand|examine|"
    r"run_course|CliRunner|grader\.cli|read_submissions|grade_folder|grade_class)\b"
)
# What copies or installs the course; and whose text stands in docs/ too.
READS_FILES = re.compile(r"\b(copytree|hatchling|self_study\w*|laid_down|notebook_setup|own_folder)\b")
LISTS = {"glob", "rglob", "iterdir", "walk", "listdir", "scandir"}
# Names of temporary folders: what lists one of them lists nothing of the course. Of another name it is not known.
TEMPORARY = {"tmp_path", "temporary", "home", "elsewhere", "classroom", "results", "killed", "site"}
IN_PROC = re.compile(r"(Path\()?f?'/proc\b")
# What the rule takes for a look at the course and is none: it lists a folder that its caller has made.
LISTS_ITS_OWN = {
    "tests/child/test_landlock.py": "folders of a child's, made for the test",
    "tests/child/test_reading.py": "what a submission may read, told by its own text",
    "tests/classroom/submission_folder.py": "the folder with the verdicts, which the command has written",
    "tests/classroom/test_intake.py": "unpacked archives",
    "tests/compiler/test_hostile_texts.py": "the compiler's scratch folder",
    "tests/processes/test_sandbox.py": "what a submission lists in its sandbox",
    "tests/processes/test_scratch.py": "scratch folders",
    "tests/test_files.py": "folders of files written for the test",
    "tests/waiting.py": "a folder in which an event is waited for",
}


@dataclass(frozen=True)
class Selection:
    """`kept`: the test files that stay, None where all do; `told`: one line that says how many, and why."""

    kept: frozenset[Path] | None
    told: str

    def leaves_out(self, path: Path) -> bool:
        return (
            self.kept is not None and path.name.startswith("test_") and path.suffix == ".py" and path not in self.kept
        )


def selection_of(root: Path) -> Selection:
    """Returns what to run in the course at `root`."""
    try:
        revision = record_of(root, _releases_of_tox(root)).commit
        change = change_of_exercises(root, revision)
        texts = Texts(root)
        kept = frozenset(path for path in texts.test_files if sees(texts.of(path), change))
    except (NoRecord, NoRevision, MoreChanged, OSError, SyntaxError, UnicodeDecodeError) as why:
        return Selection(None, f"all test files: {why}")
    what = ", ".join([*sorted(change.ids), *sorted(change.operations), *change.pages]) or "nothing"
    return Selection(
        kept, f"since {revision[:7]} only {what} changed: {len(kept)} of {len(texts.test_files)} test files"
    )


def _releases_of_tox(root: Path) -> list[str]:
    """Of Triton: those that CI tests at every commit, as it has tested the one that is recorded."""
    return re.findall(r"triton==([\d.]+)", (root / "tox.ini").read_text(encoding="utf-8"))


def sees(text: list[Text], change: Change) -> bool:
    """Returns whether a test file with this text can see the change."""
    words = [_exercise(id) for id in change.ids] + [rf"\b{re.escape(name)}\b" for name in change.operations]
    words += [_page(path) for path in change.pages]
    named = re.compile("|".join(words)) if words else None
    of_exercises = bool(change.ids or change.operations)
    return any(
        (named is not None and named.search(part.source))
        or READS_FILES.search(part.source)
        or part.lists_files
        or (of_exercises and READS_EXERCISES.search(part.source))
        for part in text
    )


def _exercise(id: str) -> str:
    """By its number, its name, or both: 03, softmax, 03_softmax."""
    return rf"(?<![\w.]){id[:2]}(?![^\W_]|\.\d)|{id}|\b{id[3:]}\b"


def _page(path: str) -> str:
    """By its folder, or its file."""
    name = path.rpartition("/")[2].removesuffix(".json")
    return rf"\bdocs\b|\b{re.escape(name)}\b" if path.startswith("docs/") else rf"\b{re.escape(name)}\b"


@dataclass(frozen=True)
class Text:
    """A part of a module: what is defined there, or what runs when it is imported."""

    path: str
    source: str

    @cached_property
    def words(self) -> set[str]:
        return set(WORD.findall(self.source))

    @cached_property
    def lists_files(self) -> bool:
        if self.path in LISTS_ITS_OWN or not LISTS & self.words:
            return False
        return any(_lists(call) for call in ast.walk(ast.parse(self.source)) if isinstance(call, ast.Call))


def _lists(call: ast.Call) -> bool:
    """Returns whether the call lists a folder that is none of TEMPORARY, and not in /proc."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if name not in LISTS or ast.unparse(call.func) == "ast.walk":
        return False
    of_os = not isinstance(call.func, ast.Attribute) or ast.unparse(call.func.value) == "os"
    listed = call.args[0] if of_os and call.args else call.func
    return not IN_PROC.match(ast.unparse(listed)) and _root(listed) not in TEMPORARY


def _root(node: ast.expr) -> str:
    """The name that an expression begins with: tmp_path, of (tmp_path / "a").glob."""
    while not isinstance(node, ast.Name):
        inner = getattr(node, "value", None) or getattr(node, "left", None) or getattr(node, "func", None)
        if not isinstance(inner, ast.expr):
            return ""
        node = inner
    return node.id


class Module:
    """A module below tests/, taken apart."""

    def __init__(self, path: Path, name: str) -> None:
        source = "" if name == RULE else path.read_text(encoding="utf-8")
        self.whole = Text(name, source)
        self.imported: dict[str, tuple[str, str]] = {}
        self.defined: dict[str, list[Text]] = {}
        self.always: list[Text] = []
        lines, tree = source.splitlines(), ast.parse(source)
        for node in ast.walk(tree):
            self._import(node)
        for node in tree.body:
            first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", ()))])
            self._add(node, Text(name, "\n".join(lines[first - 1 : node.end_lineno])))

    def _import(self, node: ast.AST) -> None:
        """Raises MoreChanged for an import that the rule cannot follow."""
        if isinstance(node, ast.Import) and any(each.name.partition(".")[0] == "tests" for each in node.names):
            raise MoreChanged(f"{self.whole.path} imports a module of the tests as a whole.")
        if not isinstance(node, ast.ImportFrom) or not (node.level or str(node.module).partition(".")[0] == "tests"):
            return
        if node.level or any(each.name == "*" for each in node.names):
            raise MoreChanged(f"{self.whole.path} imports what it does not name.")
        self.imported |= {each.asname or each.name: (str(node.module), each.name) for each in node.names}

    def _add(self, node: ast.stmt, text: Text) -> None:
        names = [name for name in _names(node) if name not in self.imported]
        if not names and isinstance(node, ast.ImportFrom):
            return
        for name in names:
            self.defined.setdefault(name, []).append(text)
        if not names or any(map(ALWAYS.fullmatch, names)) or "autouse" in text.words:
            self.always.append(text)


def _names(node: ast.stmt) -> Iterator[str]:
    """What a statement defines and does not otherwise do."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.Import | ast.ImportFrom):
        yield from ((each.asname or each.name).partition(".")[0] for each in node.names)
    elif isinstance(node, ast.Assign) and all(isinstance(target, ast.Name) for target in node.targets):
        yield from (target.id for target in node.targets if isinstance(target, ast.Name))
    elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        yield node.target.id


class Texts:
    """The modules below tests/ of the course at `root`, and which text each test file has."""

    def __init__(self, root: Path) -> None:
        tests = root / "tests"
        paths = [path for path in sorted(tests.rglob("*.py")) if path.relative_to(tests).parts[0] not in DATA]
        self.modules = {path: Module(path, path.relative_to(root).as_posix()) for path in paths}
        self.test_files = [path for path in paths if path.name.startswith("test_")]
        self._root = root
        self._helpers = {path.name: path for path in paths if not path.name.startswith(("test_", "conftest"))}

    def of(self, test_file: Path) -> list[Text]:
        """Returns the file and all that it reaches, of other modules part by part."""
        above = [path for folder in test_file.parents if (path := folder / "conftest.py") in self.modules]
        found: dict[tuple[Path, str], list[Text]] = {}
        todo = [(test_file, WHOLE), *((path, "pytest") for path in above)]
        while todo:
            path, name = todo.pop()
            if (path, name) in found:
                continue
            module = self.modules[path]
            found[path, name] = [module.whole] if name == WHOLE else [*module.defined.get(name, []), *module.always]
            if name in module.imported:
                todo.append(self._imported(*module.imported[name]))
            for text in found[path, name]:
                todo += self._named(text, [path, *above])
        return [text for texts in found.values() for text in texts]

    def _named(self, text: Text, where: list[Path]) -> Iterator[tuple[Path, str]]:
        for path in where:
            module = self.modules[path]
            yield from ((path, word) for word in text.words & (module.defined.keys() | module.imported.keys()))
        yield from ((path, WHOLE) for name, path in self._helpers.items() if name in text.source)

    def _imported(self, module: str, name: str) -> tuple[Path, str]:
        """Returns the definition; all of a module that is imported as such. Raises MoreChanged where there is none."""
        for dotted, defined in ((f"{module}.{name}", WHOLE), (module, name)):
            if (path := self._root / f"{dotted.replace('.', '/')}.py") in self.modules:
                return path, defined
        raise MoreChanged(f"{module} is not among the tests.")
