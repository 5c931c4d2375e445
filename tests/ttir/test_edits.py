"""Edits of a kernel's text: each gives a text, as a rule, and is the same whether made in place or in the text."""

from __future__ import annotations

import pytest

from grader.ttir.editable import MOST_OPERATIONS, Editable
from grader.ttir.edits import LEVELS, Edit, edits
from grader.ttir.module import BadText, Operation
from grader.ttir.parser import parse


@pytest.fixture(scope="module")
def some(texts) -> dict[str, Editable]:
    """Texts of all kinds that are not long."""
    return {
        name: Editable(text, "kernels.py", {}) for name, text in sorted(texts.items())[::3] if text.count("\n") < 120
    }


def all_edits(text: Editable) -> list[Edit]:
    return [edit for level in range(len(LEVELS)) for edit in edits(text, level, text.groups)]


def operations(text: str) -> list[Operation]:
    return [one for function in parse(text, "kernels.py").functions.values() for one in function.walk()]


def test_each_operation_of_a_text_is_a_site_with_its_operands_and_types(texts):
    for text in texts.values():
        editable = Editable(text, "kernels.py", {})
        walked = [one for function in editable.module.functions.values() for one in function.walk()]
        if len(walked) > MOST_OPERATIONS:
            assert editable.sites == []
            continue
        assert [site.operation for site in editable.sites] == walked
        for site in editable.sites:
            assert len(site.operands) == len(site.operation.operands) == len(site.types)
            numbers = {value.name: value.number for value in site.known}
            if not site.operation.regions:  # those use values of outside as well, which are known when they end
                assert tuple(numbers[name] for name in site.operands) == site.operation.operands


def test_an_edit_made_in_place_is_the_edit_of_the_text(some):
    """The operations that stand for a site's are those that the parser reads in the text with the edit."""
    seen = 0
    for editable in some.values():
        for edit in all_edits(editable)[::29]:
            if len(edit.changes) > 1:
                continue
            (change,) = edit.changes
            try:
                made = editable.operations(change)
                whole = operations(editable.text(change))
            except BadText:
                continue  # not each edit gives a text, as where types do not fit
            if made is None:
                continue
            seen += 1
            at = editable.sites.index(change.site)
            read = whole[at : at + len(made)]
            assert [one.name for one in read] == [one.name for one in made], edit.key
            assert [one.attributes for one in read] == [one.attributes for one in made], edit.key
            assert [one.operand_types for one in read] == [one.operand_types for one in made], edit.key
            assert all(one.place == change.site.operation.place for one in made)
    assert seen > 100


def test_few_edits_give_no_text_and_each_changes_it(some):
    for name, editable in some.items():
        bad, found = 0, [edit for edit in all_edits(editable)[::23] if len(edit.changes) == 1]
        for edit in found:
            new = editable.text(edit.changes[0])
            assert new != "\n".join(editable.lines), edit.key
            try:
                parse(new, "kernels.py")
            except BadText:
                bad += 1
        assert bad <= len(found) / 3, name


def test_keys_tell_edits_apart(some):
    for editable in some.values():
        found = all_edits(editable)
        assert len({edit.key for edit in found}) == len(found)


@pytest.mark.parametrize("text", ["", "no text", '"builtin.module"() ({'])
def test_what_is_no_text_has_no_edits(text):
    with pytest.raises(BadText):
        Editable(text, "kernels.py", {})
