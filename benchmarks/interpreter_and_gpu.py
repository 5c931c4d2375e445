"""Whether the interpreter computes what a GPU does: python benchmarks/interpreter_and_gpu.py [--only sin] [--record]

A kernel for each operation in each dtype, judged as a submission is: recorded once, interpreted, and its machine code
replayed on the GPU on the same inputs, special values among them. Prints what differs, and how: the share of the lanes
and the largest distance in units of the last place. Exits with 1 where something differs that may not: only functions
that a GPU approximates, and sums that it takes in another order. Wants a GPU; --record stops before it.
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch

from grader.compiler.machine_code import MachineCode
from grader.gpu.device import device_here
from grader.gpu.models import DEFAULT_MODEL
from grader.gpu.plan import PackedPlan
from grader.gpu.pool.replays import Replays
from grader.judging.kernel_texts import record_call
from grader.judging.run import PackedCall
from grader.processes.faults import ChildEnded
from grader.processes.front_end_process import FrontEnd
from grader.processes.interpreter_process import Interpreter
from grader.processes.submission_process import SubmissionProcess
from grader.submission.text import Submission
from grader.wire.messages import InterpretRequest, RecordRequest, TensorSpec
from grader.wire.reply import spec_and_bytes, spec_of, tensor_of

N, SIDE = 1024, 32  # lanes of a kernel, as a vector and as a matrix
FLOATS, WHOLE = ("float32", "float16", "bfloat16", "float64"), ("int8", "int16", "int32", "int64")
SHORT = {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16", "float64": "fp64", "uint8": "u8", "bool": "bool"}
TL = {"float8e5": "float8e5", "float8e4nv": "float8e4nv", "bool": "int1"}
HEAD = """import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

@triton.jit
def _add(a, b):
    return a + b

@triton.jit
def _first_largest(a, i, b, j):
    is_first = (a > b) | ((a == b) & (i < j))
    return tl.where(is_first, a, b), tl.where(is_first, i, j)

@triton.jit
def _linear(a, b, c, d):
    return a * c, b * c + d
"""
KERNEL = """
@triton.jit
def kernel_{number}(x_ptr, y_ptr, w_ptr, z_ptr, N: tl.constexpr, S: tl.constexpr):
    i = tl.arange(0, N)
    rows, cols = tl.arange(0, S)[:, None], tl.arange(0, S)[None, :]
    at = {at}
    x, y, w = tl.load(x_ptr + at), tl.load(y_ptr + at), tl.load(w_ptr + at)
    {body}
    tl.store(z_ptr + {to}, r)

def entry_{number}(x, y, w):
    z = torch.zeros({size}, dtype=torch.{out}, device=x.device)
    kernel_{number}[(1,)](x, y, w, z, N={lanes}, S={side})
    return z
"""
VECTOR, MATRIX = "i", "rows * S + cols"


@dataclass(frozen=True)
class Cell:
    """One operation in one dtype. `body` sets r from x, y and w; `differs`: why it may differ from a GPU's."""

    name: str
    dtype: str
    body: str
    out: str = ""  # dtype of r, that of x if it is not told
    at: str = VECTOR
    to: str = ""  # where r is stored, if it is not where x lies
    size: int = N
    small: bool = False  # inputs around 1, with no special values
    differs: str = ""

    @property
    def label(self) -> str:
        return f"{self.name} {SHORT.get(self.dtype, self.dtype)}"

    def text(self, number: int) -> str:
        return KERNEL.format(
            number=number, at=self.at, body=self.body, to=self.to or self.at, size=self.size,
            out=self.out or self.dtype, lanes=N, side=SIDE,
        )  # fmt: skip


APPROXIMATE, ORDER = "approximate", "order of a sum"


