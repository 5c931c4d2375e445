"""What is said of failures stands in tables: calls fill in the fields of their sentence, and no sentence is unused."""

from __future__ import annotations

import ast
import functools
import importlib
import json
import string
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from grader.explain.causes import Cause
from grader.explain.verdict import failed
from grader.sentences import Said, Sentence, count_text
from tests.conftest import ROOT


class Example(Sentence):
    PLAIN = "Nothing is filled in: {{}}."
    COUNTED = "{count:#element} of {name}[{index:,}] in program {program}, {share:.3g} of {all}."
    TWICE = "{name} and {name}"


def said(**changed) -> Said:
    evidence = dict(count=2, name="x", index=[0, 3], program=(1,), share=2 / 3, all=0.01)
    return Example.COUNTED(**evidence | changed)


def test_evidence_is_formatted_by_the_template():
    assert said().text == "2 elements of x[0, 3] in program (1,), 0.667 of 0.01."
    assert said(count=1, index=(7,), program=(0, 2)).text == "1 element of x[7] in program (0, 2), 0.667 of 0.01."
    assert Example.PLAIN().text == "Nothing is filled in: {}."
    assert Example.TWICE(name="y").text == "y and y"


@pytest.mark.parametrize(
    ("count", "noun", "text"),
    [
        (0, "tile", "0 tiles"),
        (1, "tile", "1 tile"),
        (1, "axis", "1 axis"),
        (3, "bytes", "3 bytes"),
        (2, "process", "2 processes"),
    ],
)
def test_what_is_counted_is_one_or_several(count, noun, text):
    assert count_text(count, noun) == text


def test_what_a_verdict_says_is_one_line_that_steers_no_terminal():
    verdict = failed(Cause.GARBLED, Example.TWICE(name="x\x1b[31m\n  pass  all\u202e"))
    assert verdict.lines == ["x?[31m   pass  all? and x?[31m   pass  all?"]


def test_evidence_in_words_that_look_like_fields_stays():
    assert Example.TWICE(name="{name:,}").text == "{name:,} and {name:,}"


@pytest.mark.parametrize("evidence", [{}, {"name": "x", "count": 1}, {"names": "x"}])
def test_evidence_is_that_of_the_sentence(evidence):
    with pytest.raises(TypeError, match=r"example\.twice takes \['name'\]"):
        Example.TWICE(**evidence)


def test_a_sentence_and_its_evidence_are_stored():
    stored = json.loads(json.dumps(said().to_json()))
    evidence = {"count": 2, "name": "x", "index": [0, 3], "program": [1], "share": 2 / 3, "all": 0.01}
    assert stored == {"sentence": "example.counted", "evidence": evidence}
    assert said(share=float("inf"), index=[0, float("nan")]).to_json()["evidence"] == {
        **evidence, "program": [1], "share": "inf", "index": [0, "nan"],
    }  # fmt: skip
    assert Example.PLAIN.fields == frozenset() and Example.COUNTED.fields == evidence.keys()


# Tables of the grader, as they stand in its files


@dataclass(frozen=True)
class Source:
    """One file, and the tables that it knows by name."""

    path: Path
    tree: ast.Module
    tables: dict[str, type[Sentence]]

    def table(self, node: ast.expr) -> type[Sentence] | None:
        """Of `Table`, or `module.Table`."""
        if isinstance(node, ast.Name):
            return self.tables.get(node.id)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            return tables().get(node.attr)
        return None

    def members(self, node: ast.expr) -> list[tuple[type[Sentence], str]]:
        """Of `Table.MEMBER`, or of both in `Table.MEMBER if ... else Table.OTHER`."""
        if isinstance(node, ast.IfExp):
            return self.members(node.body) + self.members(node.orelse)
        if isinstance(node, ast.Attribute) and (table := self.table(node.value)):
            return [(table, node.attr)]
        return []

    def nodes(self) -> Iterator[ast.AST]:
        """All but what stands in a table: its own definition uses no sentence."""
        waiting = [self.tree]
        while waiting:
            node = waiting.pop()
            yield node
            waiting += [child for child in ast.iter_child_nodes(node) if not is_table(child)]

    def at(self, node: ast.AST) -> str:
        return f"{self.path.relative_to(ROOT)}:{node.lineno}"


