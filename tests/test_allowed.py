"""What a submission may import and name: texts, and the refusal that each must get, or none. Nothing is run."""

from __future__ import annotations

import ast
import importlib
import json
import subprocess
import sys
import textwrap
import types

import pytest

from grader.allowed import first_refused
from grader.allowed_names import LEADS_ELSEWHERE, MODULES, attributes, members

HEAD = "import torch\nimport triton\nimport triton.language as tl\n"
KERNEL = """
@triton.jit
def kernel(x_ptr, z_ptr, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(z_ptr + i, tl.load(x_ptr + i, mask=i < N), mask=i < N)
"""


def sentence(text: str) -> str:
    """Why the text is refused; "" if it is not."""
    refused = first_refused(ast.parse(HEAD + textwrap.dedent(text)))
    return refused.sentence.partition(": ")[2] if refused else ""


def in_kernel(line: str, parameters: str = "") -> str:
    return KERNEL.replace("BLOCK: tl.constexpr", f"BLOCK: tl.constexpr{parameters}") + f"    {line}\n"


HONEST = {
    "type hints": "def f(x: torch.Tensor, n: 'int | None' = None) -> tuple[torch.Tensor, int]:\n    return x, n or 1",
    "optional": "from typing import Optional, Union\ndef f(x: Optional[torch.Tensor]) -> Union[int, float]: ...",
    "annotated variable": "BLOCK: int = 128\nsizes: list[int] = [1, 2]",
    "docstrings": '"""A file."""\ndef f(x):\n    """See numpy.add, os.system and __import__."""\n    return x',
    "a data class": """
        from dataclasses import dataclass, field

        @dataclass(frozen=True)
        class Shape:
            rows: int
            cols: int = 4
            names: list = field(default_factory=list)

            def area(self):
                return self.rows * self.cols

        def f(x):
            return Shape(*x.shape).area() + Shape(1).cols
    """,
    "a named tuple": "from typing import NamedTuple\nclass P(NamedTuple):\n    m: int\n    n: int\nprint(P(1, 2).m)",
    "an enum": "from enum import Enum\nclass Kind(Enum):\n    ROW = 1\nprint(Kind.ROW.value, Kind.ROW.name)",
    "a class with state": """
        class Meter:
            def __init__(self, limit):
                super().__init__()
                self.limit, self.seen = limit, 0

            def __call__(self, n):
                self.seen += n
                return self.seen < self.limit

            @property
            def left(self):
                return self.limit - self.seen

            @staticmethod
            def of(n):
                return Meter(n)

        print(Meter.of(3).left)
    """,
    "a module of torch": """
        class Layer(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.scale = 2.0

            def forward(self, x):
                return x
    """,
    "an autograd function": """
        class Softmax(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                ctx.cols = x.shape[1]
                return x

            @staticmethod
            def backward(ctx, dz):
                (x,) = ctx.saved_tensors
                return dz if ctx.cols else x

        softmax = Softmax.apply
    """,
    "benchmark below the main guard": """
        if __name__ == "__main__":
            import os, time, numpy as np, matplotlib.pyplot as plt
            from triton.testing import do_bench
            x = torch.randn(4).numpy()
            print(getattr(os, "environ"), time.perf_counter(), eval("1"), x.__array__())
    """,
    "main guard turned round": "if '__main__' == __name__:\n    import numpy",
    "texts": "x = torch.empty(3)\nprint(f'{x.shape} {x.dtype!r:>10}', '%s' % x.dim(), '{} {:>4}'.format(x.dim(), 2))",
    "text methods": "NAME = ' a,b '.strip().split(',')[0].upper().join(['x'])",
    "assertions": "def f(x):\n    assert x.is_cuda and x.is_contiguous(), f'{x.stride()}'\n    assert x.dim() == 2",
    "own exceptions": (
        "class Bad(ValueError):\n    pass\ndef f():\n    try:\n        raise Bad('n')\n    except (Bad, "
        'KeyError) as e:\n        raise TypeError(e.args) from e'
    ),
    "a reference that is never called": """
        def reference(x, w):
            x = torch.nn.functional.layer_norm(x, x.shape[-1:], w)
            return torch.softmax(x.float() @ w.t() + x.std(dim=-1, keepdim=True), dim=-1).half()
    """,
    "functional by another name": (
        'import torch.nn.functional as F\ndef reference(x):\n    return F.gelu(F.pad(x, (0, 1)))'
    ),
    "from torch import": "from torch import Tensor, empty_like, float16\ndef f(x: Tensor):\n    return empty_like(x)",
    "special and linalg": (
        'def reference(x):\n    return torch.special.expit(torch.linalg.norm(x)), torch.finfo(x.dtype).eps'
    ),
    "partial and reduce": (
        'from functools import partial, reduce, lru_cache\nLAUNCH = partial(max, 3)\nreduce(max, [1])'
    ),
    "math": "import math\nfrom math import ceil, log2\nSCALE = math.log2(math.e) / math.sqrt(ceil(log2(7)))",
    "itertools": "import itertools\nCONFIGS = [a * b for a, b in itertools.product([1, 2], [3])]",
    "collections": (
        'from collections import defaultdict\nfrom collections.abc import Callable\nC = defaultdict(int)\n'
        'C.update(a=1)'
    ),
    "autotune with pruning": """
        def prune(configs, nargs, **kwargs):
            return [c for c in configs if c.kwargs["BLOCK"] <= nargs["N"] and c.num_warps < 16] or configs[:1]

        def zero(nargs):
            nargs["z_ptr"].zero_()

        @triton.autotune(
            configs=[triton.Config({"BLOCK": b}, num_warps=w, num_stages=2, pre_hook=zero)
                     for b in (128, 256) for w in (2, 4)],
            key=["N"], prune_configs_by={"early_config_prune": prune}, reset_to_zero=["z_ptr"],
        )
        @triton.heuristics({"EVEN": lambda args: args["N"] % args["BLOCK"] == 0})
        @triton.jit
        def k(x_ptr, z_ptr, N, BLOCK: tl.constexpr, EVEN: tl.constexpr):
            tl.store(z_ptr, 0.0)
    """,
    "jit with options": "@triton.jit(do_not_specialize=['n'])\ndef k(n):\n    pass",
    "jit by its name": (
        'from triton import jit, cdiv, Config, autotune\n@autotune([Config({})], key=[])\n@jit\ndef k(n):\n    '
        'cdiv(n, 2)'
    ),
    "names of the language": (
        'from triton.language import load, store, constexpr\n@triton.jit\ndef k(p, B: constexpr):\n    '
        'store(p, load(p))'
    ),
    "constants of kernels": "LOG2E = tl.constexpr(1.4426950408889634)\nDTYPE = tl.float32\n",
    "helpers in kernels": """
        @triton.jit
        def largest(a, b):
            return tl.maximum(a, b)

        @triton.jit
        def k(x_ptr, N, BLOCK: tl.constexpr, ACTIVATION: tl.constexpr = ""):
            x = tl.load(x_ptr + tl.arange(0, BLOCK)).to(tl.float32)
            x = tl.reduce(x, 0, largest)
            for i in range(0, tl.cdiv(N, BLOCK), 2):
                x += min(i, N).to(x.dtype)
            for _ in tl.range(0, 4, num_stages=2):
                x = x * 2
            for _ in tl.static_range(2):
                x = tl.math.exp2(x)
            if ACTIVATION == "relu":
                x = tl.where(x > 0, x, float("-inf"))
            tl.static_assert(BLOCK >= 16, "too small")
            tl.device_print("x", x)
            tl.store(x_ptr, x.to(x_ptr.dtype.element_ty).reshape(1), mask=len(x.shape) == 0)
    """,
    "descriptors": """
        from triton.tools.tensor_descriptor import TensorDescriptor

        def f(x):
            triton.set_allocator(lambda size, align, stream: torch.empty(size, dtype=torch.int8, device=x.device))
            return TensorDescriptor.from_tensor(x, [16, 16]), TensorDescriptor(x, list(x.shape), [4, 1], [16, 16])

        @triton.jit
        def k(a, x_ptr, M, N):
            b = tl.make_tensor_descriptor(x_ptr, shape=[M, N], strides=[N, 1], block_shape=[16, 16])
            b.store([0, 0], a.load([0, 0]).T)
    """,
    "libdevice": (
        'from triton.language.extra import libdevice\n@triton.jit\ndef k(p):\n    tl.store(p, '
        'libdevice.tanh(tl.load(p)))'
    ),
    "properties of the GPU": """
        def f(x):
            p = torch.cuda.get_device_properties(x.device)
            with torch.cuda.device(x.device), torch.no_grad():
                return p.multi_processor_count * p.L2_cache_size, torch.cuda.get_device_capability()[0] >= 9
    """,
    "a lambda grid": KERNEL + "grid = lambda meta: (triton.cdiv(5, meta['BLOCK']),)\nkernel[grid](1, 2, 3, BLOCK=16)",
    "memory": (
        'def f(x):\n    z = x.new_empty(x.shape)\n    z[:] = 0\n    z.fill_(1.0)\n    return '
        'z.view(-1)[1:].t(), x.data_ptr() % 16'
    ),
    "match, walrus, star": """
        def f(x):
            match x.dim():
                case 1 | 2 if (n := x.numel()) > 1:
                    return n
                case int(k):
                    return k
            first, *rest = x.shape
            return {**dict(a=first)}, [*rest]
    """,
    "generators and comprehensions": (
        "def f(n):\n    yield from (i for i in range(n) if i % 2)\nD = {k: v for k, v in zip('ab', [1, 2])}"
    ),
    "future": "X = 1",
    "sorting and printing": "print(sorted([3, 1], key=lambda v: -v), sum([1]), max(1, 2), sep=' ', end='')",
    "__all__": "__all__ = ['f']\n__doc__\nif __name__ == 'x':\n    pass",
}  # fmt: skip


