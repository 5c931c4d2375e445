"""The text of a kernel is that of the function that stands in the file, whatever the file does when it runs."""

from __future__ import annotations

import pytest

from grader.wire.messages import FOREIGN_KERNEL, NOT_PLAIN, Failure
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
def text_of(recording):
    """text_of(source, constants): the front end's text of the one kernel that `entry` launches."""

    def text_of(source: str, constants: dict | None = None) -> str:
        call = recording(source)("entry", constants, x=meta(16))
        assert call.error is None, call.error
        (kernel,) = call.kernels
        return kernel.source

    return text_of


@pytest.fixture
def refused(recording):
    """refused(source): why there is no text."""

    def refused(source: str) -> Failure:
        failure = recording(source)("entry", x=meta(16)).error
        assert failure is not None
        return failure

    return refused


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
    "functions of Triton that are written in Python": file(
        PLAIN.replace("VALUE", "s(tl.load(x_ptr + i), 0) * power(3)"),
        before="from triton import next_power_of_2 as power\nfrom triton.language import sum as s\n",
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
    "a kernel with words in a class": """
class K:
    @triton.jit
    def kernel(z_ptr, BLOCK: tl.constexpr):
        '''Stores ones:

            all of them
        '''
        tl.store(z_ptr + tl.arange(0, BLOCK), 1.0)
kernel = K.kernel
"""
    + KERNEL.format(arguments="z, "),
    "Triton by an import that may fail": file(
        PLAIN.replace("VALUE", "1.0"), before="try:\n    import triton\nexcept ImportError:\n    triton = None\n"
    ),
    "a file that is a program too": file(PLAIN.replace("VALUE", "1.0"))
    + "if __name__ == '__main__':\n    from math import *\n    tl = triton = None\n",
    "a name that a star may bring, and that the kernel gives itself": file(
        PLAIN.replace("    i =", "    e =").replace("i, VALUE", "e, 1.0"),
        before="from math import *\nimport triton\nimport triton.language as tl\n",
    ),
    "a tuple with names as a default": file(
        PLAIN.replace("VALUE", "T.scale").replace("BLOCK: tl.constexpr", "BLOCK: tl.constexpr, T: tl.constexpr = HELD"),
        before="from collections import namedtuple\nHeld = namedtuple('Held', 'scale, rows')\nHELD = Held(1.5, 2)\n",
    ),
    "a tuple with names by keywords": file(
        PLAIN.replace("VALUE", "Held(i, 2)[1]"),
        before="from collections import namedtuple\nHeld = namedtuple(typename='Held', field_names='scale, rows')\n",
    ),
    "annotations as text": "from __future__ import annotations\n" + SCALE + ENTRY,
}  # fmt: skip


@pytest.mark.parametrize("name", OWN)
def test_there_is_a_text_of(text_of, name):
    assert '"tt.store"' in text_of(OWN[name])


def test_constants_that_a_test_sets_are_those_of_the_text(text_of):
    source = "WIDTH = 8\nHALF = tl.constexpr(WIDTH // 2)\n" + file(PLAIN.replace("VALUE", "HALF"))
    assert "dense<1.600000e+01>" in text_of(source, {"WIDTH": 32})
    assert "dense<4.000000e+00>" in text_of(source)


ONE, TWO = "dense<1.000000e+00>", "dense<2.000000e+00>"
FORGED = {
    "a function of tl": "tl.store = lambda *a, **k: None",
    "the compiler": "import triton.compiler.code_generator as g\ng.CodeGenerator.visit_Constant = lambda s, n: 2.0",
    "its text": "import grader.front_end.kernel_text as t\nt.source_of = lambda module: '2.0'",
}


@pytest.mark.parametrize("name", FORGED)
def test_what_a_file_does_to_its_kernels_when_it_runs_changes_no_text(text_of, name):
    made = text_of(file(PLAIN.replace("VALUE", "1.0") + FORGED[name] + "\n"))
    assert ONE in made and TWO not in made


TWO_OF_A_NAME = """
@triton.jit
def kernel(z_ptr, BLOCK: tl.constexpr):
    tl.store(z_ptr + tl.arange(0, BLOCK), 1.0)

first = kernel

@triton.jit
def kernel(z_ptr, BLOCK: tl.constexpr):
    tl.store(z_ptr + tl.arange(0, BLOCK), 2.0)

def entry(x):
    z = torch.empty_like(x)
    WHICH[(1,)](z, BLOCK=16)
    return z
"""


def test_of_two_kernels_of_a_name_the_one_that_is_launched_counts(text_of):
    assert ONE in text_of(TWO_OF_A_NAME.replace("WHICH", "first"))
    assert TWO in text_of(TWO_OF_A_NAME.replace("WHICH", "kernel"))


BY_BRANCH = """
if BRANCH:
    @triton.jit
    def value(i): return i + 1.0
    from triton.language import exp as f
else:
    @triton.jit
    def value(i): return i + 2.0
    f = tl.exp2
"""


@pytest.mark.parametrize(("branch", "number", "operation"), [("True", ONE, "math.exp"), ("False", TWO, "math.exp2")])
def test_a_name_that_is_bound_twice_means_what_the_branch_gave_it(text_of, branch, number, operation):
    kernel = PLAIN.replace("VALUE", "f(value(tl.load(x_ptr + i)))")
    made = text_of(file(kernel, before=BY_BRANCH.replace("BRANCH", branch)))
    assert number.replace("dense<", "").rstrip(">") in made and f'"{operation}"' in made


