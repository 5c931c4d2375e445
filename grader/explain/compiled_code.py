"""Judges the machine code of a call's kernels against what a fast kernel needs."""

from __future__ import annotations

import re
from dataclasses import dataclass

from grader.course.exercise import Exercise
from grader.explain.causes import Cause
from grader.explain.evidence import in_line, source_line
from grader.explain.refused_by_compiler import compiler_refusal
from grader.explain.verdict import NOT_RUN, PASS, SKIPPED, Verdict, failed
from grader.gpu.compiled_facts import WIDEST, Facts, GlobalAccess, facts_of
from grader.gpu.overwritten_tiles import OverwrittenTile
from grader.gpu.plan import Plan
from grader.sentences import Fields, Said, Sentence
from grader.submission.text import Submission, line_of_option
from grader.wire.messages import Failure, GpuModel

NO_TENSOR_CORES = "Triton does not use the tensor cores of this GPU"
NO_ROOM = re.compile(r"out of resource|PTXAS|ptxas")
UNSOUND = "spill or do not fit: they only cost time to try"
WIDE = {"f32", "f64"}
MUCH_SMALLER = 4  # tiles more than this many times smaller than the largest may be moved in any way


class Compiled(Sentence):
    """Sentences about what machine code costs, and about what would make it cheaper."""

    NO_LAUNCH = "{entry} returned without launching a kernel."
    OF_CONFIGURATION = (
        "This is configuration {number} of {count} ({config}). At least one has to fit and to hold all in registers; "
        "no other does."
    )
    SPILLS = (
        "{kernel} needs more than the 255 registers that a thread can have: {bytes} bytes per thread are spilled to "
        "memory."
    )
    ADVICE_HOLD_LESS = (
        "It runs with {warps:#warp}. A smaller tile, or more warps (num_warps=) to share it, leaves each thread less "
        "to hold."
    )
    NARROW = "The {kind}s{in_line} move {bytes} bytes at a time; one thread can move {widest}."
    ADVICE_LARGER_TILE = (
        "The tile is shared by {threads} threads ({warps:#warp}) and leaves each {share:g} bytes: make the tile larger."
    )
    ADVICE_NEIGHBOURS = (
        "Neighbouring lanes have to touch neighbouring addresses, and the compiler has to see it: the last axis of the "
        "tile comes from tl.arange times a stride of 1, rows begin at multiples of 16 elements, and no mask splits "
        "neighbours."
    )
    BY_POINTERS = "The {kind} in line {line} moves a tile by pointers, an address for each thread."
    ADVICE_DESCRIPTOR = (
        "The load and the store of a tensor descriptor hand the whole tile to the Tensor Memory Accelerator."
    )
    NOT_PIPELINED = "The loads of {kernel} wait for memory: none runs ahead of the product that needs it."
    ADVICE_STAGES = (
        "The compiler copies the next tiles to shared memory during a product if they are loaded in the loop, in "
        "pieces of at least 4 bytes, and num_stages is 2 or more."
    )
    NO_TENSOR_CORES = (
        "The product does not run on the tensor cores, which multiply fp16 tiles more than ten times as fast."
    )
    ADVICE_DOT = (
        "tl.dot of fp16 tiles with at least 16 rows and columns uses them; sums of products and fp32 tiles with "
        'input_precision="ieee" do not.'
    )
    WIDE_PRODUCT = (
        "A product of {kernel} multiplies tiles of fp32: the tensor cores cut these off to tf32, and take at least "
        "twice as long as for tiles of 16 bits."
    )
    OVERWRITTEN = (
        "The compiler makes wrong code of {kernel}: a product in line {product} may still read the tile that line "
        "{load} has loaded, when the load of a later iteration overwrites it."
    )
    OVERWRITTEN_WHY = (
        "Your kernel is right, and so is what the interpreter computes. Products on tensor cores run on by themselves, "
        "and Triton has kept a place too few for tiles that are loaded ahead. On a GPU values can be wrong, and other "
        "ones in each run."
    )
    ADVICE_ONE_STAGE = (
        "Launch it with num_stages=1, where no load runs ahead; or give every product in the loop at least 64 rows."
    )
    ADVICE_NARROW_TILES = "Convert what has become fp32 to the dtype of the other tile before tl.dot."


WARPS_UNASKED = 4  # of a kernel whose launch states no num_warps


@dataclass(frozen=True)
class Expectations:
    """A test's requirements on machine code; that it exists, fits the GPU and does not spill is always required."""

    vectors: bool = False  # every access to a large tile in global memory moves 16 bytes
    tensor_cores: bool = False  # products of tiles run on tensor cores
    halves: bool = False  # no product multiplies tiles of fp32 or fp64
    pipelined: bool = False  # loads of tensor core kernels run ahead, straight into shared memory
    descriptors: bool = False  # large tiles move by descriptors; before sm_90 this is not required, nor `pipelined`


