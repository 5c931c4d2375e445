"""Known mistakes as formulas: if the result equals what a mistake would give, the mistake is named.

Each hypothesis is computed in float64 from the inputs that the kernel saw. A match must be as close as a right kernel
would have to be, and what is matched must differ from the right result by more than rounding explains: of few elements,
or of small effects, some mistake fits by chance. Where nothing matches, nothing is claimed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import torch

from grader.course.trial import short_dtype
from grader.explain.evidence import Evidence
from grader.numerics.arguments import Argument, exact, tensors_of
from grader.numerics.bounds import EXACT, UNIT_ROUNDOFF, tolerance

LOG_OF_SMALLEST = math.log(2.0**-126)  # exp of less is below fp32's smallest normal number
WIDER_THAN_FP32 = (torch.float64, torch.int32, torch.int64)
TELLING = 16  # elements: fewer may fit rounded operands by chance
TELLING_BITS = 4  # of 16 results drawn at random one looks like a given mistake


@dataclass
class Hypothesis:
    id: str
    sentence: str
    result: torch.Tensor | None  # float64, or int64; None: decided already, by other evidence
    may_be_constant: bool = False  # NaN everywhere fits many formulas: only where other evidence supports this one


def matching_hypothesis(evidence: Evidence) -> Hypothesis | None:
    """The first mistake that explains the result, or None."""
    inputs = exact(evidence.inputs)
    for make in (*ANY_OPERATION, BY_BOUND.get(evidence.wanted.operation, _none)):
        for hypothesis in make(evidence, inputs):
            if hypothesis.result is None or _matches(evidence, hypothesis, inputs):
                return hypothesis
    return None


def _matches(evidence: Evidence, hypothesis: Hypothesis, inputs: list[Argument]) -> bool:
    return _fits(evidence, hypothesis, inputs) and _bits_told(evidence, hypothesis.result, inputs) >= TELLING_BITS


def _fits(evidence: Evidence, hypothesis: Hypothesis, inputs: list[Argument]) -> bool:
    out, result = evidence.comparison.out, hypothesis.result
    if result.shape != out.shape or bool(_equal(result.to(out.dtype), evidence.comparison.expected).all()):
        return False
    if not hypothesis.may_be_constant and _is_constant(out):
        return False
    rounded = result.to(out.dtype)
    same = _equal(out, rounded)
    if evidence.wanted.bound in EXACT:
        return bool(same.all())
    finite = out.isfinite() & rounded.isfinite()
    allowed = 2 * tolerance(evidence.wanted.bound, inputs, result, out.dtype).nan_to_num(nan=0.0)
    distance = (out.double() - result).abs()
    if not bool((same | (finite & (distance <= allowed))).all()):
        return False
    # A formula close to the right one would match anything that is nearly right: it has to explain the errors.
    error = (out.double() - evidence.comparison.ref).abs()
    explained = same | (distance < 0.5 * error) | ~finite
    return bool(explained[evidence.comparison.wrong].all())


def _bits_told(evidence: Evidence, result: torch.Tensor, inputs: list[Argument]) -> float:
    """How much a match says: of the wrong elements, the leading bits of the mistake's effect that no rounding makes.

    Rounding is what the bound allows, or a conversion to fp16 on the way, such as of a sum that is kept in it.
    """
    comparison, wanted = evidence.comparison, evidence.wanted
    if wanted.dtype not in UNIT_ROUNDOFF or wanted.dtype in WIDER_THAN_FP32:
        return torch.inf
    coarsest = max(UNIT_ROUNDOFF[torch.float16], UNIT_ROUNDOFF[wanted.dtype])
    terms = size_of_terms(wanted.bound, inputs, comparison.ref)
    rounding = tolerance(wanted.bound, inputs, comparison.ref, wanted.dtype).maximum(coarsest * terms)
    effect = (result - comparison.ref).abs()
    bits = (effect.nan_to_num(nan=torch.inf) / rounding.nan_to_num(nan=0.0, posinf=0.0)).log2()
    return float(bits.clamp(min=0.0)[comparison.wrong].nansum())


def size_of_terms(bound: str, inputs: list[Argument], ref: torch.Tensor) -> torch.Tensor:
    """What rounding on the way is relative to: of a sum its terms, however small it is itself; [shape of ref]."""
    if bound != "gemm":
        return ref.abs()
    a, b = inputs
    return a.abs() @ b.abs()


def _equal(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    return (one == other) | (one.isnan() & other.isnan())


def _is_constant(out: torch.Tensor) -> bool:
    return out.numel() > 1 and bool(out.isnan().all() or (out == out.flatten()[0]).all())


def _none(evidence: Evidence, inputs: list[Argument]) -> Iterator[Hypothesis]:
    yield from ()


def _whole_inputs(evidence: Evidence, inputs: list[Argument]) -> Iterator[Hypothesis]:
    """An input handed on as it is, or the right result with rows and columns exchanged."""
    for name, tensor in tensors_of(evidence.exercise.arguments, inputs):
        if name != evidence.returns:
            yield Hypothesis("input-passed-through", f"{evidence.returns} holds {name} itself, unchanged.", tensor)
    ref = evidence.comparison.ref
    if ref.dim() == 2 and ref.shape[0] == ref.shape[1]:
        sentence = f"{evidence.returns} holds its own transpose: its rows and columns, or its strides, are exchanged."
        yield Hypothesis("transposed-result", sentence, ref.t())


def _supposed(evidence: Evidence, id: str, sentence: str, arguments: list[Argument]) -> Iterator[Hypothesis]:
    """What a right kernel would give for other arguments than these, if it would give anything."""
    result = evidence.reference(arguments)
    if result is not None:
        yield Hypothesis(id, sentence, result)


def _updated_twice(evidence: Evidence, inputs: list[Argument]) -> Iterator[Hypothesis]:
    """What a second call would make of what the first one has left."""
    if not evidence.wanted.is_updated:
        return
    names, after = evidence.exercise.arguments, list(inputs)
    for result, value in zip(evidence.exercise.results, evidence.exercise.expected(inputs)):
        if result.name in evidence.exercise.updates:
            rounded = value.to(evidence.argument(result.name).dtype)
            after[names.index(result.name)] = rounded.to(value.dtype)
    sentence = f"{evidence.returns} is updated twice: it holds what a second call would make of it."
    yield from _supposed(evidence, "updated-twice", sentence, after)


def _not_zeroed(evidence: Evidence, inputs: list[Argument]) -> Iterator[Hypothesis]:
    """Sums by atomics that begin with what fresh memory holds: -1 where the numbers are whole, NaN where not."""
    if evidence.wanted.is_argument or not any(launch.atomics for launch in evidence.reply.launches):
        return
    ref, name = evidence.comparison.ref, evidence.returns
    sentence = f"Atomics add to {name}, which nobody has set to 0: torch.empty holds leftovers of the past."
    begun = torch.full_like(ref, torch.nan) if evidence.wanted.dtype.is_floating_point else ref - 1
    yield Hypothesis("not-zeroed", sentence, begun, may_be_constant=True)


def _through_fp32(evidence: Evidence, inputs: list[Argument]) -> Iterator[Hypothesis]:
    """Inputs in a dtype with more digits than fp32, rounded to it on the way."""
    dtype = evidence.trial.dtype
    if dtype not in WIDER_THAN_FP32:
        return
    rounded = [_through(one, dtype) if isinstance(one, torch.Tensor) else one for one in inputs]
    sentence = (
        f"{evidence.returns} holds values that went through fp32, which does not hold every {short_dtype(dtype)}: a "
        "tile keeps the dtype of what it was loaded from until something converts it."
    )
    for found in _supposed(evidence, "through-fp32", sentence, rounded):
        yield replace(found, may_be_constant=True)


def _through(tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    rounded = tensor.float().double()
    if dtype == torch.int32:
        rounded = rounded.clamp(-(2**31), 2**31 - 1)
    return rounded.to(tensor.dtype)


def _strides(evidence: Evidence, inputs: list[Argument]) -> Iterator[Hypothesis]:
    """An argument read as if it were contiguous, or with its two strides exchanged."""
    for name, tensor in evidence.tensors:
        if not tensor.dim() or name == evidence.returns:
            continue
        number = evidence.exercise.arguments.index(name)
        for id, strides, sentence in _readings(name, tensor):
            misread = _reread(tensor, strides)
            if evidence.kernel_text.ignores_strides:
                sentence = "No stride is used: every tensor is addressed as if it were contiguous."
            elif evidence.wanted.is_argument and strides == evidence.output.stride():
                sentence = f"{name} and {evidence.returns} are addressed with the same strides: each has its own."
            if misread is not None and strides != tensor.stride():
                changed = [*inputs[:number], *exact([misread]), *inputs[number + 1 :]]
                yield from _supposed(evidence, id, sentence, changed)


def _readings(name: str, tensor: torch.Tensor) -> list[tuple[str, tuple[int, ...], str]]:
    """Strides that an argument may be read with by mistake, and what to call it."""
    tight = tuple(math.prod(tensor.shape[axis + 1 :]) for axis in range(tensor.dim()))
    strides = "The stride of {} is" if tensor.dim() == 1 else "The strides of {} are"
    contiguous = ("stride-ignored", tight, f"{strides.format(name)} not used: it is read as if contiguous.")
    if tensor.dim() != 2:
        return [contiguous]
    columns, (row, column) = tensor.shape[1], tensor.stride()
    return [
        contiguous,
        ("stride-ignored", (row, 1), f"The column stride of {name} is not used."),
        ("stride-ignored", (columns, column), f"The row stride of {name} is not used."),
        ("stride-ignored", (1, column), f"The row stride of {name} is not used."),
        ("strides-swapped", (column, row), f"The strides of {name} are exchanged."),
    ]


def _target_strides(evidence: Evidence, inputs: list[Argument]) -> Iterator[Hypothesis]:
    """The result written with other strides than its own: then each value stands where those strides put it."""
    out, expected, name = evidence.comparison.out, evidence.comparison.expected, evidence.returns
    read_outside = any(finding.kind == "out-of-bounds-load" for finding in evidence.reply.findings)
    if out.dim() != 2 or evidence.wanted.bound not in EXACT or read_outside:
        return  # where a load went astray, its strides are to blame, and the result may look the same
    row, column = out.stride()
    readings = [
        ("stride-ignored", (out.shape[1], 1), f"The strides of {name} are not used: it is written as if contiguous."),
        ("strides-swapped", (column, row), f"The strides of {name} are exchanged."),
    ]
    for source, tensor in evidence.tensors:
        if tensor.dim() == 2 and source != name:
            readings.append(
                ("stride-ignored", tuple(tensor.stride()), f"{name} is written with the strides of {source}.")
            )
    for id, strides, sentence in readings:
        if strides != (row, column) and _stands_there(out, expected, strides):
            yield Hypothesis(id, sentence, None)


def _stands_there(out: torch.Tensor, expected: torch.Tensor, strides: tuple[int, int]) -> bool:
    """Whether `out`'s memory, looked at under other strides, holds `expected` wherever that is one of its elements."""
    m, n = torch.meshgrid(*(torch.arange(size) for size in out.shape), indexing="ij")
    own = (out.storage_offset() + m * out.stride(0) + n * out.stride(1)).flatten()
    theirs = (out.storage_offset() + m * strides[0] + n * strides[1]).flatten()
    places, counts = theirs.unique(return_counts=True)
    once = torch.isin(theirs, places[counts == 1]) & torch.isin(theirs, own)
    if int(once.sum()) < 0.25 * out.numel():
        return False
    memory = torch.empty(0, dtype=out.dtype).set_(out.untyped_storage())
    return torch.equal(memory[theirs[once]], expected.flatten()[once])


