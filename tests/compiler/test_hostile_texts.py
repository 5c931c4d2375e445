"""Whatever a text is, it is compiled or refused as data, and the next text is compiled as if nothing had been."""

from __future__ import annotations

import copy
import os
import random
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from grader.child.landlock import abi_here
from grader.compiler import compiler_client
from grader.compiler.compiler_client import CompilerClient
from grader.compiler.result import CompilerResult, Failed, read_answer
from grader.gpu.models import AMD, MODELS
from grader.gpu.plan import BadPlan, Plan, accept
from grader.processes.descendants import own_children
from grader.wire.fence import Fence
from grader.wire.frames import ProtocolError
from tests.compiler.conftest import OPTIONS
from tests.conftest import ROOT
from tests.waiting import NEVER

MODEL = MODELS["sm_90"]
LIMIT = NEVER


def kernel(*lines: str) -> str:
    return "\n".join(["module { tt.func public @k(%p: !tt.ptr<f32>) {", *lines, "tt.return } }"])


def inline(assembly: str) -> str:
    ways = 'constraints = "=r", packed_element = 1 : i32, pure = false'
    call = f'%0 = tt.elementwise_inline_asm "{assembly}" {{{ways}}} -> i32'
    return kernel(call, "%1 = arith.bitcast %0 : i32 to f32", "tt.store %p, %1 : !tt.ptr<f32>")


