"""Makes an exercise of one's own kernel and its reference, one for each dtype, and the calls that judge it."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch

from grader.course import drawn_layouts
from grader.course.drawn_calls import drawn_calls
from grader.course.exercise import Exercise, Result
from grader.course.promise import Kind, Promised, Sizes, StatedPromise, any_strides, between, into, length, one_of
from grader.course.trial import trial_of
from grader.numerics.arguments import Argument, DataOrNumber, exact, made
from grader.numerics.data_sets import Data, indices, normal, output, uniform, unusual
from grader.numerics.torchs_rounding import RoundingOfTorch
from grader.own.cannot_judge import CannotJudge
from grader.own.own_reference import LIMIT, OwnReference, TookTooLong, within
from grader.own.promise_file import OwnPromise
from grader.own.stated_shapes import NAME, StatedArgument, arguments_of, sizes_of_line
from grader.submission.text import Submission
from grader.submission.whole_numbers import whole_numbers
from grader.wire.reply import DTYPES

NAME_OF_RESULT = "result"
USUAL, BLOCK = 300, 64  # the largest size, and a program's elements, where nobody says so
LEAST_BLOCK, MOST_BLOCK = 8, 4096  # of a power of 2 in the file that is taken for a block
MOST_ELEMENTS = 1 << 17  # of a tensor of the usual sizes
FEW = 8  # a size up to this is a number of the kernel's, and stays as it is
MOST_CALLS = 40  # that a reference may state
MOST_CARRIED_OUT = 1 << 24  # elements of a tensor of a call


@dataclass(frozen=True)
class OwnExercise:
    """The exercise in one dtype, with the promise that calls are drawn from, or with the calls that are stated."""

    exercise: Exercise
    dtype: str
    promise: StatedPromise | None = None
    calls: tuple[tuple[DataOrNumber, ...], ...] = ()


def own_exercises(
    entry: str, reference: OwnReference, submission: Submission, shapes: str, dtypes: Sequence[str],
    promise: OwnPromise, seed: int,
) -> list[OwnExercise]:  # fmt: skip
    """Returns the exercise in each dtype. `dtypes`: () for those of the reference's own inputs, or else fp32. Raises
    CannotJudge."""
    shapes = shapes or reference.shapes
    if unknown := [name for name in promise.named if name not in reference.arguments]:
        known = ", ".join(reference.arguments)
        raise CannotJudge(
            f"The promise names {unknown[0]}, which is no argument of the reference.", f"name one of {known}."
        )
    if not shapes and reference.calls is not None:
        calls, own = _stated_calls(reference)
        return [_of_calls(entry, reference, promise, dtype, calls, seed) for dtype in dtypes or own or ("float32",)]
    own = ()
    if shapes:
        arguments, sizes = _of_line(shapes, reference, submission)
    elif reference.inputs is not None:
        arguments, sizes, own = _of_inputs(reference, submission)
    else:
        raise CannotJudge(
            "Nothing says which shapes the arguments have.",
            f'add --shapes "{_example(reference, submission)}", or write SHAPES or calls() into {reference.path.name}.',
        )
    promised = {name: _promised(name, one, promise) for name, one in arguments.items()}
    return [
        _of_promise(entry, reference, promise, dtype, StatedPromise(sizes, promised, (dtype,)), seed)
        for dtype in dtypes or own or ("float32",)
    ]


def _example(reference: OwnReference, submission: Submission) -> str:
    """Returns a line for --shapes that has a word for each argument without a default."""
    count = len(reference.arguments) - len(reference.defaults)
    return f"{' '.join(['M,N'] * max(1, count))}; M=1..{USUAL} N=1..{usual_sizes(submission, ['N'], 1)['N']}"


# ---- shapes ----------------------------------------------------------------------------------------------------------


def block_of(submission: Submission) -> int:
    """Returns the largest power of 2 of the file that may be a block: how many elements a program handles."""
    numbers = whole_numbers(submission.tree)
    powers = [one for one in numbers if LEAST_BLOCK <= one <= MOST_BLOCK and one & (one - 1) == 0]
    return max(powers, default=BLOCK)


def usual_sizes(submission: Submission, names: Sequence[str], rank: int) -> dict[str, int]:
    """Returns the largest size, by name, of calls of which nobody has said how large they are. The last name gets two
    blocks and a part; the others what keeps a tensor of this rank small."""
    most = max(USUAL, 2 * block_of(submission) + 77)
    others = max(FEW, min(USUAL, int((MOST_ELEMENTS / most) ** (1 / max(1, rank - 1)))))
    return {name: most if name == names[-1] else others for name in names}


def _of_line(
    line: str, reference: OwnReference, submission: Submission
) -> tuple[dict[str, StatedArgument], dict[str, Sizes]]:
    """Returns what --shapes states of each argument, by name, and of each size."""
    stated = arguments_of(line)
    names = _names_for(stated, reference)
    if len(stated) != len(names):
        raise CannotJudge(
            f"--shapes states {len(stated)} arguments, and the reference takes {len(names)}: {', '.join(names)}.",
            "write a word for each, in this order; one that is no tensor is a number, as =0.5.",
        )
    arguments = _with_defaults(dict(zip(names, stated)), reference)
    return arguments, _sizes(line, arguments, submission)


def _names_for(given: Sequence[Any], reference: OwnReference) -> list[str]:
    """Returns the names of the arguments that are given: all, or else those without a default."""
    without = [name for name in reference.arguments if name not in reference.defaults]
    return reference.arguments if len(given) == len(reference.arguments) else without


def _with_defaults(arguments: dict[str, StatedArgument], reference: OwnReference) -> dict[str, StatedArgument]:
    """Returns all arguments in the reference's order, those that nobody states with their defaults."""
    return {
        name: arguments.get(name) or StatedArgument(is_number=True, number=reference.defaults[name])
        for name in reference.arguments
    }


