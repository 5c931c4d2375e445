"""What kernels and constexpr functions may name; all else of a file may be any Python."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import types

import pytest

from grader.submission.kernel_names import MOST_REFUSED, FileNames, _Body, all_refused
from grader.submission.public_names import MODULES, members
from tests.waiting import NEVER

HEAD = "import math\nimport os\nimport torch\nimport triton\nimport triton.language as tl\n"


def in_kernel(body: str, parameters: str = "", decorator: str = "@triton.jit") -> str:
    return (
        f"{decorator}\ndef kernel(x_ptr, N, BLOCK_N: tl.constexpr{parameters}):\n    i = tl.program_id(0)\n    {body}\n"
    )


def sentence(text: str) -> str:
    refused = all_refused(ast.parse(HEAD + text))
    return refused[0].sentence.text if refused else ""


ANY_PYTHON = [
    "getattr(torch, 'add')(os.environ, eval('3'))",
    "from torch import *",
    "class A(metaclass=type):\n    __slots__ = ()\n    def __getattr__(self, name): ...",
    "torch.empty = None",
    "import numpy\nnumpy.add(1, 2)",
    in_kernel("tl.store(x_ptr + i, 0.0)", ", F: os.getpid() = os.getpid()"),
    "@os.register\n" + in_kernel("tl.store(x_ptr + i, 0.0)"),
]
IN_KERNELS = [
    "tl.store(x_ptr + i, tl.exp(tl.load(x_ptr + i)).to(tl.float32))",
    "tl.store(x_ptr + i, float('-inf') + math.pi + math.sqrt(2.0))",
    "for k in range(0, min(max(N, 1), len([1, 2]))):\n        tl.device_print('k', k)",
    "for k in tl.static_range(4):\n        assert isinstance(BLOCK_N, tl.constexpr)",
    "tl.static_assert(x_ptr.dtype.element_ty == tl.float32, f'{BLOCK_N}')",
    "y = getattr(x_ptr, 'dtype') if hasattr(x_ptr, 'dtype') else tl.math.exp(1.0)",
    "y = tl.extra.libdevice.tanh(1.0) + tl.sqrt(2.0) + tl.cdiv(N, triton.next_power_of_2(BLOCK_N))",
    "y = helper(i) + load(x_ptr) + TABLE[0]",
    "y = tl.sum(x_ptr.load([0]), axis=0).sum().to(tl.bfloat16, bitcast=False)",
    "y = settings.rows",
    "y = (i if x_ptr is not None else (N is True)) is not False",
    "y = tl.maximum(i, 0.0, propagate_nan=tl.PropagateNan.ALL) + tl.minimum(i, 0.0, tl.PropagateNan.NONE)",
]


@pytest.mark.parametrize("text", ANY_PYTHON)
def test_host_code_may_be_any_python(text):
    assert sentence(text) == ""


@pytest.mark.parametrize("body", IN_KERNELS)
def test_what_kernels_need_is_allowed(body):
    fields = "class Settings:\n    rows: int\nfrom triton.language import load\n"
    assert sentence(fields + in_kernel(body, ", settings")) == ""


REFUSED = {
    "torch.exp(i)": "Line 9: torch.exp is not allowed in a kernel. In a kernel only tl works: tl.exp is there too.",
    "i.to(torch.float32)": "torch.float32 is not allowed in a kernel. Kernels use the dtypes of tl: tl.float32.",
    "i.to(torch.half)": "torch.half is not allowed in a kernel. Kernels use the dtypes of tl: tl.float16.",
    "i.to(torch.float31)": "torch.float31 is not allowed in a kernel. In a kernel only tl works",
    "os.system('ls')": "os.system is not allowed in a kernel",
    "f = os": "os is not allowed in a kernel",
    "f = tl": "tl as a value is not allowed in a kernel",
    "tl.core.inspect.sys": "triton.language.core is not allowed in a kernel. Kernels use the public functions of tl",
    "tl.laod(x_ptr)": "triton.language.laod is not allowed in a kernel. Is tl.load meant?",
    "triton.runtime.driver": "triton.runtime is not allowed",
    "tl.load.__globals__": ".__globals__ is not allowed in a kernel",
    "kernel.fn": ".fn is not allowed in a kernel. Kernels use tl and the methods of tiles, as in x.to().",
    "i.handle": ".handle is not allowed",
    "i.to(tl.float32).type.scalar.to_ir": ".to_ir is not allowed",
    "'{0.x}'.format(i)": ".format is not allowed",
    "math.floor.__self__": "__self__ is not allowed",
    "eval('3')": "eval is not allowed in a kernel. Use tl, the parameters and constants of the file.",
    "__builtins__": "__builtins__ is not allowed in a kernel. Names with two underscores belong to Python",
    "getattr(i, 'handle')": "getattr is not allowed in a kernel",
    "getattr(tl, 'core')": "getattr is not allowed",
    "getattr(i, N)": "getattr is not allowed",
    "i.shape = 3": "a new value for i.shape is not allowed",
    "import os": "import os is not allowed in a kernel",
    "y = N if i is N else i": "Line 9: i is N is not allowed in a kernel. Write i == N: `is` asks for one object in "
    "memory, and equal values may be two.",
    "y = N is not 1": "N is not 1 is not allowed in a kernel. Write N != 1",
    "y = None is N is i": "N is i is not allowed in a kernel. Write N == i",
    "global N": "global N is not allowed in a kernel",
    "tl = i\n    tl.core": "a new value for tl is not allowed in a kernel",
    "match i:\n        case int(__class__=c):\n            pass": ".__class__ is not allowed",
}


@pytest.mark.parametrize("body", REFUSED)
def test_what_leads_elsewhere_is_refused(body):
    assert REFUSED[body] in sentence(in_kernel(body))


def test_math_that_is_not_imported_is_told_as_that():
    head = "import triton\nimport triton.language as tl\n"
    uses = "Line 6: a kernel uses math.{}, and the file does not import math: add `import math` at its top"
    for name, more in (("inf", ', or write float("inf").'), ("pi", ".")):
        (refused,) = all_refused(ast.parse(head + in_kernel(f"x = math.{name}")))
        assert refused.sentence.text == uses.format(name) + more and refused.line == 6
    for other in ("math = tl\n", "from numpy import math\n", "def entry(x):\n    math = x\n"):
        (refused,) = all_refused(ast.parse(head + other + in_kernel("x = math.infinity")))
        assert "does not import" not in refused.sentence.text


@pytest.mark.parametrize(
    "text",
    [
        in_kernel("os.system('')", decorator="@triton.jit(noinline=True)"),
        "from triton import jit\n" + in_kernel("os.system('')", decorator="@jit"),
        "from triton import jit as j\n" + in_kernel("os.system('')", decorator="@j(debug=True)"),
        "j = triton.jit\n" + in_kernel("os.system('')", decorator="@j"),
        in_kernel("os.system('')", decorator="@triton.heuristics({})\n@triton.jit"),
        in_kernel("os.system('')", decorator="@staticmethod") + "made = triton.jit(kernel)",
        "class A:\n    @triton.jit\n    def kernel(x):\n        os.system('')",
        "if True:\n    @triton.jit\n    def kernel(x):\n        os.system('')",
        "@triton.constexpr_function\ndef f(x):\n    return os.system('')",
        "@triton.constexpr_function\ndef f(x):\n    return [g for g in (lambda: os.system(''),)]",
    ],
)
def test_every_function_that_the_compiler_evaluates_is_found(text):
    assert "os.system is not allowed in a " in sentence(text)


def test_every_place_is_named_once_and_the_first_one_first():
    body = "os.a\n    x = torch.nn.functional.softmax(tl.nothing(os.environ.copy()))"
    named = [
        refused.sentence.text.partition(" is not allowed")[0]
        for refused in all_refused(ast.parse(HEAD + in_kernel(body)))
    ]
    assert named == [
        "Line 9: os.a",
        "Line 10: torch.nn.functional.softmax",
        "Line 10: triton.language.nothing",
        "Line 10: os.environ.copy",
    ]


def test_a_long_name_is_told_by_its_beginning_and_its_end():
    said = sentence(in_kernel(f"os.{'.'.join(['path'] * 480)}.last"))
    assert len(said) < 200 and "os.path" in said and "path.last is not allowed" in said


@pytest.mark.parametrize("value", [f"0x{'f' * 4000}", "f'{\"\u200b\"}'"])
def test_what_python_cannot_write_is_told_by_its_kind(value):
    """ast.unparse raises ValueError for a number of more than 4300 digits, and in Python 3.11 for some texts."""
    assert sentence(f"x = ({value}).real\n{in_kernel('pass')}") == ""
    for body, kind in ((f"({value}).shape = 1", "this attribute"), (f"class A: y = {value}", "this class")):
        said = sentence(in_kernel(body))
        assert kind in said or "0x" not in value and "is not allowed in a kernel" in said


def test_only_some_misspelt_names_are_compared_with_all_of_triton(monkeypatch):
    compared = []
    monkeypatch.setattr("difflib.get_close_matches", lambda name, *rest: compared.append(name) or [])
    body = "\n    ".join(f"tl.laod{n}(i)" for n in range(2 * MOST_REFUSED))
    assert len(all_refused(ast.parse(HEAD + in_kernel(body)))) == MOST_REFUSED
    assert len(compared) == MOST_REFUSED


def test_a_kernel_in_a_kernel_is_walked_once():
    text = "".join(f"{'    ' * n}@triton.jit\n{'    ' * n}def k{n}():\n" for n in range(20)) + "    " * 20 + "os.a\n"
    tree = ast.parse(HEAD + text)
    names = FileNames(tree)
    assert sum(len(_Body(names, body).nodes) for body in names.bodies) < len(names.nodes)
    assert [refused.sentence.text[:13] for refused in all_refused(tree)] == ["Line 46: os.a"]


LIST_MODULES = """
import importlib, json, sys, types
found = {}
for name in json.loads(sys.argv[1]):
    module = importlib.import_module(name)
    found[name] = {key: isinstance(value, types.ModuleType) for key, value in vars(module).items()}
print(json.dumps(found))
"""


def test_no_module_of_triton_leads_to_another():
    """In a process of its own: this one imports no Triton."""
    command = [sys.executable, "-c", LIST_MODULES, json.dumps(list(MODULES))]
    found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True, timeout=NEVER).stdout)
    for name in MODULES:
        modules = {key for key, is_module in found[name].items() if is_module}
        assert {"core"} <= modules or name != "triton.language"
        for key in modules:
            assert key not in members(name) or f"{name}.{key}" in MODULES, f"{name}.{key}"
        missing = members(name) - found[name].keys() - {"extra", "libdevice", "cuda"}
        assert not missing, f"{name} lacks {missing}"


def test_the_lists_are_not_empty():
    """They are read off the installed Triton; where that fails, everything would be refused."""
    assert {"load", "store", "dot", "arange", "constexpr", "float32", "math"} <= members("triton.language")
    assert {"exp", "rsqrt"} <= members("triton.language.math")
    assert {"tanh", "pow"} <= members("triton.language.extra.libdevice")


def test_math_leads_nowhere():
    import math

    assert not [name for name in dir(math) if isinstance(getattr(math, name), types.ModuleType)]