def is_table(node: ast.AST) -> bool:
    return isinstance(node, ast.ClassDef) and any(ast.unparse(base) == "Sentence" for base in node.bases)


@functools.cache
def trees() -> dict[Path, ast.Module]:
    paths = sorted((ROOT / "grader").rglob("*.py"))
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in paths}


@functools.cache
def definitions() -> list[type[Sentence]]:
    return [
        getattr(importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts)), node.name)
        for path, tree in trees().items()
        for node in tree.body
        if is_table(node)
    ]


@functools.cache
def tables() -> dict[str, type[Sentence]]:
    return {table.__name__: table for table in definitions()}


@functools.cache
def sources() -> list[Source]:
    found = []
    for path, tree in trees().items():
        known = {node.name: node.name for node in tree.body if is_table(node)}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                known |= {one.asname or one.name: one.name for one in node.names if one.name in tables()}
        found.append(Source(path, tree, {name: tables()[table] for name, table in known.items()}))
    return found


def test_a_file_has_one_table_at_most_and_not_within_a_class_or_function():
    tables_of = {path: [node for node in ast.walk(tree) if is_table(node)] for path, tree in trees().items()}
    assert [path for path, found in tables_of.items() if len(found) > 1] == []
    assert sum(map(len, tables_of.values())) == len(definitions()) > 0


def test_no_two_tables_share_a_name_and_no_two_sentences_a_text():
    prefixes = Counter(next(iter(table)).id.partition(".")[0] for table in definitions())
    assert [prefix for prefix, count in prefixes.items() if count > 1] == []
    for table in definitions():
        same = {name: member.name for name, member in table.__members__.items() if name != member.name}
        assert len(table.__members__) == len(list(table)), f"{table.__name__}: {same}"


def test_fields_are_plain_names():
    for member in (member for table in definitions() for member in table):
        assert all(field.isidentifier() for field in member.fields), member.id
        assert "{" not in "".join(specification or "" for _, _, specification, _ in parsed(member)), member.id


def parsed(member: Sentence) -> list[tuple]:
    return list(string.Formatter().parse(member.value))


def test_every_call_gives_the_evidence_of_its_sentence():
    wrong, seen = [], 0
    for source in sources():
        for node in source.nodes():
            for table, name in source.members(node.func) if isinstance(node, ast.Call) else ():
                if name not in table.__members__:
                    continue  # test_every_sentence_that_is_named_is_there
                seen += 1
                given, fields = {keyword.arg for keyword in node.keywords}, table[name].fields
                fits = given - {None} <= fields if None in given else given == fields  # None: of **evidence
                if node.args or not fits:
                    wrong.append(
                        f"{source.at(node)}: {table[name].id} takes {sorted(fields)}, not {sorted(given - {None})}"
                    )
    assert seen and not wrong, "\n".join(wrong)


def test_every_sentence_that_is_named_is_there():
    missing = [
        f"{source.at(node)}: {table.__name__}.{name}"
        for source in sources()
        for node in source.nodes()
        for table, name in source.members(node)
        if not hasattr(table, name)
    ]
    assert missing == []


def test_every_sentence_is_used():
    used: set[Sentence] = set()
    for source in sources():
        for node in source.nodes():
            used |= {table.__members__[name] for table, name in source.members(node) if name in table.__members__}
            if isinstance(node, ast.Subscript):
                used |= set(source.table(node.value) or ())
            elif isinstance(node, ast.For | ast.comprehension):
                used |= set(source.table(node.iter) or ())
    assert [member.id for table in definitions() for member in table if member not in used] == []