def _reread(tensor: torch.Tensor, strides: tuple[int, ...], further: int = 0) -> torch.Tensor | None:
    """The same memory under other strides, `further` elements on, or None where that would leave the memory."""
    first = tensor.storage_offset() + further
    last = first + sum((size - 1) * stride for size, stride in zip(tensor.shape, strides))
    if (last + 1) * tensor.element_size() > tensor.untyped_storage().nbytes():
        return None
    return tensor.as_strided(tensor.shape, strides, first)


def _operands(evidence: Evidence, inputs: list[Argument]) -> Iterator[Hypothesis]:
    """Two inputs of one shape: one of them used twice, one left out, or another operation."""
    floats = [(name, one) for name, one in tensors_of(evidence.exercise.arguments, inputs) if one.is_floating_point()]
    if len(floats) != 2 or len(inputs) != 2 or floats[0][1].shape != floats[1][1].shape or evidence.wanted.is_argument:
        return
    ((x_name, x), (y_name, y)), z = floats, evidence.returns
    for used, left_out, twice in ((x_name, y_name, [x, x]), (y_name, x_name, [y, y])):
        sentence = f"{z} is made from {used} twice: {left_out} is not used."
        yield from _supposed(evidence, "wrong-operand", sentence, twice)
    if evidence.wanted.operation == "exact":
        yield Hypothesis("wrong-operand", f"{z} holds {x_name} alone: {y_name} is not used.", x)
        yield Hypothesis("wrong-operation", f"{z} holds {x_name} - {y_name}: the operation is another.", x - y)
        yield Hypothesis("wrong-operation", f"{z} holds {x_name} * {y_name}: the operation is another.", x * y)