@pytest.mark.parametrize("text", HONEST.values(), ids=HONEST)
def test_honest_code_is_allowed(text):
    assert sentence(text) == ""


REFUSED = {
    # what a learner tries, and what the sentence tells them
    "import numpy as np": (
        'import numpy is not allowed in a submission. It may import torch, triton, triton.language, math and a '
        'few more of Python\'s own; for trying things out, import below `if __name__ == "__main__":`.'
    ),
    "import os": "import os is not allowed",
    "import time\nif __name__ == '__main__':\n    pass": "import time is not allowed",
    "from triton.testing import do_bench": "from triton.testing import do_bench is not allowed",
    "DEVICE = triton.runtime.driver.active.get_active_torch_device()": (
        'triton.runtime is not allowed in a submission. Take the device of an input, x.device'
    ),
    "torch.manual_seed(0)": "torch.manual_seed is not allowed",
    "torch.backends.cuda.matmul.allow_tf32 = True": "torch.backends is not allowed",
    "with open('x') as f:\n    pass": "open is not allowed in a submission. The host function needs torch to allocate",
    "print(type(3))": "type is not allowed in a submission. Ask isinstance(value, kind).",
    "try:\n    pass\nexcept BaseException:\n    pass": (
        'BaseException is not allowed in a submission. Write `except Exception:`.'
    ),
    "from .helpers import f": "from .helpers import f is not allowed in a submission. A submission is one file",
    "import solutions.masked_add": "A submission is one file, and all that it uses stands in it.",
    "async def f():\n    pass": "async is not allowed",
    "X = math.inf": "math is used and not imported. Add `import math` at the top.",
    "X = tl.transpose": "triton.language.transpose is not allowed in a submission. Is tl.trans meant?",
    "tl = 3": "a new value for tl is not allowed in a submission. Choose another name: this one is a module's.",
    "x = torch": "torch as a value is not allowed in a submission. Use what you need of a module, as in torch.empty.",
    # other modules
    "import torch.utils.dlpack": "import torch.utils.dlpack",
    "from torch import ops": "from torch import ops",
    "from torch import *": "Import the names that you use",
    "from torch.nn.functional import torch as t": "from torch.nn.functional import torch",
    "from torch.nn.functional import math": "from torch.nn.functional import math",
    "torch.special.torch.ops": "torch.special.torch",
    "torch.sys": "torch.sys",
    "torch.builtins": "torch.builtins",
    "torch.jit.script": "torch.jit",
    "torch.CompilationUnit('')": "torch.CompilationUnit",
    "torch.import_ir_module": "torch.import_ir_module",
    "torch.from_dlpack(3)": "torch.from_dlpack",
    "torch.frombuffer(b'')": "torch.frombuffer",
    "torch.a_name_of_the_future()": "torch.a_name_of_the_future",
    "from triton.language import core": "from triton.language import core",
    "from triton.language.math import core": "from triton.language.math import core",
    "tl.standard": "triton.language.standard",
    "tl.target_info": "triton.language.target_info",
    "tl.math.core": "triton.language.math.core",
    "tl.extra.cuda": "triton.language.extra.cuda",
    "tl.str_to_ty": "triton.language.str_to_ty",
    "triton.knobs.runtime": "triton.knobs",
    "triton.compile": "triton.compile",
    "from functools import wraps": "from functools import wraps",
    "import functools\nfunctools.singledispatch": "functools.singledispatch",
    "from collections import namedtuple": "from collections import namedtuple",
    "import operator": "import operator",
    "import importlib": "import importlib",
    # names and attributes
    "__builtins__": "__builtins__",
    "__loader__.load_module('os')": "__loader__",
    "getattr(3, 'x')": "getattr is not allowed in a submission. Write the attribute itself, as in x.shape.",
    "hasattr(3, 'x')": "hasattr",
    "vars()": "vars",
    "globals()": "globals",
    "memoryview(b'')": "memoryview",
    "breakpoint()": "breakpoint",
    "().__class__.__mro__": ".__class__",
    "def f(e):\n    return e.obj": ".obj is not allowed",
    "def f(e):\n    return e.tb_frame": ".tb_frame",
    "def f(x):\n    return x.untyped_storage()": ".untyped_storage",
    "def f(x):\n    x.set_(x)": ".set_",
    "def f(x):\n    x.register_hook(f)": ".register_hook",
    "def f(x):\n    return x.grad_fn": ".grad_fn",
    "def f(k):\n    k.run(3)": ".run",
    "def f(k):\n    k.warmup(3)": ".warmup",
    "def f(k):\n    k.fn": ".fn",
    "def f(k):\n    k.shape = 3": "a new value for k.shape",
    "def f(k):\n    del k.shape": "a new value for k.shape",
    "for torch.pi in [3]:\n    pass": "a new value for torch.pi",
    "torch.empty = None": "a new value for torch.empty is not allowed in a submission. Modules stay as they are.",
    "def f(self):\n    self.src = 1": ".src",
    "'{0.x}'.format(3)": ".format() is not allowed in a submission. Write an f-string",
    "'{:{0.x}}'.format(3)": ".format()",
    "'{0[x]}'.format(3)": ".format()",
    "FORMAT = '{}'\nFORMAT.format(3)": ".format()",
    "'{x}'.format_map({})": ".format_map",
    "str.format": ".format",
    # binding names
    "def f(__name__):\n    pass": "a new value for __name__",
    "import math as __name__": "a new value for __name__",
    "__name__ = '__main__'": "a new value for __name__",
    "def f():\n    global __builtins__": "a new value for __builtins__",
    "try:\n    pass\nexcept ValueError as __build_class__:\n    pass": "a new value for __build_class__",
    "match 3:\n    case __debug_:\n        pass": "a new value for __debug_",
    "def f(tl):\n    return tl.anything": "a new value for tl",
    "lambda torch: torch": "a new value for torch",
    "def eval(x):\n    pass": "a new value for eval is not allowed in a submission. Choose another name",
    "if __name__ == '__main__':\n    pass\nelse:\n    import os": "import os",
    "def f():\n    if __name__ == '__main__':\n        import os": "import os",
    "class A:\n    if __name__ == '__main__':\n        import os": "import os",
    "if __name__ == '__main__' or True:\n    import os": "import os",
    # classes
    "class A(metaclass=type):\n    pass": "class A with a metaclass",
    "class A(metaclass=int):\n    pass": "class A with a metaclass",
    "class A:\n    __slots__ = ()": "a new value for __slots__",
    "class A:\n    def __getattr__(self, name): ...": "a definition of __getattr__",
    "class A:\n    def __torch_dispatch__(self): ...": "a definition of __torch_dispatch__",
    "class A:\n    def __del__(self): ...": "a definition of __del__",
    "class A:\n    sys = 1": "the name sys in a class",
    "class A:\n    modules: int": "the name modules in a class",
    "from enum import Enum\nEnum('E', {'__add__': max})": (
        'Enum as a value is not allowed in a submission. Write a class: class Name(Enum): ...'
    ),
    "import typing\nN = typing.NamedTuple": "typing.NamedTuple as a value",
    "from typing import NamedTuple as N\nN('a', [])": "N as a value",
    "match 3:\n    case object(__class__=c):\n        pass": ".__class__",
    "match 3:\n    case object(obj=c):\n        pass": ".obj",
    # kernels
    "f = triton.jit(max)": "triton.jit as a value is not allowed in a submission. Write @triton.jit above the kernel.",
    "from triton import jit as j\nk = j": "j as a value",
    "class A:\n    f = triton.jit": "triton.jit as a value",
    in_kernel("F(x_ptr)", ", F: tl.constexpr"): (
        'a call of F in a kernel is not allowed in a submission. A kernel calls tl'
    ),
    in_kernel("F[0](x_ptr)", ", F: tl.constexpr"): "the call F[0]() in a kernel",
    in_kernel("f = x_ptr\n    f(3)"): "a call of f in a kernel",
    in_kernel("F(3)") + "F = tl.constexpr(max)": "a call of F in a kernel",
    in_kernel("F(3)") + "@tl.constexpr\ndef F(x):\n    pass": "a call of F in a kernel",
    in_kernel("F.append(3)", ", F: tl.constexpr"): ".append() in a kernel",
    in_kernel("isinstance(i, int)"): "isinstance in a kernel",
    "import functools\n" + in_kernel("functools.reduce(F, (i,))", ", F: tl.constexpr"): (
        'functools.reduce() in a kernel'
    ),
}  # fmt: skip


