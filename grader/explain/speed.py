"""Puts a measured speed in words: the rate, its share of the anchor's, the gate, and the likeliest obstacle."""

from __future__ import annotations

from dataclasses import dataclass

from grader.explain.causes import Cause
from grader.explain.medal_words import Medal
from grader.explain.verdict import INCONCLUSIVE, PASS, SKIPPED, Verdict, failed
from grader.gpu.answers import COPY, MATMUL
from grader.gpu.compiled_facts import WIDEST, facts_of
from grader.gpu.plan import Plan
from grader.sentences import Fields, Said, Sentence
from grader.submission.text import Submission
from grader.wire.messages import GpuModel

FEW_BYTES_PER_PROGRAM = 2048
LEAST_WAVES = 2  # programs per multiprocessor, fewer of which leave some without work


class Speeds(Sentence):
    """Sentences about a measured speed. Rates are texts with their units, shares are in percent."""

    TOO_SLOW = "{rate}, {percent:.0f} % of {anchor} ({ceiling}); needed {gate:.0f} %."
    WITH_EARLIER = (
        "{count:#earlier sample} of this kernel count too, as it has not changed: {percent:.0f} % in the middle of all."
    )
    WRONG_WHILE_TIMED = "While it was timed, {what}."

    TOO_NOISY = (
        "{rate}, {percent:.0f} % of {anchor}, needed {gate:.0f} %, but the speed differs by {spread:.1f} % from one "
        "process to the next: too noisy to tell. Run it again when the GPU is quiet."
    )
    IMPOSSIBLE = "{rate}, {percent:.0f} % of {anchor} is faster than this GPU can be; please report it"
    NO_VALID_ROUNDS = "{reason}. Run it again when the GPU is quiet."
    NOT_COMPARED = (
        "{rate}, {percent:.0f} % of {anchor}; the gate of {gate:.0f} % was measured on another GPU, {gpu}, and the "
        "solution could not be timed here to compare with. Run it again, or measure the gates here: course doctor "
        "--calibrate"
    )
    TOO_CLOSE = (
        "{of_solution:.2f} of the solution's speed on this GPU, needed {least:.2f}: too close, or too noisy, to tell. "
        "Run it again when the GPU is quiet."
    )
    NO_ROOM = "the GPU has too little free memory"

    SEVERAL_LAUNCHES = "One call launches {count:#kernel}: each reads and writes memory again."
    SPILLS = "{bytes} bytes per thread are spilled from registers to memory: use a smaller tile."
    FEW_PROGRAMS = "{count:#program} share {multiprocessors} multiprocessors: smaller tiles give all of them work."
    SMALL_PROGRAMS = (
        "Each of {count:_} programs moves {bytes:.0f} bytes. Starting one costs more than that: try larger tiles."
    )
    NARROW_ACCESS = "The {access}s move {bytes} bytes at a time; one thread can move {widest}."
    NARROW_ACCESS_IN_LINE = "The {access}s in line {line} move {bytes} bytes at a time; one thread can move {widest}."
    OF_SOLUTION = (
        "The gate was measured on another GPU, {gpu}. Here your kernel has {of_solution:.2f} of the speed of the "
        "solution; {least:.2f} of it would be enough."
    )
    ADVICE_OTHER_TILES = "The machine code looks sound: try other tile sizes, and other numbers of warps (num_warps=)."


@dataclass(frozen=True)
class Elsewhere:
    """A comparison with the shipped solution on this GPU, of a kernel that missed a gate from another GPU.

    measured_on: the other GPU. least: the part of the solution's speed that is enough. outcome: a constant of
    speed_rule.py.
    """

    measured_on: str
    least: float
    outcome: str
    medal: Medal

    @property
    def of_solution(self) -> float:
        return self.medal.of_solution