def _first_blocks(evidence: Evidence, inputs: list[Argument]) -> Iterator[Hypothesis]:
    """Vectors of which every program loads the first block."""
    if any(not isinstance(one, torch.Tensor) or one.dim() != 1 or len(one) != len(inputs[0]) for one in inputs):
        return
    block, N = evidence.constants.get("BLOCK_N", 0), len(inputs[0])
    if not 0 < block < N:
        return
    repeated = [tensor[torch.arange(N) % block] for tensor in inputs]
    for number, name in enumerate(evidence.exercise.arguments):
        changed = [*inputs[:number], repeated[number], *inputs[number + 1 :]]
        sentence = f"Every program loads the first block of {name}: that load does not move with the program."
        yield from _supposed(evidence, "local-load", sentence, changed)
    sentence = "Every program loads the first blocks: the loads do not move with the program."
    yield from _supposed(evidence, "local-load", sentence, repeated)


def _softmax(evidence: Evidence, inputs: list[Argument]) -> Iterator[Hypothesis]:
    if len(inputs) != 1:
        return  # what is done to the scores before is not known here
    (x,), name = inputs, evidence.returns
    N = x.shape[1]
    greatest = x.amax(dim=1, keepdim=True)
    e = torch.exp(x - greatest)
    padding = (1 << (N - 1).bit_length()) - N
    if padding:
        shifted = greatest.clamp(min=0.0)  # the padding takes part in the maximum too
        padded = torch.exp(x - shifted)
        total = padded.sum(dim=1, keepdim=True) + padding * torch.exp(-shifted)
        lanes, verb = ("lane", "takes") if padding == 1 else (f"{padding} lanes", "take")
        yield Hypothesis(
            "padding-counted",
            f"{_row_sums(evidence)}: the {lanes} past the end of each row {verb} part in the sum.",
            padded / total,
        )
    for shift in (torch.zeros_like(greatest), x[:, :1]):
        if not bool(shift.isfinite().all()):
            continue
        naive = torch.exp((x - shift).float())
        if not bool(naive.isfinite().all()):
            yield Hypothesis(
                "no-maximum",
                "exp overflows: subtract the maximum of the row before exponentiating, so that the largest exponent "
                "is 0.",
                (naive / naive.sum(dim=1, keepdim=True)).double(),
                may_be_constant="softmax" in evidence.right_before,
            )
    empty = ((x == -torch.inf) | x.isnan()).all(dim=1) & (evidence.comparison.out == 0).all(dim=1)
    if bool(empty.any()) and torch.equal(empty, evidence.comparison.wrong.any(dim=1)):
        sentence = (
            f"A row that holds nothing but -inf is 0 in {name}; it has to be NaN, as 0 / 0 is: is there a guard, or a "
            "large negative number in place of -inf?"
        )
        yield Hypothesis("empty-row", sentence, None)
    nan = evidence.comparison.out.isnan() & ~evidence.comparison.expected.isnan()
    nan_rows, with_inf = nan.any(dim=1), (x == -torch.inf).any(dim=1)
    if bool(nan_rows.any()) and bool(with_inf[nan_rows].all()) and "softmax" in evidence.right_before:
        sentence = f"{name} is NaN in rows that hold -inf: somewhere (-inf) - (-inf) is computed, and that is NaN."
        yield Hypothesis("inf-minus-inf", sentence, None)
    gone = torch.exp(greatest.float() - greatest.clamp(min=0.0).float()) == 0
    passed_before = "softmax" in evidence.right_before
    if passed_before and bool(gone.any()) and torch.equal(evidence.comparison.out.isnan().all(dim=1), gone[:, 0]):
        sentence = (
            "exp underflows: every exponential of a row is 0, and 0 / 0 is NaN. Subtract the row's own maximum, "
            "that of its own lanes only."
        )
        yield Hypothesis("underflow", sentence, None)
    if passed_before:
        above_zero = torch.exp(x) * (x > LOG_OF_SMALLEST)  # what is below the normal numbers becomes 0
        without = torch.where(greatest > 0, evidence.comparison.ref, above_zero / above_zero.sum(dim=1, keepdim=True))
        sentence = (
            "Digits are lost where x lies below -87: exp of it is no normal number of fp32. Subtract the maximum in "
            "every row, also where it is far below 0."
        )
        yield Hypothesis("underflow", sentence, without)
    yield Hypothesis("exp2", f"{name} is made with powers of 2, not of e: exp2 needs its argument times log2(e).",
                     torch.exp2(x - greatest) / torch.exp2(x - greatest).sum(dim=1, keepdim=True))  # fmt: skip
    yield Hypothesis("not-divided", f"{_row_sums(evidence)}: the exponentials are not divided by their sum.", e)
    yield Hypothesis("wrong-axis", f"{name} is a softmax down the columns: each row has to sum to 1.",
                     torch.softmax(x, dim=0))  # fmt: skip
    yield Hypothesis("logarithm", f"{name} holds the logarithms of the probabilities.", torch.log_softmax(x, dim=1))
    if len(x) > 1:
        first_row = torch.softmax(x[:1].expand_as(x), dim=1)
        yield Hypothesis("row-zero", f"Every row of {name} is made from row 0 of {evidence.exercise.arguments[0]}.",
                         first_row)  # fmt: skip
    if N > 1:
        short = torch.cat([e[:, :-1], torch.zeros_like(e[:, :1])], dim=1)
        for numerator in (e, short):
            yield Hypothesis("last-column", "The last column is left out of the sum.",
                             numerator / short.sum(dim=1, keepdim=True))  # fmt: skip
    yield from _small_ones_wrong(evidence)


