"""`course doctor`: shows what is installed and can be judged here, and runs and compiles a kernel to prove it."""

from __future__ import annotations

import importlib.metadata
import platform
import sys
from collections.abc import Callable
from itertools import chain, repeat
from pathlib import Path
from typing import TYPE_CHECKING

import click

from grader.doctor.gpu_probe import FoundGpu, examine_gpu
from grader.places import command_for
from grader.processes import bubblewrap

if TYPE_CHECKING:
    import torch

    from grader.judging.packed_calls import PackedCall
    from grader.wire.fence import Fence

SUPPORTED = {"torch": (2, 6), "triton": (3, 6), "numpy": (1, 26), "pytest": (8, 2)}
TESTED_TRITONS = ("3.6.0", "3.7.1", "3.8.0", "3.9.0")  # `tox` has a part for each: tests/parts.py
PYTHONS = ((3, 11), (3, 13))


PROBE = """\
import torch, triton
import triton.language as tl


@triton.jit
def probe_kernel(x_ptr, z_ptr, N, BLOCK_N: tl.constexpr):
    total = tl.zeros((BLOCK_N,), dtype=tl.float32)
    for start in range(0, N, BLOCK_N):
        offsets = start + tl.arange(0, BLOCK_N)
        total += tl.load(x_ptr + offsets, mask=offsets < N, other=0.0)
    tl.store(z_ptr, tl.sum(total, 0))


def probe(x):
    z = torch.empty((1,), dtype=x.dtype, device=x.device)
    probe_kernel[(1,)](x, z, x.numel(), BLOCK_N=64)
    return z
"""


@click.command(short_help="versions, what can be judged here, a self-test")
@click.option("--calibrate", is_flag=True, help="Measure on this GPU how fast is fast enough, about 15 s an exercise.")
@click.argument("exercises", nargs=-1, metavar="[NN]...")
def doctor(calibrate: bool, exercises: tuple[str, ...]) -> None:
    """Versions, what can be judged here, and a kernel that runs to prove it.

    On a machine with a GPU it also measures what the GPU can do now, and whether verdicts on speed can be trusted.

    Gates of speed were measured on an H100 and an H200. With --calibrate they are measured on this GPU, for all
    exercises or those that are named, and kept in .course/calibration.json of this folder.

    \b
    Example:  course doctor
              course doctor --calibrate 03 05
    """
    if calibrate:
        raise SystemExit(0 if _calibrated(exercises) else 1)
    if exercises:
        raise click.UsageError("Exercises are named for --calibrate: course doctor --calibrate " + " ".join(exercises))
    raise SystemExit(0 if examine(click.echo) else 1)


def _calibrated(exercises: tuple[str, ...]) -> bool:
    from grader.course.by_name import chosen
    from grader.doctor.calibrate import calibrate
    from grader.gpu.device import Device, device_here

    folders, device = chosen(exercises), device_here()
    if not isinstance(device, Device):
        raise click.ClickException(f"Gates are measured on a GPU: {device}.")
    return calibrate(folders, device, click.echo)


def examine(say: Callable[[str], None]) -> bool:
    """Says what it finds, line by line; returns whether exercises can be judged on this machine."""
    fine = examine_judge(say)
    if fine:
        _fence(say)
    gpu = _gpu(say) if fine else FoundGpu()
    say(f"sandbox        {bubblewrap.missing() or 'bubblewrap works'}; only needed to grade other people's files")
    say("")
    if fine:
        for line in judged_here(gpu):
            say(line)
        say("Next: pytest exercises/01_masked_add" + " --device cpu" * (gpu.here and not gpu.usable))
    else:
        say("Exercises cannot be judged here until the lines marked with ! are mended.")
        say(f"Next: {command_for()}")
    return fine


def examine_judge(say: Callable[[str], None]) -> bool:
    """Says versions, the system and the self-test, line by line; returns whether exercises can be judged here."""
    fine = _versions(say)
    fine &= _platform(say)
    return fine and _self_test(say)


def _gpu(say: Callable[[str], None]) -> FoundGpu:
    from grader.course.by_name import course_here
    from grader.course.folder import all_folders
    from grader.doctor.calibrate import gates_line
    from grader.gpu.device import driver_device, model_here
    from grader.show.terminal import busy

    gpu = examine_gpu(lambda name, found, good: say(_line(name, found, good, "")), busy)
    if gpu.usable and (root := course_here()):
        say(_line("gates", gates_line(root, all_folders(root), model_here(driver_device()).name), True, ""))
    return gpu


def judged_here(gpu: FoundGpu) -> list[str]:
    """Returns the lines that say what is judged on this machine and what is not."""
    judged = "Judged here: values, memory safety, races, traffic, machine code."
    if not gpu.here:
        return [f"{judged} Not here: speed."]
    if not gpu.usable:
        return [judged, "Not here: large sizes in full and speed, since the GPU cannot be used."]
    speed = "speed" if gpu.trusted else "speed, which may come out as inconclusive"
    return [judged, f"On the GPU: large sizes, bf16 and {speed}."]


