"""Whatever function of Triton's a kernel calls, its machine code is accepted; memory of a kernel's own is not."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import triton
from triton.compiler.compiler import ASTSource
from triton.language import math
from triton.language.extra.cuda import libdevice

from grader.wire import cubin
from grader.wire.cubin import TABLES, read_cubin
from tests import slow
from tests.compiler.by_hand import ARCHITECTURES, compiled, kernels_of
from tests.waiting import NEVER

POINTERS = {"int32": "*i32", "int64": "*i64", "uint32": "*u32", "uint64": "*u64"}  # others are called what they are
FLOATS, BOTH = ("fp32", "fp64"), ("fp16", "bf16", "fp32", "fp64")
MATH = {  # dtypes and number of arguments of each function of tl.math
    "abs": ((*BOTH, "int32", "int64"), 1), "ceil": (FLOATS, 1), "cos": (FLOATS, 1), "div_rn": (("fp32",), 2),
    "erf": (FLOATS, 1), "exp": (FLOATS, 1), "exp2": (FLOATS, 1), "fdiv": (FLOATS, 2), "floor": (FLOATS, 1),
    "fma": (BOTH, 3), "log": (FLOATS, 1), "log2": (FLOATS, 1), "rsqrt": (FLOATS, 1), "sin": (FLOATS, 1),
    "sqrt": (FLOATS, 1), "sqrt_rn": (("fp32",), 1), "umulhi": (("int32", "int64", "uint32", "uint64"), 2),
}  # fmt: skip
AT_ONCE = 60  # calls in one kernel
DEBUGGING = """
@triton.jit
def debugging(p_int32, p_fp32, out, n):
    i = tl.arange(0, 32)
    x, y = tl.load(p_int32 + i), tl.load(p_fp32 + i)
    tl.device_print("a number", tl.program_id(0))
    tl.device_print("several", x, y, n, y.to(tl.float64), x > 0)
    tl.device_print("hexadecimal", x, hex=True)
    tl.device_print("a text alone")
    tl.device_assert(x > 0, "a tile")
    tl.device_assert(n > 3)
    tl.device_assert(n > 4, "a number: 100 %")
    tl.debug_barrier()
    tl.store(out + i, (x * n + x).to(tl.float64))
"""
DESCRIPTORS = """
@triton.jit
def descriptors(p_fp32, out, n):
    x = tl.make_tensor_descriptor(p_fp32, [n, 32], [32, 1], [32, 32])
    z = tl.make_tensor_descriptor(out, [n, 32], [32, 1], [32, 32])
    z.store([0, 0], x.load([0, 0]))
    z.atomic_add([32, 0], x.load([32, 0]))