def elementwise() -> Iterator[Cell]:
    exact = ["x + y", "x - y", "x * y", "-x", "tl.abs(x)", "tl.where(y > x, x, w)", "tl.minimum(x, y)",
             "tl.maximum(x, y)", "tl.clamp(x, y, w)", "tl.minimum(x, y, propagate_nan=tl.PropagateNan.ALL)",
             "tl.maximum(x, y, propagate_nan=tl.PropagateNan.ALL)"]  # fmt: skip
    for dtype in FLOATS:
        for expression in exact:
            yield Cell(expression, dtype, f"r = {expression}")
        for expression in ("x / y", "x % y"):
            yield Cell(expression, dtype, f"r = {expression}", differs=APPROXIMATE)
        for comparison in ("<", "<=", ">", ">=", "==", "!="):
            yield Cell(f"x {comparison} y", dtype, f"r = x {comparison} y", out="bool")
    for dtype in ("float32", "float64"):
        yield Cell("fma", dtype, "r = tl.fma(x, y, w)")
        yield Cell("x * y + w", dtype, "r = x * y + w", differs="rounded once")
        for name in ("sqrt_rn", "floor", "ceil"):
            yield Cell(name, dtype, f"r = tl.{name}(x)")
        yield Cell("div_rn", dtype, "r = tl.div_rn(x, y)")
        for name in ("exp", "exp2", "log", "log2", "sin", "cos", "sqrt", "rsqrt", "erf", "sigmoid"):
            yield Cell(name, dtype, f"r = tl.{name}(x)", differs=APPROXIMATE)
    yield Cell("fdiv", "float32", "r = tl.fdiv(x, y)", differs=APPROXIMATE)


def integers() -> Iterator[Cell]:
    for dtype in (*WHOLE, "uint8"):
        for expression in ("x + y", "x - y", "x * y", "-x", "x & y", "x | y", "x ^ y", "~x", "tl.minimum(x, y)",
                           "tl.maximum(x, y)", "tl.where(y > x, x, w)"):  # fmt: skip
            yield Cell(expression, dtype, f"r = {expression}")
        for expression in ("x // y", "x % y", "tl.cdiv(x, y)"):
            yield Cell(f"{expression} (y > 0)", dtype, f"y = tl.maximum(y, 1)\n    r = {expression}")
        for expression in ("x << y", "x >> y"):
            yield Cell(f"{expression} (y < 8)", dtype, f"y = y & 7\n    r = {expression}")
        for comparison in ("<", "<=", "==", "!="):
            yield Cell(f"x {comparison} y", dtype, f"r = x {comparison} y", out="bool")
        if dtype != "uint8":
            yield Cell("abs", dtype, "r = tl.abs(x)")
    for dtype in ("int32", "int64"):
        yield Cell("umulhi", dtype, "r = tl.umulhi(x, y)")
    yield Cell("randint", "int32", "r = tl.randint(7, x)")
    yield Cell("rand", "int32", "r = tl.rand(7, x)", out="float32")
    yield Cell("randn", "int32", "r = tl.randn(7, x)", out="float32", differs=APPROXIMATE)


def conversions() -> Iterator[Cell]:
    for source, target in itertools.permutations((*FLOATS, *WHOLE, "uint8", "bool"), 2):
        name = f"to {SHORT.get(target, target)}"
        if source in FLOATS and target not in FLOATS and target != "bool":  # beyond the range there is no rule
            within = "tl.clamp(tl.where(x == x, x, 0.0).to(tl.float32), 0.0, 100.0)"
            yield Cell(name, source, f"r = {within}.to(tl.{target})", out=target)
        else:
            yield Cell(name, source, f"r = x.to(tl.{TL.get(target, target)})", out=target)
    for target, source in itertools.product(("float8e5", "float8e4nv"), ("float32", "float16", "bfloat16")):
        yield Cell(f"to {target}", source, f"r = x.to(tl.{target}).to(tl.int8, bitcast=True)", out="int8")
        differs = "infinity and NaN become numbers" if (target, source) == ("float8e5", "bfloat16") else ""
        yield Cell(f"from {target} to {SHORT[source]}", "int8", f"r = x.to(tl.{target}, bitcast=True).to(tl.{source})",
                   out=source, differs=differs)  # fmt: skip
    yield Cell("to fp16 rtz", "float32", 'r = x.to(tl.float16, fp_downcast_rounding="rtz")', out="float16")
    yield Cell("bitcast", "float32", "r = x.to(tl.int32, bitcast=True)", out="int32")


