"""Whose kernels: a recorded text is the file's own where its kernels alone, in another process, give the same."""

from __future__ import annotations

import pytest

from grader.gpu.models import MODELS
from grader.judge.kernel_origins import Origins
from tests.child.recorded_calls import SCALE, meta

ENTRY = """
def entry(x):
    return launch(x, torch.empty_like(x))
"""
KERNEL = """
def entry(x):
    z = torch.empty_like(x)
    kernel[(1,)]({arguments}BLOCK=16)
    return z
"""


@pytest.fixture
def complaint(recording):
    """complaint(source, constants): what the file's kernels are accused of; "" for nothing."""
    made: list[Origins] = []

    def complaint(source: str, constants: dict | None = None) -> str:
        recorded = recording(source)
        call = recorded("entry", constants, x=meta(16))
        assert call.error is None and call.kernels
        made.append(Origins(recorded.runner.submission, recorded.filename, MODELS["sm_90"]))
        verdict = made[-1].complaint(call.kernels)
        return " ".join(verdict.lines) if verdict else ""

    yield complaint
    for one in made:
        one.end()


def file(kernel: str, arguments: str = "x, z, ", before: str = "") -> str:
    return before + kernel + KERNEL.format(arguments=arguments)


PLAIN = """
@triton.jit
def kernel(x_ptr, z_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(z_ptr + i, VALUE)
"""
OWN = {
    "a literal": file(PLAIN.replace("VALUE", "1.0")),
    "host code around it": file(PLAIN.replace("VALUE", "1.0"), before="import os\nHERE = os.getpid()\n"),
    "a constant that host code computes": file(
        PLAIN.replace("VALUE", "SCALE"), before="import math\nSCALE = tl.constexpr(math.log(math.pi) + len('abc'))\n"
    ),
    "an annotated constant": file(PLAIN.replace("VALUE", "SCALE"), before="SCALE: tl.constexpr = tl.constexpr(3.0)\n"),
    "an infinite constant": file(PLAIN.replace("VALUE", "SCALE"), before="SCALE = tl.constexpr(float('-inf'))\n"),
    "an imported function": file(
        PLAIN.replace("VALUE", "exp(load(x_ptr + i))"), before="from triton.language import exp, load\n"
    ),
    "an import that may fail": file(
        PLAIN.replace("VALUE", "libdevice.tanh(tl.load(x_ptr + i))"),
        before="try:\n    from triton.language.extra import libdevice\nexcept ImportError:\n    import torch.nn\n",
    ),
    "a name for a function": file(PLAIN.replace("VALUE", "e(tl.load(x_ptr + i))"), before="e = tl.exp\n"),
    "a helper": file(
        PLAIN.replace("VALUE", "twice(tl.load(x_ptr + i))"),
        before="@triton.jit\ndef twice(x, n=2):\n    return n * x\n"
    ),
    "a helper that is not inlined": file(
        PLAIN.replace("VALUE", "twice(tl.load(x_ptr))"),
        before="@triton.jit(noinline=True)\ndef twice(x):\n    return 2 * x\n",
    ),
    "a helper under another name": file(
        PLAIN.replace("VALUE", "f(tl.load(x_ptr + i))"),
        before="@triton.jit\ndef twice(x):\n    return 2 * x\n\nf = twice\n",
    ),
    "a helper as an argument": file(
        PLAIN.replace("VALUE", "F(tl.load(x_ptr + i))").replace("BLOCK:", "F: tl.constexpr, BLOCK:"),
        "x, z, twice, ",
        "@triton.jit\ndef twice(x):\n    return 2 * x\n",
    ),
    "a dtype as an argument": file(
        PLAIN.replace("VALUE", "i.to(D)").replace("BLOCK:", "D: tl.constexpr, BLOCK:"), "x, z, tl.float16, "
    ),
    "a tuple as an argument": file(PLAIN.replace("VALUE", "T[0]").replace("BLOCK:", "T, BLOCK:"), "x, z, (1.0, 2), "),
    "a tuple with names as an argument": file(
        PLAIN.replace("VALUE", "T.scale * T.inner.rows").replace("BLOCK:", "T, BLOCK:"),
        "x, z, Outer(1.5, Inner(2, 3)), ",
        "import typing\nfrom typing import NamedTuple\n"
        "class Inner(typing.NamedTuple):\n    rows: int\n    columns: int\n"
        "class Outer(NamedTuple):\n    scale: float\n    inner: Inner\n",
    ),
    "a constant tuple with names": file(
        PLAIN.replace("VALUE", "T.scale").replace("BLOCK:", "T: tl.constexpr, BLOCK:"),
        "x, z, Held(1.5, 2), ",
        "from collections import namedtuple\nHeld = namedtuple('Held', 'scale, rows')\n",
    ),
    "a tuple with names that a kernel makes": file(
        PLAIN.replace("VALUE", "Held(i, 2).scale"),
        before="import collections\nHeld = collections.namedtuple('Held', ['scale', 'rows'])\n",
    ),
    "another name for the compiled kernel": file(
        PLAIN.replace("VALUE", "1.0").replace("jit", "jit(repr=lambda one: f'kernel_{one.constants[\"BLOCK\"]}')")
    ),
    "what the launch is told": file(
        PLAIN.replace("VALUE", "1.0").replace(
            "jit", "jit(do_not_specialize=[0], launch_metadata=lambda grid, kernel, args: {})"
        )
    ),
    "a constexpr function": file(
        PLAIN.replace("VALUE", "half(BLOCK)"),
        before="@triton.constexpr_function\ndef half(n):\n    return n // 2\n",
    ),
    "jit by a call": file(PLAIN.replace("VALUE", "1.0").replace("@triton.jit", "") + "\nkernel = triton.jit(kernel)\n"),
    "autotuned": file(
        "@triton.autotune([triton.Config({}, num_warps=2)], key=[])" + PLAIN.replace("VALUE", "1.0")
    ),
    "a kernel in a function": """
def make(scale):
    @triton.jit
    def kernel(z_ptr, BLOCK: tl.constexpr):
        tl.store(z_ptr + tl.arange(0, BLOCK), scale)
    return kernel

def entry(x):
    z = torch.empty_like(x)
    make(tl.constexpr(3.0))[(1,)](z, BLOCK=16)
    return z
""",
    "one of two kernels of a name": """
if torch.cuda.is_available():
    @triton.jit
    def kernel(z_ptr, BLOCK: tl.constexpr):
        tl.store(z_ptr + tl.arange(0, BLOCK), 1.0)
else:
    @triton.jit
    def kernel(z_ptr, BLOCK: tl.constexpr):
        tl.store(z_ptr + tl.arange(0, BLOCK), 2.0)
"""
    + KERNEL.format(arguments="z, "),
    "annotations as text": "from __future__ import annotations\n" + SCALE + ENTRY,
}  # fmt: skip