@dataclass
class MeasuredSpeeds:
    """The measured rates of a call, in bytes/s if the anchor is a copy, in FLOP/s if it is a product of matrices."""

    anchor: str
    gate: float
    share: float  # of the anchor's speed, in this run
    rate: float
    ceiling: float  # the anchor's own rate
    torch: float = 0.0
    samples: int = 0
    spread: float = 0.0  # between processes, as a logarithm
    earlier: int = 0  # samples of earlier runs that count too
    share_of_all: float = 0.0  # the median of the shares in all samples, earlier ones included
    medal: Medal | None = None  # None if the kernel did not pass, or was not compared with the shipped solution
    elsewhere: Elsewhere | None = None  # set if the kernel missed a gate from another GPU

    @property
    def text(self) -> str:
        """Returns "3 921 GB/s, 91 % of what this GPU can copy"."""
        return f"{self.rate_text(self.rate)}, {self.share:.0%} of {self.anchor_text}".replace("%", " %")

    @property
    def anchor_text(self) -> str:
        return "what this GPU can copy" if self.anchor == COPY else "cuBLAS"

    @property
    def evidence(self) -> dict[str, str | float]:
        """Returns the fields that several sentences about the speed have in common."""
        return {"rate": self.rate_text(self.rate), "percent": 100 * self.share, "anchor": self.anchor_text}

    @property
    def needed(self) -> str:
        return f"needed {self.gate:.0%}".replace("%", " %")

    def rate_text(self, rate: float) -> str:
        if self.anchor == COPY:
            return f"{rate / 1e9:,.0f} GB/s".replace(",", " ")
        return f"{rate / 1e12:.0f} TFLOP/s"

    @property
    def with_earlier(self) -> Said | None:
        """Returns the sentence about samples of earlier runs of the same kernel; None if there are none."""
        return Speeds.WITH_EARLIER(count=self.earlier, percent=100 * self.share_of_all) if self.earlier else None

    @property
    def compared(self) -> list[tuple[str, float]]:
        """Returns pairs of name and rate: submission, solution if timed, torch if it is not the anchor, anchor."""
        torch = [("torch", self.torch)] if self.torch and self.anchor == COPY else []
        solution = [("solution", self.rate / self.medal.of_solution)] if self.medal else []
        return [("yours", self.rate), *solution, *torch, ("copy" if self.anchor == COPY else "cuBLAS", self.ceiling)]

    @property
    def figures(self) -> dict[str, float]:
        unit = "bytes_per_second" if self.anchor == COPY else "flops"
        shares = {"share": round(self.share, 4), "gate": self.gate, "samples": self.samples, "earlier": self.earlier}
        rates = {unit: round(self.rate), f"ceiling_{unit}": round(self.ceiling), f"torch_{unit}": round(self.torch)}
        return {**shares, **rates, **(self.medal.figures if self.medal else {})}

    @staticmethod
    def from_figures(figures: dict[str, float]) -> MeasuredSpeeds | None:
        """Returns the speed in a test's figures, None if it has none; raises TypeError, ValueError or KeyError."""
        if "share" not in figures:
            return None
        anchor, unit = (COPY, "bytes_per_second") if "bytes_per_second" in figures else (MATMUL, "flops")
        rate, ceiling, torch = (float(figures[name]) for name in (unit, f"ceiling_{unit}", f"torch_{unit}"))
        return MeasuredSpeeds(
            anchor, float(figures["gate"]), float(figures["share"]), rate, ceiling, torch, int(figures["samples"]),
            medal=Medal.from_figures(figures),
        )  # fmt: skip


def fast_enough(speed: MeasuredSpeeds) -> Verdict:
    torch = f"; torch {speed.rate_text(speed.torch)}" if speed.torch and speed.anchor == COPY else ""
    grace = ", within the measuring grace" if speed.share < speed.gate else ""
    earlier = f"; {speed.with_earlier.text.removesuffix('.')}" if speed.with_earlier else ""
    medal = f"; {speed.medal.text}" if speed.medal else ""
    if other := speed.elsewhere:
        grace = ", within the measuring grace" if other.of_solution < other.least else ""
        needed = f"{other.of_solution:.2f} of the solution's speed on this GPU, needed {other.least:.2f}{grace}"
        why = f"the gate of {speed.gate:.0%} was measured on another, {other.measured_on}".replace("%", " %")
        return Verdict(PASS, note=f"{speed.text}; {needed}: {why}{torch}{earlier}{medal}", figures=speed.figures)
    return Verdict(PASS, note=f"{speed.text}; {speed.needed}{grace}{torch}{earlier}{medal}", figures=speed.figures)


