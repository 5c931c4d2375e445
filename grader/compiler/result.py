"""The answer of a compiler process, checked field by field: a hostile text may control the process."""

from __future__ import annotations

from dataclasses import dataclass, field

from grader.gpu.amd import ASSEMBLY
from grader.gpu.models import AmdModel
from grader.gpu.plan import TEXTS, PlannedKernel
from grader.wire.cubin import BadCubin, read_cubin
from grader.wire.fields import build, checked, items
from grader.wire.frames import ProtocolError
from grader.wire.launch_abi import MOST_THREADS, WARP_SIZE, Metadata, TensorMapForm
from grader.wire.messages import GpuModel
from grader.wire.recorded_parts import read_part

LAID_OUT = "laid out"
GENERIC = ("optimised", LAID_OUT)  # texts besides those of the stages
STAGES = (*TEXTS, "cubin", ASSEMBLY)
TENSOR_MEMORY_COLUMNS = 512  # of a multiprocessor from sm_100 on
FAILURES = ("options", "text", "stage", "assembler", "memory", "time", "died", "resources")


@dataclass(frozen=True)
class Failed:
    """The reason why there is no machine code, as data.

    what: "options" (this target or release does not have them), "text" (it does not parse), "stage" (a pass fails),
        "assembler" (it fails), "memory" and "time" (compiling takes too much), "died" (the process ended, as by an
        assertion of the compiler), "resources" (the kernel needs more than the GPU has).
    """

    what: str
    message: str = ""
    stage: str = ""  # "options", "source", or one of STAGES; "" if unknown


@dataclass
class CompilerResult:
    """A compiled kernel.

    `kernel` is complete if machine code was requested. `optimised` and `laid_out` are the generic forms after make_ttir
    and make_ttgir, "" unless requested.
    """

    kernel: PlannedKernel
    metadata: Metadata
    optimised: str = ""
    laid_out: str = ""
    descriptors: list[TensorMapForm] = field(default_factory=list)  # one for each that the host made; none before sm_90


def read_answer(header: dict, blob: bytes, model: GpuModel | AmdModel) -> CompilerResult | Failed:
    """Returns the kernel or the failure of an answer. Raises ProtocolError where a sound process would not send it."""
    if header["kind"] == "failed":
        what, message, stage = (checked(header.get(name), "str", name) for name in ("what", "message", "stage"))
        if what not in FAILURES:
            raise ProtocolError("a failure of an unknown kind")
        return Failed(what, message, stage)
    if header["kind"] != "compiled" or not isinstance(header.get("parts"), dict):
        raise ProtocolError("an answer of the wrong kind")
    metadata = build(Metadata, header.get("metadata"))
    parts = {name: read_part(place, blob) for name, place in header["parts"].items() if name in (*STAGES, *GENERIC)}
    texts = {name: data.decode("utf-8", "replace") for name, data in parts.items() if name != "cubin"}
    optimised, laid_out = (texts.pop(name, "") for name in GENERIC)
    compiled = CompilerResult(_kernel(metadata), metadata, optimised, laid_out)
    compiled.descriptors = items(header, "descriptors", lambda data: build(TensorMapForm, data))
    compiled.kernel.texts = {name: texts[name] for name in (*TEXTS, ASSEMBLY) if name in texts}
    if isinstance(model, AmdModel) and ASSEMBLY not in texts:
        raise ProtocolError(f"there is no {ASSEMBLY}")
    if "cubin" in parts and isinstance(model, GpuModel):
        return _with_code(compiled, parts["cubin"], model)
    return compiled


def _kernel(metadata: Metadata) -> PlannedKernel:
    return PlannedKernel(
        metadata.name, metadata.shared, metadata.num_warps, metadata.num_stages, metadata.num_ctas,
        metadata.launch_cooperative_grid, metadata.launch_pdl,
    )  # fmt: skip


def _with_code(compiled: CompilerResult, code: bytes, model: GpuModel) -> CompilerResult | Failed:
    """Returns the kernel with its machine code, or the failure if it needs more than the GPU has, in Triton's words.

    Triton makes these checks when it loads the code. Raises ProtocolError if the machine code cannot be read.
    """
    metadata = compiled.metadata
    for name, needed, most in (
        ("shared memory", metadata.shared, model.shared_per_block),
        ("tensor memory", metadata.tmem_size or 0, TENSOR_MEMORY_COLUMNS),
        ("threads", metadata.num_warps * WARP_SIZE, MOST_THREADS),
    ):
        if needed > most:
            words = f"out of resource: {name}, Required: {needed}, Hardware limit: {most}."
            return Failed("resources", f"{words} Reducing block sizes or `num_stages` may help.", "cubin")
    try:
        compiled.kernel.code, compiled.kernel.cubin = code, read_cubin(code)
    except BadCubin as error:
        raise ProtocolError(f"the machine code cannot be read: {error}") from None
    return compiled
