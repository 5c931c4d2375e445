"""A sample of a call's speed: the plan on several sets of buffers, beside an anchor, and beside torch if asked for."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch

from grader.comparison import is_right, surely_right
from grader.exercise import Exercise
from grader.gpu import anchors
from grader.gpu.answers import ANCHOR, KERNEL, MATMUL, TORCH, Measurement
from grader.gpu.buffers import Buffers
from grader.gpu.device import Clocks
from grader.gpu.launcher import Functions
from grader.gpu.plan import Plan
from grader.gpu.replay import Replay
from grader.gpu.timing import Chain, Flush, measure
from grader.inputs import Data, drawing_precision
from grader.protocol import TensorSpec

TOTAL_WANTED = 512 << 20  # bytes of all sets of buffers: several times the largest L2 cache there is
LEAST_SLOTS, MOST_SLOTS = 4, 20


@dataclass
class Speed:
    """What to measure: a call with these arguments, in one dtype, checked against the exercise's reference."""

    exercise: Exercise
    bound: str
    data: list[Data]
    arguments: list[TensorSpec]
    anchor: str
    config: int = 0
    seed: int = 0
    with_torch: bool = False
    l2_bytes: int = 0
    uuid: str = ""
    device: str = "cuda"
    generator: torch.Generator = field(init=False)  # of the anchor's inputs
    order: torch.Generator = field(init=False)  # of the seeds of the kernel's inputs

    def __post_init__(self) -> None:
        self.generator = torch.Generator(self.device).manual_seed(self.seed)
        self.order = torch.Generator().manual_seed(self.seed)

    def generator_of(self, seed: int, number: int) -> torch.Generator:
        """Draws an argument's values; the same ones each time."""
        return torch.Generator(self.device).manual_seed(seed + number)

    @property
    def dtype(self) -> torch.dtype:
        return getattr(torch, self.arguments[0].dtype)


def least_bytes(plan: Plan, arguments: list[TensorSpec], returns: str) -> int:
    """Bytes that a call has to move: each element of an input read once, each of the result written once."""
    shapes = [(spec.shape, spec.dtype) for spec in arguments if spec.name != returns]
    shapes.append((plan.result.shape, plan.result.dtype))
    return sum(torch.Size(shape).numel() * getattr(torch, dtype).itemsize for shape, dtype in shapes)


