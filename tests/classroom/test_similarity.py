"""Works that are nearly the same are found through renaming and layout; right work that merely agrees is not."""

from __future__ import annotations

import re

import pytest

from grader.classroom.similarity import copies, near_identical
from grader.course.regions import stub_text
from tests.classroom.instructor import ROOT, solution
from tests.conftest import mutant

SOLUTION = solution("03_softmax")
STUB = stub_text(SOLUTION)
ONLINE = (ROOT / "solutions/03_softmax/accepted/online_in_chunks.py").read_text(encoding="utf-8")


def accepted(exercise: str) -> dict[str, str]:
    paths = sorted((ROOT / "solutions" / exercise / "accepted").glob("*.py"))
    return {path.stem: path.read_text(encoding="utf-8") for path in paths}


def disguised(text: str) -> str:
    """Another's names, comments and blank lines."""
    kept = {"M", "N", "x", "z", "softmax", "tl", "triton", "torch"}
    names = sorted(set(re.findall(r"^\s+(\w+) = ", text, re.M)) - kept)
    for number, name in enumerate(names):
        text = re.sub(rf"(?<![.\w]){name}(?!\w|=)", f"mine{number}", text)
    lines = [f"{line}  # my own thought" if line.startswith("    ") and line.endswith(")") else line
             for line in text.splitlines()]  # fmt: skip
    return "\n\n".join(lines)


def test_a_disguised_copy_is_found_among_a_class():
    copy = disguised(ONLINE)
    assert copy != ONLINE
    works = {f"s{number}": text for number, text in enumerate(accepted("03_softmax").values())}
    original = next(name for name, text in works.items() if text == ONLINE)
    pairs = near_identical({**works, "copy": copy}, STUB, SOLUTION)
    assert [{pair.one, pair.other} for pair in pairs] == [{original, "copy"}]
    assert pairs[0].share > 0.8


@pytest.mark.parametrize("exercise", ["01_masked_add", "03_softmax", "05_grouped_matmul"])
def test_right_works_that_look_different_are_not_paired(exercise):
    assert near_identical(accepted(exercise), stub_text(solution(exercise)), solution(exercise)) == []


def test_many_who_wrote_what_the_solution_has_are_not_paired():
    works = {f"s{number}": f"{SOLUTION}\n# {number}\n" for number in range(5)}
    assert near_identical({**works, "stub": STUB, "broken": "def x(:"}, STUB, SOLUTION) == []


def test_what_many_share_says_nothing_but_what_two_share_does():
    unusual = mutant("03_softmax/ticket_relaxed")
    two = {"a": unusual, "b": disguised(unusual)}
    assert len(near_identical(two, STUB, SOLUTION)) == 1
    many = {f"s{number}": f"{unusual}\n# {number}\n" for number in range(6)}
    assert near_identical(many, STUB, SOLUTION) == []


@pytest.mark.parametrize("text", ["", "(" * 5000, "\0", "x = '\\ud800'", "-" * 20000 + "1"])
def test_texts_that_are_no_python_are_passed_over(text):
    assert near_identical({"a": text, "b": text}, STUB, SOLUTION) == []


def test_a_copy_of_what_the_course_has_is_told_also_with_other_names():
    works = {
        "copied": SOLUTION,
        "renamed": disguised(SOLUTION),
        "of another": disguised(ONLINE),
        "own": unlike(SOLUTION),
    }
    letter, renamed = copies(works, STUB, [SOLUTION, ONLINE])
    assert (letter, renamed) == (["copied"], ["renamed", "of another"])


def unlike(text: str) -> str:
    """Returns the text with a line more, which the course does not have."""
    return text.replace("    tl.store(", "    tl.device_assert(True)\n    tl.store(")


def test_a_kernel_so_short_that_everyone_writes_it_is_told_to_the_letter_only():
    add = solution("01_masked_add")
    assert copies({"a": add, "b": disguised(add)}, stub_text(add), [add]) == (["a"], [])
    assert copies({"stub": STUB, "broken": "def x(:", "empty": ""}, STUB, [SOLUTION]) == ([], [])