@pytest.mark.parametrize("name", OWN)
def test_the_files_own_kernels_are_its_own(complaint, name):
    assert complaint(OWN[name]) == ""


def test_constants_that_a_test_sets_are_those_of_the_recipe(complaint):
    source = "WIDTH = 8\nHALF = tl.constexpr(WIDTH // 2)\n" + file(PLAIN.replace("VALUE", "HALF"))
    assert complaint(source, {"WIDTH": 32}) == ""


FORGED = {
    "its source": ("kernel._unsafe_update_src(kernel.src.replace('1.0', '2.0'))", "is not the one in your file"),
    "a function of tl": ("tl.store = lambda *a, s=tl.store, **k: None", "is not the one in your file"),
    "a constant of its own": (
        "class A:\n    rows: float = 2.0\nHELD = tl.constexpr(A())\n"
        "kernel._unsafe_update_src(kernel.src.replace('1.0', 'HELD.rows'))",
        "is not the one in your file",
    ),
    "its name": ("kernel.fn.__name__ = 'other'", "does not stand in your file"),
}


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_kernel_is_not(complaint, name):
    forging, expected = FORGED[name]
    said = complaint(file(PLAIN.replace("VALUE", "1.0") + forging + "\n"))
    assert expected in said


def test_a_constant_that_is_no_plain_value_cannot_be_checked_and_is_refused(complaint):
    source = "class A:\n    rows: float = 1.0\nHELD = tl.constexpr(A())\n" + file(PLAIN.replace("VALUE", "HELD.rows"))
    assert "does not compile from your file's kernels and constants alone" in complaint(source)
