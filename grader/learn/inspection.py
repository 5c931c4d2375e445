"""`course inspect`: a compiled kernel, shown without a GPU: its resources, its code at every level, its launch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from grader.course.by_name import EXERCISE
from grader.course.folder import Folder
from grader.judging.uses import CompiledUse, uses_asked
from grader.learn.code_levels import LEVELS, READING, instructions
from grader.learn.usable_submission import judge_it, launch_plan, refuse_what_cannot_run, refuse_without_kernels
from grader.sentences import count_text
from grader.wire.printable import one_line

if TYPE_CHECKING:
    from types import ModuleType

    from grader.gpu.plan import Plan, PlannedKernel, PlannedLaunch
    from grader.judging.run import Run

ALIKE = "; there are more threads than values: several load the same one"
NAMES = {"ttir": "Triton IR", "ttgir": "Triton GPU IR", "llir": "LLVM IR", "ptx": "PTX", "sass": "machine code"}


@click.command("inspect", short_help="what Triton makes of your kernel: code, registers, launch")
@click.argument("exercise", type=EXERCISE, metavar="NN")
@click.option("--ir", "level", type=click.Choice(LEVELS), help="show the code at this level, next to your lines")
@click.option("--meta", is_flag=True, help="show how the kernel is launched: grid, warps, parameters")
@click.option("--submission", metavar="PATH", help="show this file instead of yours")
@click.option("--target", metavar="sm_NN", help="the GPU to compile for (default: the one here, else sm_90)")
def inspect_kernel(exercise: Folder, level: str | None, meta: bool, submission: str | None, target: str | None) -> None:
    """Compiles your kernel as one of the tests asks, and shows what became of it. No GPU is needed.

    Without --ir it shows what the kernel uses up. The levels, from your code to the machine's: ttir, ttgir, llir,
    ptx, sass.

    \b
    Example:  course inspect 03 --ir ptx
    """
    from grader.course.folder import load_test_file
    from grader.gpu.models import MODELS
    from grader.gpu.nvml import target_here
    from grader.judging.run import Run
    from grader.show.terminal import busy

    target = target or target_here()
    if target not in MODELS:
        raise click.ClickException(f"There is no target {target!r}: it is one of {', '.join(MODELS)}.")
    module = load_test_file(exercise)
    refuse_without_kernels(exercise, module.exercise)
    run = Run(exercise, submission, seed=0, model=MODELS[target])
    try:
        refuse_what_cannot_run(run)
        with busy("Compiling ..."):
            plan, sizes = _plan(run, module, level)
    finally:
        run.end()
    launches = list(plan.launches())
    if not launches:
        raise click.ClickException(f"{module.exercise.entry} launched no kernel. Next: {judge_it(run)}")
    _show(run, plan, launches, sizes, level, meta)


def _plan(run: Run, module: ModuleType, level: str | None) -> tuple[Plan, str]:
    """Returns the launch plan of the first call that a test compiles, and the sizes of that call in words.

    Raises click.ClickException if there is none, or if it does not compile.
    """
    from grader.course.trial import Trial
    from grader.wire.reply import DTYPES

    stated, cases = module.exercise, uses_asked(module, CompiledUse)
    if not cases:
        raise click.ClickException(f"No test of {run.folder.id} compiles a kernel.")
    case = cases[0]
    trial = Trial(stated, case.test, case.data, DTYPES[stated.dtypes[0]], stated.bound, case.constants)
    texts = {"ptx", "ttgir", *([level] if level and level != "sass" else [])}
    return launch_plan(run, trial, tuple(sorted(texts))).plan, trial.sizes_label


# ---- output -------------------------------------------------------------------------------------------------------


def _show(run: Run, plan: Plan, launches: list[PlannedLaunch], sizes: str, level: str | None, meta: bool) -> None:
    from grader.show.terminal import console

    out = console()
    out.print(f"{run.folder.id}, {sizes}, compiled for {run.model.target} ({run.model.name})", style="bold",
              markup=False)  # fmt: skip
    for number in dict.fromkeys(launch.kernel for launch in launches):
        kernel = plan.kernels[number]
        out.print(f"\n{kernel.name}", style="bold", markup=False)
        if level:
            _show_level(out, run, kernel, level)
        else:
            _show_resources(out, run, kernel)
    if meta:
        for launch in launches:
            _show_launch(out, plan, launch)
    out.print()
    out.print(_next(run.folder, level, meta), markup=False, soft_wrap=True)


def _show_resources(out, run: Run, kernel: PlannedKernel) -> None:
    from grader.gpu.compiled_facts import facts_of

    facts = facts_of(kernel, run.filename)
    widths: dict[tuple, list] = {}
    for access in facts.accesses:
        widths.setdefault((access.kind, access.bytes, access.line), []).append(access)
    spilled = f"; {facts.spilled_bytes} bytes spilled to memory" if facts.spilled_bytes else ", none spilled"
    blocks = facts.blocks_per_multiprocessor(run.model.shared_per_multiprocessor)
    each, part = (f" in each of {facts.blocks} blocks", "block") if facts.blocks > 1 else ("", "program")
    rows = [
        ("warps", f"{facts.warps}{each}: {32 * facts.warps * facts.blocks} threads work on a program"),
        ("registers", f"{facts.registers} of 255 per thread{spilled}"),
        ("shared memory", f"{facts.shared} of {run.model.shared_per_block} bytes per {part}"),
        ("at a time", f"{count_text(blocks, part)} per multiprocessor"),
        ("products", facts.tensor_cores or "none on tensor cores"),
        ("stages", f"{facts.stages}; {facts.async_copies + facts.tma_copies} asynchronous copies in the code"),
    ]
    for name, text in rows:
        out.print(f"  {name:<15}{text}", markup=False, soft_wrap=True)
    for (kind, size, line), accesses in widths.items():
        where = f"line {line}" if line else "no line"
        alike = kind == "load" and all(0 < facts.share_per_thread(access) < size for access in accesses)
        text = f"{count_text(len(accesses), kind)} of {size} bytes per thread{ALIKE if alike else ''}"
        out.print(f"  {where:<15}{text}", markup=False, soft_wrap=True)


def _show_level(out, run: Run, kernel: PlannedKernel, level: str) -> None:
    text = _machine_code(run, kernel) if level == "sass" else kernel.texts.get(level, "")
    out.print(READING[level], markup=False)
    out.print()
    before = 0
    for instruction in instructions(level, text, run.filename):
        if instruction.line not in (0, before):
            out.print(f"{instruction.line:>4}  {run.submission.line(instruction.line)}", style="cyan", markup=False,
                      soft_wrap=True)  # fmt: skip
            before = instruction.line
        number = f"{instruction.line}" if instruction.line else ""
        out.print(f"{number:>4} | {one_line(instruction.text.expandtabs(8))}", markup=False, soft_wrap=True)


def _machine_code(run: Run, kernel: PlannedKernel) -> str:
    from grader.learn.disassembly import NotDisassembled, disassembled

    try:
        return disassembled(kernel.code, kernel.texts["ptx"])
    except NotDisassembled as error:
        raise click.ClickException(f"{error} Next: course inspect {run.folder.number} --ir ptx") from None


def _show_launch(out, plan: Plan, launch: PlannedLaunch) -> None:
    kernel = plan.kernels[launch.kernel]
    out.print(f"\nLaunch of {kernel.name} in line {launch.line}", style="bold", markup=False)
    grid = " x ".join(map(str, launch.grid))
    out.print(f"  grid            {grid} programs", markup=False)
    out.print(f"  num_warps       {kernel.warps}\n  num_stages      {kernel.stages}\n  num_ctas        {kernel.ctas}")
    out.print(f"  shared          {kernel.shared} bytes")
    for parameter in launch.parameters:
        value = parameter.value
        if parameter.type in ("pointer", "tensormap"):
            value = "null" if parameter.buffer < 0 else f"{plan.buffers[parameter.buffer].name} + {parameter.offset}"
        out.print(f"  {parameter.name:<16}{parameter.type:<10}{value}", markup=False, soft_wrap=True)
    out.print("  What is not listed was known to the compiler: constexpr arguments, and integers equal to 1.")


def _next(folder: Folder, level: str | None, meta: bool) -> str:
    if level is None:
        return f"Next: course inspect {folder.number} --ir ttir" + ("" if meta else ", or --meta for the launch")
    if level == LEVELS[-1]:
        return f"Next: course inspect {folder.number} sums up what it uses"
    following = LEVELS[LEVELS.index(level) + 1]
    return f"Next: course inspect {folder.number} --ir {following} shows the {NAMES[following]}"
