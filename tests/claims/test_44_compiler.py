"""Lesson 44: what specialisation does to loads, what compiles anew, and what an exponential is made of."""

from __future__ import annotations

import importlib.util
import re
import subprocess
from pathlib import Path

import pytest
import triton
import triton.language as tl
from triton._C.libtriton import native_specialize_impl
from triton.backends.compiler import BaseBackend, GPUTarget
from triton.compiler import ASTSource

from tests.conftest import ROOT

KNOWN = [["tt.divisibility", 16]]
OPCODE = re.compile(r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\d+ )?([A-Z][A-Z0-9.]+)")


@triton.jit
def exp_kernel(x_ptr, B: tl.constexpr):
    lanes = tl.arange(0, B)
    tl.store(x_ptr + lanes, tl.exp(tl.load(x_ptr + lanes)))


@triton.jit
def exp2_kernel(x_ptr, B: tl.constexpr):
    lanes = tl.arange(0, B)
    tl.store(x_ptr + lanes, tl.exp2(tl.load(x_ptr + lanes)))


@triton.jit
def promising_kernel(x_ptr, N, stride, B: tl.constexpr, HOW: tl.constexpr):
    if HOW == "multiple_of":
        N = tl.multiple_of(N, 4)
        stride = tl.multiple_of(stride, 4)
    if HOW == "assume":
        tl.assume(N % 4 == 0)
        tl.assume(stride % 4 == 0)
    if HOW == "arithmetic":
        N = N // 4 * 4
        stride = stride // 4 * 4
    lanes = tl.arange(0, B)
    x_ptrs = x_ptr + tl.program_id(0) * stride + lanes
    tl.store(x_ptrs, tl.load(x_ptrs, mask=lanes < N), mask=lanes < N)


def solution(id: str):
    """Returns the kernel of a solution."""
    name = id[3:]
    spec = importlib.util.spec_from_file_location(f"claims_{name}", ROOT / "solutions" / id / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, f"{name}_kernel")


def compiled(kernel, num_warps: int, known: str, **arguments: str | int):
    """Compiles for sm_90. An argument is its type, or a number that is known; `known`: names of multiples of 16."""
    signature = {name: one if isinstance(one, str) else "constexpr" for name, one in arguments.items()}
    constants = {name: one for name, one in arguments.items() if not isinstance(one, str)}
    attributes = {(place,): KNOWN for place, name in enumerate(arguments) if name in known.split()}
    source = ASTSource(kernel, signature, constants, attributes)
    return triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": num_warps}).asm


def masked_add(known: str = "x_ptr y_ptr z_ptr N"):
    types = dict.fromkeys(("x_ptr", "y_ptr", "z_ptr"), "*fp32")
    return compiled(solution("01_masked_add"), 8, known, **types, N="i32", BLOCK_N=1024)


def transpose(known: str):
    sizes = {"M": "i32", "N": "i32", "stride_xm": "i32", "stride_xn": 1, "stride_zn": "i32", "stride_zm": 1}
    blocks = {"BLOCK_M": 128, "BLOCK_N": 64}
    return compiled(
        solution("04_transpose"), 32, f"x_ptr z_ptr {known}", x_ptr="*fp32", z_ptr="*fp32", **sizes, **blocks
    )


def accesses(asm) -> list[str]:
    return re.findall(r"\b((?:ld|st)\.global(?:\.v4)?\.b32)", asm["ptx"])


def opcodes(asm, folder: Path) -> list[str]:
    """Returns the names of the machine instructions, without those that fill up the end."""
    path = folder / "kernel.cubin"
    path.write_bytes(asm["cubin"])
    tool = Path(triton.__file__).parent / "backends/nvidia/bin/nvdisasm"
    text = subprocess.run([tool, path], capture_output=True, text=True, check=True).stdout
    return [name for name in OPCODE.findall(text) if name != "NOP"]


# ---- levels ----------------------------------------------------------------------------------------------------------


def test_the_line_of_01_at_each_level(tmp_path):
    asm = masked_add()
    assert len(re.findall(r"tt\.load .* : tensor<1024x!tt\.ptr<f32>>", asm["ttir"])) == 2
    assert "sizePerThread = [4]" in asm["ttgir"] and "@%p1 ld.global.v4.b32" in asm["ptx"]
    names = opcodes(asm, tmp_path)
    assert names.count("LDG.E.128") == 2 and names.count("FADD") == 4
    if triton.__version__.startswith("3.7."):
        assert len(names) == 29


