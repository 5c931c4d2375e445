"""A sample of a call's speed: the plan on several sets of buffers, next to an anchor, and to torch on request."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

import torch

from grader.course.exercise import Exercise
from grader.gpu.answers import ANCHOR, KERNEL, MATMUL, TORCH, Measurement
from grader.gpu.inside import anchors
from grader.gpu.inside.guarded_buffers import Buffers
from grader.gpu.inside.launcher import Functions
from grader.gpu.inside.replay import Replay
from grader.gpu.inside.timing import ROUNDS, Chain, Flush, measure, seconds_of
from grader.gpu.nvml import Clocks
from grader.gpu.plan import Plan, least_bytes
from grader.numerics.arguments import Argument, DataOrNumber, in_precision, numbers_alone
from grader.numerics.bounds import Bound
from grader.numerics.comparison import compare, is_right, surely_right
from grader.numerics.data_sets import Data, drawing_precision, seed_place
from grader.wire.messages import TensorSpec

TOTAL_WANTED = 512 << 20  # bytes of all sets of buffers: several times the largest L2 cache of any GPU
LEAST_SLOTS, MOST_SLOTS = 4, 20


@dataclass
class SpeedRequest:
    """The call to measure, in a run of one dtype, checked against the exercise's reference.

    bounds: of the results, by name. all_stated: of all arguments of the entry; arguments: the tensors among them.
    budget: seconds that the timed calls may take together; a slow kernel gets fewer rounds, on fewer sets of buffers.
    """

    exercise: Exercise
    bounds: dict[str, Bound]
    all_stated: list[DataOrNumber]
    dtype: torch.dtype
    arguments: list[TensorSpec]
    anchor: str
    config: int = 0
    seed: int = 0
    with_torch: bool = False
    l2_bytes: int = 0
    uuid: str = ""
    device: str = "cuda"
    budget: float = math.inf
    generator: torch.Generator = field(init=False)  # of the anchor's inputs
    order: torch.Generator = field(init=False)  # of the seeds of the kernel's inputs

    def __post_init__(self) -> None:
        self.generator = torch.Generator(self.device).manual_seed(self.seed)
        self.order = torch.Generator().manual_seed(self.seed)

    def generator_of(self, seed: int, number: int) -> torch.Generator:
        """Returns the generator that draws an argument's values, the same each time for a seed and a number."""
        return torch.Generator(self.device).manual_seed(seed + number)

    @property
    def tensors(self) -> list[tuple[int, Data, TensorSpec]]:
        """Each tensor among the arguments: its position among all arguments, its data set, and its layout in memory."""
        all_stated = [(place, stated) for place, stated in enumerate(self.all_stated) if isinstance(stated, Data)]
        return [(place, stated, spec) for (place, stated), spec in zip(all_stated, self.arguments, strict=True)]


