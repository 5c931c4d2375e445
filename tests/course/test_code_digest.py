"""The digest of a module's code, by which a kept measurement is known to hold."""

from __future__ import annotations

import pytest

from grader.course.code_digest import digest_of_code

CODE = """
class Tile:
    rows = 1

    async def wait(self):
        return 2

def load():
    return 3
"""


@pytest.mark.parametrize("line", ["class Tile:", "    async def wait(self):", "def load():"])
def test_a_docstring_does_not_count(line):
    inner = " " * (len(line) - len(line.lstrip()) + 4)
    told = CODE.replace(line, f'{line}\n{inner}"""A text."""  # and a comment')
    assert digest_of_code(told) == digest_of_code(CODE) == digest_of_code(f'"""A module."""\n{CODE}')


def test_other_code_counts():
    assert digest_of_code(CODE.replace("return 3", "return 4")) != digest_of_code(CODE)