def test_a_tile_is_turned_through_shared_memory():
    asm = transpose("M N stride_xm stride_zn")
    turned = asm["ttgir"].index("tt.trans")
    assert turned < asm["ttgir"].index("ttg.convert_layout")
    written, read = (re.findall(rf"\b{one}\.shared\S*\.b32", asm["ptx"]) for one in ("st", "ld"))
    assert len(written) == len(read) == 8 and asm["ptx"].count("bar.sync") == 1


# ---- specialisation --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "told"),
    [
        (1, ("constexpr", 1)), (15, ("i32", "")), (16, ("i32", "D")), (17, ("i32", "")), (100, ("i32", "")),
        (2**31 - 1, ("i32", "")), (2**31, ("i64", "D")), (0.5, ("fp32", None)), (16.0, ("fp32", None)),
    ],
)  # fmt: skip
def test_what_is_told_of_a_number(number, told):
    assert native_specialize_impl(BaseBackend, number, False, True, True) == told


@pytest.mark.parametrize("number", [1, 16, 17])
def test_where_a_number_is_not_specialised_nothing_is_told(number):
    assert native_specialize_impl(BaseBackend, number, False, False, True) == ("i32", None)


@pytest.mark.parametrize(
    ("known", "found"),
    [
        ("x_ptr y_ptr z_ptr N", ["ld.global.v4.b32"] * 2 + ["st.global.v4.b32"]),
        ("x_ptr y_ptr z_ptr", ["ld.global.b32"] * 8 + ["st.global.b32"] * 4),  # the mask alone is unknown
    ],
)
def test_the_width_of_the_accesses_of_01(known, found):
    assert accesses(masked_add(known)) == found


@pytest.mark.parametrize(
    ("known", "found"),
    [
        ("M N stride_xm stride_zn", {"ld.global.v4.b32", "st.global.v4.b32"}),  # 64 x 64
        ("N stride_xm", {"ld.global.v4.b32", "st.global.b32"}),  # 100 x 64
        ("", {"ld.global.b32", "st.global.b32"}),  # 8191 x 8193
    ],
)
def test_the_width_of_the_accesses_of_04(known, found):
    assert set(accesses(transpose(known))) == found


@pytest.mark.parametrize(
    ("how", "is_wide"), [("nothing", False), ("multiple_of", False), ("assume", False), ("arithmetic", True)]
)
def test_only_arithmetic_tells_of_a_multiple_of_four(how, is_wide):
    signature = {"x_ptr": "*fp32", "N": "i32", "stride": "i32", "B": "constexpr", "HOW": "constexpr"}
    source = ASTSource(promising_kernel, signature, {"B": 1024, "HOW": how}, {(0,): KNOWN})
    found = accesses(triton.compile(source, target=GPUTarget("cuda", 90, 32)).asm)
    assert ("ld.global.v4.b32" in found) == ("st.global.v4.b32" in found) == is_wide


# ---- caches ----------------------------------------------------------------------------------------------------------

KERNEL = """import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, B: tl.constexpr):
    lanes = tl.arange(0, B)
    tl.store(x_ptr + lanes, lanes)
"""


@pytest.mark.parametrize(
    ("change", "is_known"),
    [(("", ""), True), (("(0, B)\n", "(0, B)  # all\n"), False), (("import triton\n", "import triton\n\n"), False)],
    ids=["nothing", "a comment", "an empty line above"],
)
def test_a_text_is_known_to_the_letter(tmp_path, change, is_known):
    def key(text: str) -> str:
        path = tmp_path / "kernel.py"
        path.write_text(text)
        spec = importlib.util.spec_from_file_location("kernel", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.kernel.cache_key

    assert (key(KERNEL) == key(KERNEL.replace(*change, 1))) == is_known


# ---- exponentials ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kernel", "made_of"), [(exp_kernel, ["FMUL", "FSETP", "FMUL", "MUFU", "FMUL"]), (exp2_kernel, ["MUFU"])]
)
def test_what_an_exponential_is_made_of(kernel, made_of, tmp_path):
    names = opcodes(compiled(kernel, 4, "", x_ptr="*fp32", B=128), tmp_path)
    assert [name.partition(".")[0] for name in names if name[:4] in ("FMUL", "FSET", "MUFU", "FADD", "FFMA")] == made_of


def test_only_exp2_flushes_subnormal_results():
    texts = [compiled(one, 4, "", x_ptr="*fp32", B=128)["ptx"] for one in (exp_kernel, exp2_kernel)]
    assert [re.findall(r"ex2\.\S+", text) for text in texts] == [["ex2.approx.f32"], ["ex2.approx.ftz.f32"]]