def compiled_verdict(
    plan: Plan, expected: Expectations, submission: Submission, exercise: Exercise, model: GpuModel, filename: str
) -> Verdict:
    """Returns the verdict on the machine code; of an autotuned kernel, on its best configuration.

    Triton passes over a configuration that does not fit; a configuration that spills is slow and is not chosen. So at
    least one configuration has to fit, not to spill, and to meet `expected`. If there is none, the verdict explains the
    first that fits and does not spill, or else the first.
    """
    if (skipped := not_asked(expected, model)) is not None:
        return skipped
    sound, unsound = [], []
    for config in range(plan.configs):
        numbers = dict.fromkeys(launch.kernel for launch in plan.launches(config))
        facts = [facts_of(plan.kernels[number], filename) for number in numbers]
        spilled = next((complaint for kernel in facts if (complaint := _spilled(kernel, submission))), None)
        if refused := _does_not_run(plan, config, submission, exercise, model):
            unsound.append(refused)
        elif spilled is not None and plan.configs > 1:
            unsound.append(_of_config(plan, config, spilled))
        elif facts:
            sound.append(_judged(facts, expected, submission, model))
    if not sound:
        no_launch = failed(Cause.NO_LAUNCH, Compiled.NO_LAUNCH(entry=exercise.entry), kind="error")
        return unsound[0] if unsound else no_launch
    best = next((verdict for verdict in sound if verdict.outcome == PASS), sound[0])
    if unsound and best.outcome == PASS:
        best.note += f"; {len(unsound)} of {plan.configs} configurations {UNSOUND}"
    return best


def overwritten(submission: Submission, kernel: str, tile: OverwrittenTile) -> Verdict:
    """Returns the verdict on a race that the compiler has put into a right kernel."""
    line = tile.product
    said = Compiled.OVERWRITTEN(kernel=kernel, product=line, load=tile.load)
    why = Compiled.OVERWRITTEN_WHY(), Compiled.ADVICE_ONE_STAGE(), source_line(submission, line)
    return failed(Cause.COMPILER_RACE, said, *why, kind="values", line=line)


def not_asked(expected: Expectations, model: GpuModel) -> Verdict | None:
    """Returns a verdict that skips the test if it expects tensor cores and Triton uses none on this GPU; else None."""
    if expected.tensor_cores and not model.has_tensor_cores:
        return Verdict(SKIPPED, NOT_RUN, note=f"{model.target}: {NO_TENSOR_CORES}")
    return None


def _does_not_run(
    plan: Plan, config: int, submission: Submission, exercise: Exercise, model: GpuModel
) -> Verdict | None:
    """Returns the verdict on a configuration that the GPU has no room for; None for any other.

    A configuration that a kernel's tl.static_assert rules out is no mistake.
    """
    error = plan.error_of(config)
    if not NO_ROOM.search(error):
        return None
    line = next((choice.line for choice in plan.choices), 0)
    failure = Failure("resources", message=error, line=line)
    return _of_config(plan, config, compiler_refusal(failure, submission, exercise, model))


def _of_config(plan: Plan, config: int, verdict: Verdict) -> Verdict:
    which: Fields = dict(number=config + 1, count=plan.configs, config=plan.config_text(config))
    verdict.said.insert(1, Compiled.OF_CONFIGURATION(**which))
    return verdict


def _judged(facts: list[Facts], expected: Expectations, submission: Submission, model: GpuModel) -> Verdict:
    large = max(kernel.tile_bytes for kernel in facts) / MUCH_SMALLER
    without_tma = expected.descriptors and not model.has_tensor_maps  # Triton then moves tiles as it likes
    complaints = (
        complaint
        for kernel in facts
        for complaint in (
            _spilled(kernel, submission),
            _wide_product(kernel) if expected.halves else None,
            _narrow(kernel, large, submission) if expected.vectors else None,
            _not_pipelined(kernel) if expected.pipelined and kernel.tensor_cores and not without_tma else None,
            _by_pointers(kernel, large, submission) if expected.descriptors and not without_tma else None,
        )
        if complaint is not None
    )
    return (
        (_without_tensor_cores(facts) if expected.tensor_cores else None)
        or next(complaints, None)
        or Verdict(PASS, note=resources(facts, model.target) + _instead(expected, model), figures=_figures(facts))
    )