"""
SEEN_SOMEWHERE = {*TABLES, "_$_str", "_$_str_$_1", "_$_str_$_2", "printfFormat_0", "assertMessage_0", "vprintf"}
SEEN_SOMEWHERE |= {"__assertfail", "assertFile_0", "assertFunc_0"}


def calls() -> Iterator[tuple[str, list[str]]]:
    """Each function with the dtypes of its arguments: libdevice's as its source lists them, and tl.math's."""
    for function in ast.parse(inspect.getsource(libdevice)).body:
        for node in ast.walk(function) if isinstance(function, ast.FunctionDef) else ():
            for kinds in node.keys if isinstance(node, ast.Dict) else ():
                yield f"libdevice.{function.name}", [kind.args[0].value for kind in kinds.elts]
    for name, (dtypes, number) in MATH.items():
        yield from ((f"tl.math.{name}", [dtype] * number) for dtype in dtypes)


def kernel_of(name: str, some: list[tuple[str, list[str]]]) -> tuple[str, dict[str, str]]:
    """A kernel that makes these calls, and its signature."""
    dtypes = sorted({dtype for _, kinds in some for dtype in kinds})
    lines = [
        "@triton.jit",
        f"def {name}({''.join(f'p_{dtype}, ' for dtype in dtypes)}out):",
        "    i = tl.arange(0, 32)",
    ]
    for number, (function, kinds) in enumerate(some):
        values = [f"tl.load(p_{dtype} + {96 * number + 32 * place} + i)" for place, dtype in enumerate(kinds)]
        lines.append(f"    tl.store(out + {32 * number} + i, {function}({', '.join(values)}).to(tl.float64))")
    return "\n".join(lines), {**{f"p_{dtype}": POINTERS.get(dtype, f"*{dtype}") for dtype in dtypes}, "out": "*fp64"}


@pytest.fixture(scope="module")
def sources(tmp_path_factory) -> list[tuple[ASTSource, bool]]:
    """Kernels that call everything, and whether each is compiled for debugging."""
    found = list(calls())
    groups = [found[first : first + AT_ONCE] for first in range(0, len(found), AT_ONCE)]
    kernels = [kernel_of(f"kernel{number}", group) for number, group in enumerate(groups)]
    text = "\n\n".join([*(text for text, _ in kernels), DEBUGGING, DESCRIPTORS])
    module = kernels_of(tmp_path_factory.mktemp("kernels") / "every_function.py", text)
    made = [(ASTSource(getattr(module, f"kernel{n}"), types, {}, {}), False) for n, (_, types) in enumerate(kernels)]
    types = {"p_int32": "*i32", "p_fp32": "*fp32", "out": "*fp64", "n": "i32"}
    made.append((ASTSource(module.descriptors, {"p_fp32": "*fp32", "out": "*fp32", "n": "i32"}, {}, {}), False))
    return made + [(ASTSource(module.debugging, types, {}, {}), debug) for debug in (False, True)]


def test_every_function_of_tl_math_is_in_the_table():
    public = {name for name, value in vars(math).items() if getattr(value, "__module__", "") == math.__name__}
    assert {name for name in public if not name.startswith("_") and callable(getattr(math, name))} == MATH.keys()
    assert len(list(calls())) > 300


@pytest.mark.parametrize("arch", slow.drawn(ARCHITECTURES, 1, Path(cubin.__file__).read_text()))
def test_what_a_function_of_tritons_needs_is_accepted(sources, arch):
    seen = b""
    for source, debug in sources:
        code = compiled(source, arch, debug=debug)[0]["cubin"]
        read = read_cubin(code)
        assert (read.arch, read.writable_globals, read.undefined) == (arch, 0, [])
        assert source.fn.__name__ in read.kernels and read.registers > 0
        seen += code
    assert not [name for name in SEEN_SOMEWHERE if name.encode() + b"\0" not in seen]


# ---- memory that survives a launch ----------------------------------------------------------------------------------

PTX = """
.version 8.0
.target sm_90
.address_size 64
{declaration}
.visible .entry kernel(.param .u64 z) {{
    .reg .b32 %r<4>;
    .reg .b64 %d<4>;
    ld.param.u64 %d0, [z];
    mov.u64 %d1, {name};
    ld.global.u32 %r0, [%d1];
    st.global.u32 [%d0], %r0;
    st.global.u32 [%d1], %r0;
    ret;
}}
"""
OWN = {
    "a variable": ".global .align 4 .u32 kept;",
    "a variable with a first value": ".global .align 4 .u32 kept = 7;",
    "an array": ".global .align 8 .b8 kept[4096];",
    "a variable that others see": ".visible .global .align 4 .u32 kept;",
    "a longer table": ".global .align 4 .b8 __cudart_i2opi_f[28];",
    "a shorter table": ".global .align 4 .b8 __cudart_i2opi_d[24];",
    "a table that others see": ".visible .global .align 4 .b8 __cudart_i2opi_f[24];",
    "a table under another name": ".global .align 4 .b8 __cudart_i2opi_g[24];",
    "another question": ".global .align 1 .b8 _$_str[4] = {65, 66, 67, 0};",
    "a text without an end": ".global .align 1 .b8 printfFormat_0[4] = {65, 66, 67, 68};",
    "a text with room behind it": ".global .align 1 .b8 printfFormat_0[8] = {65, 66, 67, 0};",
    "a text that is empty, with room": ".global .align 1 .b8 assertMessage_0[64];",
    "a text that is long": f".global .align 1 .b8 assertFile_0[5001] = {{{'65, ' * 5000}0}};",
}


def assembled(folder: Path, declaration: str) -> bytes:
    """A kernel that reads this variable and, unless it is constant, writes it."""
    text = PTX.format(declaration=declaration, name=re.search(r"([\w$]+)(\[|;| =)", declaration)[1])
    if declaration.startswith(".const"):
        text = text.replace("ld.global", "ld.const").replace("st.global.u32 [%d1], %r0;", "")
    source, binary = folder / "k.ptx", folder / "k.cubin"
    source.write_text(text)
    assembler = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "ptxas"
    subprocess.run([assembler, "-arch=sm_90", source, "-o", binary], check=True, timeout=NEVER)
    return binary.read_bytes()


@pytest.mark.parametrize("declaration", OWN.values(), ids=OWN)
def test_memory_of_its_own_is_seen(tmp_path, declaration):
    assert read_cubin(assembled(tmp_path, declaration)).writable_globals > 0


@pytest.mark.parametrize(
    "declaration",
    [
        ".global .align 4 .b8 __cudart_i2opi_f[24];",
        ".global .align 1 .b8 printfFormat_12[4] = {65, 66, 67, 0};",
        ".global .align 1 .b8 assertMessage_0[1];",
        f".global .align 1 .b8 _$_str_$_3[11] = {{{', '.join(str(byte) for byte in b'__CUDA_FTZ')}, 0}};",
        ".const .align 4 .b8 constants[4096];",
    ],
)
def test_a_constant_is_no_memory(tmp_path, declaration):
    """What stands in constant memory is none, whatever its name; of the rest, what Triton's libraries hold."""
    assert read_cubin(assembled(tmp_path, declaration)).writable_globals == 0