def slots_for(plan: Plan) -> int:
    bytes_per_slot = max(sum(buffer.bytes for buffer in plan.buffers), 1)
    return max(LEAST_SLOTS, min(MOST_SLOTS, TOTAL_WANTED // bytes_per_slot))


def sample(
    plan: Plan, functions: Functions, speed: SpeedRequest, wait_for_turn: Callable[[], None] = lambda: None
) -> Measurement:
    slots, rounds = [Buffers(plan) for _ in range(slots_for(plan))], ROUNDS
    chains = {KERNEL: plan_chain(plan, functions, speed, slots), ANCHOR: anchor_chain(plan, speed, len(slots))}
    if speed.budget < math.inf:
        chains[KERNEL].refresh()
        calls, rounds = within(speed.budget, seconds_of(chains[KERNEL].calls[0]), len(slots))
        chains[KERNEL] = plan_chain(plan, functions, speed, slots[:calls])
    if speed.with_torch:
        chains[TORCH] = torch_chain(speed, slots)
    order = random.Random(speed.seed)
    measurement = measure(chains, Flush(speed.l2_bytes), Clocks(speed.uuid), order, wait_for_turn, rounds)
    measurement.bytes, measurement.config = least_bytes(plan, speed.arguments, speed.exercise), speed.config
    return measurement


def within(budget: float, seconds: float, slots: int) -> tuple[int, int]:
    """Returns (calls in a chain, rounds) that take no longer than the budget, but at least one call in one round.

    `seconds`: of a call; `slots`: sets of buffers, so the most calls in a chain. A chain runs twice before its rounds.
    """
    affordable = int(budget / max(seconds, 1e-9))
    calls = max(1, min(slots, affordable // (ROUNDS + 2)))
    return calls, max(1, min(ROUNDS, affordable // calls - 2))


def fastest(plan: Plan, functions: Functions, speed: SpeedRequest) -> int:
    """Returns the fastest configuration of an autotuned kernel; each configuration's values are checked elsewhere."""
    slots = [Buffers(plan) for _ in range(LEAST_SLOTS)]
    chains = {}
    for config in plan.usable_configs:
        speed.config = config
        chains[str(config)] = plan_chain(plan, functions, speed, slots)
    measurement = measure(chains, Flush(speed.l2_bytes), Clocks(speed.uuid), random.Random(speed.seed))
    total = {name: sum(timed.seconds[name] for timed in measurement.rounds) for name in chains}
    return int(min(total, key=lambda name: total[name]))


def plan_chain(plan: Plan, functions: Functions, speed: SpeedRequest, slots: list[Buffers]) -> Chain:
    calls = [Replay(plan, functions, buffers, speed.config).enqueue for buffers in slots]
    seeds = [0] * len(slots)  # of the inputs that a set of buffers holds now

    def refresh() -> None:
        for slot, buffers in enumerate(slots):
            seeds[slot] = int(torch.randint(1 << 62, (1,), generator=speed.order))
            buffers.poison()
            for number, (place, stated, spec) in enumerate(speed.tensors):
                view = buffers.argument(number, spec)
                if stated.is_output:
                    view.fill_(float("nan") if view.is_floating_point() else -1)
                stated.fill(
                    view, speed.generator_of(seeds[slot], seed_place(stated, place)), drawing_precision(view.dtype)
                )

    def verify() -> str:
        clean = [_surely_clean(plan, speed, buffers, seed) for buffers, seed in zip(slots, seeds)]
        if torch.stack(clean).all():  # for all sets of buffers at once: the host waits once
            return ""
        wrong = (_complaint(plan, speed, buffers, seed) for buffers, seed in zip(slots, seeds))
        return next(filter(None, wrong), "")

    return Chain(calls, refresh, verify)


def _surely_clean(plan: Plan, speed: SpeedRequest, buffers: Buffers, seed: int) -> torch.Tensor:
    """Returns whether a quick look finds a timed call right, and no write outside its buffers: bool [] on the GPU."""
    inputs, clean = _drawn_again(speed, seed, _quick_precision(speed)), ~buffers.touched_guards()
    with tensor_cores(are_exact(speed.exercise, speed.dtype)):
        for out, ref, bound in _results(plan, speed, buffers, inputs):
            if out.shape != ref.shape:
                return torch.zeros_like(clean)
            clean.logical_and_(surely_right(out, ref, bound, inputs))
    return clean


def _complaint(plan: Plan, speed: SpeedRequest, buffers: Buffers, seed: int) -> str:
    """Returns the reason why a timed call was wrong, "" if it was right."""
    inputs = _drawn_again(speed, seed, torch.float64 if _computes(speed) else None)
    for out, ref, bound in _results(plan, speed, buffers, inputs):
        if out.shape != ref.shape:
            return "an output of a timed call has another shape than it should"
        if not is_right(out, ref, bound, inputs):
            error = compare(out, ref, bound, inputs).largest_error
            how_far = f": it is off by {error:.3g} times what rounding may do" if math.isfinite(error) else ""
            return f"an output of a timed call is wrong{how_far}"
    overruns = buffers.overruns()
    return f"a timed call wrote outside of {overruns[0].buffer}" if overruns else ""


def _results(
    plan: Plan, speed: SpeedRequest, buffers: Buffers, inputs: list[Argument]
) -> Iterator[tuple[torch.Tensor, torch.Tensor, Bound]]:
    """Yields for each result the call's output, the reference's, and the bound between them."""
    for result, ref in zip(speed.exercise.results, speed.exercise.expected(inputs), strict=True):
        yield buffers.view(plan.results[result.name]), ref, speed.bounds[result.name]


def _computes(speed: SpeedRequest) -> bool:
    """Returns whether the call is more than a copy, which is exact in any dtype."""
    return set(speed.bounds.values()) != {"bits"}


def _quick_precision(speed: SpeedRequest) -> torch.dtype | None:
    """Returns the dtype in which a quick look computes the expected results; None for a copy, which needs none.

    For an exact sum in a dtype of 16 bits it is float64, since the sum must not be rounded twice.
    """
    if not _computes(speed):
        return None
    twice = "exact" in speed.bounds.values() and speed.dtype.itemsize == 2
    return torch.float64 if speed.dtype == torch.float64 or twice else torch.float32


def _drawn_again(speed: SpeedRequest, seed: int, precision: torch.dtype | None) -> list[Argument]:
    """Returns the arguments of a call, drawn anew: a kernel may have changed its inputs to fit a wrong result.

    Floats get this precision and whole numbers become int64; with None all stay as they are. Expected results may stay
    in memory: the next round has other inputs.
    """
    numbers = numbers_alone(speed.all_stated)
    for place, stated, spec in speed.tensors:
        dtype = getattr(torch, spec.dtype)
        drawn = stated.tensor(dtype, speed.generator_of(seed, seed_place(stated, place)), drawing_precision(dtype))
        numbers[place] = drawn if precision is None else in_precision(drawn, precision)
    return numbers


def are_exact(exercise: Exercise, dtype: torch.dtype) -> bool:
    """Returns whether tensor cores lose nothing in the reference's products: they multiply numbers of 16 bits exactly.

    A reference that is more work than one product of its arguments also multiplies its own intermediate results.
    """
    return dtype.itemsize == 2 and exercise.product is None


@contextmanager
def tensor_cores(allowed: bool) -> Iterator[None]:
    """Sets whether tensor cores may compute products of float32 inside the block; they use 10 bits of the mantissa."""
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = allowed
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before


def anchor_chain(plan: Plan, speed: SpeedRequest, slots: int) -> Chain:
    if speed.anchor == MATMUL:
        M, K, N = speed.exercise.as_product([spec.shape for spec in speed.arguments])
        anchor = anchors.matmul_of(M, K, N, speed.dtype, slots)
    else:
        anchor = anchors.copy_of(least_bytes(plan, speed.arguments, speed.exercise), slots)

    def refresh() -> None:
        for tensor in anchor.inputs:
            tensor.normal_(generator=speed.generator)

    return Chain(anchor.calls, refresh)


def torch_chain(speed: SpeedRequest, slots: list[Buffers]) -> Chain:
    """Returns a chain of the reference in the dtypes of the call, on each set of buffers.

    A result that is a view of an argument is copied, so that the reference moves its bytes too.
    """

    def call(buffers: Buffers) -> None:
        numbers, memory = numbers_alone(speed.all_stated), []
        for number, (place, _, spec) in enumerate(speed.tensors):
            numbers[place] = view = buffers.argument(number, spec)
            memory.append(view.untyped_storage().data_ptr())
        for result in speed.exercise.expected(numbers):
            if result.untyped_storage().data_ptr() in memory:
                result.clone(memory_format=torch.contiguous_format)

    return Chain([partial(call, buffers) for buffers in slots])