def _versions(say: Callable[[str], None]) -> bool:
    version = sys.version_info[:2]
    fine = PYTHONS[0] <= version
    note = "" if version <= PYTHONS[1] else f"  newer than {'.'.join(map(str, PYTHONS[1]))}, the newest tested"
    say(_line("Python", platform.python_version(), fine, note or _least(PYTHONS[0], fine)))
    for name, least in SUPPORTED.items():
        try:
            found = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            say(_line(name, "missing", False, ""))
            fine = False
            continue
        release = found.split("+")[0]
        enough = tuple(int(part) for part in release.split(".")[:2] if part.isdigit()) >= least
        untested = enough and name == "triton" and release not in TESTED_TRITONS
        note = f"  tests ran on {', '.join(TESTED_TRITONS)}" if untested else _least(least, enough)
        say(_line(name, found, enough, note))
        fine &= enough
    return fine


def _least(version: tuple[int, ...], fine: bool) -> str:
    return "" if fine else f"  at least {'.'.join(map(str, version))} is needed"


def _line(name: str, version: str, fine: bool, note: str) -> str:
    return f"{name:<15}{version}{'' if fine else '  !'}{note}"


def _platform(say: Callable[[str], None]) -> bool:
    fine = sys.platform == "linux"
    note = "" if fine else "  !  Triton is published for Linux: use Linux, WSL or a container"
    say(f"{'system':<15}{platform.system()} {platform.machine()}{note}")
    return fine


def _self_test(say: Callable[[str], None]) -> bool:
    """Interprets and compiles a kernel with a loop of runtime length, and says what came of it.

    Returns whether both worked.
    """
    from grader.processes.faults import ChildEnded, MachineFault

    fine = True
    for name, test in (("interpreter", _interpreted), ("compiler", _compiled)):
        try:
            passed, outcome = test()
        except (ChildEnded, MachineFault) as error:
            passed, outcome = False, f"{type(error).__name__}: {error}"
        say(_line(name, outcome, passed, ""))
        fine &= passed
    return fine


def _fence(say: Callable[[str], None]) -> None:
    """Says what isolates a submission on this machine; exercises can be judged with less isolation, too."""
    from grader.explain.fence_words import told

    for name, said in zip(chain(["fence"], repeat("")), told(fence_here())):
        say(_line(name, said.text, True, ""))


def fence_here() -> Fence:
    """Returns the fence of a process that has just started on this machine."""
    from grader.gpu.models import DEFAULT_MODEL
    from grader.processes.child import ChildProcess

    child = ChildProcess(DEFAULT_MODEL)
    child.end()
    return child.fence


def _interpreted() -> tuple[bool, str]:
    import torch

    from grader.processes.interpreter_process import Interpreter
    from grader.wire.messages import InterpretRequest
    from grader.wire.reply import spec_and_bytes

    x = torch.arange(1, 201, dtype=torch.float32)
    recorded, interpreter = _recorded(x), Interpreter()
    if recorded.call.error is not None:
        return False, str(recorded.call.error)
    spec, data = spec_and_bytes("x", x, len(recorded.blob))
    try:
        request = InterpretRequest(*recorded.places, "probe.py", [spec], limit=30.0)
        reply = interpreter.ask(request, recorded.blob + data)
    finally:
        interpreter.end()
    total = float(reply.output) if reply.output is not None else None
    outcome = f"a kernel ran: the sum of 1 to 200 is {total:g}" if total is not None else str(reply.error)
    return total == 20100 and not reply.findings, outcome


def _compiled() -> tuple[bool, str]:
    import torch

    from grader.compiler.machine_code import MachineCode
    from grader.gpu.models import DEFAULT_MODEL
    from grader.wire.recorded_parts import BadPlan
    from grader.wire.reply import spec_of

    x = torch.empty(200, device="meta")
    try:
        plan = MachineCode(DEFAULT_MODEL).plan(_recorded(x).call, [spec_of("x", x)], {})
    except BadPlan as error:
        return False, str(error)
    if plan.error is not None or not plan.kernels:
        return False, str(plan.error or "nothing was compiled")
    return True, f"a kernel was compiled for {DEFAULT_MODEL.target}: {plan.kernels[0].cubin.registers} registers"


def _recorded(x: torch.Tensor) -> PackedCall:
    """Returns the recorded call of the probe with this argument."""
    from grader.gpu.models import DEFAULT_MODEL
    from grader.judging.kernel_texts import record_call
    from grader.judging.packed_calls import PackedCall
    from grader.processes.front_end_process import FrontEnd
    from grader.processes.submission_process import SubmissionProcess
    from grader.submission.text import Submission
    from grader.wire.messages import RecordRequest
    from grader.wire.reply import spec_of

    of = Submission(Path("probe.py"), PROBE.encode()), "probe.py", DEFAULT_MODEL
    process, front_end = SubmissionProcess(*of), FrontEnd(*of)
    try:
        return PackedCall(record_call(RecordRequest("probe", [spec_of("x", x)]), process, front_end, 60.0))
    finally:
        process.end()
        front_end.end()