def folds() -> Iterator[Cell]:
    row = {"at": MATRIX, "to": "tl.arange(0, S)", "size": SIDE}
    for dtype in (*FLOATS, "int32", "int64"):
        whole = dtype in WHOLE
        for axis in (0, 1):
            yield Cell(f"sum axis {axis}", dtype, f"r = tl.sum(x, {axis})", small=True, differs="" if whole else ORDER,
                       **row)  # fmt: skip
            for name in ("max", "min"):
                yield Cell(f"{name} axis {axis}", dtype, f"r = tl.{name}(x, {axis})", **row)
            for name in ("argmax", "argmin"):
                yield Cell(f"{name} axis {axis}", dtype, f"r = tl.{name}(x, {axis})", out="int32", small=True, **row)
        for name in ("cumsum", "cumprod"):
            yield Cell(name, dtype, f"r = tl.{name}(x, 1)", at=MATRIX, small=True, differs="" if whole else ORDER)
        yield Cell("associative_scan", dtype, "r = tl.associative_scan(x, 0, _add)", at=MATRIX, small=True,
                   differs="" if whole else ORDER)  # fmt: skip
        yield Cell("sort", dtype, "r = tl.sort(x, 1)", at=MATRIX, small=True)
        yield Cell("flip", dtype, "r = tl.flip(x, 1)", at=MATRIX)
        yield Cell("trans", dtype, "r = tl.trans(x)", at=MATRIX)
        yield Cell("reshape", dtype, "r = tl.reshape(tl.permute(tl.reshape(x, (4, 8, 32)), (1, 0, 2)), (32, 32))",
                   at=MATRIX)  # fmt: skip
        yield Cell("gather", dtype, "r = tl.gather(x, (cols * 7 + rows) % S, 1)", at=MATRIX)
        yield Cell("join split", dtype, "a, b = tl.split(tl.reshape(x, (32, 16, 2)))\n    r = tl.interleave(b, a)",
                   at=MATRIX)  # fmt: skip
    yield Cell("reduce two", "float32", "r, _ = tl.reduce((x, rows * S + cols), 1, _first_largest)", small=True, **row)
    yield Cell(
        "scan two", "float32", "_, r = tl.associative_scan((x, y), 1, _linear)", at=MATRIX, small=True, differs=ORDER
    )
    yield Cell("xor_sum", "int32", "r = tl.xor_sum(x, 1)", **row)
    yield Cell("histogram", "int32", "r = tl.histogram(x & 31, S)", to="tl.arange(0, S)", size=SIDE)


def products() -> Iterator[Cell]:
    for dtype in ("float16", "bfloat16"):
        yield Cell("dot", dtype, "r = tl.dot(x, y)", out="float32", at=MATRIX, small=True, differs=ORDER)
        whole = f"x, y = (x * 8).to(tl.int32).to(tl.{dtype}), (y * 8).to(tl.int32).to(tl.{dtype})"
        yield Cell("dot of integers", dtype, f"{whole}\n    r = tl.dot(x, y)", out="float32", at=MATRIX, small=True)
    for precision in ("ieee", "tf32", "tf32x3"):
        product = f'r = tl.dot(x, y, input_precision="{precision}")'
        yield Cell(f"dot {precision}", "float32", product, at=MATRIX, small=True, differs=ORDER)
    one = "x, y = tl.where(rows == cols, x, 0.0), tl.where(y < 2.0, 1.0, 0.0)"  # sums of one term: rounded operands
    product = f'{one}\n    r = tl.dot(x, y, input_precision="tf32")'
    yield Cell("dot tf32, one term", "float32", product, at=MATRIX, small=True)
    yield Cell("dot", "int8", "r = tl.dot(x, y)", out="int32", at=MATRIX)
    for kind in ("float8e5", "float8e4nv"):
        cast = f"x, y = (x & 0x37).to(tl.{kind}, bitcast=True), (y & 0x37).to(tl.{kind}, bitcast=True)"
        yield Cell(f"dot {kind}", "int8", f"{cast}\n    r = tl.dot(x, y)", out="float32", at=MATRIX, differs=ORDER)


EXACT = """
    floor ceil trunc rint round nearbyint sqrt_rn rcp_rn llrint llround isnan isinf finitef signbit float_as_int
"""
NEAR = """
    exp exp2 exp10 expm1 log log2 log10 log1p sin cos tan sinh cosh tanh asin acos atan asinh acosh atanh sqrt rsqrt
    cbrt rcbrt erf erfc erfinv erfcinv erfcx tgamma lgamma j0 j1 y0 y1 cyl_bessel_i0 cyl_bessel_i1 normcdf normcdfinv
    sinpi cospi logb ilogb fast_expf fast_logf fast_sinf fast_cosf fast_tanf fast_log2f fast_log10f
    fast_exp10f
"""
OF_TWO = "add_rd add_ru add_rz mul_rd mul_ru mul_rz div_rd div_ru div_rz nextafter fdim copysign fmod remainder"