def _small_ones_wrong(evidence: Evidence) -> Iterator[Hypothesis]:
    """Only the smallest probabilities are wrong: exponents were clamped, or rounded away."""
    wrong, size = evidence.comparison.wrong, evidence.comparison.ref
    if bool(wrong.all()) or not bool(evidence.comparison.out.isfinite().all()):
        return
    largest_wrong, smallest_right = float(size[wrong].max()), float(size[~wrong].min())
    if largest_wrong < smallest_right and largest_wrong < 1e-3:
        sentence = f"Small probabilities are wrong: all below {smallest_right:.1g}. They have digits of their own."
        yield Hypothesis("small-probabilities", sentence, None)


def _row_sums(evidence: Evidence) -> str:
    sums = evidence.comparison.out.double().sum(dim=1)
    low, high = float(sums.min()), float(sums.max())
    span = f"{low:.3g}" if f"{low:.3g}" == f"{high:.3g}" else f"{low:.3g} ... {high:.3g}"
    return f"The rows of {evidence.returns} sum to {span} instead of 1"


def _gemm(evidence: Evidence, inputs: list[Argument]) -> Iterator[Hypothesis]:
    if len(inputs) != 2:
        return  # of a product alone
    a, b = inputs
    K, step = a.shape[1], evidence.constants.get("BLOCK_K", 0)
    if _counts_past_2048(a, b) and "exact" in evidence.right_before:
        yield Hypothesis(
            "half-accumulator",
            "Exact integer sums go wrong above 2048: the accumulator is fp16, which holds only even numbers there. "
            "Keep it in fp32.",
            None,
        )
    for short, rounded in _rounded_operands(inputs) if evidence.comparison.wrong.numel() >= TELLING else ():
        sentence = f"a and b are rounded to {short} before the product."
        yield from _supposed(evidence, "rounded-operands", sentence, rounded)
    if step > 0 and (padding := -K % step):
        yield Hypothesis("padding-counted", f"The {padding} lanes past the end of K take part in the sum.",
                         a @ b + padding)  # fmt: skip
    if 0 < step < K:
        yield from _steps_along_k(evidence, a, b, step)
    if K > 1:
        yield Hypothesis("last-term", "The last term of each sum is left out.", a[:, :-1] @ b[:-1])