def _sizes(line: str, arguments: dict[str, StatedArgument], submission: Submission) -> dict[str, Sizes]:
    tensors = [one for one in arguments.values() if one.shape]
    if not tensors:
        raise CannotJudge("No argument is a tensor.", 'state the shape of one, as in --shapes "M,N".')
    first = max(tensors, key=lambda one: len(one.shape))
    names = list(dict.fromkeys(name for one in arguments.values() for name in one.names))
    last = [name for name in first.names if name in names][-1:]  # the innermost size of the largest tensor
    ordered = [name for name in names if name not in last] + last
    usual = usual_sizes(submission, ordered, len(first.shape)) if ordered else {}
    sizes = sizes_of_line(line, list(arguments.values()), usual, block_of(submission))
    if empty := [name for name, one in sizes.items() if one.most == 0]:
        raise CannotJudge(
            f"--shapes: {empty[0]} is 0 in each call, where nothing is computed.",
            f"let it be larger in some, as {empty[0]}=0..300.",
        )
    largest = {name: one.most for name, one in sizes.items()}
    for name, one in arguments.items():
        _refuse_large(name, [length(dimension, largest) for dimension in one.shape])
    return sizes


def _of_inputs(
    reference: OwnReference, submission: Submission
) -> tuple[dict[str, StatedArgument], dict[str, Sizes], tuple[str, ...]]:
    """Returns the same for the tensors of get_inputs(): sizes that are the same number go together. Then the dtype of
    its floats."""
    given = _made_by(reference, "get_inputs", reference.inputs)
    names = _names_for(given, reference)
    if len(given) != len(names):
        raise CannotJudge(
            f"get_inputs() returns {len(given)} arguments, and the reference takes {len(names)}.",
            "let both be the same.",
        )
    letters: dict[int, str] = {}
    arguments: dict[str, StatedArgument] = {}
    floats = []
    for name, one in zip(names, given):
        if not isinstance(one, torch.Tensor):
            arguments[name] = StatedArgument(is_number=True, number=one)
            continue
        shape = tuple(str(n) if n <= FEW else letters.setdefault(n, f"N{len(letters)}") for n in one.shape)
        below = "" if one.is_floating_point() else str(max(1, int(one.max()) + 1) if one.numel() else 1)
        arguments[name] = StatedArgument(shape, "" if one.is_floating_point() else _dtype_name(one), below)
        floats += [_dtype_name(one)] if one.is_floating_point() else []
    arguments = _with_defaults(arguments, reference)
    sizes = _sizes("", arguments, submission)
    smaller = {letter: min(number, sizes[letter].most) for number, letter in letters.items()}
    sizes = {name: replace(one, most=smaller.get(name, one.most)) for name, one in sizes.items()}
    return arguments, sizes, tuple(dict.fromkeys(floats))[:1]


def _refuse_large(name: str, shape: Sequence[int]) -> None:
    if math.prod(shape) > MOST_CARRIED_OUT:
        raise CannotJudge(
            f"{name} has up to {math.prod(shape)} elements, and the judge carries kernels out on a CPU.",
            f"state sizes with up to {MOST_CARRIED_OUT} elements in a tensor: mistakes show in small ones.",
        )


def _made_by(reference: OwnReference, name: str, function: Any) -> list:
    try:
        with within(LIMIT):
            return list(function())
    except TookTooLong:
        raise CannotJudge(
            f"{name}() in {reference.path.name} has not come to its end after {LIMIT} s of a core.",
            "let it make smaller tensors.",
        ) from None
    except (Exception, SystemExit) as error:
        raise CannotJudge(
            f"{name}() in {reference.path.name} fails: {type(error).__name__}: {error}.", "mend it."
        ) from None