def library() -> Iterator[Cell]:
    integer = dict.fromkeys(("isnan", "isinf", "finitef", "signbit", "float_as_int", "ilogb"), "int32")
    integer |= {"llrint": "int64", "llround": "int64"}
    for name in (EXACT + NEAR).split():
        for dtype in ("float32", "float64"):
            yield Cell(f"libdevice {name}", dtype, f"r = libdevice.{name}(x)", out=integer.get(name, dtype),
                       differs="" if name in EXACT.split() else APPROXIMATE)  # fmt: skip
    for name in OF_TWO.split():
        differs = "at the smallest normal number" if name in ("div_rd", "div_ru") else ""
        yield Cell(f"libdevice {name}", "float32", f"r = libdevice.{name}(x, y)", differs=differs)
    for name in ("pow", "atan2", "hypot", "rhypot", "fast_powf", "fast_dividef"):
        yield Cell(f"libdevice {name}", "float32", f"r = libdevice.{name}(x, y)", differs=APPROXIMATE)
    for name in ("popc", "clz", "brev", "ffs"):
        yield Cell(f"libdevice {name}", "int32", f"r = libdevice.{name}(x)")


def cells(only: str) -> list[Cell]:
    groups = (elementwise, integers, conversions, folds, products, library)
    return [cell for group in groups for cell in group() if only in cell.label]


# ---- inputs -------------------------------------------------------------------------------------------------------


def inputs(cell: Cell) -> list[torch.Tensor]:
    """x, y and w: [N] each, every pair of special values first unless small ones are asked for, then drawn ones."""
    generator, dtype = torch.Generator().manual_seed(5), getattr(torch, cell.dtype)
    special = [] if cell.small else _special(dtype)
    pairs = list(itertools.product(special, special))[:N]
    columns = [[a for a, _ in pairs], [b for _, b in pairs], [b for b, _ in reversed(pairs)]]
    return [
        torch.cat([_tensor(column, dtype), _drawn(dtype, N - len(pairs), cell.small, generator)]) for column in columns
    ]


def _special(dtype: torch.dtype) -> list[float | int]:
    if dtype == torch.bool:
        return [False, True]
    if not dtype.is_floating_point:
        low, high = torch.iinfo(dtype).min, torch.iinfo(dtype).max
        return [0, 1, 2, 3, high, high - 1, low, low + 1, *([] if low == 0 else [-1, -2, -3]), high // 3]
    about = torch.finfo(dtype)
    numbers = [
        0.0,
        0.5,
        1.0,
        1.5,
        2.5,
        about.max,
        about.tiny,
        about.smallest_normal / 2,
        math.inf,
        1 + about.eps,
        math.pi,
    ]
    return [*numbers, *(-number for number in numbers), math.nan]


def _tensor(values: list, dtype: torch.dtype) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64 if dtype.is_floating_point else torch.int64).to(dtype)


def _drawn(dtype: torch.dtype, count: int, small: bool, generator: torch.Generator) -> torch.Tensor:
    if dtype.is_floating_point:
        values = torch.randn(count, dtype=torch.float64, generator=generator)
        return (values if small else values * 4.0 ** torch.randint(-6, 7, (count,), generator=generator)).to(dtype)
    bits = torch.randint(-(1 << 63), (1 << 63) - 1, (count,), generator=generator)
    return (bits % 100 - 50 if small else bits >> torch.randint(0, 60, (count,), generator=generator)).to(dtype)


# ---- both sides ---------------------------------------------------------------------------------------------------


@dataclass
class Difference:
    lanes: int
    ulps: float
    at: int = 0  # the lane with the largest

    def __str__(self) -> str:
        return "equal to the bit" if not self.lanes else f"{self.lanes} lanes differ, by up to {self.ulps:.3g} ulp"