def _rounded_operands(inputs: list[Argument]) -> Iterator[tuple[str, list[torch.Tensor]]]:
    """The operands in dtypes with fewer digits; the interpreter cuts a float off to bf16, a GPU rounds it."""
    for short, dtype in (("bf16", torch.bfloat16), ("fp8", torch.float8_e4m3fn), ("fp8", torch.float8_e5m2)):
        yield short, [tensor.float().to(dtype).double() for tensor in inputs]
    yield "bf16", [(tensor.float().view(torch.int32) & ~0xFFFF).view(torch.float32).double() for tensor in inputs]


def _steps_along_k(evidence: Evidence, a: torch.Tensor, b: torch.Tensor, step: int) -> Iterator[Hypothesis]:
    """Mistakes in the loop over K: steps left out, pointers that do not advance, or advance by the wrong stride."""
    K = a.shape[1]
    sizes = {start: min(step, K - start) for start in range(0, K, step)}
    for kept in list(sizes)[1:]:
        sentence = f"Only the first {kept} of {K} terms of each sum are there: the loop, or its mask, ends too early."
        yield Hypothesis("k-tail", sentence, a[:, :kept] @ b[:kept])
    last = max(sizes)
    yield Hypothesis("last-step", "Only the last step along K is left: each step replaces the sum, none adds to it.",
                     a[:, last:] @ b[last:])  # fmt: skip
    yield Hypothesis("no-advance", "Every step along K reads the same blocks of a and b: no pointer advances.",
                     sum(a[:, :n] @ b[:n] for n in sizes.values()))  # fmt: skip
    yield Hypothesis("no-advance", "Every step along K reads the same block of a: its pointers do not advance.",
                     sum(a[:, :n] @ b[k : k + n] for k, n in sizes.items()))  # fmt: skip
    yield Hypothesis("no-advance", "Every step along K reads the same block of b: its pointers do not advance.",
                     sum(a[:, k : k + n] @ b[:n] for k, n in sizes.items()))  # fmt: skip
    memory = evidence.inputs[1]
    shifted = [_reread(memory[:n], memory.stride(), k) for k, n in sizes.items()]
    if all(block is not None for block in shifted):
        terms = (a[:, k : k + n] @ block.double() for (k, n), block in zip(sizes.items(), shifted))
        yield Hypothesis("advance-without-stride", "The pointers to b advance by BLOCK_K elements of memory, not by "
                         "BLOCK_K rows: the step lacks its stride.", sum(terms))  # fmt: skip


def _counts_past_2048(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whole numbers whose running sums fp16 cannot hold."""
    if not torch.equal(a, a.round()) or not torch.equal(b, b.round()):
        return False
    running = torch.cumsum(a[:1, :].T * b[:, :1], dim=0).abs()
    return bool(running.max() > 2048)


ANY_OPERATION = (
    _not_zeroed, _whole_inputs, _updated_twice, _through_fp32, _strides, _target_strides, _operands, _first_blocks,
)  # fmt: skip
BY_BOUND: dict[str, Callable[[Evidence, list[torch.Tensor]], Iterator[Hypothesis]]] = {
    "softmax": _softmax,
    "gemm": _gemm,
}