def too_noisy(speed: MeasuredSpeeds) -> Verdict:
    said = Speeds.TOO_NOISY(**speed.evidence, gate=100 * speed.gate, spread=100 * speed.spread)
    return _inconclusive(said, speed.figures)


def not_compared(speed: MeasuredSpeeds, gpu: str) -> Verdict:
    """Returns the skip of a kernel that missed a gate from another GPU and could not be compared with the solution."""
    return _inconclusive(Speeds.NOT_COMPARED(**speed.evidence, gate=100 * speed.gate, gpu=gpu), speed.figures)


def too_close(speed: MeasuredSpeeds, other: Elsewhere) -> Verdict:
    """Returns the skip of a kernel whose part of the solution's speed is too close to the needed part to tell."""
    return _inconclusive(Speeds.TOO_CLOSE(of_solution=other.of_solution, least=other.least), speed.figures)


def impossible(speed: MeasuredSpeeds) -> Verdict:
    return _inconclusive(Speeds.IMPOSSIBLE(**speed.evidence), speed.figures)


def no_valid_rounds(reason: str) -> Verdict:
    """Returns the skip of a measurement in which almost every round was disturbed. reason: the disturbance."""
    return _inconclusive(Speeds.NO_VALID_ROUNDS(reason=reason))


def no_room() -> Verdict:
    return _inconclusive(Speeds.NO_ROOM())


def _inconclusive(why: Said, figures: dict[str, float] | None = None) -> Verdict:
    return Verdict(SKIPPED, INCONCLUSIVE, [why], note=f"inconclusive: {why.text}", figures=figures or {})


def wrong_while_timed(found: str) -> Verdict:
    """Returns the verdict on a wrong result of a timed call. found: the replay process's sentence about it."""
    said = Speeds.WRONG_WHILE_TIMED(what=found.removeprefix("a timed call "))
    return failed(Cause.WRONG_WHILE_TIMED, said, kind="values")


def too_slow(
    speed: MeasuredSpeeds, plan: Plan, config: int, submission: Submission, model: GpuModel, filename: str
) -> Verdict:
    said = Speeds.TOO_SLOW(**speed.evidence, ceiling=speed.rate_text(speed.ceiling), gate=100 * speed.gate)
    compared = None
    if other := speed.elsewhere:
        compared = Speeds.OF_SOLUTION(gpu=other.measured_on, of_solution=other.of_solution, least=other.least)
    reason = _what_holds_it_back(plan, config, model, filename)
    verdict = failed(Cause.TOO_SLOW, said, speed.with_earlier, compared, reason, kind="cost")
    verdict.figures = speed.figures
    return verdict


def _what_holds_it_back(plan: Plan, config: int, model: GpuModel, filename: str) -> Said:
    """Returns the likeliest reason for a low speed, read from the machine code and the launches."""
    launches = list(plan.launches(config))
    if len(launches) > 1:
        return Speeds.SEVERAL_LAUNCHES(count=len(launches))
    launch = launches[0]
    facts = facts_of(plan.kernels[launch.kernel], filename)
    if facts.spills:
        return Speeds.SPILLS(bytes=facts.spilled_bytes)
    programs = launch.grid[0] * launch.grid[1] * launch.grid[2]
    if programs < LEAST_WAVES * model.multiprocessors:
        return Speeds.FEW_PROGRAMS(count=programs, multiprocessors=model.multiprocessors)
    moved = sum(buffer.bytes for buffer in plan.buffers) / programs
    if moved < FEW_BYTES_PER_PROGRAM:
        return Speeds.SMALL_PROGRAMS(count=programs, bytes=moved)
    access = facts.narrowest(facts.tile_bytes / 4)
    if access is None or access.bytes >= WIDEST:
        return Speeds.ADVICE_OTHER_TILES()
    narrow: Fields = {"access": access.kind, "bytes": access.bytes, "widest": WIDEST}
    if access.line:
        return Speeds.NARROW_ACCESS_IN_LINE(**narrow, line=access.line)
    return Speeds.NARROW_ACCESS(**narrow)