def difference(ours: torch.Tensor, gpus: torch.Tensor) -> Difference:
    """One NaN is as good as another."""
    if not ours.dtype.is_floating_point:
        wrong = (ours != gpus).flatten()
        return Difference(int(wrong.sum()), math.inf if wrong.any() else 0.0, int(wrong.int().argmax()))
    bits = {2: torch.int16, 4: torch.int32, 8: torch.int64}[ours.dtype.itemsize]
    same = (ours.view(bits) == gpus.view(bits)) | (ours.isnan() & gpus.isnan())
    about = torch.finfo(ours.dtype)
    one, other = ours.double(), gpus.double()
    unit = torch.clamp(torch.maximum(one.abs(), other.abs()), min=about.smallest_normal) * about.eps
    distance = torch.where(same, -1.0, ((one - other).abs() / unit).nan_to_num(math.inf)).flatten()
    return Difference(int((~same).sum()), max(0.0, float(distance.max())), int(distance.argmax()))


def example(cell: Cell, tensors: list[torch.Tensor], ours: torch.Tensor, gpus: torch.Tensor, lane: int) -> str:
    given = "" if cell.to or cell.at == MATRIX else f" of {', '.join(f'{float(one[lane]):g}' for one in tensors)}"
    return f": {float(ours.flatten()[lane]):.9g}, not {float(gpus.flatten()[lane]):.9g}{given}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="", help="a part of the operation's name")
    parser.add_argument("--record", action="store_true", help="record and interpret, without a GPU")
    options = parser.parse_args()
    chosen = cells(options.only)
    device = None if options.record else device_here()
    if isinstance(device, str):
        raise SystemExit(device)
    model = device.model if device else DEFAULT_MODEL
    text = HEAD + "".join(cell.text(number) for number, cell in enumerate(chosen))
    of = Submission(Path("operations.py"), text.encode()), "operations.py", model
    runner, front_end = SubmissionProcess(*of), FrontEnd(*of)
    interpreter, code, replays = Interpreter(), MachineCode(model), Replays(device) if device else None
    counts = {"equal": 0, "allowed": 0, "wrong": 0, "none": 0, "refused": 0}

    def say(cell: Cell, what: str, said: object) -> None:
        counts[what] += 1
        if what != "equal":
            print(f"{cell.label:40} {what:8} {said}", flush=True)

    calls = []
    for number, cell in enumerate(chosen):
        tensors = inputs(cell)
        specs = [spec_of(name, tensor) for name, tensor in zip("xyw", tensors)]
        call = record_call(RecordRequest(f"entry_{number}", specs), runner, front_end, 120)
        if call.error is not None or call.refusals:
            say(cell, "none", " ".join((call.error.message if call.error else str(call.refusals)).split())[:120])
            continue
        if replays:
            code.begin(call)
        calls.append((cell, tensors, specs, PackedCall(call)))
    for cell, tensors, specs, recorded in calls:
        placed, storages = [], b""
        for name, tensor in zip("xyw", tensors):
            spec, data = spec_and_bytes(name, tensor, len(storages))
            placed.append(spec)
            storages += data
        shifted = [TensorSpec(**{**vars(spec), "start": spec.start + len(recorded.blob)}) for spec in placed]
        try:
            request = InterpretRequest(recorded.header, recorded.texts, "operations.py", shifted, limit=60.0)
            reply = interpreter.ask(request, recorded.blob + storages)
        except ChildEnded as ended:
            say(cell, "refused", ended)
            continue
        if reply.error is not None or reply.findings or reply.output is None:
            say(cell, "refused", reply.error or reply.findings)
            continue
        if replays is None:
            say(cell, "equal", "")
            continue
        plan = code.plan(recorded.call, specs, {"z": recorded.call.returned.view})
        if plan.error is not None:
            say(cell, "none", " ".join(plan.error.message.split())[:120])
            continue
        answer, data = replays.check(PackedPlan.of(plan, specs), 0, placed, storages, [])
        gpus = tensor_of(TensorSpec.from_json(answer["outputs"][0], len(data)), data)
        found = difference(reply.output, gpus)
        what = "equal" if not found.lanes else "allowed" if cell.differs else "wrong"
        why = f" ({cell.differs})" if what == "allowed" else ""
        say(cell, what, f"{found}{example(cell, tensors, reply.output, gpus, found.at)}{why}")
    for one in (runner, interpreter, *([replays] if replays else [])):
        one.end()
    print(", ".join(f"{number} {what}" for what, number in counts.items()))
    return int(bool(counts["wrong"] or counts["refused"]))


if __name__ == "__main__":
    sys.exit(main())