@pytest.mark.parametrize("text, expected", REFUSED.items(), ids=[f"{n}" for n in range(len(REFUSED))])
def test_what_leads_elsewhere_is_refused(text, expected):
    assert expected in sentence(text)


def test_the_first_place_is_named():
    refused = first_refused(ast.parse(HEAD + "x = 1\nimport os\nimport sys\n"))
    assert refused.line == 5 and refused.sentence.startswith("Line 5: import os is not allowed")


def test_of_one_line_the_first_word_is_named():
    assert "torch.ops is not" in sentence("torch.ops.aten.add.default(1)")
    assert "open is not" in sentence("open('x').read()")


def test_an_attribute_is_named_where_it_stands():
    refused = first_refused(ast.parse("x = (\n    y\n    .handle\n)"))
    assert refused.line == 3


NAMESPACES = ["torch", "torch.nn.functional", "torch.linalg", "torch.special", "math", "itertools"]
TRITON = ["triton", "triton.language", "triton.language.math", "triton.language.extra.libdevice"]
LIST_MODULES = """
import importlib, json, sys, types
found = {}
for name in json.loads(sys.argv[1]):
    module = importlib.import_module(name)
    found[name] = {key: isinstance(value, types.ModuleType) for key, value in vars(module).items()}
print(json.dumps(found))
"""