# Whoever finds something says it in sentences of tables; the judge decides, and has no words of its own


def words_said(source: Source) -> list[ast.expr]:
    """Texts given to `failed(id, ...)` or to a hypothesis as a sentence, or put into a verdict's `said`."""
    return [text for said in said_in(source.tree) for text in texts_in(source, said)]


def words_of(source: Source) -> list[ast.expr]:
    """These, and whole sentences anywhere."""
    docstrings = {node.value for node in ast.walk(source.tree) if isinstance(node, ast.Expr)}
    whole = [text for text in texts_in(source, source.tree) if text not in docstrings and is_whole_sentence(text)]
    return list(dict.fromkeys(words_said(source) + whole))


def said_in(tree: ast.AST) -> Iterator[ast.expr]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            if called == "failed":
                yield from node.args[1:]
            elif called in ("Hypothesis", "supposed"):
                first = 1 if called == "Hypothesis" else 2  # after its id
                yield from node.args[first : first + 1]
            elif called.endswith((".said.insert", ".said.append", ".said.extend")):
                yield from node.args
            yield from (keyword.value for keyword in node.keywords if keyword.arg == "said")
        elif isinstance(node, ast.Assign | ast.AugAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(".said" in ast.unparse(target) for target in targets):
                yield node.value


def texts_in(source: Source, node: ast.AST) -> Iterator[ast.expr]:
    """What a sentence is called with is its evidence, and no text that is looked for; nor is what is compared."""
    if isinstance(node, ast.JoinedStr) or isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node
    elif not isinstance(node, ast.Compare) and not (isinstance(node, ast.Call) and source.members(node.func)):
        for child in ast.iter_child_nodes(node):
            yield from texts_in(source, child)


def is_whole_sentence(text: ast.expr) -> bool:
    parts = text.values if isinstance(text, ast.JoinedStr) else [text]
    last = parts[-1].value if parts and isinstance(parts[-1], ast.Constant) else ""
    return " " in ast.unparse(text) and last.endswith((".", "?", "!"))


def test_nothing_is_said_but_sentences_of_tables():
    found = [f"{source.at(text)}: {ast.unparse(text)}" for source in sources() for text in words_said(source)]
    assert not found, "\n".join(found)


def test_the_judge_has_no_words_of_its_own():
    judge = [source for source in sources() if source.path.parent.name == "judging"]
    found = [f"{source.at(text)}: {ast.unparse(text)}" for source in judge for text in words_of(source)]
    assert judge and not found, "\n".join(found)


@pytest.mark.parametrize(
    ("code", "count"),
    [
        ('failed(Cause.RACE, "Two programs write it", kind="memory")', 1),
        ('failed(Cause.RACE, None, f"{name} is written twice.")', 1),
        ('verdict.said.append("So it is." if late else None)', 1),
        ('verdict.said.insert(0, "Wrong with {}".format(changed))', 1),
        ('verdict.said[0] = f"The second call: {name}"', 1),
        ('WHY = {1: "It was kept."}\nverdict.said += [WHY[1], f"It was {name}"]', 2),
        ('yield from supposed(evidence, "race", f"{name} is written twice", [x])', 1),
        ('failed("race", Example.TWICE(name="x") if kind == "memory" else None, kind="memory")', 0),
        ('yield Hypothesis("race", Example.TWICE(name="x"), other("float32"))', 0),
        ("verdict.said.append(Example.TWICE(name=', '.join(names)))", 0),
        (
            '"""Why."""\ndef why():\n    """It was kept."""\n    Verdict(SKIPPED, "waited", note="not tried: no time")',
            0,
        ),
    ],
)
def test_words_of_the_judge_are_seen(code, count):
    source = Source(ROOT / "grader/judging/example.py", ast.parse(code), {"Example": Example})
    assert len(words_of(source)) == count