def slots_for(plan: Plan) -> int:
    bytes_per_slot = max(sum(buffer.bytes for buffer in plan.buffers), 1)
    return max(LEAST_SLOTS, min(MOST_SLOTS, TOTAL_WANTED // bytes_per_slot))


def sample(
    plan: Plan, functions: Functions, speed: Speed, wait_for_turn: Callable[[], None] = lambda: None
) -> Measurement:
    slots = [Buffers(plan) for _ in range(slots_for(plan))]
    chains = {KERNEL: plan_chain(plan, functions, speed, slots), ANCHOR: anchor_chain(plan, speed, len(slots))}
    if speed.with_torch:
        chains[TORCH] = torch_chain(speed, slots)
    found = measure(chains, Flush(speed.l2_bytes), Clocks(speed.uuid), random.Random(speed.seed), wait_for_turn)
    found.bytes, found.config = least_bytes(plan, speed.arguments, speed.exercise.returns), speed.config
    return found


def fastest(plan: Plan, functions: Functions, speed: Speed) -> int:
    """The configuration of an autotuned kernel that takes the least time; each is verified on the way elsewhere."""
    slots = [Buffers(plan) for _ in range(LEAST_SLOTS)]
    chains = {}
    for config in plan.usable_configs:
        speed.config = config
        chains[str(config)] = plan_chain(plan, functions, speed, slots)
    found = measure(chains, Flush(speed.l2_bytes), Clocks(speed.uuid), random.Random(speed.seed))
    total = {name: sum(one.seconds[name] for one in found.rounds) for name in chains}
    return int(min(total, key=total.get))


def plan_chain(plan: Plan, functions: Functions, speed: Speed, slots: list[Buffers]) -> Chain:
    calls = [Replay(plan, functions, buffers, speed.config).enqueue for buffers in slots]
    seeds = [0] * len(slots)  # of the inputs that a set of buffers holds now

    def refresh() -> None:
        for slot, buffers in enumerate(slots):
            seeds[slot] = int(torch.randint(1 << 62, (1,), generator=speed.order))
            buffers.poison()
            for number, (recipe, spec) in enumerate(zip(speed.data, speed.arguments)):
                view = buffers.argument(number, spec)
                if recipe.is_output:
                    view.fill_(float("nan"))
                recipe.fill(view, speed.generator_of(seeds[slot], number), drawing_precision(view.dtype))

    def verify() -> str:
        clean = [_surely_clean(plan, speed, buffers, seed) for buffers, seed in zip(slots, seeds)]
        if torch.stack(clean).all():  # of all at once: the host waits once
            return ""
        wrong = (_complaint(plan, speed, buffers, seed) for buffers, seed in zip(slots, seeds))
        return next(filter(None, wrong), "")

    return Chain(calls, refresh, verify)


def _surely_clean(plan: Plan, speed: Speed, buffers: Buffers, seed: int) -> torch.Tensor:
    """Whether a quick look finds a timed call right, and nothing written beside its buffers; [], bool, on the GPU."""
    out, precision = buffers.view(plan.result), _quick_precision(speed.bound, speed.dtype)
    inputs = _drawn_again(speed, seed, precision)
    with tensor_cores(speed.dtype.itemsize == 2):  # which multiply numbers of 16 bits exactly
        ref = speed.exercise.reference(*inputs)
        if out.shape != ref.shape:
            return torch.zeros((), dtype=torch.bool, device=out.device)
        return surely_right(out, ref, speed.bound, inputs).logical_and_(~buffers.touched_guards())


def _complaint(plan: Plan, speed: Speed, buffers: Buffers, seed: int) -> str:
    """Why a timed call was wrong, "" if it was right."""
    inputs = _drawn_again(speed, seed, speed.dtype if speed.bound == "bits" else torch.float64)
    out, ref = buffers.view(plan.result), speed.exercise.reference(*inputs)
    if out.shape != ref.shape:
        return "an output of a timed call has another shape than it should"
    if not is_right(out, ref, speed.bound, inputs):
        return "an output of a timed call is wrong"
    overruns = buffers.overruns()
    return f"a timed call wrote outside of {overruns[0].buffer}" if overruns else ""


def _quick_precision(bound: str, dtype: torch.dtype) -> torch.dtype:
    """In which a quick look computes what was expected. An exact sum of 16 bits is not to be rounded twice."""
    if bound == "bits":
        return dtype
    return torch.float64 if dtype == torch.float64 or (bound == "exact" and dtype.itemsize == 2) else torch.float32


def _drawn_again(speed: Speed, seed: int, precision: torch.dtype) -> list[torch.Tensor]:
    """The inputs of a call: a kernel may have changed those in the buffers, so that another result seems right.

    What was expected may stay in memory: the next round has other inputs.
    """
    dtypes = [getattr(torch, spec.dtype) for spec in speed.arguments]
    return [
        recipe.tensor(dtype, speed.generator_of(seed, number), drawing_precision(dtype)).to(precision)
        for number, (recipe, dtype) in enumerate(zip(speed.data, dtypes))
    ]


@contextmanager
def tensor_cores(allowed: bool) -> Iterator[None]:
    """Products of float32 in there may be computed by tensor cores, which see 10 bits after the point."""
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = allowed
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before


def anchor_chain(plan: Plan, speed: Speed, slots: int) -> Chain:
    if speed.anchor == MATMUL:
        (M, K), (_, N) = speed.arguments[0].shape, speed.arguments[1].shape
        anchor = anchors.matmul_of(M, K, N, speed.dtype, slots)
    else:
        anchor = anchors.copy_of(least_bytes(plan, speed.arguments, speed.exercise.returns), slots)

    def refresh() -> None:
        for tensor in anchor.inputs:
            tensor.normal_(generator=speed.generator)

    return Chain(anchor.calls, refresh)


def torch_chain(speed: Speed, slots: list[Buffers]) -> Chain:
    """The reference in the dtype of the call; where it is a view of an argument, a contiguous copy of it."""

    def call(buffers: Buffers) -> None:
        arguments = [buffers.argument(number, spec) for number, spec in enumerate(speed.arguments)]
        result = speed.exercise.reference(*arguments)
        if any(result.untyped_storage().data_ptr() == one.untyped_storage().data_ptr() for one in arguments):
            result.clone(memory_format=torch.contiguous_format)

    return Chain([lambda buffers=buffers: call(buffers) for buffers in slots])