def _spilled(kernel: Facts, submission: Submission) -> Verdict | None:
    """Returns the verdict on a kernel that needs more registers than there are; None for any other. Where it runs with
    fewer warps than Triton gives a kernel, the line is the one that asks for them."""
    if not kernel.spills:
        return None
    line = line_of_option(submission.tree, kernel.kernel, "num_warps") if kernel.warps < WARPS_UNASKED else 0
    said = Compiled.SPILLS(kernel=kernel.kernel, bytes=kernel.spilled_bytes)
    advice = Compiled.ADVICE_HOLD_LESS(warps=kernel.warps), source_line(submission, line)
    return failed(Cause.SPILLS, said, *advice, kind="cost", line=line)


def _narrow(kernel: Facts, large: float, submission: Submission) -> Verdict | None:
    """Returns the verdict on accesses of less than 16 bytes to tiles of at least `large` bytes; None if there are none.

    A thread's share of the tile is too small, or the compiler cannot see that lanes are neighbours in memory.
    """
    access = kernel.narrowest(large)
    if access is None or access.bytes >= WIDEST:
        return None
    said = Compiled.NARROW(kind=access.kind, in_line=in_line(access.line), bytes=access.bytes, widest=WIDEST)
    place = source_line(submission, access.line)
    return failed(Cause.SCALAR_ACCESS, said, _why_narrow(kernel, access), place, kind="cost", line=access.line)


def _why_narrow(kernel: Facts, access: GlobalAccess) -> Said:
    share, warps = kernel.share_per_thread(access), kernel.warps * kernel.blocks
    if access.bytes >= share > 0:
        return Compiled.ADVICE_LARGER_TILE(threads=kernel.lanes * warps, warps=warps, share=share)
    return Compiled.ADVICE_NEIGHBOURS()


def _by_pointers(kernel: Facts, large: float, submission: Submission) -> Verdict | None:
    """Returns the verdict on a tile of at least `large` bytes that is moved by pointers, an address for each thread;
    None if there is none, as in a kernel without tiles."""
    accesses = [access for access in kernel.accesses if access.tile_bytes and access.tile_bytes >= large]
    if not accesses:
        return None
    access = min(accesses, key=lambda one: (one.kind != "load", one.line))
    said = Compiled.BY_POINTERS(kind=access.kind, line=access.line)
    place = source_line(submission, access.line)
    return failed(Cause.NO_DESCRIPTORS, said, Compiled.ADVICE_DESCRIPTOR(), place, kind="cost", line=access.line)


def _not_pipelined(kernel: Facts) -> Verdict | None:
    if kernel.async_copies or kernel.tma_loads_ahead:
        return None
    said = Compiled.NOT_PIPELINED(kernel=kernel.kernel)
    return failed(Cause.NOT_PIPELINED, said, Compiled.ADVICE_STAGES(), kind="cost")


def _without_tensor_cores(facts: list[Facts]) -> Verdict | None:
    if any(kernel.tensor_cores for kernel in facts):
        return None
    return failed(Cause.NO_TENSOR_CORES, Compiled.NO_TENSOR_CORES(), Compiled.ADVICE_DOT(), kind="cost")


def _wide_product(kernel: Facts) -> Verdict | None:
    if not kernel.multiplied & WIDE:
        return None
    said = Compiled.WIDE_PRODUCT(kernel=kernel.kernel)
    return failed(Cause.NO_TENSOR_CORES, said, Compiled.ADVICE_NARROW_TILES(), kind="cost")


def resources(facts: list[Facts], target: str) -> str:
    """Returns the resources of the largest kernel of a call: "sm_90: 30 registers, 64 B shared, 16-byte accesses"."""
    kernel = max(facts, key=lambda kernel: kernel.registers)
    parts = [f"{target}: {kernel.registers} registers"]
    if kernel.spills:
        parts.append(f"{kernel.spilled_bytes} bytes spilled")
    if kernel.shared:
        parts.append(f"{kernel.shared / 1024:g} KiB shared" if kernel.shared >= 1024 else f"{kernel.shared} B shared")
    if kernel.tensor_cores:
        parts.append(kernel.tensor_cores)
    if access := kernel.narrowest(kernel.tile_bytes / MUCH_SMALLER):
        parts.append(f"{access.bytes}-byte accesses")
    return ", ".join(parts)


def _instead(expected: Expectations, model: GpuModel) -> str:
    """Returns the note that pointers move the tiles if descriptors are expected and this GPU lacks them; else ""."""
    return ", pointers in place of descriptors" if expected.descriptors and not model.has_tensor_maps else ""


def _figures(facts: list[Facts]) -> dict[str, float]:
    return {"registers": max(k.registers for k in facts), "shared_bytes": max(k.shared for k in facts)}
