"""The bound of a result whose operation nobody has described: by what torch's own run of the reference errs.

Two rules judge a value. **Formula**: the exact run of the call, in which every float has 64 bits, is off by at most
FORMULA of the largest value. **Rounding**: the call as written is off by at most

    MULTIPLE * (the largest error of torch's own run of the reference in the call's dtypes)
    + FLOOR * u * (the largest value) + the last rounding of the result's dtype

where torch's run is compared with the reference in float64, as the kernel's is, and u is the unit roundoff of the
result's dtype. The floor is for results of few elements, which torch may hit by luck. The first rule finds wrong
formulas, however small; so the second has to find nothing but lost digits, and may be wide.

Measured on the stated calls of the course's 23 exercises, with their references in the place of one's own, on the CPU
that torch 2.13 and Triton 3.7.1 ran on. All 23 solutions take at most 0.57 of the bound (901 results), and 45 of 46
accepted kernels at most 0.76; the other one, an attention that rounds quotients, is beyond it in one call, made of sums
that cancel to the bit. No exact run of a right kernel is off by more than 1e-11 of the largest value. Of 63 mutants
that lose digits, 55 show in some call; 42 of these are refused, nearly all by a factor of 30 and more, and the 13
others round to 16 bits where torch, in 16 bits, rounds too. A multiple of 16 in fp32 refuses a right sum of a row,
whose terms cancel; 64 lets one mutant more pass.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from grader.numerics.arguments import Argument
from grader.numerics.bounds import RoundingModel
from grader.numerics.roundoff import FLUSHED, UNIT_ROUNDOFF

FORMULA = 1e-5  # of the largest value: constants of fp32 need it
MULTIPLE, FLOOR = 32, 8  # for results in fp32
FEW = 16  # elements of a result
OF_16_BITS = 2, 0.5  # the same: torch rounds after each operation, and a kernel need not


@dataclass(eq=False)
class OfTheLargest:
    """The model of an exact run, or of a kernel that approximates: off by a share of the largest value."""

    share: float

    def __call__(self, ref: torch.Tensor, *inputs: Argument) -> torch.Tensor:
        """Returns how far a right result may lie from `ref`, [shape of ref]."""
        return torch.full_like(ref, self.share * scale_of(inputs, ref) + FLUSHED)


@dataclass(eq=False)
class RoundingOfTorch:
    """The model of the results at these places, whose bound is one. `run`: returns what torch computes in the dtypes of
    its arguments, as `as_written` does. `dtype`: of the results, and of each float that `dtypes` says nothing of.
    `dtypes`: of the arguments, None for numbers. `approximates`: what the kernel's author states, as a share of the
    largest value."""

    run: Callable[..., list[torch.Tensor]]
    exactly: Callable[..., list[torch.Tensor]]
    places: tuple[int, ...]
    dtype: torch.dtype
    dtypes: Sequence[torch.dtype | None] = ()
    approximates: float = 0.0

    @property
    def bound(self) -> RoundingModel:
        return RoundingModel(self, is_of_torch=True)

    def __call__(self, ref: torch.Tensor, *inputs: Argument) -> torch.Tensor:
        """Returns how far a right kernel's arithmetic may lead from `ref`, [shape of ref]; `inputs` are in float64."""
        multiple, floor = OF_16_BITS if self._has_16_bits else (MULTIPLE, FLOOR)
        share = floor * UNIT_ROUNDOFF[self.dtype] + self.approximates
        pairs = self._runs(inputs)
        bound = torch.full_like(ref, multiple * self._of_torch(pairs) + share * scale_of(inputs, ref))
        for exact, written in pairs:
            if exact.shape == ref.shape == written.shape:  # where torch's own numbers get too large, these may
                bound.masked_fill_(written.isinf() & exact.isfinite(), torch.inf)
        return bound

    def _of_torch(self, pairs: Sequence[tuple[torch.Tensor, torch.Tensor]]) -> float:
        """Returns the largest error of torch's own run; NaN and infinities are no errors of rounding. In 16 bits it is
        that beyond the last rounding, which the bound allows anyway and which there is as large as all others."""
        last = 1.25 * UNIT_ROUNDOFF[self.dtype] if self._has_16_bits else 0.0
        errors = [(one.double() - ref).abs() - last * ref.abs() for ref, one in pairs if one.shape == ref.shape]
        return max((largest(error.clamp(min=0)) for error in errors), default=0.0)

    def _runs(self, inputs: Sequence[Argument]) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """Returns for each of these places the result in float64, and what torch computes in the call's dtypes."""
        dtypes = self.dtypes or [self.dtype if _is_float(one) else None for one in inputs]
        given = [one.to(own) if isinstance(one, torch.Tensor) and own else one for one, own in zip(inputs, dtypes)]
        try:
            exact = self.exactly(*inputs)
        except Exception:  # of a reference that is given what an explanation supposes
            return []
        written = self.run(*given)
        return [(exact[place], written[place]) for place in self.places]

    @property
    def _has_16_bits(self) -> bool:
        return self.dtype.itemsize == 2


