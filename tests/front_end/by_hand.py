"""The front end in this process: texts of a file that is written here, from recipes that are written here."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from triton.backends.compiler import GPUTarget

from grader.front_end.allowed_attributes import guard_builtins
from grader.front_end.file_kernels import FileKernels
from grader.front_end.triton_visitor_api import CodeGenerator

GUARDED = ("get_Attribute", "_apply_binary_method", "call_Function", "visit_JoinedStr")
TARGET = GPUTarget("cuda", 90, 32)
PREAMBLE = "import triton\nimport triton.language as tl\n"
KERNEL = """
@triton.jit
def kernel(x_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x_ptr + i, {value})
"""


def recipe(line: int, **changed: object) -> dict:
    """Returns a recipe of KERNEL, whose decorator stands in this line."""
    plain = {
        "function": "kernel", "line": line, "signature": {"x_ptr": "*fp32", "BLOCK": "constexpr"},
        "constants": [[[1], {"value": "16"}]], "attrs": [], "options": {"num_warps": 4}, "scopes": [], "fields": [],
        "symbol": "", "set": {},
    }  # fmt: skip
    return plain | changed


@pytest.fixture(autouse=True)
def unguarded_afterwards() -> Iterator[None]:
    """A process of the grader guards Triton's visitor once. Here the guards of a file would stand on those of all files
    before it, deeper than Python can call."""
    before = {name: getattr(CodeGenerator, name) for name in GUARDED}
    yield
    for name, method in before.items():
        setattr(CodeGenerator, name, method)


@contextlib.contextmanager
def kernels_of(source: str, folder: Path) -> Iterator[FileKernels]:
    with contextlib.chdir(folder):
        yield FileKernels("submission.py", source.encode())


@pytest.fixture
def text(tmp_path):
    """text(value, before="", told=(), **recipe): KERNEL's text; nobody looks at its names before the front end does.

    told: names of the kernel with their values, as recipes tell them.
    """
    guard_builtins()

    def text(value: str, before: str = "", told: Iterable[list] = (), **changed: object) -> str:
        source = PREAMBLE + before + KERNEL.format(value=value)
        line = source[: source.index("@triton.jit\ndef kernel(")].count("\n") + 1
        changed = {"scopes": [["kernel", line, list(told), []]]} | changed
        with kernels_of(source, tmp_path) as kernels:
            return kernels.text(recipe(**({"line": line} | changed)), TARGET).decode()

    return text