MANY = 1 << 20
ENDLESS = kernel(
    f"%0 = tt.make_range {{end = {MANY} : i32, start = 0 : i32}} : tensor<{MANY}xi32>",
    f"%1 = tt.splat %p : !tt.ptr<f32> -> tensor<{MANY}x!tt.ptr<f32>>",
    f"%2 = tt.addptr %1, %0 : tensor<{MANY}x!tt.ptr<f32>>, tensor<{MANY}xi32>",
    f"%3 = tt.load %2 : tensor<{MANY}x!tt.ptr<f32>>",
    f"tt.store %2, %3 : tensor<{MANY}x!tt.ptr<f32>>",
)
REFUSED = {
    "nothing": ("", "text", "it has no kernel"),
    "a module without a kernel": ("module {}", "text", "it has no kernel"),
    "zero bytes": ("\0" * 1000, "text", ""),
    "another language": ("def kernel(x):\n    return x\n", "text", ""),
    "a kernel without a body": ("module { tt.func public @k() { } }", "text", "non-empty function body"),
    "an unknown operation": (kernel('"tt.format_disk"() : () -> ()'), "text", "format_disk"),
    "a million brackets": ("(" * 1_000_000, "text", "expected operation name"),
    "a huge type": (kernel("%0 = arith.constant 1 : i999999999"), "text", "integer bitwidth is limited"),
    "a huge tile": (
        kernel(f"%0 = tt.make_range {{end = {1 << 40} : i32, start = 0 : i32}} : tensor<{1 << 40}xi32>"),
        "text",
        "out of range",
    ),
    "two kernels": (kernel()[:-1] + "tt.func public @k2() { tt.return } }", "stage", "the pass "),
    "assembly that is none": (inline("endless"), "assembler", "ptxas"),
    "assembly that reads a file": (inline('.include \\"/etc/passwd\\"'), "assembler", "ptxas"),
    "no such library": (
        kernel(
            "%f = tt.load %p : !tt.ptr<f32>",
            '%0 = tt.extern_elementwise %f {libname = "x", libpath = "/etc/passwd", pure = true, symbol = "__nv_no"}'
            " : (f32) -> f32",
            "tt.store %p, %0 : !tt.ptr<f32>",
        ),
        "assembler",
        "Unresolved extern function '__nv_no'",
    ),
    "locations without an end": (kernel() + "\n#l = loc(" + "callsite(" * 100_000, "died", "signal 11"),
    "a hundred thousand ifs": (
        kernel("%c = arith.constant true", "scf.if %c {\n" * 100_000, "}\n" * 100_000), "died", "signal 11",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def right(compiler, text) -> bytes:
    return compiler.compile(text, OPTIONS, MODEL).kernel.code


@pytest.fixture
def still_right(compiler, text, right):
    """After the test, that the same compiler still makes the right code of a text that it has not in its memory."""
    yield
    again = compiler.compile(text + " " * random.randrange(1, 1 << 16), OPTIONS, MODEL, limit=LIMIT)
    assert again.kernel.code == right


@pytest.mark.parametrize("hostile, what, words", REFUSED.values(), ids=REFUSED)
def test_a_hostile_text_is_refused_as_data(compiler, still_right, hostile, what, words):
    before = compiler.started
    failed = compiler.compile(hostile, OPTIONS, MODEL, limit=LIMIT)
    assert isinstance(failed, Failed) and failed.what == what and words in failed.message
    assert compiler.started == before + (what == "died")


def test_an_endless_compilation_is_ended(compiler, still_right):
    pid = compiler.pid
    assert compiler.compile(ENDLESS, OPTIONS, MODEL, limit=1.0) == Failed("time", "it takes more than 1 s")
    assert compiler.pid != pid and not Path(f"/proc/{pid}").exists()


def test_how_a_process_ended_is_waited_for_however_late_it_is_told():
    """On a busy machine its pipes are closed long before it is gone."""

    class Late:
        def wait(self, limit: float) -> int:
            if limit < NEVER / 2:
                raise subprocess.TimeoutExpired("compiler", limit)
            return -signal.SIGXCPU

    process = object.__new__(compiler_client._Process)
    process._process = Late()
    assert process._how_it_ended(EOFError()).how == "time"


def test_a_text_cut_short_is_refused(compiler, still_right, text):
    for size in range(0, len(text) - 2, len(text) // 40):
        cut = text[:size]
        assert compiler.compile(cut, OPTIONS, MODEL, limit=LIMIT).what == "text"


def test_a_text_with_mistakes_is_compiled_or_refused(compiler, still_right, text):
    draw, said = random.Random(7), set()
    for _ in range(60):
        answer = compiler.compile(with_mistakes(text, draw), OPTIONS, MODEL, limit=LIMIT)
        said.add(answer.what if isinstance(answer, Failed) else "compiled")
    assert {"compiled", "text"} <= said <= {"compiled", "text", "stage", "assembler", "resources"}


def with_mistakes(text: str, draw: random.Random) -> str:
    lines = text.splitlines(keepends=True)
    for _ in range(draw.randint(1, 3)):
        at, other = draw.randrange(len(lines)), draw.randrange(len(lines))
        kind = draw.randrange(5)
        if kind == 0:
            lines[at] = ""
        elif kind == 1:
            lines[at] += lines[other]
        elif kind == 2:
            lines[at], lines[other] = lines[other], lines[at]
        elif kind == 3:
            numbers = list(re.finditer(r"\d+", lines[at]))
            value = str(draw.choice([0, 1, -1, 3, 64, 1 << 31, 1 << 40]))
            for found in numbers[: draw.randint(0, 2)]:
                lines[at] = lines[at][: found.start()] + value + lines[at][found.end() :]
        else:
            place = draw.randrange(len(lines[at]) + 1)
            lines[at] = lines[at][:place] + chr(draw.randrange(1, 256)) + lines[at][place + 1 :]
    return "".join(lines)


def test_options_that_a_target_has_not_are_refused(compiler, text):
    for options, words in (
        ({"num_warps": 3}, "power of 2"),
        ({"num_warps": -4}, "power of 2"),
        ({"num_warps": "x"}, ""),
    ):
        failed = compiler.compile(text, {**OPTIONS, **options}, MODEL)
        assert failed.what == "options" and words in failed.message
    assert "SM90" in compiler.compile(text, {**OPTIONS, "num_ctas": 2}, MODELS["sm_80"]).message


def test_a_kernel_that_no_gpu_has_room_for_is_refused_in_tritons_words(compiler, text):
    failed = compiler.compile(text, {**OPTIONS, "num_warps": 64}, MODEL)
    assert failed.what in ("resources", "stage", "assembler")
    small = MODELS["sm_90"].__class__(**{**vars(MODEL), "shared_per_block": 8})
    failed = compiler.compile(text, OPTIONS, small)
    assert failed.what == "resources" and re.match(
        r"out of resource: shared memory, Required: \d+, Hardware limit: 8. Reducing block sizes or `num_stages`",
        failed.message,
    )


def test_memory_that_survives_a_launch_is_refused_where_the_plan_is_accepted(compiler):
    assembly = ".global .u32 kept; ld.global.u32 $0, [kept]; st.global.u32 [kept], 7;"
    made = compiler.compile(inline(assembly), OPTIONS, MODEL)
    assert made.kernel.cubin.writable_globals == 4
    with pytest.raises(BadPlan, match="keeps memory between launches"):
        accept(Plan(kernels=[made.kernel]), [], MODEL)


# ---- the process --------------------------------------------------------------------------------------------------


def test_one_that_is_killed_is_replaced(compiler, still_right, text):
    os.kill(compiler.pid, signal.SIGKILL)
    failed = compiler.compile(text + "\n\n", OPTIONS, MODEL)
    assert failed == Failed("died", "it ended by signal 9.")
    assert isinstance(compiler.compile(text + "\n\n", OPTIONS, MODEL), CompilerResult)  # the failure was not kept


def test_it_is_limited_and_fenced(compiler):
    limits = Path(f"/proc/{compiler.pid}/limits").read_text()
    assert re.search(r"Max core file size +0 ", limits) and re.search(r"Max address space +4294967296 ", limits)
    descriptors = {number: os.readlink(f"/proc/{compiler.pid}/fd/{number}") for number in (0, 1)}
    assert descriptors == dict.fromkeys((0, 1), os.devnull)
    assert compiler.fence == Fence(abi_here(), seccomp=True, capabilities=True)


def test_nothing_is_left_of_it(text):
    compiler = CompilerClient()
    assert isinstance(compiler.compile(text, OPTIONS, MODEL), CompilerResult)
    pid, folder = compiler.pid, Path(os.readlink(f"/proc/{compiler.pid}/cwd"))
    assert [path.name for path in folder.iterdir()] == ["said"]
    compiler.end()
    compiler.end()
    assert not folder.exists() and pid not in own_children()


def test_nothing_is_left_where_nobody_ended_it(tmp_path):
    program = "from grader.compiler.compiler_client import CompilerClient; print(CompilerClient().versions)"
    given = {**os.environ, "TMPDIR": str(tmp_path)}
    said = subprocess.run([sys.executable, "-c", program], env=given, cwd=ROOT, capture_output=True, timeout=LIMIT)
    assert b"triton" in said.stdout and not list(tmp_path.iterdir())


# ---- its answers --------------------------------------------------------------------------------------------------

ANSWER = {
    "kind": "compiled",
    "metadata": {"name": "k", "shared": 0, "num_warps": 4, "num_stages": 3, "num_ctas": 1, "tmem_size": None},
    "descriptors": [{"swizzle": 3, "elem_size": 2, "elem_type": 6, "block_size": [64, 64], "fp4_padded": False}],
    "parts": {"optimised": [0, 4], "ptx": [4, 2]},
}
STRANGE = [None, True, -1, 1 << 70, 1.5, "", "x" * 5000, [], [[]], [-1, 2], [0, 1 << 60], {}, {"name": []}]


def places(value: object, path: tuple = ()) -> list[tuple]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [found for key, item in inner for found in [(*path, key), *places(item, (*path, key))]]


def test_any_value_anywhere_in_an_answer_is_read_or_refused():
    assert read_answer(ANSWER, b"textpt", MODEL).optimised == "text"
    refused = 0
    for *outer, last in places(ANSWER):
        for value in STRANGE:
            answer = inner = copy.deepcopy(ANSWER)
            for key in outer:
                inner = inner[key]
            inner[last] = value
            try:
                read_answer(answer, b"textpt", MODEL)
            except ProtocolError:
                refused += 1
    assert refused > 100


@pytest.mark.parametrize(
    "answer",
    [
        {"kind": "failed", "what": "boredom", "message": "", "stage": ""},
        {"kind": "failed", "what": "text", "message": [], "stage": ""},
        {"kind": "recorded"},
        {**ANSWER, "parts": {"cubin": [0, 6]}},
    ],
)
def test_an_answer_that_no_sound_process_gives_is_refused(answer):
    with pytest.raises(ProtocolError):
        read_answer(answer, b"textpt", MODEL)


def test_an_answer_for_an_amd_gpu_without_its_machine_code_is_refused():
    with pytest.raises(ProtocolError, match="there is no amdgcn"):
        read_answer(ANSWER, b"textpt", AMD["gfx942"])