def scale_of(inputs: Sequence[Argument], ref: torch.Tensor) -> float:
    """Returns what errors are relative to: the largest value of a result. Those of few elements may all lie near 0 by
    chance, where terms cancel: then the largest input counts too."""
    floats = [one for one in inputs if isinstance(one, torch.Tensor) and one.is_floating_point()]
    others = floats if ref.numel() < FEW else []
    return max(map(largest, (ref, *others)))


def largest(values: torch.Tensor) -> float:
    """Returns the largest of the finite |values|; 0 without any."""
    finite = values[values.isfinite()]
    return float(finite.abs().max()) if finite.numel() else 0.0


def _is_float(one: Argument) -> bool:
    return isinstance(one, torch.Tensor) and one.is_floating_point()


# ---- of an exercise --------------------------------------------------------------------------------------------------


def of_torchs_run(reference: Callable[..., Any], place: int) -> RoundingModel:
    """Returns the model of an exercise's result at this place of what its reference returns: `bound="torch"`."""

    def exactly(*arguments: Argument) -> list[torch.Tensor]:
        return _listed(reference(*arguments))

    def in_dtype(dtype: torch.dtype) -> RoundingModel:
        return RoundingOfTorch(partial(as_written, exactly), exactly, (place,), dtype).bound

    return replace(in_dtype(torch.float32), in_dtype=in_dtype)


def _listed(found: Any) -> list[torch.Tensor]:
    return list(found) if isinstance(found, tuple | list) else [found]


# ---- torch's own run -------------------------------------------------------------------------------------------------


def as_written(function: Callable[..., list[torch.Tensor]], *arguments: Argument) -> list[torch.Tensor]:
    """Returns what torch computes in the dtypes of these arguments. Where torch has no such operation in a dtype of 16
    bits, it computes in fp32 and rounds after each step, and results are in fp32. Raises what the function raises."""
    try:
        return function(*arguments)
    except Exception:
        with _RoundingTo(_coarsest(arguments)):
            return function(*map(_in_fp32, arguments))


class _RoundingTo(TorchFunctionMode):
    """Rounds what each operation gives to a dtype of 16 bits, and keeps it in fp32."""

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.dtype = dtype

    def __torch_function__(
        self, function: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        found = function(*args, **(kwargs or {}))
        is_wide = isinstance(found, torch.Tensor) and found.dtype == torch.float32
        return found.to(self.dtype).float() if is_wide else found


def _coarsest(arguments: Sequence[Argument]) -> torch.dtype:
    """Returns the dtype of floats with the fewest digits among these; float32 without any."""
    own = [one.dtype for one in arguments if isinstance(one, torch.Tensor) and one.dtype in UNIT_ROUNDOFF]
    return max(own, key=UNIT_ROUNDOFF.__getitem__, default=torch.float32)


def _in_fp32(argument: Argument) -> Argument:
    return argument.float() if isinstance(argument, torch.Tensor) and argument.is_floating_point() else argument