@pytest.mark.parametrize("name", NAMESPACES)
def test_no_module_of_python_or_torch_leads_to_another(name):
    module = importlib.import_module(name)
    for key in dir(module):
        if isinstance(getattr(module, key, None), types.ModuleType) and f"{name}.{key}" not in MODULES:
            assert key not in members(name), key


def test_no_module_of_triton_leads_to_another():
    """In a process of its own: this one imports no Triton."""
    command = [sys.executable, "-c", LIST_MODULES, json.dumps(TRITON)]
    found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout)
    for name in TRITON:
        modules = {key for key, is_module in found[name].items() if is_module}
        assert {"core"} <= modules or name != "triton.language"
        for key in modules:
            assert key not in members(name) or f"{name}.{key}" in MODULES, f"{name}.{key}"
        missing = members(name) - found[name].keys() - {"extra", "libdevice"}
        assert not missing, f"{name} lacks {missing}"


def test_the_lists_are_not_empty():
    """They are read off the installed torch and Triton; where that fails, everything would be refused."""
    assert {"empty_like", "zeros", "float16", "softmax", "Tensor"} <= members("torch")
    assert {"load", "store", "dot", "arange", "constexpr", "float32", "math"} <= members("triton.language")
    assert {"exp", "rsqrt"} <= members("triton.language.math")
    assert {"tanh", "pow"} <= members("triton.language.extra.libdevice")
    assert {"shape", "stride", "data_ptr"} <= attributes()


def test_no_attribute_leads_into_python():
    python_inside = {"gi_frame", "f_back", "tb_frame", "f_globals", "func_globals", "obj", "modules", "sys", "os"}
    assert not attributes() & python_inside and python_inside <= LEADS_ELSEWHERE
