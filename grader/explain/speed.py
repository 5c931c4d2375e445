"""A measured speed in words: the rate, its share of the anchor's, what was needed, and what may hold a kernel back."""

from __future__ import annotations

from dataclasses import dataclass

from grader.explain.causes import Cause
from grader.explain.verdict import INCONCLUSIVE, PASS, SKIPPED, Verdict, failed
from grader.gpu.answers import COPY, MATMUL
from grader.gpu.compiled_facts import WIDEST, facts_of
from grader.gpu.plan import Plan
from grader.sentences import count_text
from grader.submission.text import Submission
from grader.wire.messages import GpuModel

FEW_BYTES_PER_PROGRAM = 2048
LEAST_WAVES = 2  # programs per multiprocessor


@dataclass
class Speed:
    """Rates of one call: bytes per second where the anchor is a copy, FLOP per second where it is a product."""

    anchor: str
    gate: float
    share: float  # of the anchor's speed, in this run
    rate: float
    ceiling: float  # the anchor's own rate
    torch: float = 0.0
    samples: int = 0
    spread: float = 0.0  # between processes, as a logarithm
    earlier: int = 0  # samples of earlier runs that count too
    share_of_all: float = 0.0  # with these

    @property
    def text(self) -> str:
        """ "3 921 GB/s, 91 % of what this GPU can copy" """
        of = "what this GPU can copy" if self.anchor == COPY else "cuBLAS"
        return f"{self.rate_text(self.rate)}, {self.share:.0%} of {of}".replace("%", " %")

    @property
    def needed(self) -> str:
        return f"needed {self.gate:.0%}".replace("%", " %")

    def rate_text(self, rate: float) -> str:
        if self.anchor == COPY:
            return f"{rate / 1e9:,.0f} GB/s".replace(",", " ")
        return f"{rate / 1e12:.0f} TFLOP/s"

    @property
    def with_earlier(self) -> list[str]:
        """A sentence, if this very kernel was measured before."""
        if not self.earlier:
            return []
        share = f"{self.share_of_all:.0%}".replace("%", " %")
        counted = f"{count_text(self.earlier, 'earlier sample')} of this kernel count too, as it has not changed"
        return [f"{counted}: {share} in the middle of all."]

    @property
    def compared(self) -> list[tuple[str, float]]:
        """Rates by name: the submission's, torch's unless it is the ceiling, the ceiling."""
        torch = [("torch", self.torch)] if self.torch and self.anchor == COPY else []
        return [("yours", self.rate), *torch, ("copy" if self.anchor == COPY else "cuBLAS", self.ceiling)]

    @property
    def figures(self) -> dict[str, float]:
        unit = "bytes_per_second" if self.anchor == COPY else "flops"
        shares = {"share": round(self.share, 4), "gate": self.gate, "samples": self.samples, "earlier": self.earlier}
        rates = {unit: round(self.rate), f"ceiling_{unit}": round(self.ceiling), f"torch_{unit}": round(self.torch)}
        return {**shares, **rates}

    @staticmethod
    def from_figures(figures: dict[str, float]) -> Speed | None:
        """Of a test's figures; None where no speed was measured. Raises TypeError, ValueError or KeyError."""
        if "share" not in figures:
            return None
        anchor, unit = (COPY, "bytes_per_second") if "bytes_per_second" in figures else (MATMUL, "flops")
        rates = (float(figures[name]) for name in (unit, f"ceiling_{unit}", f"torch_{unit}"))
        return Speed(anchor, float(figures["gate"]), float(figures["share"]), *rates, int(figures["samples"]))


def fast_enough(speed: Speed) -> Verdict:
    torch = f"; torch {speed.rate_text(speed.torch)}" if speed.torch and speed.anchor == COPY else ""
    grace = ", within the measuring grace" if speed.share < speed.gate else ""
    earlier = "".join(f"; {sentence.removesuffix('.')}" for sentence in speed.with_earlier)
    return Verdict(PASS, note=f"{speed.text}; {speed.needed}{grace}{torch}{earlier}", figures=speed.figures)


def inconclusive(why: str, figures: dict[str, float] | None = None) -> Verdict:
    return Verdict(SKIPPED, INCONCLUSIVE, [why], note=f"inconclusive: {why}", figures=figures or {})


def too_noisy(speed: Speed) -> Verdict:
    why = (
        f"{speed.text}, {speed.needed}, but the speed differs by {speed.spread:.1%} from one process to the next: too "
        "noisy to tell. Run it again when the GPU is quiet."
    ).replace("%", " %")
    return inconclusive(why.replace("  %", " %"), speed.figures)


def impossible(speed: Speed) -> Verdict:
    return inconclusive(f"{speed.text} is faster than this GPU can be; please report it", speed.figures)


def wrong_while_timed(sentence: str) -> Verdict:
    return failed(
        Cause.WRONG_WHILE_TIMED, f"While it was timed, {sentence.removeprefix('a timed call ')}.", kind="values"
    )


def too_slow(speed: Speed, plan: Plan, config: int, submission: Submission, model: GpuModel, filename: str) -> Verdict:
    ceiling = f" ({speed.rate_text(speed.ceiling)})"
    verdict = failed(
        Cause.TOO_SLOW, f"{speed.text}{ceiling}; {speed.needed}.", *speed.with_earlier,
        *_what_holds_it_back(plan, config, model, filename), kind="cost",
    )  # fmt: skip
    verdict.figures = speed.figures
    return verdict


def _what_holds_it_back(plan: Plan, config: int, model: GpuModel, filename: str) -> list[str]:
    """The likeliest reason first, one at most: from the machine code and the launches."""
    launches = list(plan.launches(config))
    if len(launches) > 1:
        return [f"One call launches {count_text(len(launches), 'kernel')}: each reads and writes memory again."]
    launch = launches[0]
    facts = facts_of(plan.kernels[launch.kernel], filename)
    if facts.spills:
        return [f"{facts.spilled_bytes} bytes per thread are spilled from registers to memory: use a smaller tile."]
    programs = launch.grid[0] * launch.grid[1] * launch.grid[2]
    if programs < LEAST_WAVES * model.multiprocessors:
        return [
            f"{count_text(programs, 'program')} share {model.multiprocessors} multiprocessors: smaller tiles give all "
            "of them work."
        ]
    moved = sum(buffer.bytes for buffer in plan.buffers) / programs
    if moved < FEW_BYTES_PER_PROGRAM:
        many = f"{programs:,}".replace(",", " ")
        return [
            f"Each of {many} programs moves {moved:.0f} bytes. Starting one costs more than that: try larger tiles."
        ]
    access = facts.narrowest(facts.tile_bytes / 4)
    if access is not None and access.bytes < WIDEST:
        where = f" in line {access.line}" if access.line else ""
        return [f"The {access.kind}s{where} move {access.bytes} bytes at a time; one thread can move {WIDEST}."]
    return ["The machine code looks sound: try other tile sizes, and other numbers of warps (num_warps=)."]