def test_a_function_that_a_helper_finds_is_found(text_of):
    before = "def find(name):\n    return getattr(tl, name)\n\nf = find('exp')\n"
    assert '"math.exp"' in text_of(file(PLAIN.replace("VALUE", "f(tl.load(x_ptr + i))"), before=before))


def test_a_default_is_that_of_the_file(text_of):
    helper = "SIZE = tl.constexpr(3)\n\n@triton.jit\ndef times(x, by: tl.constexpr = SIZE, to=tl.float32):\n"
    made = text_of(file(PLAIN.replace("VALUE", "times(i)"), before=helper + "    return (by * x).to(to)\n"))
    assert "dense<3>" in made


def test_a_kernel_that_is_none_of_the_file_has_no_text(refused):
    failure = refused(file(PLAIN.replace("VALUE", "1.0") + "kernel.fn.__name__ = 'other'\n"))
    assert (failure.kind, failure.kernel) == (FOREIGN_KERNEL, "other")


VALUE_OF = "@triton.constexpr_function\ndef value(n=1.0):\n    return divmod(n, 1.0)[0]\n"
EXCHANGED = {
    "the text of a kernel": ("", "kernel._unsafe_update_src(kernel.src.replace('value()', '2.0'))"),
    "the end of a text": ("", "kernel._unsafe_update_src(kernel.src.rpartition('    tl.store')[0])"),
    "the function of a kernel": (
        "@triton.jit\ndef other(x_ptr, z_ptr, BLOCK: tl.constexpr):\n    pass\n",
        "other, kernel = kernel, other\nkernel.fn = other.fn",
    ),
}
CHANGED = {
    "the code of a function": "value.fn.__code__ = (lambda n: 2.0).__code__.replace(co_name='value', co_firstlineno=5)",
    "a function with the code of other lines": "exec(compile('\\n' * 4 + '@triton.constexpr_function\\n"
    "def value(n=1.0):\\n    return 2.0', __file__, 'exec'))",
    "a builtin": "import builtins\nbuiltins.divmod = lambda a, b: (2.0, 0.0)",
    "the builtins of a function": "import types\nvalue.fn = types.FunctionType(value.fn.__code__, "
    "{'__builtins__': {'divmod': max}}, 'value', (1.0,))",
    "a default behind a signature": "import inspect\nvalue.fn.__signature__ = inspect.signature(value.fn)\n"
    "value.fn.__defaults__ = (2.0,)",
    "a default that Triton has read already": "value.fn.__defaults__ = (2.0,)",
    "the type of a constant": "SCALE.type = type(SCALE.type)(2.0)",
    "an attribute of a constant": "SCALE.more = 1",
    "the name of a dtype": "KIND.name = 'fp32'",
    "a method of a class of tuples": "Pair.__bool__ = lambda self: False",
    "a part of a class of tuples": "Pair.x = property(lambda self: 2.0)",
    "what a class of tuples is made by": "Pair.__new__.__globals__['_tuple_new'] = lambda kind, parts: (2.0, 2.0)",
    "defaults of a class of tuples": "Pair.__new__.__defaults__ = (2.0, 2.0)",
}
BEFORE = """
from collections import namedtuple
Pair = namedtuple("Pair", "x y")
SCALE = tl.constexpr(1.0)
KIND = tl.dtype("fp16")
HELD = (lambda one: one)(tl.constexpr(Pair(1.0, 2.0)))
"""
USES = "value() * SCALE * HELD.x + (1.0 if Pair(1, 2)[0] else 0.0) + tl.full((), 0.0, KIND)"


@pytest.mark.parametrize("title", EXCHANGED)
def test_a_kernel_that_is_exchanged_after_it_was_made_is_refused(refused, title):
    before, then = EXCHANGED[title]
    failure = refused(VALUE_OF + file(before + PLAIN.replace("VALUE", "value()") + then + "\n"))
    assert failure.kind == FOREIGN_KERNEL


def test_what_host_code_leaves_as_it_was_made_has_a_text(text_of):
    assert text_of(VALUE_OF + BEFORE + file(PLAIN.replace("VALUE", USES)))


@pytest.mark.parametrize("title", CHANGED)
def test_what_host_code_changes_after_it_was_made_is_refused(refused, title):
    failure = refused(VALUE_OF + BEFORE + file(PLAIN.replace("VALUE", USES) + CHANGED[title] + "\n"))
    assert failure.kind in (NOT_PLAIN, "compile"), failure


def test_a_constant_that_is_no_plain_value_is_refused_by_its_name(refused):
    source = "class A:\n    rows: float = 1.0\nHELD = tl.constexpr(A())\n" + file(PLAIN.replace("VALUE", "HELD.rows"))
    failure = refused(source)
    assert (failure.kind, failure.message) == (NOT_PLAIN, "HELD is an object of the class A")


def test_a_global_that_is_none_of_these_is_refused_in_the_words_of_triton(refused):
    failure = refused("SIZES = [1.0]\n" + file(PLAIN.replace("VALUE", "SIZES[0]")))
    assert failure.kind == "compile" and "Cannot access global variable SIZES" in failure.message