def _dtype_name(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


# ---- arguments -------------------------------------------------------------------------------------------------------


class _Changed(Promised):
    """An argument that the kernel changes: no other argument may share its memory, whatever its layout."""

    @property
    def is_filled(self) -> bool:
        return True


def tens(*shape: int) -> Data:
    return normal(*shape) * 30


def below(*shape: int) -> Data:
    """Values around -20: a masked lane that holds 0 is larger than all of them."""
    return normal(*shape) - 20


def small(*shape: int) -> Data:
    return normal(*shape) * 1e-3


def wide(*shape: int) -> Data:
    return uniform(*shape) * 30


def _promised(name: str, stated: StatedArgument, promise: OwnPromise) -> Promised:
    """Returns the shapes, layouts and values that an argument may have."""
    if stated.is_number:
        return between(*stated.between) if stated.between else one_of(stated.number)  # type: ignore[arg-type]
    kinds: tuple[Kind, ...] = (uniform, wide) if name in promise.positive else (normal, tens, small, uniform, below)
    if promise.nan:
        kinds += (unusual,)
    if stated.below:
        kinds = (_indices(stated),)
    if name in promise.out:
        kinds = (output,)
    strided = promise.has_any_strides(name)
    if name in promise.changed:
        families = drawn_layouts.holes(len(stated.shape)) if strided else (drawn_layouts.contiguous,)
        return _Changed(stated.shape, families, kinds, stated.dtype)
    if strided:
        return any_strides(*stated.shape, values=kinds, dtype=stated.dtype)
    families = (drawn_layouts.contiguous, drawn_layouts.begins_at_eight)
    return Promised(stated.shape, families, kinds, stated.dtype)


def _indices(stated: StatedArgument) -> Kind:
    if NAME.fullmatch(stated.below):
        return replace(into(stated.below), dtype=stated.dtype)
    if not stated.below.isdecimal() or not int(stated.below):
        raise CannotJudge(f"--shapes: <{stated.below} is neither a size nor a number above 0.", "write M:int64<V.")
    return partial(_below, int(stated.below), stated.dtype)


def _below(most: int, dtype: str, *shape: int) -> Data:
    return indices(*shape, below=most).of(dtype)


# ---- stated calls ----------------------------------------------------------------------------------------------------


def _stated_calls(reference: OwnReference) -> tuple[tuple[tuple[DataOrNumber, ...], ...], tuple[str, ...]]:
    """Returns the calls that `calls()` states, each with a recipe for each argument; then the dtype of its tensors of
    floats, if it states tensors."""
    listed = _made_by(reference, "calls", reference.calls)
    several = [tuple(one) if isinstance(one, tuple | list) else (one,) for one in listed]
    own = [_dtype_name(x) for call in several for x in call if isinstance(x, torch.Tensor) and x.is_floating_point()]
    return tuple(_recipes(reference, call) for call in several[:MOST_CALLS]), tuple(dict.fromkeys(own))[:1]


def _recipes(reference: OwnReference, call: tuple) -> tuple[DataOrNumber, ...]:
    missing = reference.arguments[len(call) :]
    if len(call) > len(reference.arguments) or any(name not in reference.defaults for name in missing):
        raise CannotJudge(
            f"calls() in {reference.path.name} states a call with {len(call)} arguments, and the reference takes"
            f" {len(reference.arguments)}.",
            "state a tuple with all arguments for each call.",
        )
    call = (*call, *(reference.defaults[name] for name in missing))
    for name, one in zip(reference.arguments, call):
        if isinstance(one, torch.Tensor | Data):
            _refuse_large(name, one.shape)
        elif one is not None and not isinstance(one, bool | int | float):
            raise CannotJudge(
                f"calls() in {reference.path.name} states {name} as {type(one).__name__}.", "state tensors and numbers."
            )
    return tuple(_given(one) if isinstance(one, torch.Tensor) else one for one in call)


def _given(tensor: torch.Tensor) -> Data:
    """Returns the data set of a tensor that is there already, contiguous. Floats take the dtype of the run."""
    whole = tensor.detach().cpu()
    data = replace(made(lambda: whole, normal(*whole.shape)), about="")
    return data if whole.is_floating_point() else data.of(_dtype_name(whole))


# ---- the exercise in a dtype -----------------------------------------------------------------------------------------


def _of_promise(
    entry: str, reference: OwnReference, promise: OwnPromise, dtype: str, stated: StatedPromise, seed: int
) -> OwnExercise:
    first = stated.data(drawn_calls(stated, seed, "first")[0])
    return OwnExercise(_exercise(entry, reference, promise, dtype, first, seed), dtype, promise=stated)


def _of_calls(
    entry: str, reference: OwnReference, promise: OwnPromise, dtype: str, calls: tuple, seed: int
) -> OwnExercise:
    if not calls:
        raise CannotJudge(
            f"calls() in {reference.path.name} states no call.", "return a list with a tuple for each call."
        )
    return OwnExercise(_exercise(entry, reference, promise, dtype, calls[0], seed), dtype, calls=calls)


def _exercise(
    entry: str, reference: OwnReference, promise: OwnPromise, dtype: str, data: tuple[DataOrNumber, ...], seed: int
) -> Exercise:
    """Returns the exercise in this dtype. `data`: of a call that shows how many results there are. Raises
    CannotJudge."""
    function = _with_names(reference)
    unknown = Exercise(entry, function, "exact", 0, dtypes=(dtype,))
    given = trial_of(unknown, "first", data, dtype).inputs(seed)
    found, again = reference.exactly(*exact(given)), reference.exactly(*exact(given))
    if len(found) != len(again) or not all(map(_same, found, again)):
        raise CannotJudge(
            f"The reference {reference.name} gives other results when it is called again with the same arguments.",
            "take out what is random, or what it keeps from call to call.",
        )
    written = reference.as_written(*given)
    names = _names_of_results(reference, promise, len(found))
    dtypes = [one.dtype if isinstance(one, torch.Tensor) else None for one in given]
    model = RoundingOfTorch(reference.as_written, reference.exactly, (), DTYPES[dtype], dtypes, promise.approximates)
    results = [
        _result(name, one, dtype, reference, replace(model, places=(place,)))
        for place, (name, one) in enumerate(zip(names, written))
    ]
    returned = tuple(one for one in results if one.name not in promise.changed)
    # An argument that is changed is named, and not stated as a result: its bound is that of the exercise.
    changed = replace(model, places=tuple(range(len(returned), len(names))))
    bound = changed.bound if promise.changed else results[0].bound
    return Exercise(
        entry,
        function,
        bound,
        0,
        returns=returned,
        updates=promise.changed,
        dtypes=(dtype,),
        strided_results=promise.strided_results,
    )


def _with_names(reference: OwnReference) -> Any:
    """Returns the reference as an exercise calls it, with its arguments' names."""

    @functools.wraps(reference.exactly)
    def function(*arguments: Argument) -> tuple[torch.Tensor, ...]:
        return tuple(reference.exactly(*arguments))

    places = inspect.Parameter.POSITIONAL_OR_KEYWORD
    signature = inspect.Signature([inspect.Parameter(name, places) for name in reference.arguments])
    function.__signature__ = signature  # type: ignore[attr-defined]
    return function


def _names_of_results(reference: OwnReference, promise: OwnPromise, count: int) -> list[str]:
    """Returns a name for each result: those that the promise says are changed come last."""
    alone = count - len(promise.changed)
    if alone < 0:
        raise CannotJudge(
            f"The promise says that {', '.join(promise.changed)} change, and the reference returns {count} results.",
            "let it return what each of them becomes, after all other results.",
        )
    names = list(reference.results) if len(reference.results) == count else []
    if not names or {*names[:alone]} & {*reference.arguments} or len({*names}) < count:
        names = [NAME_OF_RESULT] if count == 1 else [f"{NAME_OF_RESULT}_{place}" for place in range(count)]
    return [*names[:alone], *promise.changed]


def _result(name: str, written: torch.Tensor, run: str, reference: OwnReference, model: RoundingOfTorch) -> Result:
    dtype = _dtype_name(written)
    if dtype not in DTYPES:
        raise CannotJudge(
            f"{name} of the reference has dtype {dtype}, which the judge does not compare.", "return another."
        )
    if not written.is_floating_point():
        return Result(name, dtype, "exact")
    own = "" if dtype == run or reference.is_widened else dtype
    model = replace(model, dtype=DTYPES[own or run])
    return Result(name, own, model.bound)


def _same(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one.shape == other.shape and bool(((one == other) | (one.isnan() & other.isnan())).all())


def drawn_words(own: OwnExercise) -> str:
    """Returns what was drawn, in words: "M from 1 to 300, N from 1 to 77"."""
    sizes = own.promise.sizes.items() if own.promise is not None else ()
    return ", ".join(f"{name} {_range(one)}" for name, one in sizes)


def _range(one: Sizes) -> str:
    if one.only:
        return f"{' or '.join(map(str, one.only))}"
    return f"from {one.least} to {one.most}"
